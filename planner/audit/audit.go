package audit

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/trimtab/trimtab"
)

// trifle is the largest rounding error: figures below it count as 0.
const trifle = 1e-9

// Resource is one resource of a pool.
type Resource struct {
	Name string
	// Capacity is in the resource's unit, > 0.
	Capacity float64
}

// Tenant is one workload.
type Tenant struct {
	Name string
	// Entitlement is its part of the pool, in [0, 1]; a tenant without one is counted at what it
	// has, and no other is compared with it.
	Entitlement float64
	// Has and Demand are by the index of the resource, in its unit, >= 0; a
	// nil Demand is unknown.
	Has, Demand []float64
	// Room is how much more of each resource it can be given on its hosts; nil: all that is free.
	Room []float64
}

// Pool is an allocation to audit.
type Pool struct {
	Resources []Resource
	// Tenants are in order of name.
	Tenants []Tenant
}

// Of audits p. It takes time n log n in the tenants if few allocations are enviable, as under a
// fair policy, and n² at worst.
func Of(p *Pool) *trimtab.Audit {
	out := &trimtab.Audit{Resources: make([]trimtab.AuditedResource, len(p.Resources))}
	for r, of := range p.Resources {
		out.Resources[r] = trimtab.AuditedResource{Resource: of.Name, Capacity: of.Capacity}
	}
	rows := p.judge(out.Resources)
	out.Now = total(rows)
	out.Workloads, out.Omitted = worst(rows)
	return out
}

// FairnessOf returns the figures alone.
func FairnessOf(p *Pool) trimtab.Fairness {
	return total(p.judge(make([]trimtab.AuditedResource, len(p.Resources))))
}

// judge returns a row per tenant that is entitled, and fills the sums.
func (p *Pool) judge(sums []trimtab.AuditedResource) []trimtab.AuditedWorkload {
	free := make([]float64, len(p.Resources))
	for r := range p.Resources {
		for i := range p.Tenants {
			sums[r].Used += p.Tenants[i].Has[r]
			if d := p.Tenants[i].Demand; d != nil {
				sums[r].Demanded += d[r]
			}
		}
		free[r] = max(0, p.Resources[r].Capacity-sums[r].Used)
	}
	enviable := p.enviable()
	rows := make([]trimtab.AuditedWorkload, 0, len(p.Tenants))
	for i := range p.Tenants {
		t := &p.Tenants[i]
		if t.Entitlement <= 0 {
			continue
		}
		row := trimtab.AuditedWorkload{Workload: t.Name, Entitlement: t.Entitlement}
		row.Share, row.Dominant = p.dominant(t)
		if t.Demand != nil {
			p.judgeOne(t, &row, free, enviable, sums)
		}
		rows = append(rows, row)
	}
	return rows
}

// dominant returns the greatest share of any resource that t has.
func (p *Pool) dominant(t *Tenant) (share float64, name string) {
	for r, of := range p.Resources {
		if s := t.Has[r] / of.Capacity; s > share {
			share, name = s, of.Name
		}
	}
	return share, name
}

// judgeOne fills the figures of one tenant.
func (p *Pool) judgeOne(t *Tenant, row *trimtab.AuditedWorkload, free []float64, enviable *frontier, sums []trimtab.AuditedResource) {
	u, bound := t.satisfaction(t.Has)
	row.Satisfaction = &u
	if bound >= 0 {
		row.Binding = p.Resources[bound].Name
		sums[bound].Binds++
	}
	entitled, with := make([]float64, len(free)), make([]float64, len(free))
	for r, of := range p.Resources {
		entitled[r], with[r] = t.Entitlement*of.Capacity, t.Has[r]+free[r]
		if t.Room != nil {
			with[r] = t.Has[r] + min(free[r], t.Room[r])
		}
	}
	fair, _ := t.satisfaction(entitled)
	row.Shortfall = beyond(fair, u)
	more, _ := t.satisfaction(with)
	row.Slack = beyond(more, u)
	if bound < 0 {
		return // it has all that it can use
	}
	best, at := enviable.best(p, t)
	if row.Envy = beyond(best, u); row.Envy > 0 {
		row.Envies = p.Tenants[at].Name
	}
}

// beyond returns how much more a is than b.
func beyond(a, b float64) float64 {
	if a-b <= trifle {
		return 0
	}
	return a - b
}

