package main

import (
	"math/rand/v2"
	"time"

	"github.com/trimtab/trimtab/lab/services/shape"
)

// arrival is one request that is meant to be sent.
type arrival struct {
	// At is when, counted from the start of the run.
	At time.Duration
	// Size is how dear it is, relative to the calibrated request.
	Size float64
}

// leastRate is the least rate, as a share of the pool, that is thinned for [arrivals].
const leastRate = 1.0

// arrivals draws the requests of service i: a Poisson process of the rate
// load(t) * pool / cost, by thinning one of the highest rate. The same seed
// gives the same arrivals, whatever the policy.
func arrivals(s *shape.Scenario, i int, whole time.Duration, pool float64, cost time.Duration, seed uint64) []arrival {
	r := rand.New(rand.NewPCG(seed, uint64(i)+1))
	most := max(leastRate, s.Highest(i))
	highest := most * pool / cost.Seconds()
	var out []arrival
	for t := 0.0; ; {
		t += r.ExpFloat64() / highest
		at := time.Duration(t * float64(time.Second))
		if at >= whole {
			return out
		}
		if r.Float64()*most < s.Load(i, at, whole) {
			out = append(out, arrival{At: at, Size: s.Size(i, at, whole)})
		}
	}
}
