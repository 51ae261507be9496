package behavior

import (
	"math"
	"slices"
	"time"
)

// Recommendation is a number that was recommended, before it was stabilised.
type Recommendation struct {
	At       time.Time `json:"at"`
	Replicas int       `json:"replicas"`
}

// Event is a change that this autoscaler made, > 0.
type Event struct {
	At     time.Time `json:"at"`
	Change int       `json:"change"`
}

// State is the history that the rules need. The zero State has seen nothing.
type State struct {
	// Seen says that the number at first sight was noted.
	Seen            bool             `json:"seen,omitempty"`
	Recommendations []Recommendation `json:"recommendations,omitempty"`
	Added           []Event          `json:"added,omitempty"`
	Removed         []Event          `json:"removed,omitempty"`
}

// What limited a number, in the words of the HPA controller.
const (
	WithinRange  = "DesiredWithinRange"
	Stabilized   = "ScaleStabilized"
	UpLimit      = "ScaleUpLimit"
	DownLimit    = "ScaleDownLimit"
	TooMany      = "TooManyReplicas"
	TooFew       = "TooFewReplicas"
	ScaledToZero = "ScalingDisabled"
)

// Without a block a step goes at most to the larger of these: a factor, a number.
const plainFactor, plainLeast = 2, 4

// Decision is a number of replicas, and why it differs from what was wanted.
type Decision struct {
	Replicas int
	Reason   string
}

// Step returns how many replicas to have now if wanted are recommended, and records the
// recommendation. Block b must be valid. With a nil block, a step at most doubles (or goes to 4),
// and only falls are stabilised. A current number out of bounds is set to the bound at once. With
// no replicas, and a minimum above 0, nothing happens: a person has switched the workload off.
func (s *State) Step(now time.Time, b *Behavior, in Bounds, current, wanted int) Decision {
	s.tidy(now, b)
	s.See(now, current)
	switch {
	case current <= 0 && in.Min > 0:
		return Decision{0, ScaledToZero}
	case current > in.Max:
		return Decision{in.Max, TooMany}
	case current < in.Min:
		return Decision{in.Min, TooFew}
	}
	if b == nil {
		return s.plain(now, in, current, wanted)
	}
	up, down := b.filled()
	steady := s.stabilize(now, *up.Window, *down.Window, current, wanted)
	s.note(now, wanted)
	d := s.limit(now, &up, &down, in, current, steady)
	if d.Reason == WithinRange && steady != wanted {
		d.Reason = Stabilized
	}
	return d
}

// See records the first number seen. If no metric can be read, nothing else is recorded.
func (s *State) See(now time.Time, current int) {
	if !s.Seen {
		s.Seen = true
		s.note(now, current)
	}
}

// Changed notes a change that this autoscaler made. Those of others do not count.
func (s *State) Changed(now time.Time, b *Behavior, from, to int) {
	if b == nil || from == to {
		return // no rule counts it
	}
	s.tidy(now, b)
	if up, down := b.filled(); to > from {
		s.Added = kept(s.Added, Event{now, to - from}, up.Policies)
	} else {
		s.Removed = kept(s.Removed, Event{now, from - to}, down.Policies)
	}
}

// kept adds an event as the controller does: it replaces one that no policy of its own direction
// needs any more, though one of the other direction may.
func kept(events []Event, e Event, policies []Policy) []Event {
	longest, place := 0, -1
	for _, p := range policies {
		longest = max(longest, p.PeriodSeconds)
	}
	for i := range events {
		if events[i].At.Before(ago(e.At, longest)) {
			place = i
		}
	}
	if place < 0 {
		return append(events, e)
	}
	events[place] = e
	return events
}

func (s *State) note(now time.Time, replicas int) {
	s.Recommendations = append(s.Recommendations, Recommendation{now, replicas})
}

