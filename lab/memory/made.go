package memory

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/trimtab/trimtab/analyzer/workingset"
	"github.com/trimtab/trimtab/sim/sizing"
)

const (
	// A process restarts once in between on average, and its start takes startTime: the first reading
	// is startLow of the usage that was recorded, the others are startHigh of it.
	between, startTime  = 24 * time.Hour, 8 * time.Minute
	startLow, startHigh = 0.1, 1.3
)

// Restarting returns a series whose process restarts at random times, with a peak at each start.
func Restarting(s sizing.Series, r *rand.Rand) sizing.Series {
	s.Readings = slices.Clone(s.Readings)
	wait := func() time.Duration { return time.Duration(r.ExpFloat64() * float64(between)) }
	var started time.Time
	next := s.Readings[0].At.Add(wait())
	for i := range s.Readings {
		x := &s.Readings[i]
		switch {
		case x.At.After(next):
			started, next = x.At, x.At.Add(startTime+wait())
			x.Use *= startLow
		case !started.IsZero() && x.At.Sub(started) < startTime:
			x.Use *= startHigh
		}
	}
	return s
}

// Growths counts the times at which the learner of production names a growth in a series as it was
// recorded, for the limit that it had. No limit is turned, so no kill changes what it sees.
func Growths(s *sizing.Series) (n int) {
	var l workingset.Learner
	was := false
	for _, x := range s.Readings {
		l.Take(x.At, x.Use)
		named := l.Growth(s.Limit) != nil
		if named && !was {
			n++
		}
		was = named
	}
	return n
}

// Leak is a series to which a steady growth is added from Begin on, until the use meets Limit at Kill.
// Named is when the learner first named the growth, for that limit; zero: never.
type Leak struct {
	Name               string
	Begin, Kill, Named time.Time
	Limit              float64
	// Early counts the times at which a growth was named before the leak began.
	Early int
}

// InTime reports whether the leak was named at least ten minutes before its kill.
func (l *Leak) InTime() bool { return !l.Named.IsZero() && l.Kill.Sub(l.Named) >= 10*time.Minute }

const (
	// leakRoom is how far the limit is above the highest use, as a part of it.
	leakRoom = 0.5
	// shortest and longest are how long a leak takes to the kill if nothing else grows.
	shortest, longest = 45 * time.Minute, 48 * time.Hour
)

// Leaks adds n leaks to recorded usage, of rates that differ by a factor of up to 64, and has the
// learner of production watch. It uses series of at least four days with a reading every two minutes or more often.
func Leaks(all []sizing.Series, n int, r *rand.Rand) (out []Leak) {
	all = slices.DeleteFunc(slices.Clone(all), func(s sizing.Series) bool {
		length := s.Readings[len(s.Readings)-1].At.Sub(s.Readings[0].At)
		return length < 4*24*time.Hour || length > 2*time.Minute*time.Duration(len(s.Readings))
	})
	for i := range n {
		if len(all) == 0 {
			break
		}
		s := &all[i%len(all)]
		takes := time.Duration(float64(shortest) * math.Pow(float64(longest)/float64(shortest), (float64(i)+r.Float64())/float64(n)))
		out = append(out, leak(s, takes, r))
	}
	return out
}

func leak(s *sizing.Series, takes time.Duration, r *rand.Rand) Leak {
	first, last := s.Readings[0].At, s.Readings[len(s.Readings)-1].At
	out := Leak{Name: s.Name}
	for _, x := range s.Readings {
		out.Limit = math.Max(out.Limit, (1+leakRoom)*x.Use)
	}
	room := last.Sub(first) - 26*time.Hour - takes
	out.Begin = first.Add(26*time.Hour + time.Duration(r.Float64()*float64(max(0, room))))
	var l workingset.Learner
	rate, was := 0.0, false
	for _, x := range s.Readings {
		if rate == 0 && !x.At.Before(out.Begin) {
			rate = (out.Limit - x.Use) / takes.Seconds()
		}
		use := x.Use
		if rate > 0 {
			use += rate * x.At.Sub(out.Begin).Seconds()
		}
		if use >= out.Limit {
			out.Kill = x.At
			return out
		}
		l.Take(x.At, use)
		named := l.Growth(out.Limit) != nil
		switch {
		case !named || was:
		case rate == 0:
			out.Early++
		case out.Named.IsZero():
			out.Named = x.At
		}
		was = named
	}
	out.Kill = last
	return out
}
