package machines

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// hostileValue is mostly nonsense.
func hostileValue(rng *rand.Rand) float64 {
	some := []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 1e300, math.MaxFloat64, math.SmallestNonzeroFloat64, 0, 1e9, math.MaxFloat32}
	if i := rng.IntN(2 * len(some)); i < len(some) {
		return some[i]
	}
	return 16 * rng.Float64()
}

// accepted is what a machine said last that was taken.
type accepted struct {
	at   time.Time
	load []float64
	size []float64
}

// good says whether every value that the policy reads is one.
func (a *accepted) good(dims []Dimension) bool {
	for d := range dims {
		v := a.load[d]
		if !(v >= 0 && v <= math.MaxFloat32) || dims[d].Bounded && !(v <= 1.011*a.size[d] && a.size[d] <= dims[d].MaxCapacity) {
			return false
		}
	}
	return true
}

func TestWhateverIsReportedCandidatesSpokeLatelyAndMadeSense(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := draw(t)
		dims := []Dimension{
			{Name: "cpu", Bounded: true, MaxCapacity: 1024, Threshold: value(0.9), Load: value(1)},
			{Name: "load1", Load: value(1e300)},
			{Name: "waiting", Queue: value(1)},
		}
		x, err := New[float32](Config{Dimensions: dims, Timeout: 30 * time.Second, SettleAfter: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		ids := manyIDs(20)
		if _, err := x.SetMachines(ids); err != nil {
			t.Fatal(err)
		}
		last := map[string]*accepted{}
		now := start()
		for range 400 {
			now = now.Add(time.Duration(rng.Int64N(int64(3 * time.Second))))
			r := Report{Machine: ids[rng.IntN(len(ids))], Time: now.Add(time.Duration(rng.Int64N(int64(20*time.Second)) - int64(10*time.Second))), CPI: hostileValue(rng), MPKI: hostileValue(rng)}
			for range dims {
				r.Load, r.Capacity = append(r.Load, hostileValue(rng)), append(r.Capacity, hostileValue(rng))
			}
			if rng.IntN(3) == 0 { // a good one
				r.Load, r.Capacity = []float64{4, 4, 4}, []float64{16, math.NaN(), math.NaN()}
			}
			if _, err := x.Update(now, &r); err == nil {
				last[r.Machine] = &accepted{now, r.Load, r.Capacity}
			}
			out, err := x.Filter(now, Rule{Mode: RP, Limit: 20, Widen: 2, WorstCPI: 1, WorstMPKI: 1, Own: true}, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range out.Candidates {
				a := last[ids[at]]
				if a == nil || now.Sub(a.at) > 30*time.Second || !a.good(dims) {
					t.Fatalf("machine %s is a candidate at %v with %+v", ids[at], now, a)
				}
			}
		}
	})
}
