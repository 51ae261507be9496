package colocate

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// free are the times at which servers are free, the earliest first.
type free []float64

func (f free) Len() int           { return len(f) }
func (f free) Less(i, j int) bool { return f[i] < f[j] }
func (f free) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *free) Push(x any)        { *f = append(*f, x.(float64)) }
func (f *free) Pop() any          { x := (*f)[len(*f)-1]; *f = (*f)[:len(*f)-1]; return x }

// queued returns when each request leaves a station, first come, first served, every
// request by itself: the slow and obvious answer.
func queued(arrive []float64, c *Component, slow, stall, pause float64, r *rand.Rand) []float64 {
	order := make([]int, len(arrive))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		if arrive[a] < arrive[b] {
			return -1
		}
		return 1
	})
	sigma := math.Sqrt(math.Log1p(c.CV * c.CV))
	servers := make(free, c.Servers)
	out := make([]float64, len(arrive))
	for _, i := range order {
		begin := max(arrive[i], servers[0])
		end := begin + c.Mean*slow*math.Exp(sigma*r.NormFloat64()-sigma*sigma/2)
		servers[0] = end
		heap.Fix(&servers, 0)
		out[i] = end + c.Floor
		if r.Float64() < stall {
			out[i] += pause * r.ExpFloat64()
		}
	}
	return out
}

// eventP99 plays n requests of a service alone or under pressure.
func eventP99(s *Service, load float64, press []pressure, n int) float64 {
	r := rand.New(rand.NewPCG(7, 7))
	begin := make([]float64, n)
	now := 0.0
	for i := range begin {
		now += r.ExpFloat64() / (load * s.MaxLoad)
		begin[i] = now
	}
	var walk func(v *visit, at []float64) []float64
	walk = func(v *visit, at []float64) []float64 {
		c := &s.Components[v.component]
		p := press[v.component]
		slow, stall, paused := 1.0, 0.0, 0.0
		for name, x := range map[string]float64{"cpu": p.cpu, "llc": p.llc, "membw": p.membw, "network": p.network} {
			t := c.Sensitivity[name]
			slow += t.Slowdown * x * x
			stall += t.Stall * x * x
			paused += t.Stall * x * x * t.Pause
		}
		at = queued(at, c, slow, stall, paused/math.Max(stall, 1e-12), r)
		for _, stage := range v.stages {
			last := make([]float64, len(at))
			for i := range stage {
				// Requests that do not make the call go on at once.
				var made []int
				var then []float64
				for k, x := range at {
					if r.Float64() < stage[i].share {
						made, then = append(made, k), append(then, x)
					}
					last[k] = max(last[k], x)
				}
				for k, x := range walk(&stage[i], then) {
					last[made[k]] = max(last[made[k]], x)
				}
			}
			at = last
		}
		return at
	}
	root := s.compile(&s.Call)
	end := walk(&root, begin)
	var latency []float64
	for i := n / 10; i < n; i++ {
		latency = append(latency, end[i]-begin[i])
	}
	return nth(latency, int(0.99*float64(len(latency))))
}

func TestTheP99OfAPeriodIsThatOfEveryRequestByItself(t *testing.T) {
	e := BuiltIn(Constant)
	at := map[string]int{}
	for k := range e.Hosts {
		at[e.Hosts[k].Name] = k
	}
	for i := range e.Services {
		s := &e.Services[i]
		for _, load := range []float64{0.2, 0.75} {
			for _, x := range []float64{0, 0.5} {
				if s.Name == "redis" && x > 0 && load > 0.5 {
					x = 0.3 // 0.5 saturates it
				}
				press := make([]pressure, len(s.Components))
				hosts := make([]*host, len(e.Hosts))
				for k := range hosts {
					hosts[k] = &host{press: pressure{llc: x, membw: x}}
				}
				for k := range press {
					press[k] = pressure{llc: x, membw: x}
				}
				sampled := newService(s, at, 1, uint64(i))
				mean := 0.0
				for range 200 {
					sampled.serve(load, hosts)
					mean += sampled.p99 / 200
				}
				event := eventP99(s, load, press, 100_000)
				if ratio := mean / event; ratio < 0.8 || ratio > 1.2 {
					t.Errorf("%s at %.2f under %.1f: sampled p99 %.4g s, each request by itself %.4g s", s.Name, load, x, mean, event)
				}
			}
		}
	}
}

func TestErlangCIsThatOfTheBirthAndDeathChain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(1, 20).Draw(t, "k")
		a := float64(k) * rapid.Float64Range(0.01, 0.97).Draw(t, "rho")
		term, below := 1.0, 0.0
		for i := range k {
			if i > 0 {
				term *= a / float64(i)
			}
			below += term
		}
		above := term * a / float64(k) / (1 - a/float64(k))
		if got, want := erlangC(k, a), above/(below+above); math.Abs(got-want) > 1e-9 {
			t.Fatalf("C(%d, %v) = %v, want %v", k, a, got, want)
		}
	})
}

func TestAStationBeyondItsCapacityFallsBehindAndCatchesUp(t *testing.T) {
	st := station{mean: 0.01}
	behind := st.queue(150, 1, 1, 0)
	if math.Abs(behind-100) > 1e-9 {
		t.Fatalf("150/s of 100/s for 2 s left %v behind, want 100", behind)
	}
	if got := st.queue(50, 1, 1, behind); got > 1e-9 {
		t.Fatalf("50/s for 2 s left %v behind, want none", got)
	}
}

func TestTheKthLeastIsThatOfTheSortedValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.Float64Range(0, 10), 1, 200).Draw(t, "v")
		k := rapid.IntRange(0, len(v)-1).Draw(t, "k")
		sorted := slices.Sorted(slices.Values(v))
		if got := nth(v, k); got != sorted[k] {
			t.Fatalf("%v, want %v", got, sorted[k])
		}
	})
}
