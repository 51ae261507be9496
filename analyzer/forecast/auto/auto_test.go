package auto_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/forecast"
	"github.com/trimtab/trimtab/analyzer/forecast/auto"
	"github.com/trimtab/trimtab/analyzer/forecast/conformal"
	"github.com/trimtab/trimtab/analyzer/forecast/forecasttest"
)

// rounds are the forecasts that are asked for in tests.
func rounds(step time.Duration) auto.Config { return auto.Config{Horizon: 12, Level: 0.9, Step: step} }

func fresh(t testing.TB, name string, step time.Duration) *conformal.Forecaster {
	t.Helper()
	f, err := auto.New(name, rounds(step))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestEachIsAForecaster(t *testing.T) {
	for _, name := range auto.Names() {
		t.Run(name, func(t *testing.T) {
			forecasttest.Run(t, func() forecast.Forecaster { return fresh(t, name, time.Minute) })
		})
	}
}

func TestAConfigWithoutSenseIsRefused(t *testing.T) {
	for name, c := range map[string]auto.Config{
		"auto": {}, "arma": {Horizon: 12}, "smoothing": {Level: 0.9}, "naive": {Horizon: 1e6, Level: 0.9},
		"seasonal": {Horizon: 1, Level: math.NaN()}, "prophet": rounds(time.Minute),
	} {
		if _, err := auto.New(name, c); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%s %+v: %v", name, c, err)
		}
	}
}

// loads that a model should, or should not, beat naive on.
var loads = []struct {
	name, model string
	least       float64 // share of forecasts by that model
	load        func(r *rand.Rand) func(i int) float64
}{
	{"a random walk", "abstain", 0.7, func(r *rand.Rand) func(int) float64 {
		at := 0.0
		return func(int) float64 { at += 0.02 * r.NormFloat64(); return 100 * math.Exp(at) }
	}},
	{"nothing at all", "abstain", 1, func(*rand.Rand) func(int) float64 { return func(int) float64 { return 0 } }},
	{"a constant", "abstain", 1, func(*rand.Rand) func(int) float64 { return func(int) float64 { return 3 } }},
	{"a mean with a memory", "arma", 0.9, func(r *rand.Rand) func(int) float64 {
		dev := 0.0
		return func(int) float64 { dev = 0.8*dev + 5*r.NormFloat64(); return 100 + dev }
	}},
	{"a day", "seasonal", 0.8, func(r *rand.Rand) func(int) float64 {
		return func(i int) float64 { return 100 + 80*math.Sin(float64(i)*math.Pi/72) + 2*r.NormFloat64() }
	}},
	{"tiny values", "", 0, func(r *rand.Rand) func(int) float64 {
		return func(int) float64 { return 1e-9 * (100 + 10*r.NormFloat64()) }
	}},
	{"huge values", "", 0, func(r *rand.Rand) func(int) float64 {
		return func(int) float64 { return 1e12 * (100 + 10*r.NormFloat64()) }
	}},
	{"rare bursts", "", 0, func(r *rand.Rand) func(int) float64 {
		return func(int) float64 { return math.Max(0, 500*(r.Float64()-0.99)) }
	}},
	{"small whole numbers", "", 0, func(r *rand.Rand) func(int) float64 {
		return func(int) float64 { return math.Floor(3 * r.Float64() * r.Float64()) }
	}},
	{"heavy tails", "", 0, func(r *rand.Rand) func(int) float64 {
		return func(int) float64 { return math.Min(1e12, math.Exp(2*r.NormFloat64()/math.Abs(r.NormFloat64()))) }
	}},
	{"growth", "", 0, func(r *rand.Rand) func(int) float64 {
		return func(i int) float64 { return 100 * math.Exp(float64(i)/2000) * (1 + 0.02*r.NormFloat64()) }
	}},
}

func TestTheBoundHoldsOnLoadsOfManyShapesAndNoModelClaimsMoreThanItCan(t *testing.T) {
	for _, c := range loads {
		next := c.load(rand.New(rand.NewPCG(7, 1)))
		series := make([]float64, 8000)
		for i := range series {
			series[i] = math.Max(0, next(i))
		}
		row, err := forecasttest.Replay(fresh(t, "auto", 10*time.Minute), series, forecasttest.Plan{Horizon: 12, Level: 0.9, Warmup: 400})
		if err != nil {
			t.Fatal(err)
		}
		share := 0.0
		for model, n := range row.Models {
			if strings.HasPrefix(model, c.model) {
				share += float64(n) / float64(row.Forecasts)
			}
		}
		t.Logf("%-20s %v %v", c.name, row, row.Models)
		if row.Coverage < 0.88 || row.Worst < 0.83 {
			t.Errorf("%s: %v", c.name, row)
		}
		if share < c.least {
			t.Errorf("%s: %q in %.2f of the forecasts, want %v: %v", c.name, c.model, share, c.least, row.Models)
		}
	}
}

func TestTheSameLoadInOtherUnitsGivesTheSameBounds(t *testing.T) {
	a, b := fresh(t, "auto", time.Minute), fresh(t, "auto", time.Minute)
	for i, v := range forecasttest.Load(9, 3000) {
		if err := errors.Join(a.Observe(v), b.Observe(v*1024)); err != nil {
			t.Fatal(err)
		}
		if i < 100 {
			continue // the first reports are judged by what counts are like
		}
		x, _ := a.Forecast(12, 0.9)
		y, _ := b.Forecast(12, 0.9)
		if i > 1000 && math.Abs(x.Upper*1024-y.Upper) > 1e-3*y.Upper {
			t.Fatalf("report %d: %+v and %+v", i, x, y)
		}
	}
}

