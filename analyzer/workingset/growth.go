package workingset

import (
	"math"
	"time"
)

const (
	// points is the number of periods in which a growth is looked for.
	points = 6
	// significant is the least slope over the periods, in standard errors. The record of the level is the
	// stronger evidence: see doc.go.
	significant = 1.5
	// confident is the 0.99 quantile of Student's t with points − 2 degrees of freedom.
	confident = 3.75
	// earlier times the duration of a growth before now is the use with which its level is compared.
	earlier = 4
	// ahead times the duration of a growth is how far it is extrapolated.
	ahead = 4
	// jump is the largest rise from one period to the next, as a part of the growth: a single step is no
	// growth.
	jump = 0.6
	// leastGrowth is the least growth, as a part of the use at its end. Less is within the margin of limits.
	leastGrowth = 0.05
)

// scale has the last complete periods of one length, oldest first, and the current one.
type scale struct {
	Periods []period `json:"periods,omitempty"`
	Now     period   `json:"now"`
}

// period is the lowest use in a period; Number counts periods since the Unix epoch.
type period struct {
	Number int64   `json:"n"`
	Least  float64 `json:"use"`
}

// lengths are the lengths of the periods of each scale.
func lengths() [5]time.Duration {
	return [5]time.Duration{time.Minute, 3 * time.Minute, 10 * time.Minute, 30 * time.Minute, 90 * time.Minute}
}

// Growth is a rise of the use that does not stop.
type Growth struct {
	// Rate is the least-squares slope over the periods, Least its lower confidence bound (99%), in bytes
	// per second.
	Rate, Least float64
	// Seen is how long the use has risen so.
	Seen time.Duration
	// Left is the time until the use reaches the limit at this rate; 0: there is no limit.
	Left time.Duration
}

// take adds a reading to the current period, or ends that period and begins another.
func (s *scale) take(at time.Time, length time.Duration, use float64) {
	n := number(at, length)
	switch {
	case s.Now.Number == n:
		s.Now.Least = math.Min(s.Now.Least, use)
		return
	case s.Now.Number > 0:
		if len(s.Periods) >= points {
			s.Periods = append(s.Periods[:0], s.Periods[1:]...)
		}
		s.Periods = append(s.Periods, s.Now)
	}
	s.Now = period{n, use}
}

// Growth returns the current growth if it will reach a limit, in bytes, within four times the time for
// which it was seen. Without a limit (0), the use must double in that time. nil: there is none.
func (l *Learner) Growth(limit float64) *Growth {
	if limit > 0 {
		return l.grows(limit)
	}
	g := l.grows(2 * l.Use)
	if g != nil {
		g.Left = 0
	}
	return g
}

// grows returns the growth in the shortest periods that show one that reaches an amount soon, or nil. In
// the first day it returns nil, since a rise may only lead to a daily peak, unless the kernel killed for
// lack of memory.
func (l *Learner) grows(to float64) *Growth {
	if l.KilledAt.IsZero() && l.Last.Sub(l.First) < day {
		return nil
	}
	for i, length := range lengths() {
		g := l.Scales[i].growth(length)
		if g == nil || l.Scales[i].least() <= l.highest(l.Last.Add(-earlier*points*length)) {
			continue
		}
		g.Left = time.Duration(math.Min(math.Max(0, to-l.Use)/g.Rate, 1e9) * float64(time.Second))
		if g.Left <= ahead*g.Seen || math.IsInf(to, 1) {
			return g
		}
	}
	return nil
}

// highest returns the highest use before a time, in the last 8 days; infinity: less than half a day was
// seen before. What was before the last kill for lack of memory does not count: it was the kill that ended
// it.
func (l *Learner) highest(before time.Time) (most float64) {
	if l.KilledAt.IsZero() && before.Sub(l.First) < day/2 {
		return math.Inf(1)
	}
	for i := range l.Hours {
		if n := l.Hours[i].Number; n < number(before, time.Hour) && n > number(l.KilledAt, time.Hour) {
			most = math.Max(most, l.Hours[i].Most)
		}
	}
	for i := range l.Shorts {
		if n := l.Shorts[i].Number; n < number(before, short) && n > number(l.KilledAt, short) {
			most = math.Max(most, l.Shorts[i].Most)
		}
	}
	return most
}

// least returns the lowest use in the complete periods.
func (s *scale) least() float64 {
	least := math.Inf(1)
	for i := range s.Periods {
		least = math.Min(least, s.Periods[i].Least)
	}
	return least
}

// growth returns the growth that the complete periods show, or nil.
func (s *scale) growth(length time.Duration) *Growth {
	n := len(s.Periods)
	if n < points || s.Periods[n-1].Number-s.Periods[0].Number > 2*points {
		return nil
	}
	growth := s.Periods[n-1].Least - s.Periods[0].Least
	if !(growth > leastGrowth*s.Periods[n-1].Least) {
		return nil
	}
	for i := range s.Periods[1:] {
		if s.Periods[i+1].Least-s.Periods[i].Least > jump*growth {
			return nil
		}
	}
	rate, doubt := slope(s.Periods)
	if !(rate > significant*doubt) {
		return nil
	}
	per := 1 / length.Seconds()
	seen := time.Duration(s.Periods[n-1].Number-s.Periods[0].Number+1) * length
	return &Growth{Rate: rate * per, Least: math.Max(0, rate-confident*doubt) * per, Seen: seen}
}

// slope returns the slope of least squares per period, and its standard error.
func slope(all []period) (rate, doubt float64) {
	n := float64(len(all))
	var x, y float64
	for _, p := range all {
		x += float64(p.Number-all[0].Number) / n
		y += p.Least / n
	}
	var xx, xy, yy float64
	for _, p := range all {
		dx, dy := float64(p.Number-all[0].Number)-x, p.Least-y
		xx, xy, yy = xx+dx*dx, xy+dx*dy, yy+dy*dy
	}
	if xx == 0 {
		return 0, math.Inf(1)
	}
	rate = xy / xx
	return rate, math.Sqrt(math.Max(0, yy-rate*xy) / math.Max(1, n-2) / xx)
}
