package main

import "math"

// enough is the share of requests in time up to which a rate is within the capacity.
const enough = 0.99

// capacity returns the highest rate between least and most at which enough requests are in time,
// to within 4%. It takes that a higher rate is never better, and least where even that is too high.
func capacity(least, most float64, inTime func(rate float64) (float64, error)) (float64, error) {
	for most/least > 1.04 {
		rate := math.Sqrt(least * most)
		share, err := inTime(rate)
		if err != nil {
			return 0, err
		}
		if share >= enough {
			least = rate
		} else {
			most = rate
		}
	}
	return least, nil
}

// tried is a fixed limit and the goodput that it gave.
type tried struct {
	Maxconn int     `json:"maxconn"`
	Goodput float64 `json:"goodput"`
}

// sweep tries fixed limits, and returns all, and the best of them: of two that gave the same, the
// lower one.
func sweep(limits []int, goodput func(limit int) (float64, error)) (all []tried, best int, err error) {
	highest := math.Inf(-1)
	for _, limit := range limits {
		v, err := goodput(limit)
		if err != nil {
			return nil, 0, err
		}
		all = append(all, tried{limit, v})
		if v > highest {
			best, highest = limit, v
		}
	}
	return all, best, nil
}
