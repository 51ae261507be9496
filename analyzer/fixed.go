package analyzer

import (
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/report"
)

// fixed knows when a fast loop was to leave the quota of a workload at its target, and
// what it gives then. With loans a workload does better at the same target: one curve over
// both would hold for neither. So reports of a fixed quota teach a curve of their own. A
// trial, at a target that is lower than before, teaches both: the loop does no worse there.
type fixed struct {
	learner learn.Learner // nil: no such report yet
	// changes are when the quota began to be fixed or to move, in order.
	changes []fixing
	// rested is the allocation of the last report in which it moved; 0: none.
	rested float64
}

// fixing is a state of the loop from at on.
type fixing struct {
	at    time.Time
	fixed bool
}

// maxFixings bounds the changes that are kept; a round makes at most one for each host.
const maxFixings = 32

// mostFixed is the share of a report with a fixed quota that does not matter to it.
const mostFixed = 0.25

// take notes what a holding says of the loop of workload w.
func (f *fixed) take(w *Workload, h *trimtab.Holding) {
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

// share returns the share of [from, to) in which the quota was fixed.
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

// mix sets r aside where the quota was fixed in a part of it.
func (f *fixed) mix(r *report.Report, interval time.Duration) {
	r.Fixed = f.share(r.At.Add(-max(interval, r.Window)), r.At)
	if r.Aside == "" && r.Fixed > mostFixed && r.Fixed < 1 {
		r.Aside = "transient"
	}
}

// teach gives a report of a fixed quota to its curve, and reports whether that is all
// that it teaches.
func (f *fixed) teach(r *report.Report, o learn.Observation, learner func() learn.Learner) (only bool) {
	if r.Fixed < 1 {
		f.rested = o.Allocation
		return false
	}
	if f.learner == nil {
		f.learner = learner()
	}
	if f.learner.Observe(o) != nil {
		return false // the other learner tells why
	}
	return f.rested > 0 && !report.Far(trimtab.Units(f.rested), trimtab.Units(o.Allocation))
}

// at is what the workload would do at its allocation with a fixed quota; nil: not
// known, or its quota is fixed anyway.
func (f *fixed) at(r *report.Report, headroom float64) *trimtab.Band {
	if f.learner == nil || r.Allocation == nil || r.Load == nil || r.Fixed == 1 {
		return nil
	}
	b := f.learner.Predict(*r.Allocation, *r.Load+headroom)
	return &b
}

// save returns the curve of a fixed quota; nil: there is none.
func (f *fixed) save() ([]byte, error) {
	if f.learner == nil {
		return nil, nil
	}
	return f.learner.Snapshot()
}

// load takes over what save returned.
func (f *fixed) load(state []byte, learner func() learn.Learner) error {
	if len(state) == 0 {
		return nil
	}
	f.learner = learner()
	return f.learner.Restore(state)
}
