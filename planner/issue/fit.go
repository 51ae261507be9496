package issue

import (
	"fmt"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/guard"
	"github.com/trimtab/trimtab/planner/ledger"
)

// grain is what part of a unit is the noise of one amount, sums that of adding up
// those of all knobs.
const grain, sums = 1e-9, 1e-6

// fit scales grows to what is free by the ledger and enters them there. What
// a knob has reserved already, by a grow that was not answered, is its own.
// Each resource is shared by itself: none of them can fund another.
func (i *Issuer) fit(now time.Time, grows []trimtab.Action, plan trimtab.Plan) []trimtab.Action {
	var out []trimtab.Action
	for r := range i.Resources {
		out = append(out, i.fitOne(now, &i.Resources[r], grows, plan)...)
	}
	return out
}

// fitOne is fit for the grows of one resource.
func (i *Issuer) fitOne(now time.Time, of *Resource, grows []trimtab.Action, plan trimtab.Plan) []trimtab.Action {
	id := ledger.StepID{Epoch: plan.Epoch, Sequence: plan.Sequence, Step: plan.Step}
	var asks []float64
	var kept []trimtab.Action
	for _, a := range grows {
		if a.Resource != of.Name {
			continue
		}
		e := i.Ledger.Knob(a.KnobID)
		if e == nil || e.Gone() || !e.Held.Now.Less(a.Set) || !i.Turns(a.Workload) || !i.Ledger.Fenced(e, now) {
			i.Dropped++
			continue
		}
		a.Expect = e.Held.Now
		asks = append(asks, max(0, a.Set.Value-i.Ledger.Reserve(e, now)))
		kept = append(kept, a)
	}
	out := kept[:0]
	unit := of.Unit
	if slices.ContainsFunc(kept, func(a trimtab.Action) bool { return a.Of != nil }) {
		unit = of.Quantum
	}
	left := i.Ledger.Room(of.Name, func(k *ledger.Knob) float64 { return i.Ledger.Reserve(k, now) })
	spare := i.spare(now, of)
	for n, got := range guard.Share(fitHosts(left, kept, asks, unit), spare, unit) {
		a := kept[n]
		if min(spare, left[a.Host]) < -sums*unit {
			// It asks for nothing where an earlier plan may have raised it as far, but
			// what was free then is no longer.
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
			a.Why.Binding = trimtab.Binding{Kind: trimtab.BindingCapacity, Detail: fmt.Sprintf("%v of %v was confirmed to be free", trimtab.Units(got), trimtab.Units(asks[n]))}
			i.Scaled++
		}
		if a.Set.Value-a.Expect.Value < unit/2 {
			i.Dropped++
			continue
		}
		i.Ledger.Knob(a.KnobID).Release(id, a.Set, now.Add(i.Lease+i.Confirm))
		out = append(out, a)
	}
	return out
}

// spare returns the capacity of a resource that no knob can be using, negative
// when more may be in use than there is. A workload that no host has told of
// may have a knob all the same, until the term is older than a lease.
func (i *Issuer) spare(now time.Time, of *Resource) float64 {
	told := map[string]bool{}
	left := i.Ledger.Left(of.Name, i.Ledger.Capacity(of.Name, of.Capacity), func(k *ledger.Knob) float64 {
		told[k.Workload] = true
		return i.Ledger.Reserve(k, now)
	})
	if now.Sub(i.since) <= i.Lease {
		left -= i.Unheard(of.Name, func(workload string) bool { return told[workload] })
	}
	return left
}

// fitHosts cuts what grows ask for to what is left of each host that bounds them.
func fitHosts(left map[string]float64, grows []trimtab.Action, asks []float64, unit float64) []float64 {
	if len(left) == 0 {
		return asks
	}
	on := map[string][]int{}
	for i := range grows {
		on[grows[i].Host] = append(on[grows[i].Host], i)
	}
	out := slices.Clone(asks)
	for host, at := range on {
		room, bounded := left[host]
		if !bounded {
			continue
		}
		of := make([]float64, len(at))
		for k, i := range at {
			of[k] = asks[i]
		}
		for k, got := range guard.Share(of, room, unit) {
			out[at[k]] = got
		}
	}
	return out
}
