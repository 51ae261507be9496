package planner

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/allocation"
	"github.com/trimtab/trimtab/planner/issue"
	"github.com/trimtab/trimtab/planner/ledger"
	"github.com/trimtab/trimtab/planner/replicas"
)

// Size and number of a workload's instances are one plan: the policy grants an effective
// allocation, and package replicas decides how to reach it.
//
//	size      at once, up to the maximum of the existing instances
//	number    if the sizes cannot give what the workload needs, or fewer instances are enough
//
// Leftover capacity raises only sizes: no instance is started for it. The amount with which new
// instances start is reserved in the pool before they are requested, until they have knobs of their
// own (coming).

// afterCame is the least time between a round and an early one that starts because an instance
// began to serve.
const afterCame = 2 * time.Second

// noteNumbers records the written numbers of instances, from which the bounds on their rate of
// change are computed.
func noteNumbers(p *Planner, now time.Time, o *trimtab.Outcome) {
	for i := range o.Results {
		r := &o.Results[i]
		w := p.byName[r.Workload]
		if r.Resource != trimtab.Replicas || w == nil || w.Number == nil || r.Status != trimtab.Written && r.Status != trimtab.Pending || int(r.Found.Value) != w.Number.To {
			continue
		}
		w.Number.State.Count.Changed(now, w.Count.Behavior, w.Number.From, w.Number.To)
		w.Number.From = w.Number.To // so that a repeated outcome is not counted again
	}
}

// observe learns from a holding how long instances take to start. If one begins to run or serve
// with less than the others have, it requests a round.
func (p *Planner) observe(now time.Time, h *trimtab.Holding) {
	var heard []*allocation.Workload
	there := map[trimtab.KnobID]bool{}
	for i := range h.Targets {
		t := &h.Targets[i]
		w := p.byName[t.Workload]
		if w == nil || t.Resource != p.cfg.Resource || w.Number == nil && t.Status == nil {
			continue
		}
		if len(heard) == 0 || heard[len(heard)-1] != w {
			heard = append(heard, w)
		}
		there[t.KnobID] = true
		if w.History.Instances.Starts == nil {
			w.History.Instances.Starts = map[trimtab.KnobID]*allocation.Start{}
		}
		l, news := w.History.Instances.Observe(now, t)
		if t.Serves() && !l.Served {
			l.Served = true
			if w.Number != nil && !l.Since.IsZero() {
				w.Number.State.Startup.Observe(now.Sub(l.Since))
			}
		}
		if news && smallerThan(p, w, t) {
			p.came = w.Name
		}
	}
	for _, w := range heard {
		w.History.Instances.Reported = true
		for id := range w.History.Instances.Starts {
			if id.Host == h.Host && !there[id] {
				delete(w.History.Instances.Starts, id)
			}
		}
	}
}

// smallerThan reports whether another serving instance of the workload has more than this one.
func smallerThan(p *Planner, w *allocation.Workload, t *trimtab.KnobState) bool {
	return w.Mode == trimtab.Act && slices.ContainsFunc(p.ledger.Of(w.Name, t.Resource), func(k *ledger.Knob) bool {
		return !k.Gone() && k.Held.Serves() && t.Now.Less(k.Held.Now)
	})
}

// scaleKnob returns the knob that sets the number of a workload's instances, or nil.
func (p *Planner) scaleKnob(w *allocation.Workload) *ledger.Knob {
	if w.Number == nil {
		return nil
	}
	for _, k := range p.ledger.Of(w.Name, trimtab.Replicas) {
		if !k.Gone() && !k.Held.Now.Unlimited {
			return k
		}
	}
	return nil
}

// coming returns how much of a resource is reserved for instances that were requested and have no
// knob yet.
func (p *Planner) coming(resource string) (sum float64) {
	for _, w := range p.workloads {
		k := p.scaleKnob(w)
		if k == nil {
			continue
		}
		there := 0
		for _, i := range p.ledger.Of(w.Name, resource) {
			if s := i.Held.Status; !i.Gone() && (s == nil || s.Phase != trimtab.Ending) {
				there++
			}
		}
		if more := p.ledger.Believed(k, p.now) - float64(there); more > 0 {
			sum += more * p.starts(w, k, resource)
		}
	}
	return sum
}

