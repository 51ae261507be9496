package prometheus

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/metric"
)

const (
	// maxBytes limits about how many bytes of /metrics the series of workloads and hosts have, so
	// that the whole has at most 5 MB for 10,000 workloads with 20,000 knobs on 1,000 hosts
	// (TestAFleetHasFiveMegabytesOfMetrics).
	maxBytes = 4_600_000
	// value is the length of a value and the text around it.
	value = 12
	// maxSpread is on how many hosts a workload has a series of each.
	maxSpread = 64
)

// brief returns the only metrics that further workloads have once [maxBytes] is reached: those that
// rules and alerts need.
func brief() []string {
	return []string{"trimtab_workload_allocation", "trimtab_workload_held", "trimtab_workload_performance", "trimtab_workload_slo_performance"}
}

// each returns the label values, besides the workload, of one workload's series of a metric.
// Allocations, curves and refused requests are counted elsewhere.
func each(name string) [][]string {
	switch name {
	case "trimtab_workload_expected_performance":
		return pairs([]string{"allocation", "target"}, []string{"lower", "mean", "upper"})
	case "trimtab_workload_decisions_total":
		return pairs([]string{string(trimtab.Act), string(trimtab.Recommend)}, []string{"raise", "lower"})
	case "trimtab_workload_latency_seconds":
		return [][]string{{"50"}, {"95"}, {"99"}}
	case "trimtab_workload_allocation", "trimtab_workload_curve_performance", "trimtab_workload_refused_per_second":
		return nil
	}
	return [][]string{nil}
}

// pairs returns all pairs of elements of two lists.
func pairs(first, second []string) (out [][]string) {
	for _, a := range first {
		for _, b := range second {
			out = append(out, []string{a, b})
		}
	}
	return out
}

// usage counts the bytes and the series in use.
type usage struct {
	bytes, curves int
	// full are the workloads with all series, in the order in which they came; the last is
	// reduced first.
	full []string
	// other are the metrics of a workload that are not in brief.
	other []string
	// of workloads in brief and in full, beside their names: bytes and series.
	briefly, fully size
	// inBrief counts those.
	inBrief int
}

// size is a number of series, and their bytes without the workload's name.
type size struct{ series, bytes int }

func (s *size) add(r *metric.Row, n int) {
	s.series += n
	s.bytes += n * length(r)
}

// length is about how many bytes a series has, without label values but for our own short ones.
func length(r *metric.Row) int {
	n := len(r.Name) + value
	for _, l := range r.Labels {
		n += len(l) + 4
		if l != "workload" {
			n += 8
		}
	}
	return n
}

// measure computes from the table of metrics how much a workload's series use.
func (r *usage) measure() {
	for _, row := range metric.Table() {
		if !strings.HasPrefix(row.Name, "trimtab_workload_") {
			continue
		}
		r.fully.add(&row, len(each(row.Name)))
		if slices.Contains(brief(), row.Name) {
			r.briefly.add(&row, len(each(row.Name)))
			continue
		}
		r.other = append(r.other, row.Name)
	}
}

// of returns about how many bytes a workload's series take.
func (r *usage) of(name string, w *workload) int {
	all := r.briefly
	if !w.inBrief {
		all = r.fully
	}
	if w.curve.admitted {
		all.series, all.bytes = all.series+rungs, all.bytes+rungs*(len("trimtab_workload_curve_performance{workload,allocation}")+value+16)
	}
	n := all.bytes + all.series*len(name)
	for at := range w.byHostResource() {
		n += len("trimtab_workload_allocation{workload,host,resource}") + value + 12 + len(name) + len(at.Host) + len(at.Resource)
	}
	return n
}

// admit adds a new workload. It returns false where its series do not fit though all others are
// reduced.
func (e *Exporter) admit(name string, w *workload) bool {
	r := &e.usage
	if r.other == nil {
		r.measure()
	}
	e.workloads[name] = w
	r.full = append(r.full, name)
	e.count(name, w)
	e.fit()
	if r.bytes <= maxBytes {
		return true
	}
	delete(e.workloads, name)
	r.bytes -= w.counted
	r.inBrief--
	return false
}

// count updates the bytes of a workload.
func (e *Exporter) count(name string, w *workload) {
	now := e.usage.of(name, w)
	e.usage.bytes += now - w.counted
	w.counted = now
}

// fit reduces the last workloads to the series in brief until all fit.
func (e *Exporter) fit() {
	r := &e.usage
	for r.bytes > maxBytes && len(r.full) > 0 {
		last := r.full[len(r.full)-1]
		r.full = r.full[:len(r.full)-1]
		w := e.workloads[last]
		if w.curve.admitted {
			r.curves--
		}
		for _, at := range w.curve.names {
			e.metrics.Forget("trimtab_workload_curve_performance", last, at)
		}
		w.curve, w.inBrief, w.stale = curve{}, true, true
		r.inBrief++
		e.count(last, w)
		for _, name := range r.other {
			for _, labels := range each(name) {
				e.metrics.Forget(name, slices.Concat([]string{last}, labels)...)
			}
		}
	}
	e.metrics.Gauge("trimtab_exporter_brief_workloads").Set(float64(r.inBrief))
}

// readmit gives workloads all series again while they fit: in order of configuration, then by
// name.
func (e *Exporter) readmit(declared []Workload) {
	r := &e.usage
	r.full = r.full[:0]
	listed := map[string]bool{}
	add := func(name string) {
		w := e.workloads[name]
		if w == nil || listed[name] {
			return
		}
		listed[name] = true
		if w.inBrief {
			w.inBrief, w.stale = false, true
			e.count(name, w)
		}
		r.full = append(r.full, name)
	}
	for _, d := range declared {
		add(d.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(e.workloads)) {
		add(name)
	}
	r.inBrief = 0
	e.fit()
}

// leavesOut reports whether a metric is one that the workload among the labels has
// not, being in brief.
func (e *Exporter) leavesOut(name string, labels []string) bool {
	if e.usage.inBrief == 0 || !strings.HasPrefix(name, "trimtab_workload_") {
		return false
	}
	w := e.workloads[labels[0]]
	return w != nil && w.inBrief && !slices.Contains(brief(), name)
}

// digits rounds to six digits, more than is known: the digits of rounding errors would be a fifth
// of the answer. Times keep all.
func digits(v float64) float64 {
	if v == 0 || math.Abs(v) >= 1e6 || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	scale := math.Pow(10, 5-math.Floor(math.Log10(math.Abs(v))))
	if out := math.Round(v*scale) / scale; !math.IsNaN(out) && !math.IsInf(out, 0) {
		return out
	}
	return v
}
