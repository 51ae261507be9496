package colocate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/issue"
	"github.com/trimtab/trimtab/planner/ledger"
)

// goal has the amounts that a job is to get, by resource.
type goal struct {
	to  map[string]float64
	act Act
}

// carry converts the decision into actions.
func (s *Step) carry(now time.Time) issue.Decision {
	d := issue.Decision{Plan: trimtab.Plan{Held: s.held(), Cause: s.cause()}}
	goals := map[string]*goal{}
	for _, c := range s.decided.Changes {
		g := goals[c.Job]
		if g == nil {
			g = &goal{to: map[string]float64{}}
			goals[c.Job] = g
		}
		g.take(&c)
	}
	for _, t := range s.jobs {
		g := goals[t.id]
		switch {
		case t.contested != "":
			s.advise(now, &d, t)
			continue
		case g == nil && (t.job.State == Waiting || t.job.State == Ending):
			g = &goal{to: map[string]float64{}, act: Suspend}
			t.suspend(g)
		case g == nil:
			g = &goal{to: map[string]float64{}}
		case g.act == Kill:
			t.kill(g)
		case g.act == Suspend:
			t.suspend(g)
		}
		if k := t.usable(weight); k != nil && k.Now() > k.Held.Min {
			g.to[weight] = k.Held.Min // jobs get only idle CPU time
		}
		for i := range s.resources {
			if v, ok := g.to[s.resources[i].Name]; ok {
				s.put(now, &d, t, &s.resources[i], v, g.act)
			}
		}
	}
	killsFirst(d.Shrinks)
	return d
}

// take adds one change to the goal.
func (g *goal) take(c *Change) {
	g.act = c.Act
	for name, v := range c.To {
		g.to[name] = v
	}
	switch c.Act {
	case Suspend:
		g.to[running] = 0
	case Kill:
		g.to[alive] = 0
	case Resume, Start:
		g.to[running] = 1
	}
}

// kill ends a job if its knob can, and suspends it too: if a supervisor starts another in its
// group, that process is frozen, gets the least amounts and waits as a suspended job does.
func (t *tenant) kill(g *goal) {
	if t.usable(alive) == nil {
		delete(g.to, alive)
	}
	t.suspend(g)
}

// killsFirst orders shrinks so that kills come first: a job that is slowed or frozen
// before would take longer to end.
func killsFirst(shrinks []trimtab.Action) {
	rank := func(a trimtab.Action) int {
		if a.Resource == alive {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(shrinks, func(a, b trimtab.Action) int { return cmp.Compare(rank(a), rank(b)) })
}

// suspend sets the knobs of a job, except memory, to their least amounts.
func (t *tenant) suspend(g *goal) {
	g.to[running] = 0
	for name := range t.knobs {
		if name != ram && !own(name) {
			g.to[name] = 0
		}
	}
}

// put adds the action that sets one knob, unless it has that value.
func (s *Step) put(now time.Time, d *issue.Decision, t *tenant, r *issue.Resource, v float64, act Act) {
	k := t.usable(r.Name)
	if k == nil {
		return
	}
	a, ok := s.action(now, k, r, v, act)
	switch {
	case !ok:
	case k.Held.ReadOnly != "" || s.config.Mode != trimtab.Act:
		a.Mode = trimtab.Recommend
		d.Advice = append(d.Advice, a)
	case a.Set.Less(a.Expect):
		d.Shrinks = append(d.Shrinks, a)
	default:
		d.Grows = append(d.Grows, a)
	}
}

// action returns the action that sets a knob within its bounds; false: it has that value.
func (s *Step) action(now time.Time, k *ledger.Knob, r *issue.Resource, v float64, act Act) (trimtab.Action, bool) {
	v = math.Floor(v/r.Quantum+1e-6) * r.Quantum
	v = math.Min(math.Max(v, math.Max(k.Held.Min, least(r.Name, k))), k.Most())
	if !(v >= 0) || k.Held.Now.Equal(trimtab.Units(v), r.Unit/2) {
		return trimtab.Action{}, false
	}
	why := string(s.decided.Verb)
	if act != "" {
		why += ", " + string(act)
	}
	if s.decided.Why != "" {
		why += ": " + s.decided.Why
	}
	return trimtab.Action{KnobID: k.KnobID, Expect: k.Held.Now, Set: trimtab.Units(v), Mode: trimtab.Act,
		Why: trimtab.Reason{Summary: why, NextCheck: now.Add(s.config.Period)}}, true
}

// least returns the least amount of a resource that a job occupies, such as memory: not below the
// amount in use.
func least(resource string, k *ledger.Knob) float64 {
	if resource == ram {
		return k.Held.Floor
	}
	return 0
}

// advise recommends what it would do with a job that another program controls: suspend it while
// jobs are stopped or suspended.
func (s *Step) advise(now time.Time, d *issue.Decision, t *tenant) {
	k := t.knobs[running]
	if s.decided.Verb != StopBE && s.decided.Verb != SuspendBE || k == nil || s.released[t.workload] {
		return
	}
	i := index(s.names(), running)
	if i < 0 {
		return
	}
	if a, ok := s.action(now, k, &s.resources[i], 0, Suspend); ok {
		a.Mode = trimtab.Recommend
		a.Why.Binding = trimtab.Binding{Kind: codes.BindingGuard, Detail: fmt.Sprintf("%.200s", t.contested)}
		d.Advice = append(d.Advice, a)
	}
}
