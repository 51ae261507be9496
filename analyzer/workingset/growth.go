package workingset

import (
	"math"
	"time"
)

const (
	// points is how many intervals a growth is told from.
	points = 24
	// significant is the least slope in standard errors, of the whole and of the newer half: with
	// two degrees less than points, a slope by chance is steeper less than once in 10^7.
	significant = 7
	// backward is the part of the growth by which no interval may fall back.
	backward = 0.1
	// lasting is the part of the slope of the older half that the newer half must have.
	lasting = 0.6
	// confident is the quantile 0.99 of Student's t with the ten degrees of freedom of a half.
	confident = 2.76
	// ahead is for how many times the time that it was seen a growth is continued.
	ahead = 4
	// jump is the largest part of the growth between two intervals: a step is no growth.
	jump = 0.25
	// leastGrowth is the least growth in parts of the use.
	leastGrowth = 0.02
)

// scale has the minima of whole intervals of one length, in order of time, and that of the one
// under way.
type scale struct {
	Least []point `json:"least,omitempty"`
	Now   point   `json:"now"`
}

// point is the least use in an interval, which Number counts from the epoch.
type point struct {
	Number int64   `json:"n"`
	Use    float64 `json:"use"`
}

// intervals are the lengths of the intervals of each scale.
func intervals() [3]time.Duration {
	return [3]time.Duration{time.Minute, 5 * time.Minute, 30 * time.Minute}
}

// Growth is one that does not stop.
type Growth struct {
	// Rate is the slope of the least squares over the newer half, Least its lower bound with a
	// confidence of 99%, in bytes per second.
	Rate, Least float64
	// Seen is for how long it was seen.
	Seen time.Duration
	// Left is the time until the limit at this rate; 0: there is no limit.
	Left time.Duration
}

// take adds a reading to the interval under way, or ends it.
func (s *scale) take(at time.Time, length time.Duration, use float64) {
	n := number(at, length)
	switch {
	case s.Now.Number == n:
		s.Now.Use = math.Min(s.Now.Use, use)
		return
	case s.Now.Number > 0:
		if len(s.Least) >= points {
			s.Least = append(s.Least[:0], s.Least[1:]...)
		}
		s.Least = append(s.Least, s.Now)
	}
	s.Now = point{n, use}
}

// Growth returns the growth under way that reaches a limit, in bytes, within four times the time
// for which it was seen; without a limit (0), within four times that time to twice the use. nil: there
// is none.
func (l *Learner) Growth(limit float64) *Growth {
	g := l.grows()
	if g == nil {
		return nil
	}
	to := limit
	if !(limit > 0) {
		to = 2 * l.Use
	}
	left := time.Duration(math.Min(math.Max(0, to-l.Use)/g.Rate, 1e9) * float64(time.Second))
	if left > ahead*g.Seen {
		return nil
	}
	if limit > 0 {
		g.Left = left
	}
	return g
}

// grows returns a growth of the shortest scale that shows one, nil if none does. Within its first day
// a workload may only be on its way to a daily peak, unless it was killed for want of memory.
func (l *Learner) grows() *Growth {
	if l.KilledAt.IsZero() && l.Last.Sub(l.First) < day {
		return nil
	}
	for i, length := range intervals() {
		if g := l.Scales[i].growth(length); g != nil && l.above(g, time.Duration(points)*length) {
			return g
		}
	}
	return nil
}

// above reports whether the use is higher than all peaks from before the last d, by a tenth of what it
// grew, since a kill for
// want of memory: peaks before that one are no proof that the use will fall.
func (l *Learner) above(g *Growth, d time.Duration) bool {
	level := l.Use - backward*g.Rate*g.Seen.Seconds()
	begin, end := number(l.KilledAt, time.Hour), number(l.Last.Add(-d), time.Hour)
	for i := range l.Hours {
		if l.Hours[i].Number > begin && l.Hours[i].Number < end && l.Hours[i].Most >= level {
			return false
		}
	}
	return true
}

// growth returns the growth that the minima of intervals show.
func (s *scale) growth(length time.Duration) *Growth {
	n := len(s.Least)
	if n < points || s.Least[n-1].Number-s.Least[0].Number > points {
		return nil
	}
	first, last := s.Least[0].Use, s.Least[n-1].Use
	growth := last - first
	if !(growth > leastGrowth*last) {
		return nil
	}
	most := first
	for i, p := range s.Least {
		if most-p.Use > backward*growth || i > 0 && p.Use-s.Least[i-1].Use > jump*growth {
			return nil
		}
		most = math.Max(most, p.Use)
	}
	rate, doubt := slope(s.Least)
	older, _ := slope(s.Least[:n/2])
	newer, newerDoubt := slope(s.Least[n/2:])
	if !(rate > significant*doubt && newer > significant/2*newerDoubt && newer >= lasting*older) {
		return nil
	}
	per := 1 / length.Seconds()
	return &Growth{Rate: newer * per, Least: math.Max(0, newer-confident*newerDoubt) * per, Seen: time.Duration(n) * length}
}

// slope returns the slope of least squares per interval, and its standard error.
func slope(all []point) (rate, doubt float64) {
	n := float64(len(all))
	var x, y float64
	for _, p := range all {
		x += float64(p.Number-all[0].Number) / n
		y += p.Use / n
	}
	var xx, xy, yy float64
	for _, p := range all {
		dx, dy := float64(p.Number-all[0].Number)-x, p.Use-y
		xx, xy, yy = xx+dx*dx, xy+dx*dy, yy+dy*dy
	}
	if xx == 0 {
		return 0, math.Inf(1)
	}
	rate = xy / xx
	return rate, math.Sqrt(math.Max(0, yy-rate*xy) / math.Max(1, n-2) / xx)
}
