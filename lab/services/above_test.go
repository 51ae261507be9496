package services

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// spent is what the services did in each period of a run under a controller, in core-seconds,
// and whether each had work all through it.
type spent struct {
	used [][]float64
	busy [][]bool
}

// drawn is a scenario with loads around what the pool serves, or far above it.
func drawn(t *rapid.T) *Scenario {
	s := &Scenario{Pool: rapid.SampledFrom([]float64{0.3, 0.66, 1.9}).Draw(t, "pool"), Seconds: 5, Services: three()}
	for i := range s.Services {
		load := rapid.SampledFrom([]float64{0, 0.1, 0.3, 0.6, 2}).Draw(t, "load") * s.Pool
		s.Services[i].Load = func(float64) float64 { return load / s.Services[i].Cost }
	}
	return s
}

func TestUnderOneQuotaNobodyIsBelowItsShareAndNothingIsWasted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, seed := drawn(t), rapid.Uint64Range(1, 1<<40).Draw(t, "seed")
		p := perPeriod(s, seed)
		for k, used := range p.used {
			sum, all := 0.0, true
			for i, v := range used {
				sum += v
				all = all && !p.busy[k][i]
			}
			if sum > s.Pool*period+1e-9 {
				t.Fatalf("period %d: %v core-seconds of %v", k, sum, s.Pool*period)
			}
			for i, v := range used {
				// Whoever has work in each step of a period has its share of the CPUs until
				// the quota of all is used up, so of what was used a third at least, as far
				// as its own threads go.
				if least := math.Min(sum/3, s.Services[i].Servers*sum/cpus); p.busy[k][i] && v < least-1e-9 {
					t.Fatalf("period %d: %s did %v of %v core-seconds, its share is %v", k, s.Services[i].Name, v, sum, least)
				}
				// Nothing is left of the quota while a thread of its own could use it.
				if p.busy[k][i] && sum < math.Min(s.Pool, s.Services[i].Servers)*period-1e-9 {
					t.Fatalf("period %d: %v core-seconds while %s has work", k, sum, s.Services[i].Name)
				}
			}
		}
	})
}

// perPeriod plays a scenario under the kernel alone.
func perPeriod(s *Scenario, seed uint64) (p spent) {
	a := s.aboves()[0]
	var qs []*queue
	for i, coming := range arrivals(s, seed) {
		qs = append(qs, &queue{Service: &s.Services[i], coming: coming, quota: s.Pool / float64(len(s.Services))})
	}
	for k := range s.Seconds * 10 {
		before, busy := make([]float64, len(qs)), make([]bool, len(qs))
		for i, q := range qs {
			before[i], busy[i] = q.used, true
		}
		for n := range steps {
			a.advance(qs, float64(k)*period+float64(n)*step, n)
			for i, q := range qs {
				busy[i] = busy[i] && a.wants[i] >= q.Servers*step-1e-12
			}
		}
		for i, q := range qs {
			before[i] = q.used - before[i]
		}
		p.used, p.busy = append(p.used, before), append(p.busy, busy)
	}
	return p
}

func TestTheKernelAloneServesALoadThatFitsAndMovesNothing(t *testing.T) {
	for _, name := range []string{"peaks", "doubling", "burst"} {
		s, err := Named(name, 120)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Rule(s, "weights", 1)
		if err != nil {
			t.Fatal(err)
		}
		if r.Over() < 0.995 || slices.Max(r.Moves) != 0 {
			t.Errorf("%s: %.3f in time, moves %v", name, r.Over(), r.Moves)
		}
	}
}

// What quotas that add up to the pool serve in time, weights in proportion to the same amounts do.
func TestWeightsServeWhatEqualQuotasServe(t *testing.T) {
	for _, name := range []string{"peaks", "steps", "noise", "culprit"} {
		s, err := Named(name, 120)
		if err != nil {
			t.Fatal(err)
		}
		kernel, _ := Rule(s, "weights", 2)
		quotas, _ := Rule(s, "equal", 2)
		for i := range s.Services {
			if kernel.Share(i) < quotas.Share(i)-0.005 {
				t.Errorf("%s, %s: %.3f in time by weight, %.3f by quota", name, s.Services[i].Name, kernel.Share(i), quotas.Share(i))
			}
		}
	}
}
