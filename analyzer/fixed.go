package analyzer

import (
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/report"
)

// fixed records when a fast loop left the quota of a workload at its target, and learns the curve
// for that case. With loans a workload does better at the same target, so that one curve for both
// cases would be wrong for each. Reports with a fixed quota therefore teach a curve of their own. A
// trial at a lower target than before teaches both, since with a moving quota the workload does no
// worse there.
type fixed struct {
	learner learn.Learner // nil: no such report yet
	// changes are the times at which the quota began to be fixed or to move, in order.
	changes []fixing
	// rested is the allocation in the last report during which the quota moved; 0: none.
	rested float64
}

// fixing is the state of the fast loop from the time at on.
type fixing struct {
	at    time.Time
	fixed bool
}

// maxFixings bounds the number of remembered changes; a round causes at most one per host.
const maxFixings = 32

// mostFixed is the fraction of a report's time with a fixed quota up to which the report counts as
// one with a moving quota.
const mostFixed = 0.25

// observe records what a holding says of the fast loop of workload w.
func (f *fixed) observe(w *Workload, h *trimtab.Holding) {
	seen, moves := false, false
	for i := range h.Targets {
		t := &h.Targets[i]
		if t.Workload != w.Name || t.Resource != w.Resource || t.Fast == nil || t.Fast.Off != "" {
			continue
		}
		seen, moves = true, moves || t.Fast.Envelope.Lend || t.Fast.Envelope.Borrow
	}
	n := len(f.changes)
	if !seen || n > 0 && (f.changes[n-1].fixed == !moves || !h.Time.After(f.changes[n-1].at)) {
		return
	}
	if n >= maxFixings {
		f.changes = slices.Delete(f.changes, 0, 1)
	}
	f.changes = append(f.changes, fixing{h.Time, !moves})
}

// share returns the fraction of [from, to) in which the quota was fixed.
func (f *fixed) share(from, to time.Time) float64 {
	sum, end := 0.0, to
	for i := len(f.changes) - 1; i >= 0 && end.After(from); i-- {
		c := &f.changes[i]
		begin := c.at
		if begin.Before(from) {
			begin = from
		}
		if c.fixed && begin.Before(end) {
			sum += end.Sub(begin).Seconds()
		}
		if begin.Before(end) {
			end = begin
		}
	}
	return sum / to.Sub(from).Seconds()
}

// mix marks r as transient if the quota was fixed during a part of it.
func (f *fixed) mix(r *report.Report, interval time.Duration) {
	r.Fixed = f.share(r.At.Add(-max(interval, r.Window)), r.At)
	if r.Aside == "" && r.Fixed > mostFixed && r.Fixed < 1 {
		r.Aside = "transient"
	}
}

// teach gives a report with a fixed quota to its curve. only: the report must not teach the other
// curve.
func (f *fixed) teach(r *report.Report, o learn.Observation, learner func() learn.Learner) (only bool) {
	if r.Fixed < 1 {
		f.rested = o.Allocation
		return false
	}
	if f.learner == nil {
		f.learner = learner()
	}
	if f.learner.Observe(o) != nil {
		return false // the other learner reports the error
	}
	return f.rested > 0 && !report.Far(trimtab.Units(f.rested), trimtab.Units(o.Allocation))
}

// at returns the performance at the current allocation with a fixed quota; nil: unknown, or the
// quota is fixed already.
func (f *fixed) at(r *report.Report, headroom float64) *trimtab.Band {
	if f.learner == nil || r.Allocation == nil || r.Load == nil || r.Fixed == 1 {
		return nil
	}
	b := f.learner.Predict(*r.Allocation, *r.Load+headroom)
	return &b
}

// save returns the state of the curve for a fixed quota, or nil if there is none.
func (f *fixed) save() ([]byte, error) {
	if f.learner == nil {
		return nil, nil
	}
	return f.learner.Snapshot()
}

// load restores what save returned.
func (f *fixed) load(state []byte, learner func() learn.Learner) error {
	if len(state) == 0 {
		return nil
	}
	f.learner = learner()
	return f.learner.Restore(state)
}
