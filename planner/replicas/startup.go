package replicas

import (
	"math"
	"slices"
	"time"
)

// DefaultStartup is the assumed duration of a start if nothing was declared or observed.
const DefaultStartup = 60 * time.Second

const (
	// kept is how many starts are remembered.
	kept = 128
	// quantile of the start times that is bounded, with this confidence.
	quantile, confidence = 0.9, 0.9
)

// Startup learns how long an instance takes from its creation until it serves.
type Startup struct {
	// Declared is what the operator said, 0: nothing.
	Declared time.Duration `json:"declared,omitempty"`
	// Seen are the newest starts, the oldest first.
	Seen []time.Duration `json:"seen,omitempty"`
}

// Observe notes a start that has ended. What is no duration is ignored.
func (s *Startup) Observe(d time.Duration) {
	if d < 0 {
		return
	}
	if s.Seen = append(s.Seen, d); len(s.Seen) > kept {
		s.Seen = slices.Delete(s.Seen, 0, len(s.Seen)-kept)
	}
}

// Upper returns an upper confidence bound for the 0.9 quantile: of n starts in order, the k-th is
// a bound at the first k with
//
//	P(Bin(n, 0.9) < k) >= 0.9
//
// for any distribution. With fewer than 22 starts no order statistic is one; then it is the
// larger of the longest start and the declared duration. A start under way lasts at least as long
// as it has so far: ages of instances that are not ready count as well.
func (s *Startup) Upper(starting ...time.Duration) time.Duration {
	out, bounded := s.order()
	if !bounded {
		prior := s.Declared
		if prior <= 0 {
			prior = DefaultStartup
		}
		out = max(out, prior)
	}
	for _, age := range starting {
		out = max(out, age)
	}
	return out
}

// order is the order statistic that bounds the quantile, or the largest.
func (s *Startup) order() (bound time.Duration, bounded bool) {
	n := len(s.Seen)
	if n == 0 {
		return 0, false
	}
	sorted := slices.Sorted(slices.Values(s.Seen))
	term, below := math.Pow(1-quantile, float64(n)), 0.0 // P(Bin = 0), P(Bin < k)
	for k := 1; k <= n; k++ {
		below += term
		if below >= confidence {
			return sorted[k-1], true
		}
		term *= float64(n-k+1) / float64(k) * quantile / (1 - quantile)
	}
	return sorted[n-1], false
}
