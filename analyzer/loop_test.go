package analyzer_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
)

// service answers a share of requests in time that depends on the cores per
// request a second; need is where the share is a half.
type service struct {
	name       string
	base, need float64
	cores      float64
	since      float64
}

func (s *service) load(second int) float64 {
	return s.base * (1 + 0.3*math.Sin(2*math.Pi*float64(second)/90+s.need*100))
}

func (s *service) share(cores, load float64) float64 {
	return 1 / (1 + math.Exp(-12*(cores/load/s.need-1)))
}

// plan gives each service the least allocation that reaches the SLO with its
// upper bound, and shares out what is left or missing in proportion.
func plan(es map[string]*trimtab.Estimate, services []*service, capacity, now float64) {
	want, sum := make([]float64, len(services)), 0.0
	for i, s := range services {
		want[i] = s.cores
		if e := es[s.name]; e != nil && e.Curve != nil {
			for a := 0.2; a <= 6; a += 0.05 {
				if b := e.Curve.Eval(a); b.Mean/2+b.Upper/2 >= 0.9 {
					want[i] = a
					break
				}
			}
		}
		sum += want[i]
	}
	for i, s := range services {
		step := math.Max(-1, math.Min(1, want[i]*capacity/sum-s.cores))
		if math.Abs(step) > 0.02*s.cores {
			s.cores, s.since = s.cores+step, now
		}
	}
}

// TestThreeServicesAreLearntWithinAMinute closes the loop with a simple plan:
// reports of 10 to 40 requests a second, from nothing. Equal shares miss one
// service's SLO by far.
func TestThreeServicesAreLearntWithinAMinute(t *testing.T) {
	worst := func(seed uint64, learn bool) float64 {
		services := []*service{
			{name: "a", base: 30, need: 0.02, cores: 2, since: -60},
			{name: "b", base: 40, need: 0.07, cores: 2, since: -60},
			{name: "c", base: 12, need: 0.04, cores: 2, since: -60},
		}
		a := make1(t, config("a", "b", "c"))
		r := rand.New(rand.NewPCG(seed, 3))
		met := make([]float64, len(services))
		for n := range 150 {
			now := float64(n) + 1.6
			held := &trimtab.Holding{Host: "h", Time: sec(now)}
			for i, s := range services {
				load := s.load(n)
				p := s.share(s.cores, load)
				requests := math.Round(load + math.Sqrt(load)*r.NormFloat64())
				under := 0.0
				for range int(requests) {
					if r.Float64() < p {
						under++
					}
				}
				if n >= 60 {
					met[i] += math.Min(1, p/0.9) / 90
				}
				held.Targets = append(held.Targets, holding(float64(n), s.name, s.cores, s.since).Targets...)
				if requests > 0 {
					a.Step(sec(now), sketch(s.name, n, requests, under))
				}
			}
			a.Step(sec(now), held)
			es := estimates(t, a.Step(sec(now).Add(50*time.Millisecond), nil))
			if n%4 == 3 && learn {
				plan(es, services, 6, float64(n)+2)
			}
		}
		return min(met[0], met[1], met[2])
	}
	for seed := range uint64(5) {
		equal, learned := worst(seed, false), worst(seed, true)
		t.Logf("seed %d: the worst service reaches %.3f of its SLO with equal shares, %.3f learned", seed, equal, learned)
		if learned < 0.9 || learned < equal {
			t.Errorf("seed %d: %v, equal shares %v", seed, learned, equal)
		}
	}
}
