package plantest

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/policy"
)

// draw draws a problem that is small enough to try all allocations, with ties:
// plateaus, equal curves, bounds that fall, unknown curves, groups.
func draw(t *rapid.T) *policy.Problem {
	p := &policy.Problem{Units: rapid.IntRange(0, 9).Draw(t, "units"), Unit: rapid.SampledFrom([]float64{1, 0.1, 0.25}).Draw(t, "unit")}
	grouped := rapid.Bool().Draw(t, "grouped")
	if grouped {
		p.Groups = []policy.Group{{Path: "a", Weight: 2}, {Path: "b", Weight: 1, Guarantee: rapid.IntRange(0, 3).Draw(t, "guarantee")}}
	}
	left := p.Units
	for i := range rapid.IntRange(1, 4).Draw(t, "workloads") {
		w := policy.Workload{Name: fmt.Sprint("w", i), SLO: 0.75, Weight: rapid.SampledFrom([]float64{1, 1, 0.5, 3}).Draw(t, "weight")}
		w.Min = min(rapid.IntRange(0, 2).Draw(t, "min"), left)
		left -= w.Min
		w.Max = rapid.IntRange(w.Min, 10).Draw(t, "max")
		w.Current = rapid.IntRange(0, 10).Draw(t, "current")
		w.Demand = rapid.IntRange(0, 10).Draw(t, "demand")
		w.Reports = rapid.SampledFrom([]int{0, 480, 10_000}).Draw(t, "reports")
		if grouped {
			w.Group = rapid.SampledFrom([]string{"", "a", "a/x", "b"}).Draw(t, "group")
			w.Guarantee = rapid.SampledFrom([]int{0, 0, 2}).Draw(t, "guarantee")
		}
		w.Utility = rapid.SampledFrom([]func(float64) float64{
			policy.Linear(w.SLO), policy.Quadratic(w.SLO), policy.SquareRoot(w.SLO), func(v float64) float64 { return math.Floor(2*math.Min(v, 1)) / 2 },
		}).Draw(t, "utility")
		if i > 0 && rapid.IntRange(0, 3).Draw(t, "same") == 0 {
			w.Curve, w.Utility = p.Workloads[i-1].Curve, p.Workloads[i-1].Utility
		} else if rapid.IntRange(0, 9).Draw(t, "unknown") > 0 {
			w.Curve = drawCurve(t, p.Unit)
		}
		p.Workloads = append(p.Workloads, w)
	}
	return p
}

func drawCurve(t *rapid.T, unit float64) *trimtab.Curve {
	c := &trimtab.Curve{Load: 1, Level: 0.9}
	at := 0.0
	for range rapid.IntRange(1, 5).Draw(t, "knots") {
		at += unit * rapid.OneOf(rapid.Float64Range(0.05, 4), rapid.SampledFrom([]float64{1, 2, 3})).Draw(t, "gap")
		v := rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom([]float64{0, 0.25, 0.5, 0.75, 1}), rapid.Float64Range(0.01, 1)), 3, 3).Draw(t, "band")
		slices.Sort(v)
		c.Knots = append(c.Knots, trimtab.Knot{Allocation: at, Band: trimtab.Band{Lower: v[0], Mean: v[1], Upper: v[2]}})
	}
	return c
}

// drawHosts draws a problem over hosts that have enough for all minimums, some of them barely.
func drawHosts(t *rapid.T) *policy.Problem {
	p := draw(t)
	least := make([]float64, rapid.IntRange(1, 3).Draw(t, "hosts"))
	for i := range p.Workloads {
		w, sum := &p.Workloads[i], 0.0
		for h := range least {
			f := rapid.SampledFrom([]float64{0, 0.25, 0.5, 1, 1.0 / 3}).Draw(t, "share")
			if f == 0 || sum+f > 1 {
				continue
			}
			w.Parts = append(w.Parts, policy.Part{Host: h, Share: f})
			least[h] += f * float64(w.Min)
			sum += f
		}
	}
	for h, units := range least {
		p.Hosts = append(p.Hosts, policy.Host{Name: fmt.Sprint("h", h), Units: units + float64(rapid.IntRange(0, 12).Draw(t, "host"))/3})
	}
	return p
}

// certain removes the bands from the curves of a problem.
func certain(p *policy.Problem) *policy.Problem {
	for _, w := range p.Workloads {
		if w.Curve == nil {
			continue
		}
		for i := range w.Curve.Knots {
			k := &w.Curve.Knots[i]
			k.Lower, k.Upper = k.Mean, k.Mean
		}
	}
	return p
}

// copyOf returns a copy of a problem whose workloads may be changed.
func copyOf(p *policy.Problem) *policy.Problem {
	out := *p
	out.Workloads = slices.Clone(p.Workloads)
	return &out
}

// text is all of a problem but its functions.
func text(p *policy.Problem) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%d of %v, groups %+v, hosts %+v\n", p.Units, p.Unit, p.Groups, p.Hosts)
	for _, w := range p.Workloads {
		if w.Curve != nil {
			fmt.Fprintf(&out, "%+v ", *w.Curve)
		}
		w.Curve, w.Utility, w.Worth = nil, nil, nil
		fmt.Fprintf(&out, "%+v\n", w)
	}
	return out.String()
}
