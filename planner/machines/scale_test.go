package machines

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
)

// rose are the dimensions of the paper's table 2.
func rose() []Dimension {
	half := value(0.5)
	return []Dimension{
		{Name: "cpu", Bounded: true, Threshold: value(0.9), Load: value(1)},
		{Name: "memory", Bounded: true, Threshold: value(0.95), Load: value(1)},
		{Name: "load1", Load: half},
		{Name: "disk service", Load: half},
		{Name: "disk util", Bounded: true, Threshold: value(0.9), Load: value(1)},
		{Name: "disk usage", Bounded: true, Threshold: value(0.9), Load: half},
		{Name: "net received", Bounded: true, Load: half},
		{Name: "net sent", Bounded: true, Load: half},
		{Name: "running containers", Queue: half},
		{Name: "waiting speculative", Threshold: value(50), Queue: value(1)},
		{Name: "running speculative", Queue: half},
	}
}

func manyIDs(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("machine-%07d", i)
	}
	return ids
}

// filled is an index of n machines that have all reported.
func filled(t testing.TB, ids []string) *Index[float32] {
	t.Helper()
	rng := rand.New(rand.NewPCG(uint64(len(ids)), 1))
	x, err := New[float32](Config{Dimensions: rose(), Timeout: time.Minute, SettleAfter: time.Hour, RatingPeriod: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.SetMachines(ids); err != nil {
		t.Fatal(err)
	}
	r := Report{Time: start(), Load: make([]float64, len(rose())), Capacity: make([]float64, len(rose()))}
	for _, id := range ids {
		r.Machine = id
		fillReport(rng, &r)
		if bad, err := x.Update(start(), &r); err != nil || bad != 0 {
			t.Fatalf("%d bad, %v", bad, err)
		}
	}
	return x
}

func fillReport(rng *rand.Rand, r *Report) {
	r.CPI, r.MPKI = 0.5+2*rng.Float64(), 20*rng.Float64()
	for d, dim := range rose() {
		r.Load[d], r.Capacity[d] = math.Floor(20*rng.Float64()), math.NaN()
		if dim.Load != nil {
			r.Capacity[d] = float64(int(16) << rng.IntN(3))
			r.Load[d] = r.Capacity[d] * rng.Float64()
		}
	}
}

// ofScale selects a tenth of the machines, as the paper's measurement does.
func ofScale(n int) Rule {
	return Rule{Mode: RP, Limit: n / 10, Widen: 2, WorstRated: n / 100, WorstCPI: n / 100, WorstMPKI: n / 100}
}

// held returns the bytes of the heap that what make returns keeps alive.
func held[T any](make func() T) float64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	v := make()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(v)
	return float64(after.HeapAlloc) - float64(before.HeapAlloc)
}

func TestAMachineTakesAtMost256Bytes(t *testing.T) {
	for _, n := range []int{10_000, 15_000, 57_400, 100_000} { // at 57,400 the map has just grown
		bytes := held(func() *Index[float32] {
			x := filled(t, manyIDs(n)) // with the names
			if _, err := x.Filter(start(), ofScale(n), nil); err != nil {
				t.Fatal(err)
			}
			return x
		})
		t.Logf("%d machines: %.0f bytes each, with names, all columns and what a filtering needs", n, bytes/float64(n))
		if bytes > 256*float64(n) {
			t.Errorf("%d machines take %.0f bytes each, want at most 256", n, bytes/float64(n))
		}
	}
}

func TestAWorkloadTakesAtMost128Bytes(t *testing.T) {
	x := filled(t, manyIDs(1000))
	for _, n := range []int{10_000, 58_000, 100_000} {
		x.ratings = newRatings()
		bytes := held(func() *Index[float32] {
			rate(t, x, n)
			return x
		})
		t.Logf("%d workloads: %.0f bytes each, rated on %d machines", n, bytes/float64(n), MostPenalised)
		if bytes > 128*float64(n) {
			t.Errorf("%d workloads take %.0f bytes each, want at most 128", n, bytes/float64(n))
		}
	}
}

func rate(t *testing.T, x *Index[float32], jobs int) {
	counts := make([]Count, MostPenalised)
	for j := range jobs {
		for i := range counts {
			counts[i] = Count{Machine: uint32((j + i) % 1000), Tasks: 1 + i}
		}
		if err := x.Rate(start(), fmt.Sprint("job-", j), counts, MostPenalised); err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkFilter shows the growth: ns/machine is to stay about the same.
func BenchmarkFilter(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 15_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			x := filled(b, manyIDs(n))
			for b.Loop() {
				if _, err := x.Filter(start(), ofScale(n), nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/machine")
		})
	}
}

func BenchmarkUpdate(b *testing.B) {
	ids := manyIDs(100_000)
	x := filled(b, ids)
	rng := rand.New(rand.NewPCG(3, 4))
	r := Report{Load: make([]float64, len(rose())), Capacity: make([]float64, len(rose()))}
	fillReport(rng, &r)
	at := start()
	for b.Loop() {
		at = at.Add(time.Millisecond)
		r.Machine, r.Time = ids[rng.IntN(len(ids))], at
		if _, err := x.Update(start(), &r); err != nil {
			b.Fatal(err)
		}
	}
}
