package gp

import (
	"math"
	"slices"

	"github.com/trimtab/trimtab/analyzer/learn/walk"
)

const (
	// block is how many reports are judged together: about a round.
	block = 12
	// slack, limit and most are those of the two one-sided CUSUM tests over the deviation of each
	// block from the curve, in standard errors: two blocks in a row beyond 3.5 are a change, and
	// so are six of 2. One block counts as at most 4, since one may be an accident. The mean time
	// between false alarms is about exp(2 slack (limit + 1.17)) / (2 slack²), 10^5 blocks.
	slack, limit, most = 1, 5, 4
	// maxRun is how many reports are kept to learn from after a change.
	maxRun = 8 * block
	// worthwhile is the least change, as a share of the performance before,
	// worth forgetting for.
	worthwhile = 0.04
	// clip bounds what one report may say, in standard deviations.
	clip = 4
)

// watch looks for a change of the curve: blocks of reports that the curve
// does not explain, in a row, to one side.
type watch struct {
	Up   float64 `json:"up"`
	Down float64 `json:"down"`
	// Now is the block being gathered, Run the reports of the blocks since Up
	// and Down were 0.
	Now     []judged `json:"now,omitempty"`
	Run     []judged `json:"run,omitempty"`
	Changes int      `json:"changes"`
	walk.Serial
}

// judged is a report with its comparison to the curve.
type judged struct {
	walk.Report
	// Off is the residual, Mean what was expected, Noise and Curve the
	// variances of the report and of the curve there.
	Off   float64 `json:"off"`
	Mean  float64 `json:"mean"`
	Noise float64 `json:"noise"`
	Curve float64 `json:"curve"`
}

// calm forgets all suspicion.
func (w *watch) calm() { w.Up, w.Down, w.Now, w.Run = 0, 0, w.Now[:0], w.Run[:0] }

// see judges r against the curve before r is learnt. It returns the reports
// to start again from when the curve has changed, and nil otherwise.
func (w *watch) see(f *fit, r walk.Report) []judged {
	j, ok := f.judge(r)
	if !ok {
		return nil
	}
	w.See(j.Off / math.Sqrt(j.Noise+j.Curve))
	w.Now = append(w.Now, j)
	if len(w.Now) < block {
		return nil
	}
	z := walk.Within(shift(w.Now)/deviation(w.Now), most)
	w.Up, w.Down = max(0, w.Up+z-slack), max(0, w.Down-z-slack)
	if w.Up == 0 && w.Down == 0 {
		w.calm()
		return nil
	}
	if len(w.Run) >= maxRun {
		w.Run = append(w.Run[:0], w.Run[block:]...)
	}
	w.Run = append(slices.Grow(w.Run, maxRun-len(w.Run)), w.Now...)
	w.Now = w.Now[:0]
	return w.decide()
}

// decide ends a run that shows a change.
func (w *watch) decide() []judged {
	if max(w.Up, w.Down) < limit {
		return nil
	}
	typical := typical(w.Run)
	if math.Abs(typical) < worthwhile || (typical > 0) != (w.Up > w.Down) {
		w.Up, w.Down = min(w.Up, limit), min(w.Down, limit)
		return nil
	}
	again := since(w.Run, typical)
	*w = watch{Changes: w.Changes + 1}
	return again
}

// typical returns the median relative residual, in which all reports count equally; in shift the
// most certain ones count most.
func typical(all []judged) float64 {
	var room [maxRun]float64
	v := room[:0]
	for i := range all {
		if j := &all[i]; j.Mean > 0 {
			v = append(v, j.Off/j.Mean)
		}
	}
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	return v[len(v)/2]
}

// shift estimates s in p = (1+s) mean over the reports, by least squares.
func shift(all []judged) float64 {
	product, square := 0.0, 0.0
	for i := range all {
		j := &all[i]
		reach := clip * math.Sqrt(j.Noise+j.Curve)
		product += walk.Within(j.Off, reach) * j.Mean / j.Noise
		square += j.Mean * j.Mean / j.Noise
	}
	if !(square > 0) {
		return 0
	}
	return product / square
}

// deviation is the standard error of shift. The curve's error is common to reports at one
// allocation per load, and independent half an octave away.
func deviation(all []judged) float64 {
	square, curve := 0.0, 0.0
	for i := range all {
		a := &all[i]
		square += a.Mean * a.Mean / a.Noise
		for k := range all {
			b := &all[k]
			common := max(0, 1-2*math.Abs(a.X-b.X))
			curve += common * a.Mean * b.Mean * math.Sqrt(a.Curve*b.Curve) / (a.Noise * b.Noise)
		}
	}
	if !(square > 0) {
		return 1
	}
	return math.Sqrt(1/square + curve/(square*square))
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

// before is at, but from what was known before the block of reports being judged: where a service
// was never seen, its first reports must not confirm the rest of them.
func (f *fit) before(x float64) (k node, side int) {
	n := len(f.nodes)
	i := f.index(x)
	a, b := i-1, i
	for a >= 0 && f.nodes[a].fresh {
		a--
	}
	way := 0.0
	for b < n && f.nodes[b].fresh {
		way += f.nodes[b].way
		b++
	}
	switch {
	case a < 0 && b == n:
		return f.at(x)
	case b == n:
		return f.nodes[a], 1
	case a < 0:
		return f.nodes[b], -1
	case b == a+1:
		return f.at(x)
	}
	left, right := f.nodes[a], f.nodes[b]
	for j := i - 1; j > a; j-- {
		way += f.nodes[j].way
	}
	right.way += way
	return f.between(&left, &right, x), 0
}

// judge compares r with the curve; not ok where that knows nothing. Beyond
// the visited range only what monotonicity forbids counts.
func (f *fit) judge(r walk.Report) (judged, bool) {
	if len(f.nodes) == 0 {
		return judged{}, false
	}
	k, side := f.before(r.X)
	f.Shift(&k.Node, r.L)
	p := k.Mean
	if f.Mode == walk.Fraction {
		// One unexpected outcome must not look impossible.
		p = (p*r.W + 0.5) / (r.W + 1)
	}
	off := f.Off(&k.Node, r.L)
	j := judged{Report: r, Off: r.P - k.Mean, Mean: k.Mean,
		Noise: f.Serial * k.Phi * f.UnitAt(p) / r.W, Curve: k.Variance + f.EffectVar*off*off + k.way}
	switch {
	case side > 0 && (f.tail || j.Off > 0), side < 0 && j.Off < 0:
		j.Off = 0
	}
	return j, true
}
