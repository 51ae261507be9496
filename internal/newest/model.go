package newest

import (
	"iter"
	"time"

	"github.com/trimtab/trimtab"
)

// Model has the newest estimate of each workload, the newest holding of each host and the newest
// plan of each pool, and what these say of each workload.
type Model struct {
	Hosts
	// MaxWorkloads bounds the workloads, and Admits says of which of them estimates and plans are
	// kept; nil: of all.
	MaxWorkloads int
	Admits       func(workload string) bool
	// Followed is the age to which a plan counts that no other one follows.
	Followed time.Duration
	of       map[string]*Workload
	plans    map[string]*Plan
}

// Workload is what the newest values say of one workload.
type Workload struct {
	Estimate Cell[*trimtab.Estimate]
	// Choices has what the newest plan says that changes it, by resource; First is that of the
	// pool's first resource, or nil.
	Choices map[string]*Choice
	First   *Choice
	// Held is why the plan HeldIn held it.
	Held   string
	HeldIn Position
	// arrived is when the last estimate or plan with it arrived.
	arrived time.Time
}

const (
	// maxPools bounds the pools of which plans are told apart.
	maxPools = 64
	// maxChoices bounds the resources of a workload of which choices are kept.
	maxChoices = 2 * trimtab.MaxResources
)

// Observe takes one value that arrives at now. Of a holding it returns the workloads of which a
// knob changed.
func (m *Model) Observe(v trimtab.Value, now time.Time) (changed []string) {
	switch v := v.(type) {
	case *trimtab.Estimate:
		if w := m.workload(v.Workload, now); w != nil {
			w.Estimate.Update(v, v.Time, now)
		}
	case *trimtab.Holding:
		_, changed = m.Hosts.Observe(v, now)
	case *trimtab.Plan:
		m.plan(v, now)
	}
	return changed
}

// Of returns what is known of a workload, or nil.
func (m *Model) Of(workload string) *Workload { return m.of[workload] }

// Estimate returns the newest estimate of a workload, or nil if there is none or it is older than
// most.
func (m *Model) Estimate(workload string, now time.Time, most time.Duration) *trimtab.Estimate {
	if w := m.of[workload]; w != nil {
		return w.Estimate.Fresh(now, most)
	}
	return nil
}

// Choice returns what the newest plan says that acts on a workload's resource, or nil.
func (m *Model) Choice(workload, resource string) *Choice {
	if w := m.of[workload]; w != nil {
		return w.Choices[resource]
	}
	return nil
}

// Plan returns the newest plan of a pool; without a value: there is none.
func (m *Model) Plan(pool string) *Plan {
	if p := m.plans[pool]; p != nil {
		return p
	}
	return &Plan{}
}

// Workloads yields up to MaxWorkloads workloads: those of which there is an estimate or a plan, and
// then those of which there is but a knob.
func (m *Model) Workloads() iter.Seq[string] {
	return func(yield func(string) bool) {
		for name := range m.of {
			if !yield(name) {
				return
			}
		}
		left := m.MaxWorkloads - len(m.of)
		for name := range m.Hosts.of {
			if m.of[name] != nil {
				continue
			}
			if left--; left < 0 || !yield(name) {
				return
			}
		}
	}
}

// Only returns a holding with those of its knobs that keep accepts.
func Only(h *trimtab.Holding, keep func(*trimtab.KnobState) bool) *trimtab.Holding {
	out := *h
	out.Targets = nil
	for i := range h.Targets {
		if keep(&h.Targets[i]) {
			out.Targets = append(out.Targets, h.Targets[i])
		}
	}
	return &out
}

// Forget drops the hosts and workloads of which nothing arrived for longer than most.
func (m *Model) Forget(now time.Time, most time.Duration) {
	for _, h := range m.all {
		if now.Sub(h.Arrived) > most {
			m.Drop(h)
		}
	}
	for name, w := range m.of {
		if now.Sub(w.arrived) > most && len(m.On(name)) == 0 {
			delete(m.of, name)
		}
	}
}

// workload returns the entry of a workload, making it; nil: it is not admitted.
func (m *Model) workload(name string, now time.Time) *Workload {
	w := m.of[name]
	if w == nil {
		if m.Admits != nil && !m.Admits(name) || len(m.of) >= m.MaxWorkloads {
			return nil
		}
		if m.of == nil {
			m.of = map[string]*Workload{}
		}
		w = &Workload{}
		m.of[name] = w
	}
	w.arrived = now
	return w
}

// plan takes a plan, and what it says of workloads.
func (m *Model) plan(p *trimtab.Plan, now time.Time) {
	newest := m.plans[p.Pool]
	if newest == nil {
		if len(m.plans) >= maxPools {
			return
		}
		if m.plans == nil {
			m.plans = map[string]*Plan{}
		}
		newest = &Plan{}
		m.plans[p.Pool] = newest
	}
	if newest.Observe(p, now, m.Followed) == Late {
		return
	}
	at := PositionOf(p)
	for i := range p.Actions {
		a := &p.Actions[i]
		w := m.workload(a.Workload, now)
		if w == nil || w.Choices[a.Resource] == nil && len(w.Choices) >= maxChoices {
			continue
		}
		if w.Choices == nil {
			w.Choices = map[string]*Choice{}
		}
		c := &Choice{at, a.Set, a.Why.Target, a.Why.Demand, a.Why.Summary}
		if w.Choices[a.Resource] = c; p.First(a.Resource) {
			w.First = c
		}
	}
	if p.Cause.AnswersApply() {
		return // it names what changed since the command, and holds nothing
	}
	for name, why := range p.Held {
		w := m.workload(name, now)
		if w == nil {
			continue
		}
		w.Held, w.HeldIn = Brief(why.Text), at
		for _, c := range w.Choices {
			c.Target, c.Demand = nil, nil
		}
	}
}
