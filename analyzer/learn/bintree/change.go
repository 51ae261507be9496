package bintree

import "math"

const (
	// maxRun is how many reports are kept to learn from after a change.
	maxRun = 32
	// slack and limit are those of the two one-sided CUSUM tests, in standard
	// deviations of a report: the mean time between false alarms is about
	// exp(2 slack (limit + 1.17)) / (2 slack²), 10^6 reports; a shift by two
	// deviations is found in 7 reports.
	slack, limit = 0.75, 8
	// clip bounds what one report may say.
	clip = 3
	// least change, as a share of the performance before, worth forgetting for.
	worthwhile = 0.04
	// memory is the number of reports that the serial correlation is taken
	// over; calm, how many uncorrelated ones are assumed before the first.
	memory, calm = 200, 30
)

// watch looks for a change of the curve: reports that the curve does not
// explain, in a row, to one side.
type watch struct {
	Up      float64  `json:"up"`
	Down    float64  `json:"down"`
	Run     []report `json:"run,omitempty"`
	Changes int      `json:"changes"`
	// Last is the last standardised residual; Square and Product the faded
	// sums of its square and of its product with the one before.
	Last    float64 `json:"last"`
	Square  float64 `json:"square"`
	Product float64 `json:"product"`
	// Bias is the sum of relative residuals over the run.
	Bias float64 `json:"bias"`
}

// see judges r against the curve before r is learnt. It returns the reports
// to start again from when the curve has changed, and nil otherwise.
func (w *watch) see(f *fit, r report) []report {
	residual, relative, ok := f.residual(r)
	if !ok {
		return nil
	}
	w.correlate(residual)
	residual = math.Max(-clip, math.Min(clip, residual))
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

// correlate keeps the sums for the serial correlation.
func (w *watch) correlate(residual float64) {
	residual = math.Max(-clip, math.Min(clip, residual))
	const fade = 1 - 1.0/memory
	w.Square = w.Square*fade + residual*residual
	w.Product = w.Product*fade + residual*w.Last
	w.Last = residual
}

// serial returns by how much correlation from report to report raises the
// variance of a mean: (1+ρ)/(1−ρ) with ρ >= 0.
func (w *watch) serial() float64 {
	rho := math.Max(0, math.Min(0.9, w.Product/(w.Square+calm)))
	return (1 + rho) / (1 - rho)
}

// residual returns how many standard deviations r is above the curve, and how
// much relative to it; not ok where the curve knows nothing.
func (f *fit) residual(r report) (deviations, relative float64, ok bool) {
	if len(f.nodes) == 0 {
		return 0, 0, false
	}
	k, side := f.at(r.X)
	if side != 0 {
		return 0, 0, false
	}
	f.shift(&k, r.L)
	p := k.mean
	if f.mode == fraction {
		// One unexpected outcome must not look impossible.
		p = (p*r.W + 0.5) / (r.W + 1)
	}
	off := f.scale(k.unit, k.mean) * within(r.L-k.load, 3)
	v := k.phi*f.unitAt(p)/r.W + k.variance + f.effectVar*off*off
	return (r.P - k.mean) / math.Sqrt(v), (r.P - k.mean) / math.Max(k.mean, 1e-3*f.top), true
}
