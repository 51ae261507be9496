package evolve

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestAllUnitsAreTriedAndEveryJobHasOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &Search{Jobs: rapid.IntRange(1, 12).Draw(t, "jobs"), Rand: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)),
			Greedy: rapid.SampledFrom([]float64{0, 1.0 / 3}).Draw(t, "greedy")}
		s.Units = s.Jobs + rapid.IntRange(0, 100).Draw(t, "more")
		for r := range 40 {
			units := s.Next()
			if r < equalRounds && !slices.Equal(units, Equal(s.Units, s.Jobs)) {
				t.Fatalf("round %d tries %v", r, units)
			}
			sum := 0
			for _, u := range units {
				if u < 1 {
					t.Fatalf("round %d: %v", r, units)
				}
				sum += u
			}
			if sum != s.Units {
				t.Fatalf("round %d: %d units of %d", r, sum, s.Units)
			}
			s.Tell(units, rapid.Float64().Draw(t, "value"))
		}
	})
}

func TestTheSearchComesToLikeWhatIsWorthMore(t *testing.T) {
	s := &Search{Units: 100, Jobs: 5, Rand: rand.New(rand.NewPCG(1, 2))}
	var first, last float64
	const rounds = 2000
	for r := range rounds {
		units := s.Next()
		value := float64(units[0]) / 100
		s.Tell(units, value)
		if r < rounds/4 {
			first += value
		} else if r >= rounds*3/4 {
			last += value
		}
	}
	if last < first*1.08 {
		t.Errorf("mean value %v, in the first quarter %v", last*4/rounds, first*4/rounds)
	}
}

func TestEpsilonGreedyMostlyRepeatsTheBest(t *testing.T) {
	s := &Search{Units: 100, Jobs: 5, Greedy: 1.0 / 3, Rand: rand.New(rand.NewPCG(1, 2))}
	repeats := 0
	var best []int
	most := -1
	for r := range 1000 {
		units := s.Next()
		if r >= startRounds && slices.Equal(units, best) {
			repeats++
		}
		if units[0] > most {
			best, most = units, units[0]
		}
		s.Tell(units, float64(units[0]))
	}
	if repeats < 550 || repeats > 780 {
		t.Errorf("%d of 990 rounds repeat the best, want two thirds", repeats)
	}
}