func TestMissingReportsLeaveTheSeasonWhereItIs(t *testing.T) {
	day := func(i int) float64 { return 100 + 80*math.Sin(float64(i)*math.Pi/72) }
	f := fresh(t, "seasonal", 10*time.Minute)
	i := 0
	for range 3000 {
		if err := f.Observe(day(i)); err != nil {
			t.Fatal(err)
		}
		if i++; i%97 == 0 {
			f.Skip(50)
			i += 50
		}
	}
	next, _ := f.Forecast(12, 0.9)
	high := 0.0
	for k := range 12 {
		high = math.Max(high, day(i+k))
	}
	if !strings.HasPrefix(next.Model, "seasonal") || next.Upper < high || next.Upper > 1.2*high {
		t.Errorf("highest %v: %+v", high, next)
	}
}

func TestSkippingNothingChangesNothing(t *testing.T) {
	a, b := fresh(t, "seasonal", 10*time.Second), fresh(t, "seasonal", 10*time.Second)
	for i := range 1500 {
		v := 100 + 3*math.Sin(float64(i*i))
		if i%360 < 12 {
			v = 130
		}
		if err := errors.Join(a.Observe(v), b.Observe(v)); err != nil {
			t.Fatal(err)
		}
		b.Skip(0)
		b.Skip(-1)
		x, _ := a.Forecast(12, 0.9)
		if y, _ := b.Forecast(12, 0.9); x != y {
			t.Fatalf("report %d: %+v, and %+v with skips of none", i, x, y)
		}
	}
}

func TestReportsThatAreNowAndThenMissingDoNotKeepItFromLearning(t *testing.T) {
	f := fresh(t, "auto", time.Minute)
	for i, v := range forecasttest.Load(8, 1000) {
		if err := f.Observe(v); err != nil {
			t.Fatal(err)
		}
		if i%5 == 0 {
			f.Skip(1)
		}
	}
	if next, _ := f.Forecast(12, 0.9); next.Model == "abstain" {
		t.Errorf("%+v", next)
	}
}

func TestASnapshotOfALongHistoryIsSmall(t *testing.T) {
	f := fresh(t, "auto", time.Minute)
	for _, v := range forecasttest.Load(3, 15_000) {
		if err := f.Observe(v); err != nil {
			t.Fatal(err)
		}
	}
	state, err := f.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes", len(state))
	if len(state) > 64<<10 {
		t.Errorf("%d bytes", len(state))
	}
}

func TestTheBoundHoldsFromTheFirstReportsOn(t *testing.T) {
	for _, tr := range traces() {
		if tr.step() < 10*time.Second {
			continue
		}
		series := tr.read(t, 8860)
		held, n, above, highest := 0, 0, 0.0, 0.0
		for ; len(series) > 200; series = series[150:] {
			f := fresh(t, "auto", tr.step())
			for i, v := range series[:72] {
				if err := f.Observe(v); err != nil {
					t.Fatal(err)
				}
				if i%12 != 0 {
					continue
				}
				next, _ := f.Forecast(12, 0.9)
				high := slices.Max(series[i+1 : i+13])
				n++
				if high <= next.Upper {
					held++
				}
				above += next.Upper
				highest += high
			}
		}
		share := float64(held) / float64(n)
		t.Logf("%-17s first 60 reports: coverage %.3f of %d, upper/highest %.2f", tr.name, share, n, above/highest)
		if share < 0.85 && n > 100 || above > 4*highest {
			t.Errorf("%s: coverage %v, upper/highest %v", tr.name, share, above/highest)
		}
	}
}

func FuzzRestoreIsTotal(f *testing.F) {
	for _, n := range []int{0, 1, 30, 2000} {
		full := fresh(f, "auto", time.Minute)
		for _, v := range forecasttest.Load(1, n) {
			if err := full.Observe(v); err != nil {
				f.Fatal(err)
			}
		}
		state, err := full.Snapshot()
		if err != nil {
			f.Fatal(err)
		}
		_, body, _ := strings.Cut(string(state), "\n")
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		g := fresh(t, "auto", time.Minute)
		if g.Restore(forecasttest.Seal("auto/2", body)) != nil {
			return
		}
		for _, v := range append([]float64{0, 1e30, 3}, forecasttest.Load(2, 40)...) {
			n, ok := g.Forecast(12, 0.9)
			if ok && (!(n.Mean >= 0 && n.Upper >= n.Mean) || math.IsInf(n.Upper, 0)) {
				t.Fatalf("%+v", n)
			}
			if err := g.Observe(v); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func BenchmarkObserve(b *testing.B) {
	f := fresh(b, "auto", time.Minute)
	loads := forecasttest.Load(1, 20_000)
	for _, v := range loads {
		if err := f.Observe(v); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if err := f.Observe(loads[i%len(loads)]); err != nil {
			b.Fatal(err)
		}
		f.Forecast(12, 0.9)
	}
}

func BenchmarkForecastOfAnotherHorizon(b *testing.B) {
	f := fresh(b, "auto", time.Minute)
	for _, v := range forecasttest.Load(1, 4096) {
		if err := f.Observe(v); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		f.Forecast(24, 0.9)
	}
}
