package bintree

import (
	"math"

	"github.com/trimtab/trimtab/analyzer/learn/walk"
)

const (
	// maxRun is how many reports are kept to learn from after a change.
	maxRun = 32
	// slack and limit are those of the two one-sided CUSUM tests, in standard deviations of a
	// report: the mean time between false alarms is about exp(2 slack (limit + 1.17)) / (2
	// slack²), 10^6 reports; a shift by two deviations is found in 7 reports.
	slack, limit = 0.75, 8
	// clip bounds what one report may say.
	clip = 3
	// least change, as a share of the performance before, worth forgetting for.
	worthwhile = 0.04
)

// watch looks for a change of the curve: reports that the curve does not
// explain, in a row, to one side.
type watch struct {
	Up      float64       `json:"up"`
	Down    float64       `json:"down"`
	Run     []walk.Report `json:"run,omitempty"`
	Changes int           `json:"changes"`
	walk.Serial
	// Bias is the sum of relative residuals over the run.
	Bias float64 `json:"bias"`
}

// see judges r against the curve before r is learnt. It returns the reports
// to start again from when the curve has changed, and nil otherwise.
func (w *watch) see(f *fit, r walk.Report) []walk.Report {
	residual, relative, ok := f.residual(r)
	if !ok {
		return nil
	}
	w.See(residual)
	residual = walk.Within(residual, clip)
	w.Up = math.Max(0, w.Up+residual-slack)
	w.Down = math.Max(0, w.Down-residual-slack)
	if w.Up == 0 && w.Down == 0 {
		w.Run, w.Bias = w.Run[:0], 0
		return nil
	}
	if len(w.Run) == maxRun {
		w.Run = append(w.Run[:0], w.Run[1:]...)
	}
	w.Run = append(w.Run, r)
	w.Bias += (relative - w.Bias) / float64(len(w.Run))
	if math.Max(w.Up, w.Down) < limit || math.Abs(w.Bias) < worthwhile {
		w.Up, w.Down = math.Min(w.Up, limit), math.Min(w.Down, limit)
		return nil
	}
	again := w.Run
	*w = watch{Changes: w.Changes + 1}
	return again
}

// residual returns how many standard deviations r is above the curve, and how much relative to
// it; not ok if the curve knows nothing there.
func (f *fit) residual(r walk.Report) (deviations, relative float64, ok bool) {
	if len(f.nodes) == 0 {
		return 0, 0, false
	}
	k, side := f.at(r.X)
	if side != 0 {
		return 0, 0, false
	}
	f.Shift(&k, r.L)
	p := k.Mean
	if f.Mode == walk.Fraction {
		// One unexpected outcome must not look impossible.
		p = (p*r.W + 0.5) / (r.W + 1)
	}
	off := f.Off(&k, r.L)
	v := k.Phi*f.UnitAt(p)/r.W + k.Variance + f.EffectVar*off*off
	return (r.P - k.Mean) / math.Sqrt(v), (r.P - k.Mean) / math.Max(k.Mean, 1e-3*f.Top), true
}
