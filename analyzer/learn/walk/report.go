package walk

import (
	"math"

	"github.com/trimtab/trimtab/analyzer/learn"
)

// Mode is the kind of a report's performance.
type Mode string

// The modes.
const (
	Fraction Mode = "fraction" // of Requests
	Declared Mode = "declared" // a number with a declared Sigma
	Plain    Mode = "plain"    // a number with unknown noise
)

// ModeOf returns the mode of a learner whose first report is o.
func ModeOf(o learn.Observation) Mode {
	switch {
	case o.Requests > 0:
		return Fraction
	case o.Sigma > 0:
		return Declared
	}
	return Plain
}

// Known reports whether m is one of the modes.
func (m Mode) Known() bool { return m == Fraction || m == Declared || m == Plain }

// Highest returns the end of the performance's range.
func (m Mode) Highest() float64 {
	if m == Fraction {
		return 1
	}
	return learn.Greatest
}

// Report is an observation in the learner's coordinates.
type Report struct {
	X float64 `json:"x"` // log2(a/l)
	L float64 `json:"l"` // ln(load)
	P float64 `json:"p"`
	W float64 `json:"w"` // weight: requests, 1/sigma², or 1
}

// ReportOf returns o, whose load is > 0, as a learner of mode m takes it. One that says less
// than the mode wants to know has the mean weight of the reports in the bins, 1 before
// there is one.
func ReportOf[B any](m Mode, o learn.Observation, bins []B, of func(*B) *Moments) Report {
	r, ok := m.Report(o)
	if ok {
		return r
	}
	weight, reports := 0.0, 0.0
	for i := range bins {
		weight += of(&bins[i]).W
		reports += of(&bins[i]).N
	}
	if reports > 0 {
		r.W = weight / reports
	}
	return r
}

// Report converts o, whose load is > 0, for a learner of mode m. It is not ok, and of weight 1,
// if o lacks what the mode needs: it should count with the typical weight.
func (m Mode) Report(o learn.Observation) (r Report, ok bool) {
	r = Report{X: math.Log2(o.Allocation) - math.Log2(o.Load), L: math.Log(o.Load), P: o.Performance, W: 1}
	switch {
	case m == Fraction && o.Requests > 0:
		r.P, r.W = min(1, o.Performance), o.Requests
	case m == Declared && o.Sigma > 0:
		r.W = 1 / (o.Sigma * o.Sigma)
	case m != Plain:
		return r, false
	}
	return r, true
}
