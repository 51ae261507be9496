package colocate

import "math"

// This file decides how close to its SLO jobs may bring a service; it is not in algorithm 2. Growth
// requires that the slack exceeds its own noise by a number of standard deviations, which misses
// raise.
const (
	// smooth and lasting are the numbers of ticks over which load and slack, and their noise, are
	// averaged; shift is the hysteresis of load.
	smooth, lasting, shift = 8, 50, 0.02
	// ahead is how many standard deviations of the load jobs leave free; jump is how many
	// distinguish a new load from noise; fall is the fraction of a peak that is forgotten per tick.
	ahead, jump, fall = 2, 4, 0.25
	// firstCare, leastCare and mostCare bound the standard deviations of the slack. A miss adds
	// care, and each tick subtracts so much that 1 tick in rare may miss.
	firstCare, leastCare, mostCare = 2.5, 2, 8
	care, rare                     = 0.5, 400
	// long is the number of ticks over which misses are averaged. When misses use more than spent
	// of the error budget of a search, no unproven amount is given.
	long, spent = 1000, 0.5
)

// follow updates the averages with the load and slack of a tick. A load that differs by more than
// its noise replaces the average at once.
func (s *standing) follow(load, slack float64) {
	if math.IsNaN(load) || load > 10 {
		return
	}
	d := load - s.Load
	if !(s.Load > 0) || math.Abs(d) > shift+jump*math.Sqrt(s.Spread) {
		s.Load, s.Seen = load, 0
	} else {
		s.Load += d / smooth
		s.Spread += (d*d - s.Spread) / lasting
	}
	high := s.Load + ahead*math.Sqrt(s.Spread)
	s.Ready = math.Max(math.Max(load, high), s.Ready-(s.Ready-high)*fall)
	if math.IsNaN(slack) {
		return
	}
	s.Last = math.Max(-1, math.Min(slack, 1))
	if s.Seen = min(s.Seen+1, smooth); s.Seen == 1 {
		s.Slack = s.Last
	}
	d = s.Last - s.Slack
	s.Slack += d / float64(s.Seen)
	s.Heard = min(s.Heard+1, lasting)
	s.Noise += (d*d - s.Noise) / float64(s.Heard)
}

// edge returns the slack that growth must leave.
func (s *standing) edge() float64 { return (firstCare + s.Care) * math.Sqrt(s.Noise) }

// roomy reports whether the slack exceeds its noise, and error budget is left.
func (p *policy) roomy(s *standing) bool {
	return s.Seen >= 2 && math.Min(s.Slack, s.Last) >= s.edge() && s.Missed <= spent*p.Search.Budget
}

// clear reports whether the slack is and was at least half of the SLO, at a load that is not new.
func (s *standing) clear() bool { return s.Seen >= 2 && math.Min(s.Slack, s.Last) >= 0.5 }

// allClear reports whether clear is true for all services.
func (m *memory) allClear(r *round) bool {
	for i := range r.o.Services {
		if !m.Services[r.o.Services[i].Workload].clear() {
			return false
		}
	}
	return true
}

// allRoomy reports whether roomy is true for all services.
func (p *policy) allRoomy(r *round) bool {
	for i := range r.o.Services {
		if !p.roomy(p.Services[r.o.Services[i].Workload]) {
			return false
		}
	}
	return true
}

// spend updates the safety margin after a tick on which jobs ran: a miss raises the slack that
// growth requires, each tick lowers it a little.
func (s *standing) spend(missed bool) {
	s.Care -= float64(care) / rare
	s.Missed -= s.Missed / long
	if missed {
		s.Care += care
		s.Missed += 1.0 / long
	}
	s.Care = math.Max(leastCare-firstCare, math.Min(s.Care, mostCare-firstCare))
}

// trial counts how long a service has had slack at loads above its loadlimit.
func (p *policy) trial(s *standing, v *verdict) {
	s.over = v.load > v.limits.load
	switch {
	case !(s.Load > v.limits.load*(1-margin)):
		s.Above = 0
	case v.slack >= v.limits.slack && p.roomy(s):
		s.Above = min(s.Above+1, above)
	case s.Above < above || v.slack < 0:
		s.Above = max(0, s.Above-2)
	}
}

// above is the number of ticks for which a service must have slack above its loadlimit, with jobs
// suspended, before jobs are tried there. Above the loadlimit latencies scatter, so slack that was
// measured there is better evidence than the limit.
const above = 30

// stands reports whether jobs may run above the loadlimit.
func (s *standing) stands() bool { return s.Above >= above }
