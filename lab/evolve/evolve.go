package evolve

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Search is one search. It is not safe for concurrent use.
type Search struct {
	// Units are divided among Jobs, each of which gets at least 1.
	Units, Jobs int
	// Greedy is the probability of a random allocation in the epsilon-greedy
	// search; 0: the evolutionary one.
	Greedy float64
	// Rand is required.
	Rand *rand.Rand

	rounds int
	tried  []entry
	at     map[string]int
}

// entry is an allocation with the mean of its values.
type entry struct {
	units []int
	sum   float64
	count float64
}

const (
	equalRounds, startRounds = 2, 10
	randomShare              = 0.1
	maxSteps                 = 20
)

// Tell adds the value that an allocation was seen to have.
func (s *Search) Tell(units []int, value float64) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return
	}
	if s.at == nil {
		s.at = map[string]int{}
	}
	key := fmt.Sprint(units)
	i, ok := s.at[key]
	if !ok {
		i = len(s.tried)
		s.at[key] = i
		s.tried = append(s.tried, entry{units: append([]int(nil), units...)})
	}
	s.tried[i].sum += value
	s.tried[i].count++
}

// Next returns the allocation to try in the coming round.
func (s *Search) Next() []int {
	s.rounds++
	switch {
	case s.rounds <= equalRounds:
		return Equal(s.Units, s.Jobs)
	case s.rounds <= startRounds, len(s.tried) == 0:
		return s.random()
	case s.Greedy > 0:
		if s.Rand.Float64() < s.Greedy {
			return s.random()
		}
		return append([]int(nil), s.tried[s.best()].units...)
	case s.Rand.Float64() < randomShare:
		return s.random()
	}
	return s.mutate(s.tried[s.sample()].units)
}

// Equal divides units equally, what is left to the first.
func Equal(units, jobs int) []int {
	out := make([]int, jobs)
	for i := range out {
		out[i] = units / jobs
		if i < units%jobs {
			out[i]++
		}
	}
	return out
}

// random draws an allocation with all of the units, each job at least 1: the
// rest is cut at uniform places.
func (s *Search) random() []int {
	out, sum := make([]int, s.Jobs), 0.0
	cuts := make([]float64, s.Jobs)
	for i := range cuts {
		cuts[i] = s.Rand.ExpFloat64()
		sum += cuts[i]
	}
	before, left := 0, s.Units-s.Jobs
	at := 0.0
	for i := range out {
		at += cuts[i]
		upTo := int(math.Round(float64(left) * at / sum))
		out[i] = 1 + upTo - before
		before = upTo
	}
	return out
}

func (e *entry) mean() float64 { return e.sum / e.count }

func (s *Search) best() int {
	best := 0
	for i := range s.tried {
		if s.tried[i].mean() > s.tried[best].mean() {
			best = i
		}
	}
	return best
}

// sample draws an entry of the table.
func (s *Search) sample() int {
	mean, square := 0.0, 0.0
	for i := range s.tried {
		y := s.tried[i].mean()
		mean += y / float64(len(s.tried))
	}
	for i := range s.tried {
		d := s.tried[i].mean() - mean
		square += d * d / float64(len(s.tried))
	}
	std := math.Sqrt(square)
	if std == 0 {
		return s.Rand.IntN(len(s.tried))
	}
	weights, sum := make([]float64, len(s.tried)), 0.0
	for i := range s.tried {
		weights[i] = math.Exp((s.tried[i].mean() - mean) / std)
		sum += weights[i]
	}
	at := s.Rand.Float64() * sum
	for i, w := range weights {
		if at -= w; at < 0 {
			return i
		}
	}
	return len(s.tried) - 1
}

// mutate moves 1 to 20 units, each between two random jobs.
func (s *Search) mutate(from []int) []int {
	out := append([]int(nil), from...)
	if s.Jobs < 2 || s.Units < s.Jobs+1 {
		return out
	}
	for range 1 + s.Rand.IntN(maxSteps) {
		j := s.Rand.IntN(s.Jobs)
		for out[j] < 2 {
			j = s.Rand.IntN(s.Jobs)
		}
		k := s.Rand.IntN(s.Jobs - 1)
		if k >= j {
			k++
		}
		out[j]--
		out[k]++
	}
	return out
}
