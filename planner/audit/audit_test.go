package audit_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/audit"
	"github.com/trimtab/trimtab/planner/drf"
)

// draw makes a pool; has fills what the tenants have.
func draw(t *rapid.T, has func(*audit.Pool)) *audit.Pool {
	p := &audit.Pool{}
	m, n := rapid.IntRange(1, 4).Draw(t, "resources"), rapid.IntRange(1, 12).Draw(t, "tenants")
	for r := range m {
		p.Resources = append(p.Resources, audit.Resource{Name: fmt.Sprint("r", r), Capacity: rapid.Float64Range(0.5, 1e6).Draw(t, "capacity")})
	}
	var members []audit.Member
	for i := range n {
		v := audit.Tenant{Name: fmt.Sprintf("t%02d", i), Has: make([]float64, m), Demand: make([]float64, m)}
		for r := range m {
			if rapid.IntRange(0, 3).Draw(t, "demands") > 0 {
				v.Demand[r] = rapid.Float64Range(0.001, 1.5).Draw(t, "demand") * p.Resources[r].Capacity
			}
		}
		p.Tenants = append(p.Tenants, v)
		members = append(members, audit.Member{Weight: rapid.SampledFrom([]float64{1, 1, 2, 7}).Draw(t, "weight")})
	}
	for i, e := range audit.Entitlements(members, nil) {
		p.Tenants[i].Entitlement = e
	}
	has(p)
	return p
}

// u is the definition.
func u(d, a []float64) float64 {
	v := 1.0
	for r := range d {
		if d[r] > 0 {
			v = math.Min(v, a[r]/d[r])
		}
	}
	return v
}

// The definitions of the package comment, word by word.
func slow(p *audit.Pool) (envy, shortfall, slack []float64) {
	for i := range p.Tenants {
		t := &p.Tenants[i]
		mine, best := u(t.Demand, t.Has), 0.0
		free, part := slices.Clone(t.Has), make([]float64, len(p.Resources))
		for r, of := range p.Resources {
			part[r] = t.Entitlement * of.Capacity
			left := of.Capacity
			for _, o := range p.Tenants {
				left -= o.Has[r]
			}
			free[r] += math.Max(0, left)
		}
		for _, o := range p.Tenants {
			b := slices.Clone(o.Has)
			for r := range b {
				b[r] *= t.Entitlement / o.Entitlement
			}
			best = math.Max(best, u(t.Demand, b))
		}
		envy = append(envy, math.Max(0, best-mine))
		shortfall = append(shortfall, math.Max(0, u(t.Demand, part)-mine))
		slack = append(slack, math.Max(0, u(t.Demand, free)-mine))
	}
	return envy, shortfall, slack
}

func TestTheAuditIsItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t, func(p *audit.Pool) {
			for i := range p.Tenants {
				for r := range p.Resources {
					p.Tenants[i].Has[r] = rapid.Float64Range(0, 1).Draw(t, "has") * p.Resources[r].Capacity / float64(len(p.Tenants))
				}
			}
		})
		a := audit.Of(p)
		if err := a.Validate(); err != nil {
			t.Fatal(err)
		}
		envy, shortfall, slack := slow(p)
		for i, w := range a.Workloads {
			for what, v := range map[string][2]float64{"envy": {w.Envy, envy[i]}, "shortfall": {w.Shortfall, shortfall[i]}, "slack": {w.Slack, slack[i]}} {
				if math.Abs(v[0]-v[1]) > 1e-8 {
					t.Fatalf("%s of %s is %v, by definition %v", what, w.Workload, v[0], v[1])
				}
			}
			if (w.Envies != "") != (w.Envy > 0) || (w.Binding != "") != (*w.Satisfaction < 1-1e-9) {
				t.Fatalf("%+v", w)
			}
			if w.Envies != "" {
				at := slices.IndexFunc(p.Tenants, func(o audit.Tenant) bool { return o.Name == w.Envies })
				b := slices.Clone(p.Tenants[at].Has)
				for r := range b {
					b[r] *= w.Entitlement / p.Tenants[at].Entitlement
				}
				if got := u(p.Tenants[i].Demand, b) - *w.Satisfaction; math.Abs(got-w.Envy) > 1e-8 {
					t.Fatalf("%s envies %s by %v, and gains %v", w.Workload, w.Envies, w.Envy, got)
				}
			}
		}
		for what, v := range map[string][2]float64{"envy": {a.Now.Envy, slices.Max(envy)}, "shortfall": {a.Now.Shortfall, slices.Max(shortfall)}, "slack": {a.Now.Slack, slices.Max(slack)}} {
			if math.Abs(v[0]-v[1]) > 1e-8 {
				t.Fatalf("greatest %s is %v, by definition %v", what, v[0], v[1])
			}
		}
		if f := audit.FairnessOf(p); f != a.Now {
			t.Fatalf("%+v and %+v", f, a.Now)
		}
	})
}

