package gp

import "math"

const (
	// block is how many reports are judged together: about a round.
	block = 12
	// suspect is how many standard errors, and worthwhile how large a share of
	// the performance, a block must be off for it to be suspected of a change.
	suspect, worthwhile = 3.5, 0.04
	// memory is the number of reports that the serial correlation is taken
	// over; steady, how many uncorrelated ones are assumed before the first.
	memory, steady = 200, 30
	// clip bounds what one report may say, in standard deviations.
	clip = 4
)

// watch looks for a change of the curve: two blocks of reports in a row that
// the curve does not explain, to the same side. One may be an accident.
type watch struct {
	// Now is the block being gathered, Before the one before it if suspected.
	Now    []judged `json:"now,omitempty"`
	Before []judged `json:"before,omitempty"`
	// Shift is the relative shift that Before shows.
	Shift   float64 `json:"shift"`
	Changes int     `json:"changes"`
	// Last is the last standardised residual; Square and Product the faded
	// sums of its square and of its product with the one before.
	Last    float64 `json:"last"`
	Square  float64 `json:"square"`
	Product float64 `json:"product"`
}

// judged is a report with what the curve said to it.
type judged struct {
	report
	// Off is the residual, Mean what was expected, Noise and Curve the
	// variances of the report and of the curve there.
	Off   float64 `json:"off"`
	Mean  float64 `json:"mean"`
	Noise float64 `json:"noise"`
	Curve float64 `json:"curve"`
}

// calm forgets all suspicion.
func (w *watch) calm() { w.Now, w.Before = w.Now[:0], w.Before[:0] }

// see judges r against the curve before r is learnt. It returns the reports
// to start again from when the curve has changed, and nil otherwise.
func (w *watch) see(f *fit, r report) []judged {
	j, ok := f.judge(r)
	if !ok {
		return nil
	}
	w.correlate(j.Off / math.Sqrt(j.Noise+j.Curve))
	w.Now = append(w.Now, j)
	if len(w.Now) < block {
		return nil
	}
	shift, deviations := w.shift()
	suspected := deviations > suspect && math.Abs(shift) > worthwhile
	if suspected && len(w.Before) > 0 && shift*w.Shift > 0 {
		again := since(append(w.Before, w.Now...), (shift+w.Shift)/2)
		*w = watch{Changes: w.Changes + 1}
		return again
	}
	w.Before, w.Now = w.Before[:0], w.Now[:0]
	if suspected {
		w.Before, w.Now, w.Shift = w.Now[:block], w.Before, shift
	}
	return nil
}

// shift estimates s in p = (1+s) mean over the block, and how many standard
// errors it is from 0. The curve's own error is common to all reports.
func (w *watch) shift() (s, deviations float64) {
	product, square, curve := 0.0, 0.0, 0.0
	for i := range w.Now {
		j := &w.Now[i]
		reach := clip * math.Sqrt(j.Noise+j.Curve)
		product += within(j.Off, reach) * j.Mean / j.Noise
		square += j.Mean * j.Mean / j.Noise
		curve += math.Abs(j.Mean) * math.Sqrt(j.Curve) / j.Noise
	}
	if !(square > 0) {
		return 0, 0
	}
	s = product / square
	return s, math.Abs(s) / math.Sqrt(1/square+curve*curve/(square*square))
}

// since returns the reports after the change by the relative shift: the cut
// that splits them best into none and all of it.
func since(all []judged, shift float64) []judged {
	sum, least, at := 0.0, 0.0, 0
	for i := range all {
		j := &all[i]
		sum += (j.Off - shift*j.Mean/2) * shift * j.Mean / (j.Noise + j.Curve)
		if sum < least {
			least, at = sum, i+1
		}
	}
	return all[min(at, len(all)-1):]
}

// correlate keeps the sums for the serial correlation.
func (w *watch) correlate(residual float64) {
	residual = within(residual, 3)
	const fade = 1 - 1.0/memory
	w.Square = w.Square*fade + residual*residual
	w.Product = w.Product*fade + residual*w.Last
	w.Last = residual
}

// serial returns by how much correlation from report to report raises the
// variance of a mean: (1+ρ)/(1−ρ) with ρ >= 0.
func (w *watch) serial() float64 {
	rho := math.Max(0, math.Min(0.9, w.Product/(w.Square+steady)))
	return (1 + rho) / (1 - rho)
}

// judge compares r with the curve; not ok where that knows nothing. Beyond
// the visited range only what monotonicity forbids counts.
func (f *fit) judge(r report) (judged, bool) {
	if len(f.nodes) == 0 {
		return judged{}, false
	}
	k, side := f.at(r.X)
	f.shift(&k, r.L)
	p := k.mean
	if f.mode == fraction {
		// One unexpected outcome must not look impossible.
		p = (p*r.W + 0.5) / (r.W + 1)
	}
	off := f.scale(k.unit, k.mean) * within(r.L-k.load, 3)
	j := judged{report: r, Off: r.P - k.mean, Mean: k.mean,
		Noise: k.phi * f.unitAt(p) / r.W, Curve: k.variance + f.effectVar*off*off + k.way}
	switch {
	case side > 0 && (f.tail || j.Off > 0), side < 0 && j.Off < 0:
		j.Off = 0
	}
	return j, true
}
