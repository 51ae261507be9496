package welfare

import (
	"fmt"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize/convex/lp"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/policy"
)

// drawLines draws workloads whose utility is a line up to what they need, on hosts
// that cannot hold all.
func drawLines(t *rapid.T) *policy.Problem {
	p := &policy.Problem{Unit: 1}
	hosts := rapid.IntRange(2, 5).Draw(t, "hosts")
	for i := range rapid.IntRange(2, 12).Draw(t, "workloads") {
		need := rapid.IntRange(200, 2000).Draw(t, "need")
		w := policy.Workload{Name: fmt.Sprintf("w%02d", i), Weight: 1, SLO: 1, Max: 5000, Utility: policy.Linear(1), Curve: &trimtab.Curve{Load: 1, Level: 0.9,
			Knots: []trimtab.Knot{{Allocation: float64(need), Band: trimtab.Band{Lower: 1, Mean: 1, Upper: 1}}}}}
		sum, shares := 0.0, make([]float64, hosts)
		for h := range shares {
			shares[h] = float64(rapid.IntRange(0, 3).Draw(t, "share"))
			sum += shares[h]
		}
		for h, f := range shares {
			if f > 0 {
				w.Parts = append(w.Parts, policy.Part{Host: h, Share: f / sum})
			}
		}
		p.Workloads = append(p.Workloads, w)
		p.Units += need
	}
	for h := range hosts {
		p.Hosts = append(p.Hosts, policy.Host{Name: fmt.Sprint("h", h), Units: float64(p.Units) * rapid.Float64Range(0.05, 0.5).Draw(t, "host")})
	}
	p.Units = int(float64(p.Units) * rapid.SampledFrom([]float64{0.3, 0.6, 2}).Draw(t, "pool"))
	return p
}

// bySimplex is the greatest sum of utilities over real numbers of units.
func bySimplex(t *rapid.T, p *policy.Problem) float64 {
	n, m := len(p.Workloads), len(p.Hosts)
	rows := m + 1 + n // hosts, the pool, and what each needs
	a, b, c := mat.NewDense(rows, n+rows, nil), make([]float64, rows), make([]float64, n+rows)
	for r := range rows {
		a.Set(r, n+r, 1) // what is left
	}
	for h, host := range p.Hosts {
		b[h] = host.Units
	}
	b[m] = float64(p.Units)
	for j, w := range p.Workloads {
		need := w.Curve.Knots[0].Allocation
		c[j] = -1 / need
		for _, part := range w.Parts {
			a.Set(part.Host, j, part.Share)
		}
		a.Set(m, j, 1)
		a.Set(m+1+j, j, 1)
		b[m+1+j] = need
	}
	basis := make([]int, rows)
	for r := range basis {
		basis[r] = n + r
	}
	least, _, err := lp.Simplex(c, a, b, 1e-10, basis)
	if err != nil {
		t.Skip(err)
	}
	return -least
}

func TestOfLinesTheSumAndItsBoundAreThoseOfALinearProgramme(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawLines(t)
		got, err := Own{}.Solve(p)
		if err != nil {
			t.Fatal(err)
		}
		checkHosts(t, p, got.Units)
		want := bySimplex(t, p)
		if got.Value > want*(1+1e-6) || got.Bound > want*1.05+1e-6 || got.Value < want*0.98-0.02 {
			t.Fatalf("%v, proven to be at most %v: the linear programme says %v", got.Value, got.Bound, want)
		}
	})
}
