package planner

import (
	"fmt"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/allocation"
	"github.com/trimtab/trimtab/planner/guard"
	"github.com/trimtab/trimtab/planner/issue"
	"github.com/trimtab/trimtab/planner/ledger"
	"github.com/trimtab/trimtab/planner/measured"
	"github.com/trimtab/trimtab/planner/sizing"
)

const (
	// mostMemory is more than any pool has. The hosts refuse limits that exceed their memory.
	mostMemory = 1 << 60
	// memoryUnit is the unit of limits that no pool shares.
	memoryUnit = 1 << 20
	// growsAfter is the least time between a round and the next one that a shortage of memory starts.
	growsAfter = time.Second
)

// sized is a limit of memory that the round may change.
type sized struct {
	of   *allocation.Workload
	knob *ledger.Knob
	size *sizing.Size
}

// memory sets the memory limits of workloads whose memory the pool does not share: each by what the
// instance needs (package sizing), within the bounds of the guard. An instance whose need is unknown
// keeps its limit.
func (r limiting) memory() {
	g := guard.Round{Now: r.now, Unit: memoryUnit, Capacity: mostMemory, Spare: mostMemory}
	var all []sized
	for _, s := range r.planner.sizes(r.now) {
		to, w := s.size.Limit, s.of
		now := s.knob.Held.Now.Value
		if s.knob.Held.Now.Unlimited || to == now && s.size.Wanted > 0 { // it is only asked
			if s.size.Wanted > 0 {
				r.advice = append(r.advice, r.sizeAction(s, s.size.Wanted, ""))
			}
			continue
		}
		all = append(all, s)
		g.Workloads = append(g.Workloads, guard.Workload{
			Name: w.Name, Now: now, Target: to, Want: to, Advice: !acts(s),
			Fresh:   s.size.Learnt && !w.Unobserved() && !measured.Misses(w.Estimate, w.SLO),
			Missing: to > now, Meets: true, Changed: to > now,
			Firing: w.Loan.Fires(), Last: w.History.Sized[s.knob.KnobID],
		})
	}
	for i, grant := range r.planner.cfg.Guard.Apply(g) {
		s, list := all[i], &r.grows
		a := r.sizeAction(s, grant.Set, grant.Binding.Detail)
		if a.Set == a.Expect {
			continue
		}
		if a.Set.Less(a.Expect) {
			list = &r.shrinks
		}
		if !acts(s) {
			list = &r.advice
		}
		*list = append(*list, a)
	}
}

// sizesMemory reports whether a workload has limits of memory that the pool does not share.
func (p *Planner) sizesMemory() bool {
	return slices.ContainsFunc(p.workloads, func(w *allocation.Workload) bool { return w.Memory != nil })
}

// acts reports whether a limit is written.
func acts(s sized) bool { return s.of.Mode == trimtab.Act && s.knob.Held.ReadOnly == "" }

// sizes returns the limits of all workloads whose memory the pool does not share, as far as their
// nodes have room.
func (p *Planner) sizes(now time.Time) (all []sized) {
	var places []sizing.Place
	for _, w := range p.workloads {
		e := w.Estimate
		if w.Memory == nil || w.Mode == trimtab.Off || w.Released || e == nil || now.Sub(e.Time) > p.cfg.StaleAfter || e.Time.Sub(now) > p.cfg.StaleAfter {
			continue
		}
		for _, k := range p.ledger.Of(w.Name, trimtab.Memory) {
			n := sizing.NeedOf(e.Memory, k.KnobID)
			if n == nil || k.Gone() || k.Held.Problem != "" {
				continue
			}
			size := w.Memory.Of(now, sizing.Set(w.History.Sized[k.KnobID].At, &k.Held), n, k.Held.Now)
			all, places = append(all, sized{w, k, &size}), append(places, sizing.PlaceOf(&size, &k.Held))
		}
	}
	sizing.Fit(places)
	return all
}

// sizeAction returns the action that sets a limit.
func (r limiting) sizeAction(s sized, to float64, bound string) trimtab.Action {
	verb, mode := "raised", trimtab.Act
	if trimtab.Units(to).Less(s.knob.Held.Now) {
		verb = "lowered"
	}
	why := s.size.Why
	if bound != "" {
		why += "; " + bound
	}
	if s.knob.Held.Now.Unlimited {
		verb, mode = "set", trimtab.Recommend
		why += "; it has no limit, and trimtab adds none by itself"
	} else if to == s.size.Wanted {
		mode = trimtab.Recommend // the cluster does not allow it, as why says
	}
	if mode == trimtab.Recommend || !acts(s) {
		verb, mode = issue.WouldBe+verb, trimtab.Recommend
	}
	show := func(v trimtab.Amount) string { return trimtab.AmountOf(trimtab.Memory, v) }
	return trimtab.Action{KnobID: s.knob.KnobID, Expect: s.knob.Held.Now, Set: trimtab.Units(to), Mode: mode, Why: trimtab.Reason{
		Summary:   fmt.Sprintf("memory limit %s from %s to %s: %s", verb, show(s.knob.Held.Now), show(trimtab.Units(to)), why),
		Binding:   trimtab.Binding{Kind: codes.BindingDemand},
		NextCheck: r.planner.next,
	}}
}

// growRound decides a round at once, before it is due, if an instance of a workload is short of memory
// and its limit may rise.
func (p *Planner) growRound(now time.Time, w *allocation.Workload) []trimtab.Value {
	if w == nil || w.Memory == nil || w.Mode != trimtab.Act || !p.leading || p.issue.Waits() || p.issue.Paused() || now.Sub(p.last) < growsAfter {
		return nil
	}
	for _, s := range p.sizes(now) {
		if has := s.knob.Held.Now; s.of == w && s.size.Soon && acts(s) && has.Less(trimtab.Units(s.size.Limit)) {
			next := p.next
			out := p.round(now, trimtab.Cause{Kind: codes.CauseNeed, Workload: w.Name})
			p.next = next
			return out
		}
	}
	return nil
}
