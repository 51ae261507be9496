package arma_test

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/trimtab/trimtab/analyzer/forecast"
	"github.com/trimtab/trimtab/analyzer/forecast/arma"
	"github.com/trimtab/trimtab/analyzer/forecast/forecasttest"
)

func fresh() forecast.Forecaster {
	f, err := arma.New(arma.Config{Horizon: 12, Level: 0.9})
	if err != nil {
		panic(err)
	}
	return f
}

func TestARMAIsAForecaster(t *testing.T) { forecasttest.Run(t, fresh) }

func TestAConfigWithoutSenseIsRefused(t *testing.T) {
	for _, c := range []arma.Config{{}, {Horizon: 12}, {Level: 0.9}, {Horizon: 1e6, Level: 0.9}, {Horizon: 1, Level: math.NaN()}} {
		if _, err := arma.New(c); err == nil {
			t.Errorf("%+v", c)
		}
	}
}

func TestOnARandomWalkItAbstains(t *testing.T) {
	f := fresh()
	walk := 1000.0
	for i, v := range forecasttest.Load(1, 3000) {
		walk += 10 * (v/40 - 1) * float64(1-2*(i%2))
		if err := f.Observe(max(0, walk)); err != nil {
			t.Fatal(err)
		}
	}
	n, _ := f.Forecast(12, 0.9)
	t.Log(n)
	if n.Upper < walk || n.Upper > 1.5*walk {
		t.Errorf("at %v: %+v", walk, n)
	}
}

func TestItBeatsNaiveWhereLoadsReturnToTheirMean(t *testing.T) {
	f := fresh()
	for i := range 3000 {
		if err := f.Observe(50 + 30*math.Sin(float64(i)*1.7) + 10*math.Sin(float64(i)*0.9)); err != nil {
			t.Fatal(err)
		}
	}
	if n, _ := f.Forecast(12, 0.9); n.Model != "arma(1,1)" {
		t.Errorf("%+v", n)
	}
}

// traces reads the recorded loads, at most limit reports of each.
func traces(t testing.TB, limit int) map[string][]float64 {
	t.Helper()
	dir := os.Getenv("TRIMTAB_DATA")
	if dir == "" {
		t.Skip("TRIMTAB_DATA is not set: no recorded loads")
	}
	out := map[string][]float64{}
	for name, group := range map[string]int{
		"clarknet_1995_per_minute_days01-10.csv.gz":   1,
		"worldcup98_per_minute_to_0625.csv.gz":        1,
		"nasa_1995_per_second_first2of3.txt.gz":       10,
		"twitter_2021-08_per_second_first2of3.txt.gz": 10,
	} {
		out[strings.SplitN(name, "_", 2)[0]] = readGzip(t, filepath.Join(dir, "load-traces", name), group, limit)
	}
	f, err := os.Open(filepath.Join(dir, "cilantro", "twitter_trace_1s.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var qps []float64
	for _, r := range rows[1:] {
		v, err := strconv.ParseFloat(r[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		qps = append(qps, v)
	}
	out["cilantro-twitter"] = means(qps, 10, limit)
	return out
}

func readGzip(t testing.TB, path string, group, limit int) []float64 {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var out []float64
	for s := bufio.NewScanner(z); s.Scan() && len(out) < limit*group; {
		text := s.Text()
		if i := strings.LastIndexByte(text, ','); i >= 0 {
			text = text[i+1:]
		}
		if v, err := strconv.ParseFloat(text, 64); err == nil {
			out = append(out, v)
		} else if len(out) > 0 {
			t.Fatalf("read %s: %v", path, err)
		}
	}
	return means(out, group, limit)
}

func means(v []float64, group, limit int) []float64 {
	var out []float64
	for ; len(v) >= group && len(out) < limit; v = v[group:] {
		sum := 0.0
		for _, x := range v[:group] {
			sum += x / float64(group)
		}
		out = append(out, sum)
	}
	return out
}

func coverage(t *testing.T, limit int) {
	for name, series := range traces(t, limit) {
		row, err := forecasttest.Replay(fresh(), series, forecasttest.Plan{Horizon: 12, Level: 0.9, Warmup: 240})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%-17s %v", name, row)
		if row.Coverage < 0.885 || row.Worst < 0.78 {
			t.Errorf("%s: the bound does not hold: %v", name, row)
		}
	}
}

func TestTheBoundHoldsFromTheFirstReportsOn(t *testing.T) {
	for name, series := range traces(t, 8860) {
		held, n, above, highest := 0, 0, 0.0, 0.0
		for ; len(series) > 200; series = series[150:] {
			f := fresh()
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
		t.Logf("%-17s first 60 reports: coverage %.3f of %d, upper/highest %.2f", name, share, n, above/highest)
		if share < 0.85 || above > 3*highest {
			t.Errorf("%s: coverage %v, upper/highest %v", name, share, above/highest)
		}
	}
}

func TestCoverageOnRecordedLoads(t *testing.T) { coverage(t, 8860) }

func BenchmarkObserve(b *testing.B) {
	f := fresh()
	loads := forecasttest.Load(1, 4096)
	b.ReportAllocs()
	for i := range b.N {
		if err := f.Observe(loads[i%len(loads)]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkForecast(b *testing.B) {
	f := fresh()
	for _, v := range forecasttest.Load(1, 4096) {
		if err := f.Observe(v); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		f.Forecast(12, 0.9)
	}
}

func BenchmarkForecastOfAnotherHorizon(b *testing.B) {
	f := fresh()
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
