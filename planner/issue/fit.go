package issue

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/guard"
	"github.com/trimtab/trimtab/planner/ledger"
)

// grain is the rounding error of one amount, sums that of the sum over all knobs, as fractions of a
// unit.
const grain, sums = 1e-9, 1e-6

// fit cuts grows to the capacity that is free by the ledger, and records them there. Capacity that
// an unanswered grow of the same knob has reserved counts as free for it. Each resource is fitted
// by itself: none can pay for another.
func (i *Issuer) fit(now time.Time, grows []trimtab.Action, plan trimtab.Plan) []trimtab.Action {
	var out []trimtab.Action
	for r := range i.Resources {
		if of := i.fitOne(now, &i.Resources[r], grows, plan); out == nil {
			out = of
		} else {
			out = append(out, of...)
		}
	}
	return out
}

// fitOne does what fit does for the grows of one resource.
func (i *Issuer) fitOne(now time.Time, of *Resource, grows []trimtab.Action, plan trimtab.Plan) []trimtab.Action {
	id := ledger.StepID{Epoch: plan.Epoch, Sequence: plan.Sequence, Step: plan.Step}
	reserved := i.Ledger.Count(of.Name, func(k *ledger.Knob) float64 { return i.Ledger.Reserve(k, now) })
	asks, knobs := make([]float64, 0, len(grows)), make([]*ledger.Knob, 0, len(grows))
	kept := make([]trimtab.Action, 0, len(grows))
	for n := range grows {
		a := &grows[n]
		if a.Resource != of.Name {
			continue
		}
		e := i.Ledger.Knob(a.KnobID)
		if e == nil || e.Gone() || !e.Held.Now.Less(a.Set) || !i.Writable(a.Workload) || !i.Ledger.Fenced(e, now) {
			i.Dropped++
			continue
		}
		asks, knobs, kept = append(asks, max(0, a.Set.Value-reserved.Of(e.Index()))), append(knobs, e), append(kept, *a)
		kept[len(kept)-1].Expect = e.Held.Now
	}
	out := kept[:0]
	unit := of.Unit
	for n := range kept {
		if kept[n].Of != nil {
			unit = of.Quantum
			break
		}
	}
	left, spare := reserved.Headroom(), i.spare(now, of, reserved)
	for n, got := range guard.Share(fitHosts(left, knobs, asks, unit), spare, unit) {
		a, e := kept[n], knobs[n]
		if spare < -sums*unit || left != nil && left[e.Site()] < -sums*unit {
			// The grow may add nothing to the reservation of an earlier plan, but the capacity that
			// was free then no longer is.
			i.Dropped++
			continue
		}
		if got < asks[n] {
			set := a.Set.Value - asks[n] + got
			if a.Of != nil {
				of := *a.Of
				of.To *= set / a.Set.Value
				a.Of = &of
			}
			a.Set = trimtab.Units(set)
			a.Why.Binding = trimtab.Binding{Kind: codes.BindingCapacity, Detail: fmt.Sprintf("%v of %v was confirmed to be free", trimtab.Units(got), trimtab.Units(asks[n]))}
			i.Scaled++
		}
		if back := e.Held.Reserves && a.Set == e.Held.Baseline; a.Set.Value-a.Expect.Value < unit/2 && !back {
			i.Dropped++
			continue
		}
		e.Release(id, a.Set, now.Add(i.Lease+i.Confirm))
		out = append(out, a)
	}
	return out
}

// spare returns the capacity of a resource that no knob can be using, negative if more may be in
// use than there is. While the leader term is younger than a lease, workloads that no host has
// reported count as well: they may have a knob.
func (i *Issuer) spare(now time.Time, of *Resource, reserved *ledger.Counts) float64 {
	left := reserved.Left(i.Ledger.Capacity(of.Name, of.Capacity))
	if now.Sub(i.since) <= i.Lease {
		left -= i.Unreported(of.Name, func(workload string) bool { return len(i.Ledger.Of(workload, of.Name)) > 0 })
	}
	return left
}

// fitHosts cuts the grows of knobs to the capacity that is left on their hosts, where that is
// limited.
func fitHosts(left []float64, knobs []*ledger.Knob, asks []float64, unit float64) []float64 {
	if left == nil {
		return asks
	}
	on := make([][]int, len(left))
	for i, k := range knobs {
		on[k.Site()] = append(on[k.Site()], i)
	}
	out := slices.Clone(asks)
	for host, at := range on {
		if len(at) == 0 || math.IsInf(left[host], 1) {
			continue
		}
		of := make([]float64, len(at))
		for k, i := range at {
			of[k] = asks[i]
		}
		for k, got := range guard.Share(of, left[host], unit) {
			out[at[k]] = got
		}
	}
	return out
}
