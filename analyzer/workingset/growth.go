package workingset

import (
	"math"
	"time"
)

const (
	// points is the number of intervals in which a growth is looked for.
	points = 24
	// significant is the least slope over all intervals, in standard errors. By Student's t with points
	// − 2 degrees of freedom, chance gives a steeper slope less than once in 10^6.
	significant = 7.0
	// backward is the largest fall below an earlier interval, as a part of the growth.
	backward = 0.1
	// lasting is the least slope of the newer half, as a part of the older half's.
	lasting = 0.6
	// confident is the 0.99 quantile of Student's t with ten degrees of freedom, as half the points have.
	confident = 2.76
	// ahead times the duration of a growth is how far it is extrapolated.
	ahead = 4
	// jump is the largest rise from one interval to the next, as a part of the growth: a single step
	// is no growth.
	jump = 0.25
	// leastGrowth is the least growth, as a part of the use at its end.
	leastGrowth = 0.02
)

// scale has the lowest use in each of the last complete intervals of one length, oldest first, and in
// the current one.
type scale struct {
	Least []point `json:"least,omitempty"`
	Now   point   `json:"now"`
}

// point is the lowest use in an interval; Number counts intervals since the Unix epoch.
type point struct {
	Number int64   `json:"n"`
	Use    float64 `json:"use"`
}

// intervals are the lengths of the intervals of each scale.
func intervals() [3]time.Duration {
	return [3]time.Duration{time.Minute, 5 * time.Minute, 30 * time.Minute}
}

// Growth is a rise of the use that does not stop.
type Growth struct {
	// Rate is the least-squares slope over the newer half, Least its lower confidence bound (99%), in
	// bytes per second.
	Rate, Least float64
	// Seen is how long the use has risen so.
	Seen time.Duration
	// Left is the time until the use reaches the limit at this rate; 0: there is no limit.
	Left time.Duration
}

// take adds a reading to the current interval, or ends that interval and begins another.
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

// Growth returns the current growth if it will reach a limit, in bytes, within four times the time for
// which it was seen. Without a limit (0), the use must double in that time. nil: there is none.
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

// grows returns the growth in the shortest intervals that show one, or nil. In the first day it returns
// nil, since a rise may only lead to a daily peak, unless the kernel killed for lack of memory.
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

// above reports whether the use exceeds all peaks older than d by more than a tenth of the growth.
// Peaks from before the last kill for lack of memory do not count: it was the kill that ended them.
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

// growth returns the growth that the complete intervals show, or nil.
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
