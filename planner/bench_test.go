package planner_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/fair"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/welfare"
)

// sigmoid is a learnt-looking curve of 64 knots over [0, span] units: slow
// start, steep middle, saturation, with noise and dips in its bounds.
func sigmoid(r *rand.Rand, span float64) *trimtab.Curve {
	c := &trimtab.Curve{Load: 10, Level: 0.9}
	mid, width := span*(0.2+0.4*r.Float64()), span*(0.03+0.1*r.Float64())
	for i := range trimtab.MaxKnots {
		a := span * float64(i+1) / trimtab.MaxKnots
		m := 1 / (1 + math.Exp((mid-a)/width))
		m = math.Min(1, m*(1+0.02*r.NormFloat64()))
		c.Knots = append(c.Knots, trimtab.Knot{Allocation: a, Band: trimtab.Band{Lower: 0.9 * m, Mean: m, Upper: math.Min(1.2, m+0.1*r.Float64())}})
	}
	return c
}

// stairs is a curve that is worth nothing below its step.
func stairs(step float64) *trimtab.Curve {
	at := func(a, v float64) trimtab.Knot {
		return trimtab.Knot{Allocation: a, Band: trimtab.Band{Lower: v, Mean: v, Upper: v}}
	}
	return &trimtab.Curve{Load: 10, Level: 0.9, Knots: []trimtab.Knot{at(step-1, 0), at(step, 1)}}
}

// line rises to the SLO over full units.
func line(full float64) *trimtab.Curve {
	return &trimtab.Curve{Load: 10, Level: 0.9, Knots: []trimtab.Knot{{}, {Allocation: full, Band: trimtab.Band{Lower: 1, Mean: 1, Upper: 1}}}}
}

var _ policy.Policy = welfare.Social{}

// large is a problem of n workloads and units, each curve over span units.
func large(kind string, n, units int, span float64) *policy.Problem {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	p := &policy.Problem{Units: units, Unit: 1}
	shapes := []func(float64) func(float64) float64{policy.Linear, policy.Quadratic, policy.SquareRoot}
	for i := range n {
		w := policy.Workload{Name: fmt.Sprintf("w%05d", i), Weight: 1, Min: 1, Max: units, Current: units / n, SLO: 0.9, Utility: shapes[i%3](0.9)}
		switch kind {
		case "learnt":
			w.Curve = sigmoid(r, span)
		case "stairs":
			w.Curve, w.Utility = stairs(math.Ceil(span/3)), policy.Linear(1)
		case "lines":
			w.Curve, w.Utility = line(span), policy.Linear(1)
			w.Current = 1
		}
		w.Demand = policy.DemandOf(w.Curve, w.SLO, 1, 1, units).Upper
		p.Workloads = append(p.Workloads, w)
	}
	return p
}

// BenchmarkSolve solves one round: the figures are ms a round. Sizes grow, so
// that the growth can be read off; "wide" curves reach over the whole pool.
func BenchmarkSolve(b *testing.B) {
	type size struct {
		n, units int
		span     float64
		label    string
	}
	sizes := []size{{20, 1000, 150, ""}, {100, 3000, 90, ""}, {300, 5000, 50, ""}, {1000, 10000, 30, ""}, {1000, 10000, 10000, "/wide"}}
	for _, policy := range []policy.Policy{fair.ResourceFair{}, fair.NJCPolicy{}, welfare.Egalitarian{}, welfare.Social{}} {
		for _, kind := range []string{"learnt", "stairs", "lines"} {
			for _, s := range sizes {
				b.Run(fmt.Sprintf("%s/%s/%dx%d%s", policy.Name(), kind, s.n, s.units, s.label), func(b *testing.B) {
					p := large(kind, s.n, s.units, s.span)
					b.ReportAllocs()
					for b.Loop() {
						if _, err := policy.Solve(p); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N), "ms/round")
				})
			}
		}
	}
}

// BenchmarkAlertToPlan is the time from an alert to the plan that answers it:
// demands, targets, guard and reasons of a whole round.
func BenchmarkAlertToPlan(b *testing.B) {
	for _, policy := range []policy.Policy{fair.NJCPolicy{}, welfare.Egalitarian{}, welfare.Social{}} {
		for _, size := range []struct{ n, units int }{{20, 1000}, {1000, 10000}} {
			b.Run(fmt.Sprintf("%s/%dx%d", policy.Name(), size.n, size.units), func(b *testing.B) {
				alertToPlan(b, policy, size.n, size.units)
			})
		}
	}
}

func alertToPlan(b *testing.B, policy policy.Policy, n, units int) {
	prob := large("learnt", n, units, 3*float64(units)/float64(n))
	cfg := planner.Config{Pool: "p", Resource: "cpu", Capacity: float64(units), Unit: 1, Round: time.Minute, Policy: policy, AlertGap: time.Nanosecond}
	h := &trimtab.Holding{Host: "h1", Time: t0, Epoch: 1}
	for i, w := range prob.Workloads {
		cfg.Workloads = append(cfg.Workloads, planner.WorkloadConfig{Name: w.Name, Mode: trimtab.Recommend, SLO: 0.9, Min: 1})
		h.Targets = append(h.Targets, trimtab.KnobState{KnobID: trimtab.KnobID{Pool: h.Pool, Host: h.Host, Workload: w.Name, Resource: "cpu"}, Now: trimtab.Units(float64(units / n * (1 + 2*(i%2)) / 2)), Max: float64(units)})
	}
	p, err := planner.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	p.Step(t0, &trimtab.Leader{Pool: "p", Epoch: 1})
	p.Step(t0, h)
	for _, w := range prob.Workloads {
		p.Step(t0, estimate(w.Name, t0, w.Curve))
	}
	now, actions := t0, 0
	for b.Loop() {
		now = now.Add(time.Microsecond)
		out := p.Step(now, &trimtab.Alert{Workload: prob.Workloads[0].Name, Name: "x", Group: "g", Firing: true, Time: now})
		if len(out) != 1 {
			b.Fatal(out)
		}
		actions += len(out[0].(*trimtab.Plan).Actions)
	}
	if actions == 0 {
		b.Fatal("plans without actions")
	}
	b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N), "ms/plan")
}
