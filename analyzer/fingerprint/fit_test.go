package fingerprint

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// fitted is the fit of all values, and its distance from them.
func fitted(t testing.TB, f Family, values []float64) (Distribution, float64) {
	t.Helper()
	var m moments
	for _, x := range values {
		m.add(x)
	}
	d, ok := m.fit(f)
	if !ok {
		t.Fatalf("no %s fits", f)
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return d, d.KS(sorted)
}

// logLikelihood of a Gamma distribution.
func logLikelihood(k, theta float64, values []float64) float64 {
	sum := 0.0
	lg, _ := math.Lgamma(k)
	for _, x := range values {
		sum += (k-1)*math.Log(x) - x/theta - lg - k*math.Log(theta)
	}
	return sum
}

func TestNoOtherParametersAreLikelier(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfNDistinct(rapid.Float64Range(0.1, 20), 3, 40, rapid.ID).Draw(t, "values")
		var m moments
		for _, x := range values {
			m.add(x)
		}
		byK, byTheta := rapid.Float64Range(0.5, 2).Draw(t, "k"), rapid.Float64Range(0.5, 2).Draw(t, "θ")
		if d, ok := m.fit(Gamma); ok {
			best := logLikelihood(d.Shape, d.Scale, values)
			if other := logLikelihood(d.Shape*byK, d.Scale*byTheta, values); other > best+1e-7*(1+math.Abs(best)) {
				t.Fatalf("%+v: %v, others %v", d, best, other)
			}
		}
		d, ok := m.fit(ChiSquare)
		if !ok {
			t.Fatal("no chi-square distribution fits")
		}
		best := logLikelihood(d.Shape/2, 2, values)
		if other := logLikelihood(d.Shape*byK/2, 2, values); other > best+1e-7*(1+math.Abs(best)) {
			t.Fatalf("%+v: %v, others %v", d, best, other)
		}
	})
}

func TestTheBoundaryHasTheMassOf3SigmaAboveIt(t *testing.T) {
	normal := 0.5 * math.Erfc(3/math.Sqrt2)
	for _, shape := range []float64{0.3, 1, 2.5, 24, 63.5, 223, 16283, 2e6} {
		for _, d := range []Distribution{{Gamma, shape, 0.01}, {ChiSquare, shape, 2}} {
			if tail := 1 - d.CDF(d.Boundary()); math.Abs(tail-normal) > 1e-6 {
				t.Errorf("%+v: %v above %v, want %v", d, tail, d.Boundary(), normal)
			}
		}
	}
}

func TestADistributionFitsItsOwnQuantiles(t *testing.T) {
	for _, want := range []Distribution{{Gamma, 2.5, 1.72}, {Gamma, 63.5, 0.0102}, {Gamma, 2000, 0.001}, {ChiSquare, 8.7, 2}} {
		values := ownQuantiles(want, 2000)
		got, ks := fitted(t, want.Family, values)
		if ks > 0.005 || math.Abs(got.Shape/want.Shape-1) > 0.02 || math.Abs(got.Scale/want.Scale-1) > 0.02 {
			t.Errorf("%+v at distance %.4f, want %+v", got, ks, want)
		}
	}
}

// ownQuantiles are n values in the middle of n parts of equal mass.
func ownQuantiles(d Distribution, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		p, low, high := (float64(i)+0.5)/float64(n), 0.0, 1e6
		for range 200 {
			if middle := (low + high) / 2; d.CDF(middle) < p {
				low = middle
			} else {
				high = middle
			}
		}
		out[i] = high
	}
	return out
}

