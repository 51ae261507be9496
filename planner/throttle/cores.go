package throttle

import "math"

// Classes counts the cores of each class. The actuator chooses which cores these are.
type Classes struct{ First, Second int }

// Classify divides the cores of a host (6.2):
//
//	first = min(cores, ⌈Σ requested by LRAs⌉ + slack), second = cores − first
//
// A request that makes no sense counts as all cores: nothing is taken from an LRA
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
	// A billionth of a core more is rounding.
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
