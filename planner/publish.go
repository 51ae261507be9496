package planner

import (
	"cmp"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/allocation"
	"github.com/trimtab/trimtab/planner/concurrency"
	"github.com/trimtab/trimtab/planner/issue"
	"github.com/trimtab/trimtab/planner/pool"
)

// issuer returns the issuer of the pool's plans.
func (p *Planner) issuer() *issue.Issuer {
	c := issue.Config{Pool: p.cfg.Pool, Lease: p.cfg.Lease, Confirm: p.cfg.Confirm, Ledger: p.ledger, Unreported: p.unreported,
		Writable: func(workload string) bool { w := p.byName[workload]; return w != nil && !w.Released }}
	if slices.ContainsFunc(p.workloads, (*allocation.Workload).Counted) {
		// Replicas come first: their actions then count what new instances start with.
		c.Resources = append(c.Resources, issue.Resource{Name: trimtab.Replicas, Capacity: pool.MostReplicas, Unit: 1, Quantum: 1})
	}
	for _, name := range concurrency.Resources() {
		if slices.ContainsFunc(p.workloads, func(w *allocation.Workload) bool { _, ok := w.Admit[name]; return ok }) {
			step := trimtab.ResourceOf(name).Step
			c.Resources = append(c.Resources, issue.Resource{Name: name, Capacity: mostRequests, Unit: step, Quantum: step})
		}
	}
	if p.sizesMemory() {
		c.Resources = append(c.Resources, issue.Resource{Name: trimtab.Memory, Capacity: mostMemory, Unit: memoryUnit, Quantum: 4096})
	}
	for i := range p.resources {
		r := &p.resources[i]
		c.Resources = append(c.Resources, issue.Resource{Name: r.Name, Capacity: r.Capacity, Unit: r.Unit, Quantum: r.Quantum()})
	}
	return issue.New(c)
}

// unreported returns the most of a resource that may be in use by workloads that no host has reported.
func (p *Planner) unreported(resource string, told func(workload string) bool) (most float64) {
	i := p.index(resource)
	if i < 0 {
		return 0 // instances and requests in service are not shared between workloads
	}
	for _, w := range p.workloads {
		if d := w.States[i]; d != nil && !told(w.Name) {
			most += d.Max
		}
	}
	return most
}

// publish sends the first step of a decision: its shrinks and advice.
func (p *Planner) publish(now time.Time, d issue.Decision) []trimtab.Value {
	d.Objective, d.Capacity, d.Resource, d.Capacities = p.cfg.Policy.Name(), p.capacity(0), p.cfg.Resource, capacitiesOf(p)
	d.Verdicts = p.verdicts.Drain()
	return p.emit(p.issue.Issue(now, d))
}

// capacitiesOf returns the capacity of each resource if the pool has more than one, or sets limits of
// memory that it does not share: of that, what the hosts have.
func capacitiesOf(p *Planner) map[string]float64 {
	if len(p.resources) < 2 && !p.sizesMemory() {
		return nil
	}
	all := make(map[string]float64, len(p.resources)+1)
	if p.sizesMemory() {
		all[trimtab.Memory] = p.ledger.Measured(trimtab.Memory, mostMemory)
	}
	for i, r := range p.resources {
		all[r.Name] = p.capacity(i)
	}
	return all
}

// emit records the actions of a plan and returns it for publication.
func (p *Planner) emit(plan *trimtab.Plan) []trimtab.Value {
	id := plan.ID()
	var w *allocation.Workload
	for i := range plan.Actions {
		a := &plan.Actions[i]
		if w == nil || w.Name != a.Workload {
			w = p.byName[a.Workload]
		}
		if w == nil || a.Mode != trimtab.Act {
			continue
		}
		if p.index(a.Resource) < 0 {
			switch a.Resource {
			case trimtab.Replicas:
				w.Number.Sent(a)
			case trimtab.Memory:
				w.History.Size(a.KnobID, direction(a), plan.Time)
			}
			continue
		}
		if d := direction(a); d != 0 {
			w.Moved(p.index(a.Resource), d, plan.Time)
		}
		if a.Resource == p.cfg.Resource {
			w.History.Judge.Expect(id, a, w.Estimate, w.SLO)
		}
	}
	p.counts.plan(plan)
	return []trimtab.Value{plan}
}

// direction returns 1 if an action raises its workload, −1 if it lowers it, and 0 if it only brings
// an instance to the level of the others.
func direction(a *trimtab.Action) int {
	if a.Of != nil {
		return cmp.Compare(a.Of.To, a.Of.From)
	}
	if a.Expect.Less(a.Set) {
		return 1
	}
	return -1
}

// release publishes the waiting grows once they may go out. After them it carries out the apply
// command or starts the round that was asked for meanwhile.
func (p *Planner) release(now time.Time) []trimtab.Value {
	plan := p.issue.Release(now)
	if plan == nil {
		return nil
	}
	out := p.emit(plan)
	if c := p.applies; c != nil {
		p.applies = nil
		out = append(out, p.apply(now, c)...)
	}
	if p.wanted != nil && !p.issue.Waits() {
		out = append(out, p.round(now, *p.wanted)...)
	}
	return out
}

// answer reads an outcome. An outcome without news, such as a repeated delivery, releases no grows;
// the next tick does.
func (p *Planner) answer(now time.Time, o *trimtab.Outcome) []trimtab.Value {
	if o.Pool != p.cfg.Pool {
		p.counts.ignored["outcome"]++
		return nil
	}
	news := p.issue.Answer(o)
	p.watch(now, o)
	noteNumbers(p, now, o)
	if !news {
		return nil
	}
	return p.release(now)
}
