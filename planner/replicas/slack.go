package replicas

import "math"

// Slack is the allocation that an instance needs beyond its work so that few requests wait. It
// depends on the duration and latency limit of a request, not on the load. If the load falls faster
// than the number of instances, each still needs its slack, which a curve over the effective
// allocation, scaled with the load, underestimates.
//
//	need with n instances >= work + n · slack
//
// Source: ours. In an M/M/1 queue with service rate μ the share of requests that wait longer than D
// is ρ exp(−(μ − λ) D): apart from ρ, μ − λ depends on D alone.
type Slack struct {
	// Each is the slack of one instance, averaged over some hours.
	Each float64 `json:"each"`
}

// slackMemory is the number of observations that are averaged: six hours with one every 15 s.
const slackMemory = 6 * 240

// Observe records a need, the part of it that is work, and the number of instances.
func (s *Slack) Observe(need, work float64, instances int) {
	if !sane(need, work) || instances < 1 {
		return
	}
	each := math.Max(need-work, 0) / float64(instances)
	if s.Each == 0 {
		s.Each = each
	}
	s.Each += (each - s.Each) / slackMemory
}

// in returns the least need of a number of instances.
func (s *Slack) in(work float64, instances int) float64 {
	if !sane(work, s.Each) || work == 0 {
		return 0
	}
	return work + float64(instances)*s.Each
}

// fewest returns the least number of instances for the work, if each has at most size.
func (s *Slack) fewest(work, size float64) float64 {
	if !sane(work, s.Each) || size <= s.Each {
		return 0
	}
	return math.Ceil(work/(size-s.Each) - grain)
}
