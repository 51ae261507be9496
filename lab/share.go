package lab

// Share divides an amount among those who want some of it, by weight: the weighted max-min
// share, which generalised processor sharing gives at every instant, and the kernel's
// scheduler over a few milliseconds,
//
//	given = min(wants, level · weight),   with the level at which   Σ given = min(amount, Σ wants)
//
// so that each gets at least its part by weight if it wants that much, and nothing is left while
// one wants more. Weights are > 0. given is overwritten; the slices have one length. It returns the
// sum of what was given.
//
// Source: A. K. Parekh, R. G. Gallager, "A generalized processor sharing approach to flow
// control in integrated services networks" (IEEE/ACM ToN 1993), equation (1).
func Share(amount float64, wants, weights, given []float64) float64 {
	left, open := max(0, amount), 0.0
	for i, w := range wants {
		if given[i] = 0; w > 0 {
			given[i] = waits
			open += weights[i]
		}
	}
	// Those that want no more than the level get all they want, which raises the level for the
	// others.
	for again := true; again && open > 0; {
		again = false
		level := left / open
		left, open = max(0, amount), 0
		for i := range given {
			if given[i] == waits && wants[i] <= level*weights[i] {
				given[i], again = wants[i], true
			}
			if given[i] == waits {
				open += weights[i]
			} else {
				left -= given[i]
			}
		}
		left = max(0, left)
	}
	sum := 0.0
	for i := range given {
		if given[i] == waits {
			given[i] = min(wants[i], left*weights[i]/open)
		}
		sum += given[i]
	}
	return sum
}

// waits marks those that do not have all they want yet.
const waits = -1
