package throttle

import "math"

// Classes has the number of cores in each class. The actuator chooses which cores these are.
type Classes struct{ First, Second int }

// Classify divides the cores of a host (6.2):
//
//	first = min(cores, ⌈Σ requested by LRAs⌉ + slack), second = cores − first
//
// An invalid request counts as all cores: nothing is taken from an LRA (long-running application)
// of which nothing is known. Without an LRA all cores are second class.
func Classify(cores int, requested []float64, slack int) Classes {
	cores, sum := max(0, cores), 0.0
	for _, r := range requested {
		if !(r >= 0 && r <= greatestAmount) {
			r = float64(cores)
		}
		sum += r
	}
	if len(requested) == 0 {
		return Classes{Second: cores}
	}
	// An excess of a billionth of a core is a rounding error.
	first := int(min(math.Ceil(sum-1e-9)+float64(max(0, slack)), float64(cores)))
	return Classes{first, cores - first}
}

func classesOf(o *Observation, slack int) Classes {
	requested := make([]float64, 0, 64)
	for i := range o.LRAs {
		requested = append(requested, o.LRAs[i].Cores)
	}
	return Classify(o.Cores, requested, slack)
}
