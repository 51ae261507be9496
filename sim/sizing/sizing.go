package sizing

import (
	"math"
	"time"

	"github.com/trimtab/trimtab/analyzer/workingset"
)

// Reading is one of a series: bytes of memory, or cores.
type Reading struct {
	At  time.Time
	Use float64
}

// Series is the recorded usage of one instance, in order of time.
type Series struct {
	Name     string
	Readings []Reading
	// Limit is the one that it had, the newest of several; 0: none is known.
	Limit float64
	// Kills is how many processes the kernel killed for lack of memory, as recorded.
	Kills int
}

// watched is the time at the beginning in which nothing is counted, but at most a third of a series.
const watched = 24 * time.Hour

// Score is what became of a rule. Amounts are in bytes or cores.
type Score struct {
	Rule string `json:"rule"`
	// Readings were judged, Overruns of them above the limit, in Kills stretches.
	Readings int `json:"readings"`
	Overruns int `json:"overruns"`
	Kills    int `json:"kills"`
	// Limit, Over, Under and Slack are means over readings: the limit, how far it was above and below
	// the usage, and how far it was above as a part of the limit.
	Limit float64 `json:"limit"`
	Over  float64 `json:"over_provided"`
	Under float64 `json:"under_provided"`
	Slack float64 `json:"slack"`
	// Leaks are the times at which trimtab began to name a growth that does not stop; Days are those
	// of the series.
	Leaks int     `json:"leaks"`
	Days  float64 `json:"days"`
}

// Add adds the score of another series: means count by their readings.
func (s *Score) Add(o Score) {
	n, m := float64(s.Readings), float64(o.Readings)
	if n+m > 0 {
		for _, x := range [][2]*float64{{&s.Limit, &o.Limit}, {&s.Over, &o.Over}, {&s.Under, &o.Under}, {&s.Slack, &o.Slack}} {
			*x[0] = (*x[0]*n + *x[1]*m) / (n + m)
		}
	}
	s.Readings, s.Overruns, s.Kills = s.Readings+o.Readings, s.Overruns+o.Overruns, s.Kills+o.Kills
	s.Leaks, s.Days = s.Leaks+o.Leaks, s.Days+o.Days
}

// Play plays a series under a rule.
func Play(s *Series, r Rule) (out Score) {
	if len(s.Readings) == 0 {
		return out
	}
	begin, length := s.Readings[0].At, s.Readings[len(s.Readings)-1].At.Sub(s.Readings[0].At)
	out.Days = length.Hours() / 24
	from, over, leaks := begin.Add(min(watched, length/3)), false, false
	for _, x := range s.Readings {
		limit := r.Limit()
		if limit > 0 && !x.At.Before(from) {
			out.count(limit, x.Use, over)
		}
		if over = limit > 0 && x.Use > limit; over {
			r.Overrun(x.At, limit)
		}
		if limit > 0 {
			x.Use = math.Min(x.Use, limit)
		}
		r.Take(x.At, x.Use)
		if o, ok := r.(*ours); ok {
			g := o.learner.Growth(s.Limit)
			o.learner.Leak(x.At, g)
			if g != nil && !leaks {
				out.Leaks++
			}
			leaks = g != nil
		}
	}
	if n := float64(out.Readings); n > 0 {
		for _, x := range []*float64{&out.Limit, &out.Over, &out.Under, &out.Slack} {
			*x /= n
		}
	}
	return out
}

// count adds a reading under a limit; before: the reading before was above its limit, too.
func (s *Score) count(limit, use float64, before bool) {
	s.Readings++
	s.Limit += limit
	s.Over += math.Max(0, limit-use)
	s.Under += math.Max(0, use-limit)
	s.Slack += (limit - use) / limit
	if use > limit {
		s.Overruns++
		if !before {
			s.Kills++
		}
	}
}

// Margin is that of trimtab's rule if no other is asked for.
const Margin = workingset.Margin
