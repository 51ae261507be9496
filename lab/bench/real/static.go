package main

import (
	"math"
	"time"
)

// gridStep is the distance between two splits that are tried, as a share of the
// pool.
const gridStep = 0.02

// split finds the fixed split of the pool under which most requests are in
// time by the model of [replay]. It knows all arrivals and costs beforehand.
// The result are shares of the pool, whose sum is 1.
func split(in [3][]arrival, cost, limit [3]time.Duration, pool float64) [3]float64 {
	n := int(math.Round(1 / gridStep))
	var met [3][]int
	for i := range met {
		met[i] = make([]int, n+1)
		for k := 1; k <= n; k++ {
			quota := time.Duration(float64(k) / float64(n) * pool * float64(period))
			met[i][k] = replay(in[i], cost[i], limit[i], func(time.Duration) time.Duration { return quota })
		}
	}
	best, at := -1, [3]int{}
	for a := 1; a < n; a++ {
		for b := 1; a+b < n; b++ {
			if v := met[0][a] + met[1][b] + met[2][n-a-b]; v > best {
				best, at = v, [3]int{a, b, n - a - b}
			}
		}
	}
	var out [3]float64
	for i := range out {
		out[i] = float64(at[i]) / float64(n)
	}
	return out
}
