package planner

import (
	"fmt"
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/ledger"
	"github.com/trimtab/trimtab/planner/pool"
	"github.com/trimtab/trimtab/planner/replicas"
)

// A workload that may have no instance at all goes there once a source outside its
// instances has said for its cooldown that it has no load, and comes back when that says
// that there is some:
//
//	load = 0 for the cooldown    0 instances
//	load > 0, 0 instances        what its load needs, at least 1 and its least number
//	load not known               the cooldown begins anew; nothing is lowered; after a
//	                             cooldown of it what trimtab took to 0 has 1 again
//
// Spans tell nothing of this: where nobody serves, nobody sends any.

// outside is what a source outside its instances says of its load; false: it says nothing, or said
// it too long ago, which is stale.
func (w *workload) outside(now time.Time, stale time.Duration) (load float64, known bool) {
	e := w.estimate
	if e == nil || e.Validate() != nil || now.Sub(e.Time) > stale || e.Time.Sub(now) > stale {
		return 0, false
	}
	for _, in := range e.Inputs {
		if in.Name == string(trimtab.Load) && in.Missing == "" && in.Source == fromPrometheus && in.Age.Duration() <= stale && in.Value >= 0 {
			return in.Value, true
		}
	}
	return 0, false
}

// fromPrometheus is the source of what a query answered.
const fromPrometheus = "prometheus"

// rests notes since when workloads that may go to zero have no load, and since when that
// is not known.
func (r counting) rests() {
	for _, w := range r.planner.workloads {
		n := w.number
		if n == nil || !w.Count.AllowZero {
			continue
		}
		load, known := w.outside(r.now, r.planner.cfg.StaleAfter)
		n.idle.Look(r.now, load, known, r.planner.cfg.StaleAfter)
	}
}

// over reports whether a workload has had no load for its cooldown.
func (n *number) over(now time.Time, c *Count) bool {
	return c.AllowZero && n.idle.Over(now, c.Cooldown)
}

// waking says with how many instances a workload comes back from zero, and why; 0: it stays
// there.
func (r counting) waking(w *workload, k *ledger.Knob) (n int, why string) {
	load, known := w.outside(r.now, r.planner.cfg.StaleAfter)
	since, blind := w.number.idle.Blind(r.now, w.Count.Cooldown)
	switch {
	case known && load > 0:
		return w.wanted(k, load), fmt.Sprintf("load of %g requests per second waits for it", load)
	case !known && k.Baseline() > 0 && blind:
		return max(1, w.Count.Min), fmt.Sprintf("whether it has load is not known since %s", since.UTC().Format("15:04:05 UTC"))
	}
	return 0, ""
}

// wakes brings workloads back from zero that have load, or may have some.
func (r counting) wakes() {
	left := math.Inf(1)
	for _, w := range r.planner.workloads {
		k := r.planner.scaleKnob(w)
		if k == nil || !w.Count.AllowZero || w.released || w.Mode == trimtab.Off || k.Held.Problem != "" || k.Now() != 0 {
			continue
		}
		n, because := r.waking(w, k)
		if n == 0 {
			continue
		}
		if math.IsInf(left, 1) {
			left = r.unasked()
		}
		why := trimtab.Reason{NextCheck: r.planner.next, Binding: trimtab.Binding{Kind: trimtab.BindingNeed}}
		each := r.planner.starts(w, k, r.planner.cfg.Resource)
		if most := int(left/math.Max(each, r.planner.resources[0].Quantum()) + grain); n > most {
			n, why.Binding = most, trimtab.Binding{Kind: trimtab.BindingCapacity, Detail: "what one more instance begins with"}
		}
		if n < 1 {
			r.heldBack[w.Name] = trimtab.Held{Code: trimtab.HeldOther, Text: fmt.Sprintf("it has no instance, and %s: the pool has no room for one, which begins with %v", because, each)}
			continue
		}
		why.Summary = fmt.Sprintf("replicas raised from 0 to %d: %s", n, because)
		list, mode := &r.grows, trimtab.Act
		if w.Mode != trimtab.Act || k.Held.Barred != "" {
			list, mode = &r.advice, trimtab.Recommend
		} else {
			left -= float64(n) * each
		}
		*list = append(*list, trimtab.Action{KnobID: k.KnobID, Expect: k.Held.Now, Set: trimtab.Units(float64(n)), Mode: mode, Why: why})
	}
}

// wanted is the number for a load to come back with: at least one.
func (w *workload) wanted(k *ledger.Knob, load float64) int {
	n := max(1, w.Count.Min)
	if need, ok := replicas.NeedOf(w.estimate.Curve, w.SLO, load, 0); ok {
		n = max(n, int(math.Min(math.Ceil(need.Round/w.Max-grain), pool.MostReplicas)))
	}
	if st := k.Held.Standing; st != nil && st.Most > 0 {
		n = min(n, int(st.Most))
	}
	return min(n, w.Count.Max)
}

// unasked is what of the pool nobody has and this round asks for nobody.
func (r counting) unasked() float64 {
	left := r.idle(0, r.believed(0))
	for _, s := range r.seats {
		if s.resource != 0 {
			continue
		}
		for i := range s.knobs {
			left -= math.Max(0, s.knobs[i].Set-s.knobs[i].Has)
		}
		if more := s.count.to - s.count.from; more > 0 && s.scale != nil {
			left -= float64(more) * r.planner.starts(s.workload, s.scale, s.of.Name)
		}
	}
	return math.Max(0, left)
}
