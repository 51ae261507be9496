package prometheus

import (
	"fmt"
	"slices"

	"github.com/trimtab/trimtab"
)

// maxCurves limits the workloads whose curve is exported; rungs is how many points each has:
// enough for a picture.
const (
	maxCurves = 500
	rungs     = 9
)

// curve remembers which series of a workload's curve exist.
type curve struct {
	admitted bool
	names    []string
}

// expected exports the model's expectations: the band at the present allocation and at the solver's
// target, and the mean along the curve.
func (e *Exporter) expected(v *trimtab.Estimate, w *workload) {
	e.band(v, "allocation", v.Allocation)
	var target *float64
	if c := e.newest.Of(v.Workload).First; c != nil {
		target = c.Target
	}
	e.band(v, "target", target)
	if w.curve.names == nil && v.Curve == nil {
		return
	}
	e.rungs(v, w)
}

func (e *Exporter) band(v *trimtab.Estimate, at string, allocation *float64) {
	var lower, mean, upper *float64
	if v.Curve != nil && len(v.Curve.Knots) > 0 && allocation != nil {
		b := v.Curve.Eval(*allocation)
		lower, mean, upper = &b.Lower, &b.Mean, &b.Upper
	}
	e.set("trimtab_workload_expected_performance", lower, v.Workload, at, "lower")
	e.set("trimtab_workload_expected_performance", mean, v.Workload, at, "mean")
	e.set("trimtab_workload_expected_performance", upper, v.Workload, at, "upper")
}

// rungs exports the mean at allocations the same distance apart, from the
// first knot to the last.
func (e *Exporter) rungs(v *trimtab.Estimate, w *workload) {
	var names []string
	if v.Curve != nil && len(v.Curve.Knots) > 1 && e.draws(v.Workload, w) {
		knots := v.Curve.Knots
		from, to := knots[0].Allocation, knots[len(knots)-1].Allocation
		for i := range rungs {
			a := from + (to-from)*float64(i)/(rungs-1)
			name := rungName(a, to)
			names = append(names, name)
			e.metrics.Gauge("trimtab_workload_curve_performance", v.Workload, name).Set(digits(v.Curve.Eval(a).Mean))
		}
	}
	for _, old := range w.curve.names {
		if !slices.Contains(names, old) {
			e.metrics.Forget("trimtab_workload_curve_performance", v.Workload, old)
		}
	}
	w.curve.names = names
}

// rungName prints a with four digits of the greatest allocation, padded so
// that names sort as their numbers do: heat maps order rows by name.
func rungName(a, most float64) string {
	whole := 1
	for limit := 10.0; most >= limit && whole < 20; limit *= 10 {
		whole++
	}
	decimals := max(0, 4-whole)
	if decimals > 0 {
		whole += 1 + decimals
	}
	return fmt.Sprintf("%0*.*f", whole, decimals, a)
}

// draws reports whether the curve of a workload is exported.
func (e *Exporter) draws(name string, w *workload) bool {
	if !w.curve.admitted && !w.inBrief && e.usage.curves < maxCurves {
		w.curve.admitted = true
		e.usage.curves++
		e.count(name, w)
		e.fit()
	}
	return w.curve.admitted
}
