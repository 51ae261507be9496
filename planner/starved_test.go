package planner_test

import (
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/fair"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/whatif"
)

// starves is an estimate of a workload that uses all that it has and waits, while the spans of the
// few requests that it answers say that all is well with less than it has.
func starves(now time.Time, name string, need float64) *trimtab.Estimate {
	e := asks(now, name, need, 0, 0.993)
	e.Starved = 10
	return e
}

// playStarving has a host carry out what is decided of a, which starves, beside b and c, and
// returns what a had in each round, and what is said of it in the last.
func playStarving(t *testing.T, p policy.Policy, has map[string]float64, tell func(now time.Time, name string) *trimtab.Estimate) (of []float64, why string) {
	t.Helper()
	pl, now, last := served(t, p, has), t0, uint64(0)
	for range 8 {
		now = now.Add(11 * time.Second)
		pl.Step(now, holding(now, 1, last, has))
		var queue []*trimtab.Plan
		for _, name := range []string{"a", "b", "c"} {
			queue = append(queue, plansOf(pl.Step(now, tell(now, name)))...)
		}
		queue = append(queue, plansOf(pl.Step(now, nil))...)
		for len(queue) > 0 {
			plan := queue[0]
			for _, a := range plan.Actions {
				has[a.Workload] = a.Set.Value
				if a.Workload == "a" {
					why = a.Why.Summary
				}
			}
			if u, ok := plan.Unmoved["a"]; ok {
				why = u.Text
			}
			last, queue = plan.Sequence, append(queue[1:], plansOf(pl.Step(now, done(plan, now)))...)
		}
		of = append(of, has["a"])
	}
	return of, why
}

// What is said of one workload in one place does not contradict itself.
func TestWhatIsSaidOfAWorkloadThatStaysDoesNotContradictItself(t *testing.T) {
	never := func(now time.Time, name string, performance float64) *trimtab.Estimate {
		e := asks(now, name, 1, 0, performance)
		for i := range e.Curve.Knots { // none is sure to meet the SLO
			b := &e.Curve.Knots[i].Band
			b.Lower, b.Mean, b.Upper = min(b.Lower, 0.8), min(b.Mean, 0.85), min(b.Upper, 0.89)
		}
		return e
	}
	for name, c := range map[string]struct {
		others    float64
		a         func(now time.Time) *trimtab.Estimate
		want, not []string
	}{
		"it starves, and nobody has more for it": {2.5,
			func(now time.Time) *trimtab.Estimate { return starves(now, "a", 3) },
			[]string{"it has 3 cores, uses all of it and waits"}, []string{"everybody has what it needs", "for its SLO"},
		},
		"it meets its SLO, and by its curve no amount does": {2.4,
			func(now time.Time) *trimtab.Estimate { return never(now, "a", 1) },
			[]string{"how much is sure to meet its SLO is not known yet"}, []string{"no amount is expected"},
		},
		"it misses its SLO, and more does not help": {2.4,
			func(now time.Time) *trimtab.Estimate { return never(now, "a", 0.5) },
			[]string{"misses its SLO"}, []string{"everybody has what it needs"},
		},
		"it needs a little more than it has": {2.2,
			func(now time.Time) *trimtab.Estimate {
				e := asks(now, "a", 3.3, 0, 1)
				e.Backlog = nil
				return e
			},
			[]string{"by its curve it needs 3.3 cores, which is within the noise of its load"}, []string{"; it needs 3.3 cores"},
		},
	} {
		_, why := playStarving(t, fair.NJCPolicy{}, map[string]float64{"a": 3, "b": 2.5, "c": 2.5}, func(now time.Time, workload string) *trimtab.Estimate {
			if workload == "a" {
				return c.a(now)
			}
			return asks(now, workload, c.others, 0, 1)
		})
		for _, want := range c.want {
			if !strings.Contains(why, want) {
				t.Errorf("%s: %q, want %q", name, why, want)
			}
		}
		for _, not := range c.not {
			if strings.Contains(why, not) {
				t.Errorf("%s: %q says %q", name, why, not)
			}
		}
	}
}

// The curve expects 3% of what was measured to be 100%.
func TestAWhatIfExpectsWhatWasMeasuredOfWhatAWorkloadHas(t *testing.T) {
	q := askedPool(fair.NJCPolicy{}, 9, map[string]float64{"a": 60, "b": 60, "c": 60})
	all := 1.
	for _, e := range q.Estimates {
		e.Performance = &all
	}
	got, err := whatif.Answer(q)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range got.Workloads {
		if b := w.Before.Performance; w.Before.Allocation == w.Now && (b == nil || b.Mean != 1 || b.Upper < 1) {
			t.Errorf("%s: expected %+v at the %v that it has, measured 1", w.Workload, b, w.Now)
		}
	}
}
