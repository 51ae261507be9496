package analyzer

import "math"

const (
	// ramped is over how many intervals a rise or fall is measured, fewest how many
	// it takes.
	ramped, fewest = 15, 6
	// evident is how many standard errors a slope must have to count, bent how much
	// worse than a step a line may fit.
	evident, bent = 1.5, 1.15
	// furthest bounds what a slope may change a load by.
	furthest = 0.4
)

// slope returns by how much a load changes from one interval to the next, where
// loads has the rates of the latest ones and noise is the standard error of each:
// the slope of least squares b, less what noise may make of it,
//
//	b · (1 − (1.5 σ_b / b)²)    where |b| > 1.5 σ_b, and 0 elsewhere.
//
// A load that jumped is no ramp, and must not be taken for one that goes on: where
// two constants fit better than a line by far, the slope is 0.
func slope(loads []float64, noise float64) float64 {
	n := float64(len(loads))
	if n < fewest || !(noise > 0) {
		return 0
	}
	sum, moment := 0.0, 0.0
	for i, v := range loads {
		sum += v
		moment += (float64(i) - (n-1)/2) * v
	}
	square := n * (n*n - 1) / 12 // Σ (i − mean of i)²
	b := moment / square
	t := math.Abs(b) / (noise / math.Sqrt(square))
	if t <= evident {
		return 0
	}
	about := func(v float64) float64 { return v * v / n }
	all, left := 0.0, 0.0
	for _, v := range loads {
		all += v * v
	}
	line := all - about(sum) - b*moment
	step := math.Inf(1)
	for k, v := range loads[:len(loads)-1] {
		left += v
		m := float64(k + 1)
		step = math.Min(step, all-left*left/m-(sum-left)*(sum-left)/(n-m))
	}
	if line > bent*step {
		return 0
	}
	return b * (1 - evident*evident/(t*t))
}