func TestTheDistanceIsTheLargestBetweenBothFunctions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(0.1, 10), 1, 30).Draw(t, "values")
		d := Distribution{Gamma, rapid.Float64Range(0.5, 30).Draw(t, "k"), rapid.Float64Range(0.1, 1).Draw(t, "θ")}
		slices.Sort(values)
		worst := 0.0
		for _, x := range values { // just below and at each step of the empirical function
			for _, at := range []float64{math.Nextafter(x, 0), x} {
				n := 0
				for _, y := range values {
					if y <= at {
						n++
					}
				}
				worst = max(worst, math.Abs(d.CDF(at)-float64(n)/float64(len(values))))
			}
		}
		if got := d.KS(values); math.Abs(got-worst) > 1e-9 {
			t.Fatalf("%v, want %v", got, worst)
		}
	})
}

func TestAConstantAndTwoValuesFarApartHaveNoFitThatHolds(t *testing.T) {
	for _, values := range [][]float64{{1, 1, 1}, {1e-3, 1e6}, {0.5}} {
		var m moments
		for _, x := range values {
			m.add(x)
		}
		if d, ok := m.fit(Gamma); ok && (math.IsNaN(d.Shape) || d.Shape <= 0 || math.IsNaN(d.Boundary())) {
			t.Errorf("%v: %+v", values, d)
		}
	}
}

func TestWhatIsKeptIsEvenOverASeries(t *testing.T) {
	var k keep
	const n = 20_000
	for i := range uint64(n) {
		k.add(i+1, float64(i))
	}
	thirds := [3]int{}
	for _, x := range k.values {
		thirds[int(x)*3/n]++
	}
	for _, c := range thirds {
		if c < kept/3-50 || c > kept/3+50 { // five standard deviations
			t.Errorf("kept of the thirds: %v", thirds)
		}
	}
}

// The facts that the recording's own notes state, by other programs.
func TestTheRecordedCountersHaveTheFitsThatAreKnownOfThem(t *testing.T) {
	dir := recorded(t)
	for _, want := range []struct {
		file         string
		k, theta, ks float64
	}{
		{"npb-SP", 63.5, 0.0102, 0.027}, {"parsec-fluidanimate", 223, 0.0026, 0.088}, {"parsec-canneal", 2.5, 1.72, 0.204},
		{"npb-CG", 23.9, 0.098, 0.42}, {"npb-FT", 3.8, 0.144, 0.41},
	} {
		var values []float64
		for _, s := range readCounters(t, filepath.Join(dir, "solo", want.file+".csv.gz")) {
			if s.CPI.Counted {
				values = append(values, s.CPI.Value)
			}
		}
		d, ks := fitted(t, Gamma, values)
		if math.Abs(d.Shape/want.k-1) > 0.02 || math.Abs(d.Scale/want.theta-1) > 0.03 || math.Abs(ks-want.ks) > 0.005 {
			t.Errorf("%s: %+v at distance %.3f, want %+v", want.file, d, ks, want)
		}
	}
}

func TestProductionValuesHaveTheFitsThatAreKnownOfThem(t *testing.T) {
	f, err := os.Open(filepath.Join(filepath.Dir(recorded(t)), "google2019-cpi-mai-sample", "instances.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := func(name string, times float64) (out []float64) {
		i := slices.Index(rows[0], name)
		for _, row := range rows[1:] {
			if v, err := strconv.ParseFloat(strings.TrimSpace(row[i]), 64); err == nil && v > 0 {
				out = append(out, times*v)
			}
		}
		return out
	}
	cpi, ks := fitted(t, Gamma, column("cycles_per_instruction", 1))
	if math.Abs(cpi.Shape-2.995) > 0.01 || math.Abs(cpi.Scale-0.7346) > 0.002 || math.Abs(ks-0.135) > 0.002 {
		t.Errorf("CPI: %+v at distance %.3f", cpi, ks)
	}
	mai, ks := fitted(t, ChiSquare, column("memory_accesses_per_instruction", 1000))
	if math.Abs(mai.Shape-8.7) > 0.1 || math.Abs(ks-0.24) > 0.01 {
		t.Errorf("accesses: %+v at distance %.3f", mai, ks)
	}
}