// plain is the rule without a block.
func (s *State) plain(now time.Time, in Bounds, current, wanted int) Decision {
	steady := wanted
	for _, r := range s.Recommendations {
		if !r.At.Before(now.Add(-DefaultDownWindow)) {
			steady = max(steady, r.Replicas)
		}
	}
	s.note(now, wanted)
	fast := max(plainFactor*current, plainLeast)
	switch most := min(in.Max, fast); {
	case steady < in.Min:
		return Decision{in.Min, TooFew}
	case steady > most && in.Max > fast:
		return Decision{most, UpLimit}
	case steady > most:
		return Decision{most, TooMany}
	case steady != wanted:
		return Decision{steady, Stabilized}
	}
	return Decision{steady, WithinRange}
}

func (s *State) stabilize(now time.Time, up, down, current, wanted int) int {
	lo, hi := wanted, wanted
	for _, r := range s.Recommendations {
		if r.At.After(ago(now, up)) {
			lo = min(lo, r.Replicas)
		}
		if r.At.After(ago(now, down)) {
			hi = max(hi, r.Replicas)
		}
	}
	return min(max(current, lo), hi)
}

// limit applies rates and bounds to a stabilised number.
func (s *State) limit(now time.Time, up, down *Rules, in Bounds, current, steady int) Decision {
	switch {
	case steady > current:
		most, reason := max(s.furthest(now, up, current, false), current), UpLimit
		if most >= in.Max {
			most, reason = in.Max, TooMany
		}
		if steady > most {
			return Decision{most, reason}
		}
	case steady < current:
		least, reason := min(s.furthest(now, down, current, true), current), DownLimit
		if least <= in.Min {
			least, reason = in.Min, TooFew
		}
		if steady < least {
			return Decision{least, reason}
		}
	}
	return Decision{steady, WithinRange}
}

// furthest is the number that the policies allow, the most above the current one, or, down, the least
// below it.
func (s *State) furthest(now time.Time, r *Rules, current int, down bool) int {
	if r.Select == Disabled {
		return current
	}
	out := current
	for i, p := range r.Policies {
		start := s.start(now, p.PeriodSeconds, current)
		share := float64(p.Value) / 100
		var to int
		switch {
		case p.Type == Percent && down:
			to = whole(math.Trunc(float64(start) * (1 - share)))
		case p.Type == Percent:
			to = whole(math.Ceil(float64(start) * (1 + share)))
		case down:
			to = start - p.Value
		default:
			to = start + p.Value
		}
		further := to > out
		if down {
			further = to < out
		}
		if i == 0 || further == (r.Select != Min) {
			out = to
		}
	}
	return out
}

// start is the number at the beginning of a period, without what others changed.
func (s *State) start(now time.Time, period, current int) int {
	sum := func(events []Event) (n int) {
		for _, e := range events {
			if e.At.After(ago(now, period)) {
				n += e.Change
			}
		}
		return n
	}
	return current - sum(s.Added) + sum(s.Removed)
}

// tidy drops recommendations that no rule needs any more; events are replaced by new ones. A time
// after now counts as now: the clock was set back, and nothing may be limited for longer than a
// window.
func (s *State) tidy(now time.Time, b *Behavior) {
	window := int(DefaultDownWindow / time.Second)
	if b != nil {
		up, down := b.filled()
		window = max(*up.Window, *down.Window)
	}
	for i := range s.Recommendations {
		if r := &s.Recommendations[i]; r.At.After(now) {
			r.At = now
		}
	}
	s.Recommendations = slices.DeleteFunc(s.Recommendations, func(r Recommendation) bool { return r.At.Before(ago(now, window)) })
	for _, events := range [][]Event{s.Added, s.Removed} {
		for i := range events {
			if e := &events[i]; e.At.After(now) {
				e.At = now
			}
		}
	}
}

func ago(now time.Time, seconds int) time.Time { return now.Add(-time.Duration(seconds) * time.Second) }

// whole is a number of replicas that fits.
func whole(v float64) int { return int(math.Max(math.Min(v, maxReplicas), -maxReplicas)) }
