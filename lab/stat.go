package lab

import (
	"math"
	"slices"
)

// Stat is the mean of one figure over runs, with the standard error of it; 0
// for a single run.
type Stat struct {
	Mean, StdErr float64
}

// StatOf sums up one figure of several runs; the zero Stat for none.
func StatOf(v []float64) Stat {
	if len(v) == 0 {
		return Stat{}
	}
	s := Stat{Mean: Mean(v)}
	if len(v) > 1 {
		sum := 0.0
		for _, x := range v {
			sum += (x - s.Mean) * (x - s.Mean)
		}
		s.StdErr = math.Sqrt(sum / float64(len(v)-1) / float64(len(v)))
	}
	return s
}

// Mean returns the mean of v; 0 for none.
func Mean(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

// Quantile returns the smallest value of v such that at least the share q, in [0, 1], of the values
// are not above it; 0 for none.
func Quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	return s[min(len(s)-1, max(0, int(math.Ceil(q*float64(len(s))))-1))]
}

// Seed mixes numbers into the two words of a PCG source, so that streams of
// different parts do not depend on each other's length.
func Seed(parts ...uint64) (a, b uint64) {
	a, b = 0x9e3779b97f4a7c15, 0xd1b54a32d192ed03
	for _, p := range parts {
		a = mix(a ^ p)
		b = mix(b + p)
	}
	return a, b
}

// mix is the finalizer of SplitMix64.
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