// The five properties, as numbers: an exact solution has none of what the audit
// looks for.
func TestAnExactSolutionHasNoEnvyNoShortfallAndNoSlack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t, func(p *audit.Pool) {
			problem := drf.Problem{}
			for _, r := range p.Resources {
				problem.Capacities = append(problem.Capacities, r.Capacity)
			}
			once := 1.0
			for _, v := range p.Tenants {
				w := drf.Tenant{Weight: v.Entitlement, Limit: &once}
				for r, d := range v.Demand {
					w.Demands = append(w.Demands, drf.Demand{Resource: r, Amount: d})
				}
				problem.Tenants = append(problem.Tenants, w)
			}
			s, err := drf.Solve(problem)
			if err != nil {
				t.Fatal(err)
			}
			for i := range p.Tenants {
				p.Tenants[i].Has = s.Allocation[i]
			}
		})
		if a := audit.Of(p); a.Now.Envy != 0 || a.Now.Shortfall != 0 || a.Now.Slack != 0 || a.Now.Envious != 0 || a.Now.Short != 0 {
			t.Fatalf("%+v\n%+v", a.Now, a.Workloads)
		}
	})
}

// What the audit is for: it must see what is wrong.
func TestAnUnfairAllocationIsSeen(t *testing.T) {
	p := &audit.Pool{Resources: []audit.Resource{{Name: "cpu", Capacity: 10}, {Name: "memory", Capacity: 100}}, Tenants: []audit.Tenant{
		{Name: "big", Entitlement: 0.5, Has: []float64{8, 20}, Demand: []float64{10, 10}},
		{Name: "small", Entitlement: 0.5, Has: []float64{1, 20}, Demand: []float64{5, 10}},
	}}
	a := audit.Of(p)
	w := a.Workloads[1]
	if w.Workload != "small" || w.Envies != "big" || math.Abs(w.Envy-0.8) > 1e-9 || math.Abs(w.Shortfall-0.8) > 1e-9 || math.Abs(w.Slack-0.2) > 1e-9 || w.Binding != "cpu" {
		t.Errorf("%+v", w)
	}
	if a.Now.Envious != 1 || a.Now.Short != 1 || a.Resources[0].Binds != 2 || a.Resources[0].Used != 9 || a.Resources[0].Demanded != 15 {
		t.Errorf("%+v, %+v", a.Now, a.Resources)
	}
	if b := a.Workloads[0]; b.Dominant != "cpu" || b.Share != 0.8 || b.Envy != 0 {
		t.Errorf("%+v", b)
	}
}

