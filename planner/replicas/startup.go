package replicas

import (
	"math"
	"slices"
	"time"
)

// DefaultStartup is the assumed duration of a start if nothing was declared or observed.
const DefaultStartup = 60 * time.Second

const (
	// kept is the number of observed starts that are remembered.
	kept = 128
	// Upper bounds this quantile of the start times with this confidence.
	quantile, confidence = 0.9, 0.9
)

// Startup learns how long an instance takes from its creation until it serves.
type Startup struct {
	// Declared is the configured duration of a start; 0: none.
	Declared time.Duration `json:"declared,omitempty"`
	// Seen has the durations of the latest starts, the oldest first.
	Seen []time.Duration `json:"seen,omitempty"`
}

// Observe records the duration of a start. Negative ones are ignored.
func (s *Startup) Observe(d time.Duration) {
	if d < 0 {
		return
	}
	if s.Seen = append(s.Seen, d); len(s.Seen) > kept {
		s.Seen = slices.Delete(s.Seen, 0, len(s.Seen)-kept)
	}
}

// Upper returns an upper confidence bound of the 0.9 quantile of start times. Of n observed starts
// in ascending order it is the k-th, with the least k for which
//
//	P(Bin(n, 0.9) < k) >= 0.9
//
// This holds for any distribution. With fewer than 22 starts there is no such k, and Upper returns
// the larger of the longest start and the declared duration. starting has the ages of instances
// that are not ready yet: their starts last at least as long.
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

// order returns the order statistic that bounds the quantile. If there is none, it returns the
// longest start and false.
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
