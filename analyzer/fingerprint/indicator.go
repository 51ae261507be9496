package fingerprint

import "math"

// Rate is a measured false-alarm rate: of windows in which the workload ran alone,
// how many were called anomalies. Each was judged before it was learned.
type Rate struct {
	Alarms uint32 `json:"alarms"`
	Judged uint32 `json:"judged"`
}

// Value is the share, 0 of none.
func (r Rate) Value() float64 {
	if r.Judged == 0 {
		return 0
	}
	return float64(r.Alarms) / float64(r.Judged)
}

// count adds a window. At 2^31 windows both are halved: the share stays.
func (r *Rate) count(alarm bool) {
	if r.Judged >= 1<<31 {
		r.Alarms /= 2
		r.Judged /= 2
	}
	r.Judged++
	if alarm {
		r.Alarms++
	}
}

// Model says which model gave a boundary.
type Model string

// The models beside the families.
const (
	// Phases is ours: the distribution within each phase, with an adaptive margin.
	Phases Model = "phases"
	// Unknown: too little was seen of the workload, or of this phase of it.
	Unknown Model = "unknown"
)

// Fit is what came of fitting the paper's distribution.
type Fit struct {
	Distribution Distribution
	// KS is the distance from what was measured, Boundary the 3-sigma boundary.
	KS, Boundary float64
	// Explained is which part of the variance of ln x the phases account for.
	Explained float64
	// Windows is of how many.
	Windows uint64
	// FalseAlarms is the rate of the paper's rule, the boundary alone.
	FalseAlarms Rate
	// Holds: the gate lets it through, and it is what judges.
	Holds bool
}

// The gate. As long as few windows are known, a fit is refused where they refute
// it: the distance is over 0.886/√n, which that of true values to the distribution
// fitted to them is one time in twenty (Lilliefors, JASA 62, 1967, for normal
// distributions, which those of CPI with k over 20 nearly are). Many windows refute
// every model; then a distance of 0.05 is near enough.
const (
	lilliefors = 0.886
	nearEnough = 0.05
	// gateWindows is how many windows a fit needs.
	gateWindows = 40
	// A distribution may look like one of the family while its middle moves from
	// phase to phase (fluidanimate: KS 0.08, and a boundary far over some phases):
	// at most this part of the variance may be that between phases.
	gateExplained = 0.1
	// gateRate is the false-alarm rate that it may have shown.
	gateRate = 0.01
)

// resolution is the least value that is learned: neither family has a likelihood at
// 0, and a miss in a million instructions more or less is nothing.
const resolution = 1e-3

// Indicator models one of CPI and MPKI.
type Indicator struct {
	// family is the paper's; rise and least say what matters: a value at most rise
	// times its middle, or at most least, is not over.
	family      Family
	rise, least float64

	moments moments
	keep    keep
	phases  phases
	fit     Fit
	fitted  bool
	// next is at how many windows the fit is made again.
	next uint64

	phaseAlarms Rate
}

// Verdict is what an indicator says of one window.
type Verdict struct {
	// Value is the indicator, 0 where it was not counted.
	Value float64
	// Typical is its middle in this phase, and Boundary is above which it is over;
	// both 0 where Model is Unknown.
	Typical, Boundary float64
	Model             Model
	Over              bool
}

// judge says what a window is, by what was learned before.
func (i *Indicator) judge(value float64, at phase) Verdict {
	v := Verdict{Value: value, Model: Unknown}
	middle, boundary, known := i.phases.typical(at)
	switch {
	case i.fit.Holds:
		v.Model, v.Typical, v.Boundary = Model(i.family), i.moments.mean, i.fit.Boundary
	case known:
		v.Model, v.Typical, v.Boundary = Phases, middle, boundary
	default:
		return v
	}
	v.Boundary = i.matters(v.Typical, v.Boundary)
	v.Over = value > v.Boundary
	return v
}

// matters is a boundary, or what is more and still does not matter.
func (i *Indicator) matters(middle, boundary float64) float64 {
	return max(boundary, i.rise*middle, i.least)
}

// learn takes a window in which the workload was alone. Each model judges it
// first, so that its false alarms are those of windows it had not seen.
func (i *Indicator) learn(value float64, at phase) {
	value = max(value, resolution)
	if i.fitted {
		i.fit.FalseAlarms.count(value > i.fit.Boundary)
	}
	if middle, boundary, known := i.phases.typical(at); known {
		over := value > i.matters(middle, boundary)
		i.phaseAlarms.count(over)
		i.phases.judged(over)
	}
	i.phases.cell[at.cell].add(math.Log(value))
	i.moments.add(value)
	i.keep.add(i.moments.n, value)
	if i.moments.n >= i.next {
		i.refit()
	}
}

// refit fits anew, and asks the gate.
func (i *Indicator) refit() {
	n := i.moments.n
	i.next = n + max(8, min(n/8, memory/8))
	d, ok := i.moments.fit(i.family)
	boundary := 0.0
	if ok {
		boundary = d.Boundary()
	}
	// A shape near 0 has no boundary that a float can hold.
	if i.fitted = boundary > 0 && boundary < Greatest; !i.fitted {
		i.fit = Fit{Windows: n, FalseAlarms: i.fit.FalseAlarms}
		return
	}
	i.fit.Distribution, i.fit.Windows = d, n
	i.fit.Explained = i.phases.explained()
	i.fit.KS, i.fit.Boundary = d.KS(i.keep.sorted()), boundary
	near := max(nearEnough, lilliefors/math.Sqrt(float64(min(n, kept))))
	i.fit.Holds = n >= gateWindows && i.fit.KS <= near && i.fit.Explained <= gateExplained &&
		i.fit.FalseAlarms.Value() <= gateRate
}

// Fit returns the paper's fit, for people; false where there is none.
func (i *Indicator) Fit() (Fit, bool) { return i.fit, i.fitted }

// PhaseAlarms is the measured false-alarm rate of the model of phases.
func (i *Indicator) PhaseAlarms() Rate { return i.phaseAlarms }
