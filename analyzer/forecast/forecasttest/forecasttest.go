// Package forecasttest holds what every forecast.Forecaster must satisfy: a
// conformance suite, and a replay that measures on a recorded load how often
// the bound held,
//
//	coverage = share of t with max(l[t+1..t+h]) <= upper made at t.
//
//	forecasttest.Run(t, func() forecast.Forecaster { … })
//	row, err := forecasttest.Replay(f, series, forecasttest.Plan{Horizon: 12, Level: 0.9, Warmup: 240})
//
// It reads no files.
package forecasttest

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/forecast"
)

// Plan says how a series is replayed.
type Plan struct {
	// Horizon and Level are those of the forecasts.
	Horizon int
	Level   float64
	// Warmup is the first report that is forecast from.
	Warmup int
}

// Row is the result of a replay.
type Row struct {
	// Coverage is the share of forecasts whose bound held; Late is that of
	// the last third; Worst that of the worst 180 rounds, with a forecast
	// every report; Sparse that with one forecast a round, wherever the
	// rounds begin.
	Coverage, Late, Worst, Sparse float64
	// Above is the mean of upper over the mean of the truth.
	Above float64
	// Error is the mean of |mean - truth| over the mean of the truth.
	Error float64
	// Width is the mean of upper less the mean of the truth, over the latter.
	Width float64
	// Abstained is the share of forecasts in which no model beat naive.
	Abstained float64
	Forecasts int
	// Models counts the forecasts of each model.
	Models map[string]int
}

// String prints the row for a person.
func (r Row) String() string {
	return fmt.Sprintf("coverage %.3f, last third %.3f, worst 180 rounds %.3f (one forecast a round %.3f), upper/highest %.3f, width %.3f, |error| of the mean %.3f, abstained %.2f, %d forecasts",
		r.Coverage, r.Late, r.Worst, r.Sparse, r.Above, r.Width, r.Error, r.Abstained, r.Forecasts)
}

// Replay forecasts series from each report on and compares.
func Replay(f forecast.Forecaster, series []float64, p Plan) (Row, error) {
	row := Row{Models: map[string]int{}}
	var held []bool
	upper, highest, truth := 0.0, 0.0, 0.0
	for i, v := range series {
		if err := f.Observe(v); err != nil {
			return row, err
		}
		if i+1 < p.Warmup || i+p.Horizon >= len(series) {
			continue
		}
		next, ok := f.Forecast(p.Horizon, p.Level)
		if !ok {
			return row, fmt.Errorf("no forecast after %d reports", i+1)
		}
		high, mean := 0.0, 0.0
		for _, v := range series[i+1 : i+1+p.Horizon] {
			high = math.Max(high, v)
			mean += v / float64(p.Horizon)
		}
		held = append(held, high <= next.Upper)
		upper += next.Upper
		highest += high
		truth += mean
		row.Error += math.Abs(next.Mean - mean)
		row.Models[next.Model]++
		if next.Model == "abstain" {
			row.Abstained++
		}
	}
	n := len(held)
	if n == 0 {
		return row, errors.New("the series is too short")
	}
	row.Forecasts = n
	row.Coverage, row.Late = share(held), share(held[n-n/3:])
	row.Worst, row.Sparse = worst(held, min(n, 180*p.Horizon)), 1
	for from := range min(p.Horizon, n) {
		var rounds []bool
		for i := from; i < n; i += p.Horizon {
			rounds = append(rounds, held[i])
		}
		row.Sparse = math.Min(row.Sparse, worst(rounds, min(len(rounds), 180)))
	}
	row.Above, row.Width, row.Error = upper/highest, upper/truth-1, row.Error/truth
	row.Abstained /= float64(n)
	return row, nil
}

func share(held []bool) float64 {
	n := 0
	for _, h := range held {
		if h {
			n++
		}
	}
	return float64(n) / float64(max(1, len(held)))
}

// worst returns the least share over all windows of n.
func worst(held []bool, n int) float64 {
	least, in := n, 0
	for i, h := range held {
		if h {
			in++
		}
		if i >= n && held[i-n] {
			in--
		}
		if i >= n-1 {
			least = min(least, in)
		}
	}
	return float64(least) / float64(max(1, n))
}