// starts returns the amount with which one more instance starts: what its knob reports, else the
// workload's maximum.
func (p *Planner) starts(w *allocation.Workload, k *ledger.Knob, resource string) float64 {
	if s := k.Held.Status; s != nil {
		if v, ok := s.Starts[resource]; ok {
			return v
		}
	}
	if d := p.state(w.Name, resource); d != nil {
		return d.Max
	}
	return 0
}

// numbers decides, for each allocation whose number of instances is planned, how it is split into
// size and number.
func (r counting) numbers() {
	var allocations []*allocation.Allocation
	idle := r.idle(0, r.believed(0))
	left, now := idle, math.Max(idle, 0)
	for _, s := range r.allocations {
		switch {
		case s.Index != 0:
		case s.Scale != nil:
			allocations = append(allocations, s)
			left -= math.Max(0, s.Step.Set-s.Now)
		case s.Acts():
			for i := range s.Knobs {
				left += s.Knobs[i].Has - s.Knobs[i].Set
			}
		}
	}
	hosts := r.believed(0).Headroom()
	for _, s := range allocations {
		own := math.Max(0, s.Step.Set-s.Now)
		room := r.numberOf(s, math.Max(0, left+own), math.Min(now, math.Max(0, left+own)), hosts)
		if s.Acts() {
			left = room - own
			now = math.Min(now, math.Max(0, left))
		}
	}
}

// numberOf decides size and number for one allocation. left is what the pool has for it, free the
// part of that which is idle already, hosts the idle capacity of each node. It returns what the
// pool has left afterwards.
func (r counting) numberOf(s *allocation.Allocation, left, free float64, hosts []float64) float64 {
	w, index := s.AsWorkload(r.now, r.planner.ledger.Of(s.Name, s.Resource.Name))
	state := &s.Number.State
	switch {
	case s.Number.Over(r.now, s.Count):
		w.Need, w.Count.AllowZero = replicas.Need{}, true
	case !s.Status.Free:
		w.Missing = s.Status.Held.Text
	}
	if s.Status.Free && s.Aim.Served && s.Estimate.Reports >= allocation.FewReports {
		if n := float64(len(s.Knobs)); w.Work > 0 && w.Need.Start <= n*w.Size.Max {
			state.Slack.Observe(w.Need.Start, w.Work, len(s.Knobs))
		}
		s.Number.Minute.Observe(r.now, s.Estimate, s.SLO, &state.Margin)
		w.Need = state.Margin.Add(w.Need)
		if w.Work > 0 {
			w.Work += state.Margin.Amount()
		}
	}
	room := &replicas.Headroom{Pool: left, Hosts: allocation.HeadroomOf(s, hosts)}
	d := w.Decide(r.now, state, room)
	if s.Status.Free && w.Size.ReadOnly == "" && !w.Size.Fixed {
		for at, i := range index {
			if i >= 0 {
				k := &s.Knobs[i]
				k.Set = math.Min(math.Max(d.Sizes[at], math.Min(math.Max(s.State.Min, k.Low), k.Has)), math.Max(k.High, k.Has))
				k.Fresh = false
			}
		}
		s.Step.Set = s.Knobs.Set()
	}
	s.SetNumber(r.now, w, &d, free, r.planner.starts(s.Workload, s.Scale, s.Resource.Name), &r.planner.cfg.Guard)
	for i := range s.Knobs {
		left -= math.Max(0, s.Knobs[i].Set-s.Knobs[i].Has)
	}
	if more := s.Replicas.To - s.Replicas.From; more > 0 {
		left -= float64(more) * r.planner.starts(s.Workload, s.Scale, s.Resource.Name)
	}
	return left
}

// scale appends the action that changes the number of an allocation's instances, if it changes.
func (r counting) scale(s *allocation.Allocation) {
	c := &s.Replicas
	if s.Scale == nil || !c.Moves() {
		return
	}
	list, verb := &r.grows, "raised"
	if c.To < c.From {
		list, verb = &r.shrinks, "lowered"
	}
	why := c.Why
	if c.Mode == trimtab.Recommend {
		list, verb = &r.advice, issue.WouldBe+verb
	}
	why.NextCheck = r.planner.next
	why.Summary = fmt.Sprintf("replicas %s from %d to %d: %s", verb, c.From, c.To, why.Summary)
	*list = append(*list, trimtab.Action{KnobID: s.Scale.KnobID, Expect: s.Scale.Held.Now, Set: trimtab.Units(float64(c.To)), Mode: c.Mode, Leave: allocation.Leaving(s), Why: why})
}
