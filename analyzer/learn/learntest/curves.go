package learntest

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"sort"
	"strconv"
)

// Curve is a performance over allocation per unit of load, in [Low, High].
type Curve struct {
	Name string
	// At is the performance at a/l = x, non-decreasing.
	At func(x float64) float64
	// Low and High bound the range that is visited.
	Low, High float64
	// Rate: the performance is a number with 3% noise at load 1; otherwise it
	// is a fraction of requests.
	Rate bool
}

// Curves returns synthetic curves: smooth, steep, in steps, flat.
func Curves() []Curve {
	return []Curve{
		{Name: "saturating", Low: 0.05, High: 2, At: func(x float64) float64 { return 1 - math.Exp(-3*x) }},
		{Name: "threshold", Low: 0.1, High: 2, At: func(x float64) float64 { return 0.98 / (1 + math.Exp(-14*(x-0.6))) }},
		{Name: "linear", Low: 0.1, High: 1, At: func(x float64) float64 { return math.Min(0.9, 0.9*x) }},
		{Name: "one step", Low: 0.1, High: 2, At: func(x float64) float64 { return step(x, 0.5, 0.4, 0.95) }},
		{Name: "stairs", Low: 0.1, High: 2, At: stairs},
		{Name: "flat", Low: 0.1, High: 2, At: func(float64) float64 { return 0.97 }},
		{Name: "perfect", Low: 0.1, High: 2, At: func(float64) float64 { return 1 }},
		{Name: "rate", Low: 10, High: 150, Rate: true, At: func(x float64) float64 { return 500 * x / (x + 30) }},
	}
}

func step(x, at, below, above float64) float64 {
	if x < at {
		return below
	}
	return above
}

// stairs has eight steps of different heights over [0.1, 2].
func stairs(x float64) float64 {
	p := 0.2
	for i, h := range []float64{0.15, 0.02, 0.2, 0.1, 0.05, 0.15, 0.08, 0.03} {
		if x > 0.15*math.Pow(1.36, float64(i)) {
			p += h
		}
	}
	return p
}

// ReadProfile reads a profile of the Cilantro data: alloc_per_unit_load,
// perf_est, …; linear between grid points, flat above, linear to 0 below.
// Fractions become monotone by the running maximum.
func ReadProfile(name string, r io.Reader, rate bool) (Curve, error) {
	rows, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return Curve{}, fmt.Errorf("read profile %s: %w", name, err)
	}
	var xs, ps []float64
	for _, row := range rows[min(1, len(rows)):] {
		x, errX := strconv.ParseFloat(row[0], 64)
		p, errP := strconv.ParseFloat(row[1], 64)
		if errX != nil || errP != nil {
			return Curve{}, fmt.Errorf("read profile %s: row %q", name, row)
		}
		if n := len(ps); n > 0 {
			p = math.Max(p, ps[n-1])
		}
		xs, ps = append(xs, x), append(ps, p)
	}
	if len(xs) < 2 {
		return Curve{}, fmt.Errorf("read profile %s: %d rows", name, len(xs))
	}
	return Curve{Name: name, Low: math.Max(xs[0], xs[len(xs)-1]/100), High: xs[len(xs)-1], Rate: rate, At: func(x float64) float64 {
		i := sort.SearchFloat64s(xs, x)
		switch i {
		case 0:
			return ps[0] * math.Min(1, x/math.Max(xs[0], 1e-12))
		case len(xs):
			return ps[len(ps)-1]
		}
		t := (x - xs[i-1]) / (xs[i] - xs[i-1])
		return ps[i-1] + t*(ps[i]-ps[i-1])
	}}, nil
}