// Seal returns a snapshot of that kind with a correct checksum around body, for fuzzing the code
// behind the check.
func Seal(kind, body string) []byte {
	return fmt.Appendf(nil, "trimtab %s %08x\n%s", kind, crc32.ChecksumIEEE([]byte(body)), body)
}

// Load makes a synthetic load: a day's swing over 1440 reports, an AR(1)
// disturbance and Poisson-like noise.
func Load(seed uint64, n int) []float64 {
	r := rand.New(rand.NewPCG(seed, 5))
	out := make([]float64, n)
	ar := 0.0
	for i := range out {
		ar = 0.9*ar + 0.05*r.NormFloat64()
		base := 40 * (1 + 0.4*math.Sin(2*math.Pi*float64(i)/1440)) * math.Exp(ar)
		out[i] = math.Max(0, base+math.Sqrt(base/10)*r.NormFloat64())
	}
	return out
}

// Run checks everything that forecast.Forecaster promises of the forecasters
// that make returns, which must be equal, have seen nothing, and be meant for
// 12 reports at level 0.9.
func Run(t *testing.T, make func() forecast.Forecaster) {
	for _, c := range []struct {
		name string
		f    func(*testing.T, func() forecast.Forecaster)
	}{
		{"NothingSeenIsNoForecast", empty},
		{"ForecastsAreTotal", total},
		{"ForecastChangesNothing", pure},
		{"MissingLoadsLeaveItWholeAndNoneChangeNothing", skipped},
		{"SnapshotGivesSameBits", snapshot},
		{"DamagedSnapshotsAreRefused", damaged},
		{"NonsenseIsRefusedAndChangesNothing", nonsense},
		{"TheBoundHoldsItsLevel", level},
		{"ALevelShiftIsFollowed", shift},
		{"MemoryIsBounded", bounded},
	} {
		t.Run(c.name, func(t *testing.T) { c.f(t, make) })
	}
}

func observe(t *testing.T, f forecast.Forecaster, loads []float64) {
	t.Helper()
	for _, v := range loads {
		if err := f.Observe(v); err != nil {
			t.Fatal(err)
		}
	}
}

func same(t *testing.T, a, b forecast.Forecaster) {
	t.Helper()
	for _, h := range []int{1, 5, 12, 40} {
		for _, l := range []float64{0.5, 0.9, 0.99} {
			x, okX := a.Forecast(h, l)
			y, okY := b.Forecast(h, l)
			if x != y || okX != okY {
				t.Fatalf("%d ahead at %v: %+v and %+v", h, l, x, y)
			}
		}
	}
}

func empty(t *testing.T, make func() forecast.Forecaster) {
	if f, ok := make().Forecast(12, 0.9); ok {
		t.Errorf("%+v", f)
	}
}

func total(t *testing.T, make func() forecast.Forecaster) {
	for _, loads := range [][]float64{{0}, {5}, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {1e30, 0, 1e30, 0, 1e-300}, Load(1, 300)} {
		f := make()
		observe(t, f, loads)
		for _, h := range []int{1, 12, 5000} {
			for _, l := range []float64{1e-6, 0.5, 0.9, 1 - 1e-9} {
				n, ok := f.Forecast(h, l)
				if !ok || !(n.Mean >= 0 && n.Upper >= n.Mean) || math.IsInf(n.Upper, 0) || n.Model == "" {
					t.Fatalf("%d ahead at %v after %d reports: %+v", h, l, len(loads), n)
				}
			}
		}
		for _, bad := range []float64{0, 1, -1, math.NaN()} {
			if _, ok := f.Forecast(12, bad); ok {
				t.Errorf("a forecast at level %v", bad)
			}
		}
		if _, ok := f.Forecast(0, 0.9); ok {
			t.Error("a forecast 0 reports ahead")
		}
	}
}

