package planner

import (
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

// proof is an allocation that was seen to be enough for a load: two reports in a
// row met the SLO, and nothing waited. What a service was seen to do counts more
// than what a curve expects of it.
type proof struct {
	at               time.Time
	allocation, load float64
}

const (
	// proofHolds is how long a proof counts.
	proofHolds = 5 * time.Minute
	// maxProofs bounds how many are kept.
	maxProofs = 16
)

// prove enters an estimate. One that misses the SLO beyond its noise ends the
// proofs for its load and more, and those of its allocation and less.
func (w *workload) prove(e *trimtab.Estimate) {
	d := w.dials[0]
	if d == nil || e.Performance == nil || e.Load == nil || e.Allocation == nil {
		return
	}
	met, p := *e.Performance >= w.SLO && e.Starved == 0, proof{e.Time, *e.Allocation, e.Load.Now}
	if e.Backlog != nil {
		met = met && *e.Backlog == 0
	} else if e.Window > 0 {
		// A rate over a longer time speaks of the load over that time.
		met = met && e.Stopped == 0 && e.Time.Sub(d.move.At) > e.Window.Duration()
	}
	if of := inputOf(e, trimtab.Load); of >= 0 {
		p.load = math.Min(p.load, of) // Load.Now may be of the time since
	}
	before := w.met
	w.met = met
	switch {
	case w.missed > 0:
		d.proofs = slices.DeleteFunc(d.proofs, func(q proof) bool { return q.load >= p.load || q.allocation <= p.allocation })
	case met && before:
		d.proofs = slices.DeleteFunc(d.proofs, func(q proof) bool {
			return q.allocation >= p.allocation && q.load <= p.load || e.Time.Sub(q.at) > proofHolds
		})
		if d.proofs = append(d.proofs, p); len(d.proofs) > maxProofs {
			d.proofs = slices.Delete(d.proofs, 0, 1)
		}
	}
}

// inputOf returns an input of an estimate; -1: missing.
func inputOf(e *trimtab.Estimate, q trimtab.Quantity) float64 {
	for _, in := range e.Inputs {
		if in.Name == string(q) && in.Missing == "" {
			return in.Value
		}
	}
	return -1
}

// proved reports whether an allocation was seen to be enough for a load.
func (s *seat) proved(allocation, load float64) bool {
	return slices.ContainsFunc(s.dial.proofs, func(p proof) bool {
		age := s.estimate.Time.Sub(p.at)
		return p.allocation <= allocation*(1+grain) && p.load >= load && age <= proofHolds
	})
}