// satisfaction returns u_i(a), and the resource that keeps it below 1; -1: none.
func (t *Tenant) satisfaction(a []float64) (u float64, bound int) {
	u, bound = 1, -1
	for r, d := range t.Demand {
		if d <= 0 {
			continue
		}
		if v := a[r] / d; v < u && v < 1-trifle {
			u, bound = v, r
		}
	}
	return u, bound
}

// total sums up the rows.
func total(rows []trimtab.AuditedWorkload) trimtab.Fairness {
	f := trimtab.Fairness{Least: 1}
	for i := range rows {
		w := &rows[i]
		if w.Satisfaction == nil {
			continue
		}
		f.Least = min(f.Least, *w.Satisfaction)
		f.Envy, f.Shortfall, f.Slack = max(f.Envy, w.Envy), max(f.Shortfall, w.Shortfall), max(f.Slack, w.Slack)
		if w.Envy > 0 {
			f.Envious++
		}
		if w.Shortfall > 0 {
			f.Short++
		}
	}
	return f
}

// worst returns at most MaxAudited rows, those with the greatest figures, in
// order of name, and how many were left out.
func worst(rows []trimtab.AuditedWorkload) ([]trimtab.AuditedWorkload, int) {
	omitted := len(rows) - trimtab.MaxAudited
	if omitted <= 0 {
		return rows, 0
	}
	harm := func(w *trimtab.AuditedWorkload) float64 {
		if w.Satisfaction == nil {
			return -1
		}
		return max(w.Envy, w.Shortfall, w.Slack) + (1-*w.Satisfaction)*trifle
	}
	byName := func(a, b trimtab.AuditedWorkload) int { return strings.Compare(a.Workload, b.Workload) }
	slices.SortFunc(rows, func(a, b trimtab.AuditedWorkload) int {
		return cmp.Or(cmp.Compare(harm(&b), harm(&a)), byName(a, b))
	})
	rows = rows[:trimtab.MaxAudited]
	slices.SortFunc(rows, byName)
	return rows, omitted
}

// frontier holds the allocations that may be envied, per entitlement: one that exceeds another in
// no resource is no more enviable.
type frontier struct {
	// bundles[k][r] is the fraction of resource r's capacity that tenant at[k] has, divided by
	// its entitlement.
	bundles [][]float64
	at      []int
	// by[r] are the bundles in falling order of resource r.
	by [][]int
}

func (p *Pool) enviable() *frontier {
	f := &frontier{by: make([][]int, len(p.Resources))}
	all := make([][]float64, len(p.Tenants))
	sums := make([]float64, len(p.Tenants))
	var order []int
	for i := range p.Tenants {
		t := &p.Tenants[i]
		if t.Entitlement <= 0 {
			continue
		}
		order = append(order, i)
		all[i] = make([]float64, len(p.Resources))
		for r, of := range p.Resources {
			all[i][r] = t.Has[r] / of.Capacity / t.Entitlement
			sums[i] += all[i][r]
		}
	}
	// A tenant with a larger sum is not dominated by those that follow in this order.
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sums[b], sums[a]) })
	for _, i := range order {
		if !slices.ContainsFunc(f.bundles, func(b []float64) bool { return covers(b, all[i]) }) {
			f.bundles, f.at = append(f.bundles, all[i]), append(f.at, i)
		}
	}
	for r := range f.by {
		for k := range f.bundles {
			f.by[r] = append(f.by[r], k)
		}
		slices.SortStableFunc(f.by[r], func(a, b int) int { return cmp.Compare(f.bundles[b][r], f.bundles[a][r]) })
	}
	return f
}

// covers reports whether a has as much as b of everything.
func covers(a, b []float64) bool {
	for r := range b {
		if a[r] < b[r] {
			return false
		}
	}
	return true
}

// best returns the greatest satisfaction of t with another's allocation, and whose it is.
func (f *frontier) best(p *Pool, t *Tenant) (u float64, at int) {
	need := make([]float64, len(p.Resources))
	most := -1
	for r, of := range p.Resources {
		need[r] = t.Demand[r] / of.Capacity / t.Entitlement
		if most < 0 || need[r] > need[most] {
			most = r
		}
	}
	at = -1
	if most < 0 || need[most] <= 0 {
		return 0, at
	}
	for _, k := range f.by[most] {
		b := f.bundles[k]
		if b[most]/need[most] <= u {
			break // nor can any of those that follow
		}
		v := math.Inf(1)
		for r, n := range need {
			if n > 0 {
				v = min(v, b[r]/n)
			}
		}
		if v > u {
			u, at = min(v, 1), f.at[k]
		}
	}
	return u, at
}
