package throttle

import (
	"cmp"
	"math"
	"slices"
)

// preempt ends tasks to free the resources that regular tasks ask for (6.1). Tasks on cores of the
// first class end first, and among these the one with the least progress: the reverse of the order
// in which cores are given (6.2). A task that is already ending counts as freeing its resources. An
// invalid request ends no task.
func (p *Policy) preempt(o *Observation, d *Decision) {
	var need [MaxDimensions]float64
	asked := false
	for k := range p.Resources {
		if k < len(o.Revoke) && amount(o.Revoke[k]) && o.Revoke[k] > 0 {
			need[k], asked = o.Revoke[k], true
		}
	}
	for _, t := range p.running {
		if !t.ending && t.preempted {
			t.ending = true
			d.End = append(d.End, End{t.id, Preempted})
		}
		if t.ending {
			t.give(&need)
		}
	}
	if !asked {
		return
	}
	order := slices.Clone(p.running)
	slices.SortFunc(order, func(a, b *task) int { return cmp.Or(cmp.Compare(a.turn(), b.turn()), cmp.Compare(a.id, b.id)) })
	for _, t := range order {
		if !t.ending && t.gives(&need) {
			t.ending, t.preempted = true, true
			t.give(&need)
			d.End = append(d.End, End{t.id, Preempted})
			p.log.counts.Preempted++
			p.log.tell(TakenBack, t, nil, 0)
		}
	}
}

// turn returns the place of a task in the order of ending, the lowest first: by the class of its
// cores, then by progress. Unknown progress counts as 0, so that a task is not protected by not
// reporting it.
func (t *task) turn() (turn float64) {
	if t.progress >= 0 && t.progress <= 1 {
		turn = t.progress
	}
	if t.class != First {
		turn += 2
	}
	return turn
}

// gives reports whether ending the task would free any of the needed resources.
func (t *task) gives(need *[MaxDimensions]float64) bool {
	for k, v := range t.holds {
		if k < MaxDimensions && need[k] > 0 && amount(v) && v > 0 {
			return true
		}
	}
	return false
}

// give subtracts the resources of the task from the needed ones.
func (t *task) give(need *[MaxDimensions]float64) {
	for k, v := range t.holds {
		if k < MaxDimensions && amount(v) {
			need[k] = math.Max(0, need[k]-v)
		}
	}
}