func TestWhoseDemandIsUnknownIsCountedAndNotJudged(t *testing.T) {
	p := &audit.Pool{Resources: []audit.Resource{{Name: "cpu", Capacity: 10}}, Tenants: []audit.Tenant{
		{Name: "new", Entitlement: 0.5, Has: []float64{6}},
		{Name: "old", Entitlement: 0.5, Has: []float64{2}, Demand: []float64{4}},
		{Has: []float64{1}}, // off: no part of the pool is its own
	}}
	a := audit.Of(p)
	if len(a.Workloads) != 2 || a.Workloads[0].Satisfaction != nil || a.Workloads[0].Share != 0.6 {
		t.Fatalf("%+v", a.Workloads)
	}
	if old := a.Workloads[1]; old.Envies != "new" || math.Abs(old.Envy-0.5) > 1e-9 || math.Abs(old.Slack-0.25) > 1e-9 {
		t.Errorf("%+v", old)
	}
}

func TestTheWorstAreListedWhereThereAreMany(t *testing.T) {
	p := &audit.Pool{Resources: []audit.Resource{{Name: "cpu", Capacity: 1000}}}
	for i := range 1000 {
		v := audit.Tenant{Name: fmt.Sprintf("t%04d", i), Entitlement: 0.001, Has: []float64{0.5}, Demand: []float64{0.5}}
		if i%100 == 7 {
			v.Has[0] = 0.1
		}
		p.Tenants = append(p.Tenants, v)
	}
	a := audit.Of(p)
	if len(a.Workloads) != trimtab.MaxAudited || a.Omitted != 1000-trimtab.MaxAudited || a.Now.Envious != 10 {
		t.Fatalf("%d listed, %d omitted, %+v", len(a.Workloads), a.Omitted, a.Now)
	}
	short := 0
	for i, w := range a.Workloads {
		if i > 0 && w.Workload <= a.Workloads[i-1].Workload {
			t.Fatal("not in order of name")
		}
		if w.Shortfall > 0 {
			short++
		}
	}
	if short != 10 {
		t.Errorf("%d of the 10 that are short are listed", short)
	}
}

func TestEntitlementsDivideEachGroupByWeight(t *testing.T) {
	got := audit.Entitlements([]audit.Member{{"", 1}, {"shop", 1}, {"shop", 3}, {"shop/web", 5}, {"x/y", 2}}, map[string]float64{"shop": 2, "shop/web": 4})
	// The root: 1 + shop 2 + x 1; shop: 1 + 3 + web 4.
	for i, want := range []float64{1. / 4, 2. / 4 / 8, 2. / 4 * 3 / 8, 2. / 4 * 4 / 8, 1. / 4} {
		if math.Abs(got[i]-want) > 1e-12 {
			t.Errorf("%d: %v, want %v", i, got[i], want)
		}
	}
}

func BenchmarkAuditOfAFairAllocation(b *testing.B) {
	p := &audit.Pool{Resources: []audit.Resource{{Name: "cpu", Capacity: 1e6}, {Name: "memory", Capacity: 1e9}}}
	for i := range 10_000 {
		d := []float64{1 + float64(i%97), 1000 * (1 + float64(i%89))}
		p.Tenants = append(p.Tenants, audit.Tenant{Name: fmt.Sprintf("t%05d", i), Entitlement: 1e-4, Has: []float64{d[0] / 2, d[1] / 2}, Demand: d})
	}
	for b.Loop() {
		audit.Of(p)
	}
}

func TestWhatIsFreeWhereAWorkloadDoesNotRunIsNoSlackOfIt(t *testing.T) {
	p := &audit.Pool{Resources: []audit.Resource{{Name: "cpu", Capacity: 10}}, Tenants: []audit.Tenant{
		{Name: "a", Entitlement: 0.5, Has: []float64{2}, Demand: []float64{4}, Room: []float64{0.4}},
		{Name: "b", Entitlement: 0.5, Has: []float64{2}, Demand: []float64{2}},
	}}
	if slack := audit.FairnessOf(p).Slack; math.Abs(slack-0.1) > 1e-9 {
		t.Errorf("slack %v, want the 0.4 of 4 that its host has", slack)
	}
	p.Tenants[0].Room = nil
	if slack := audit.FairnessOf(p).Slack; math.Abs(slack-0.5) > 1e-9 {
		t.Errorf("slack %v, want all that it lacks", slack)
	}
}
