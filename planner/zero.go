package planner

import (
	"fmt"
	"math"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/allocation"
	"github.com/trimtab/trimtab/planner/ledger"
	"github.com/trimtab/trimtab/planner/policy"
)

// A workload with AllowZero is scaled to zero once a source outside its instances has reported no
// load for its cooldown. It comes back when that source reports load:
//
//	load = 0 for the cooldown    0 instances
//	load > 0, 0 instances        as many as the load needs, at least 1 and its minimum
//	load unknown                 the cooldown restarts and nothing is lowered; after a cooldown
//	                             without knowledge, what trimtab scaled to 0 has 1 again
//
// Spans cannot show the load then: without an instance there are none.

// recordIdle records, for workloads with AllowZero, since when they have no load and since when
// their load is unknown.
func (r counting) recordIdle() {
	for _, w := range r.planner.workloads {
		n := w.Number
		if n == nil || !w.Count.AllowZero {
			continue
		}
		load, known := w.Outside(r.now, r.planner.cfg.StaleAfter)
		n.Idle.Look(r.now, load, known, r.planner.cfg.StaleAfter)
	}
}

// waking returns how many instances a workload at zero gets, and why; 0 if it stays at zero.
func (r counting) waking(w *allocation.Workload, k *ledger.Knob) (n int, why string) {
	load, known := w.Outside(r.now, r.planner.cfg.StaleAfter)
	since, blind := w.Number.Idle.Blind(r.now, w.Count.Cooldown)
	switch {
	case known && load > 0:
		return w.Wanted(k, load), fmt.Sprintf("load of %g requests per second waits for it", load)
	case !known && k.Baseline() > 0 && blind:
		return max(1, w.Count.Min), fmt.Sprintf("whether it has load is not known since %s", since.UTC().Format("15:04:05 UTC"))
	}
	return 0, ""
}

// leaveZero brings back workloads at zero that have load, or may have some.
func (r counting) leaveZero() {
	left := math.Inf(1)
	for _, w := range r.planner.workloads {
		k := r.planner.scaleKnob(w)
		if k == nil || !w.Count.AllowZero || w.Released || w.Mode == trimtab.Off || k.Held.Problem != "" || k.Now() != 0 {
			continue
		}
		n, because := r.waking(w, k)
		if n == 0 {
			continue
		}
		if math.IsInf(left, 1) {
			left = r.unasked()
		}
		why := trimtab.Reason{NextCheck: r.planner.next, Binding: trimtab.Binding{Kind: codes.BindingNeed}}
		each := r.planner.starts(w, k, r.planner.cfg.Resource)
		if most := int(left/math.Max(each, r.planner.resources[0].Quantum()) + policy.Grain); n > most {
			n, why.Binding = most, trimtab.Binding{Kind: codes.BindingCapacity, Detail: "what one more instance begins with"}
		}
		if n < 1 {
			r.heldBack[w.Name] = trimtab.Held{Code: codes.HeldOther, Text: fmt.Sprintf("it has no instance, and %s: the pool has no room for one, which begins with %v", because, each)}
			continue
		}
		why.Summary = fmt.Sprintf("replicas raised from 0 to %d: %s", n, because)
		list, mode := &r.grows, trimtab.Act
		if w.Mode != trimtab.Act || k.Held.ReadOnly != "" {
			list, mode = &r.advice, trimtab.Recommend
		} else {
			left -= float64(n) * each
		}
		*list = append(*list, trimtab.Action{KnobID: k.KnobID, Expect: k.Held.Now, Set: trimtab.Units(float64(n)), Mode: mode, Why: why})
	}
}

// unasked returns how much of the pool is left after everything that this round asks for.
func (r counting) unasked() float64 {
	left := r.idle(0, r.believed(0))
	for _, s := range r.allocations {
		if s.Index != 0 {
			continue
		}
		for i := range s.Knobs {
			left -= math.Max(0, s.Knobs[i].Set-s.Knobs[i].Has)
		}
		if more := s.Replicas.To - s.Replicas.From; more > 0 && s.Scale != nil {
			left -= float64(more) * r.planner.starts(s.Workload, s.Scale, s.Resource.Name)
		}
	}
	return math.Max(0, left)
}
