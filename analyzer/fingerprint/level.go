package fingerprint

import (
	"github.com/trimtab/trimtab"
)

// Greatest is the largest accepted value: sums and differences of many of them are finite.
const Greatest = 1e100

// Branch is how a load level was found.
type Branch string

// The branches of algorithm 1.
const (
	// Monotone: the last of values that only rise or only fall.
	Monotone Branch = "monotone"
	// Short: fewer values than segments; the mean of them.
	Short Branch = "short"
	// SegmentsMonotone: the last of the means of the segments, which only rise or
	// only fall.
	SegmentsMonotone Branch = "segments-monotone"
	// SegmentsMean: the mean of the means of the segments.
	SegmentsMean Branch = "segments-mean"
)

// Level is an approximated load level.
type Level struct {
	// Value is in the unit of the data.
	Value float64 `json:"value"`
	// Branch is how it was found.
	Branch Branch `json:"branch"`
	// Means are those of the segments, in time order; empty in the first two branches.
	Means []float64 `json:"segment_means"`
}

// Approximation is algorithm 1 with its parameters. It keeps scratch memory of about 17 bytes for
// each value of the longest data it saw, so that repeated calls allocate nothing; it is not safe
// for concurrent use.
type Approximation struct {
	// K is the number of segments, at least 1; the paper's default is 5.
	K int
	// P is how many interquartile ranges beyond the quartiles a value is an outlier, at least 0;
	// customarily 1.5.
	P float64
	// Quartile is the definition of the quartiles.
	Quartile Quartile

	selector selector
	means    []float64
}

// Default returns the paper's parameters.
func Default() Approximation { return Approximation{K: 5, P: 1.5, Quartile: Linear} }

// validate checks the parameters.
func (a *Approximation) validate() error {
	switch a.Quartile {
	case "", Linear, Exclusive, Tukey:
	default:
		return trimtab.Invalidf("quartile %.40q: want %s, %s or %s", a.Quartile, Linear, Exclusive, Tukey)
	}
	if a.K < 1 {
		return trimtab.Invalidf("k %d: want at least 1 segment", a.K)
	}
	if !(a.P >= 0 && a.P <= Greatest) {
		return trimtab.Invalidf("p %v: want 0 to %g interquartile ranges", a.P, Greatest)
	}
	return nil
}

// Of approximates the load level of data, which is in time order and not
// changed. The means are valid until the next call. Errors are
// trimtab.ErrInvalid: no data, a value that is no number or beyond ±[Greatest],
// or parameters that make no sense.
func (a *Approximation) Of(data []float64) (Level, error) {
	if err := a.validate(); err != nil {
		return Level{}, err
	}
	if len(data) == 0 {
		return Level{}, trimtab.Invalidf("load level of no data: want at least one value")
	}
	for i, x := range data {
		if !(x >= -Greatest && x <= Greatest) {
			return Level{}, trimtab.Invalidf("row %d: value %v: want a number within ±%g", i, x, Greatest)
		}
	}
	a.means = a.means[:0]
	switch {
	case monotone(data):
		return Level{data[len(data)-1], Monotone, a.means}, nil
	case len(data) < a.K:
		return Level{a.mean(data), Short, a.means}, nil
	}
	length := 1 + (len(data)-1)/a.K // ⌈|D|/k⌉
	for from := 0; from < len(data); from += length {
		a.means = append(a.means, a.mean(data[from:min(from+length, len(data))]))
	}
	if monotone(a.means) {
		return Level{a.means[len(a.means)-1], SegmentsMonotone, a.means}, nil
	}
	return Level{a.mean(a.means), SegmentsMean, a.means}, nil
}

// mean returns the mean of v without its outliers, algorithm 2: those outside [Q1 − p IQR, Q3 + p
// IQR]. If no value is inside, as of two values with a small p, it is that of all.
func (a *Approximation) mean(v []float64) float64 {
	q1, q3 := a.selector.quartiles(v, a.Quartile)
	reach := a.P * (q3 - q1)
	low, high := q1-reach, q3+reach
	sum, n := 0.0, 0
	for _, x := range v {
		if x >= low && x <= high {
			sum += x
			n++
		}
	}
	if n == 0 {
		for _, x := range v {
			sum += x
		}
		n = len(v)
	}
	return sum / float64(n)
}

// monotone reports whether v never falls or never rises.
func monotone(v []float64) bool {
	rises, falls := true, true
	for i := 1; i < len(v) && (rises || falls); i++ {
		rises = rises && v[i] >= v[i-1]
		falls = falls && v[i] <= v[i-1]
	}
	return rises || falls
}
