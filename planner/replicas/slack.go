package replicas

import "math"

// Slack is what an instance needs beyond its work, so that few requests wait in it. It depends on
// the duration and the latency limit of a request, not on the load: when the load falls faster
// than the number of instances, each still needs its slack, and a curve over the effective
// allocation, scaled with the load, gives less.
//
//	need in n instances >= work + n · slack
//
// Source: ours; in an M/M/1 queue with service rate μ the share that waits for longer than D is ρ
// exp(−(μ − λ) D), so that μ − λ depends on D alone but for ρ.
type Slack struct {
	// Each is the mean over some hours.
	Each float64 `json:"each"`
}

// slackMemory is over how many looks it is a mean: six hours of one every 15 s.
const slackMemory = 6 * 240

// Observe records a need of which so much is work, in so many instances.
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

// in returns the least need in so many instances.
func (s *Slack) in(work float64, instances int) float64 {
	if !sane(work, s.Each) || work == 0 {
		return 0
	}
	return work + float64(instances)*s.Each
}

// fewest is the least number of instances of at most that size for the work.
func (s *Slack) fewest(work, size float64) float64 {
	if !sane(work, s.Each) || size <= s.Each {
		return 0
	}
	return math.Ceil(work/(size-s.Each) - grain)
}
