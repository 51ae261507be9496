package analyzer

// counts are totals since the start of the analyzer.
type counts struct {
	sketches, samples, holdings, ignored     uint64
	unknown, empty, misdated, misplaced      uint64
	late, duplicates, overflow, incomplete   uint64
	learned, transient, noPerformance        uint64
	noLoad, noAllocation, refused, estimates uint64
	changes, excused, versions, fixed        uint64
	shared                                   uint64
}

// aside counts a report that the curve did not learn from.
func (c *counts) aside(reason string) {
	switch reason {
	case "transient", "backlog":
		c.transient++
	case "no_performance":
		c.noPerformance++
	case "no_load":
		c.noLoad++
	case "no_allocation":
		c.noAllocation++
	case "other_short":
		c.excused++
	case "fixed_quota":
		c.fixed++
	case "shared":
		c.shared++
	default:
		c.refused++
	}
}

// Counts implements trimtab.Counted.
func (a *Analyzer) Counts(yield func(name string, value float64, labels ...string)) {
	c := &a.counts
	for _, n := range []struct {
		label string
		n     uint64
	}{{"sketch", c.sketches}, {"sample", c.samples}, {"holding", c.holdings}} {
		yield("trimtab_learn_inputs_total", float64(n.n), n.label)
	}
	for _, n := range []struct {
		label string
		n     uint64
	}{
		{"unknown", c.unknown}, {"empty", c.empty}, {"misdated", c.misdated}, {"misplaced", c.misplaced}, {"late", c.late},
		{"duplicate", c.duplicates}, {"overflow", c.overflow}, {"kind", c.ignored},
	} {
		yield("trimtab_learn_inputs_set_aside_total", float64(n.n), n.label)
	}
	yield("trimtab_learn_incomplete_intervals_total", float64(c.incomplete))
	for _, n := range []struct {
		label string
		n     uint64
	}{
		{"learned", c.learned}, {"transient", c.transient}, {"no_performance", c.noPerformance},
		{"no_load", c.noLoad}, {"no_allocation", c.noAllocation}, {"refused", c.refused}, {"other_short", c.excused}, {"fixed_quota", c.fixed}, {"shared", c.shared},
	} {
		yield("trimtab_learn_reports_total", float64(n.n), n.label)
	}
	yield("trimtab_learn_changes_total", float64(c.changes))
	yield("trimtab_learn_versions_total", float64(c.versions))
	yield("trimtab_learn_estimates_total", float64(c.estimates))
	yield("trimtab_learn_workloads", float64(len(a.workloads)))
	held := 0
	for _, w := range a.workloads {
		if w.publishedHold != nil {
			held++
		}
	}
	yield("trimtab_learn_held_workloads", float64(held))
}
