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

// count adds a window. At 2^31 windows both counts are halved, which keeps their ratio.
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

// Fit is the result of fitting the paper's distribution.
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
	// Holds: the fit passed the gate, and judges windows.
	Holds bool
}

// The gate decides whether a fit may judge: its Kolmogorov-Smirnov distance must be at most
// max(0.886/√n, 0.05). The first is the 5% critical value for a normal distribution fitted
// to n values (Lilliefors, JASA 62, 1967); Gamma with k over 20, as fitted to CPI, is
// nearly normal. With many windows that test refutes every model, so a distance of 0.05 is
// accepted.
const (
	lilliefors = 0.886
	nearEnough = 0.05
	// gateWindows is how many windows a fit needs.
	gateWindows = 40
	// gateExplained is the largest share of the variance that may lie between phases. A
	// mixture of phases can look like one distribution of the family, with a boundary far
	// above the values of some phases (fluidanimate: KS 0.08).
	gateExplained = 0.1
	// gateRate is the highest measured false-alarm rate that the gate accepts.
	gateRate = 0.01
)

// resolution is the least value that is learned; smaller ones are raised to it. Neither family
// has a likelihood at 0, and one miss per million instructions makes no difference.
const resolution = 1e-3

// Indicator models one of CPI and MPKI.
type Indicator struct {
	// family is the paper's. A value up to rise times the usual one, or up to least, is
	// never Over.
	family      Family
	rise, least float64

	moments moments
	keep    keep
	phases  phases
	fit     Fit
	fitted  bool
	// next is the number of windows at which the fit is computed again.
	next uint64

	phaseAlarms Rate
}

// Verdict is an indicator's judgement of one window.
type Verdict struct {
	// Value is the indicator, 0 where it was not counted.
	Value float64
	// Typical is the usual value in this phase. A value above Boundary is Over. Both are 0
	// if Model is Unknown.
	Typical, Boundary float64
	Model             Model
	Over              bool
}

// judge compares the value of a window with what was learned from earlier windows.
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

// matters raises a boundary to the largest value that is still too small a rise to matter.
func (i *Indicator) matters(middle, boundary float64) float64 {
	return max(boundary, i.rise*middle, i.least)
}

// learn learns a window in which the workload was alone. Each model judges it first, so that its
// false alarms are counted on windows it had not seen.
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
	// With a shape near 0 the boundary overflows a float.
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

// Fit returns the paper's fit, for people; false if there is none.
func (i *Indicator) Fit() (Fit, bool) { return i.fit, i.fitted }

// PhaseAlarms is the measured false-alarm rate of the model of phases.
func (i *Indicator) PhaseAlarms() Rate { return i.phaseAlarms }