func pure(t *testing.T, make func() forecast.Forecaster) {
	a, b := make(), make()
	for i, v := range Load(2, 1200) {
		observe(t, a, []float64{v})
		observe(t, b, []float64{v})
		a.Forecast(12, 0.9)
		if i%100 == 0 {
			a.Forecast(3, 0.5)
		}
	}
	same(t, a, b)
}

func skipped(t *testing.T, make func() forecast.Forecaster) {
	a, b := make(), make()
	a.Skip(7) // before anything was seen
	if f, ok := a.Forecast(12, 0.9); ok {
		t.Errorf("%+v", f)
	}
	for i, v := range Load(7, 1500) {
		observe(t, b, []float64{v})
		if i == 700 {
			b.Skip(100_000)
		}
		b.Skip(0)
		b.Skip(-1)
		if f, ok := b.Forecast(12, 0.9); !ok || !(f.Mean >= 0 && f.Upper >= f.Mean) || math.IsInf(f.Upper, 0) {
			t.Fatalf("report %d: %+v", i, f)
		}
	}
	c := make()
	loads := Load(7, 1500)
	observe(t, c, loads[:701])
	c.Skip(100_000)
	observe(t, c, loads[701:])
	same(t, b, c)
}

func snapshot(t *testing.T, make func() forecast.Forecaster) {
	loads := Load(3, 2500)
	for _, n := range []int{0, 1, 40, 2000} {
		a, b := make(), make()
		observe(t, a, loads[:n])
		state, err := a.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		observe(t, b, Load(4, 30))
		if err := b.Restore(state); err != nil {
			t.Fatal(err)
		}
		same(t, a, b)
		if again, err := b.Snapshot(); err != nil || !bytes.Equal(state, again) {
			t.Fatalf("the snapshot of a restored forecaster differs: %v", err)
		}
		observe(t, a, loads[n:n+300])
		observe(t, b, loads[n:n+300])
		same(t, a, b)
	}
}

func damaged(t *testing.T, make func() forecast.Forecaster) {
	a, b := make(), make()
	observe(t, a, Load(5, 100))
	observe(t, b, Load(5, 100))
	state, err := make().Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for i := range state {
		flipped := bytes.Clone(state)
		flipped[i] ^= 1 << (i % 8)
		for _, s := range [][]byte{flipped, state[:i]} {
			if err := a.Restore(s); !errors.Is(err, trimtab.ErrInvalid) {
				t.Fatalf("damaged at %d: %v, want trimtab.ErrInvalid", i, err)
			}
		}
	}
	same(t, a, b)
}

func nonsense(t *testing.T, make func() forecast.Forecaster) {
	a, b := make(), make()
	observe(t, a, Load(6, 100))
	observe(t, b, Load(6, 100))
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, math.MaxFloat64} {
		if err := a.Observe(v); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("load %v: %v, want trimtab.ErrInvalid", v, err)
		}
	}
	same(t, a, b)
}

func level(t *testing.T, make func() forecast.Forecaster) {
	for seed := range uint64(3) {
		row, err := Replay(make(), Load(10+seed, 6000), Plan{Horizon: 12, Level: 0.9, Warmup: 300})
		if err != nil {
			t.Fatal(err)
		}
		t.Log(row)
		if row.Coverage < 0.88 || row.Worst < 0.8 {
			t.Errorf("seed %d: %v", seed, row)
		}
		if row.Above > 1.4 {
			t.Errorf("seed %d: the bound holds by being useless: %v", seed, row)
		}
	}
}

func shift(t *testing.T, make func() forecast.Forecaster) {
	f := make()
	loads := Load(20, 2000)
	for i := range loads[1000:] {
		loads[1000+i] *= 3
	}
	observe(t, f, loads[:1024])
	if n, _ := f.Forecast(12, 0.9); n.Upper < loads[1023] || n.Mean < loads[1023]/2 {
		t.Errorf("24 reports after a shift to %v: %+v", loads[1023], n)
	}
}

func bounded(t *testing.T, make func() forecast.Forecaster) {
	f := make()
	observe(t, f, Load(30, 20_000))
	state, err := f.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if len(state) > 256<<10 {
		t.Errorf("a snapshot of %d bytes", len(state))
	}
}
