package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/dominant"
	"github.com/trimtab/trimtab/planner/fair"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/welfare"
)

var update = flag.Bool("update", false, "rewrite examples and results in the pages")

// objectivesExample is the pool that docs/objectives.md shows: 6 cores in tenths,
// of which each workload has 2. Each needs so many cores for its SLO, and its
// utility is linear up to there.
func objectivesExample() *policy.Problem {
	p := &policy.Problem{Units: 60, Unit: 0.1}
	for _, w := range []struct {
		name  string
		needs int
	}{{"cart", 10}, {"report", 60}, {"search", 30}} {
		p.Workloads = append(p.Workloads, policy.Workload{
			Name: w.name, Weight: 1, Max: 60, Current: 20, Reports: 1000, SLO: 1, Demand: w.needs,
			Curve: &trimtab.Curve{Load: 1, Level: 0.9, Knots: []trimtab.Knot{
				{Allocation: 0, Band: trimtab.Band{}},
				{Allocation: 0.1 * float64(w.needs), Band: trimtab.Band{Lower: 1, Mean: 1, Upper: 1}},
			}},
			Utility: func(performance float64) float64 { return min(1, performance) },
		})
	}
	return p
}

// objectivesTable is what each objective makes of the example.
func objectivesTable(t *testing.T) string {
	t.Helper()
	const weight = 3.0 // of report, in the operator's own objective
	var b strings.Builder
	b.WriteString("| objective | cart | search | report | utility of cart, search, report | mean | least |\n|---|---|---|---|---|---|---|\n")
	for _, o := range []policy.Policy{
		fair.NJCPolicy{}, welfare.Egalitarian{}, welfare.Social{MoveCost: 0.05}, welfare.Nash{MoveCost: 0.05},
		fair.ResourceFair{}, dominant.Policy{}, welfare.Own{Title: "sum(weight * u)", Scale: weight, MoveCost: 0.05},
	} {
		p := objectivesExample()
		if o.Name() == "sum(weight * u)" {
			for i := range p.Workloads {
				w := &p.Workloads[i]
				own := 1.0
				if w.Name == "report" {
					own = weight
				}
				w.Worth = func(performance float64) float64 { return own * min(1, performance) / weight }
			}
		}
		s, err := o.Solve(p)
		if err != nil {
			t.Fatal(err)
		}
		cart, report, search := float64(s.Units[0])/10, float64(s.Units[1])/10, float64(s.Units[2])/10
		uc, ur, us := min(1, cart/1), min(1, report/6), min(1, search/3)
		fmt.Fprintf(&b, "| `%s` | %.1f | %.1f | %.1f | %.2f, %.2f, %.2f | %.2f | %.2f |\n", o.Name(), cart, search, report, uc, us, ur, (uc+us+ur)/3, min(uc, us, ur))
	}
	return b.String()
}

func TestTheTableOfObjectivesIsWhatTheySolve(t *testing.T) {
	const path, begin, end = "../../docs/objectives.md", "<!-- table:objectives -->\n", "<!-- end:objectives -->"
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	table, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", path)
	}
	want := "\n" + objectivesTable(t) + "\n"
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if table != want {
		t.Errorf("%s is not what the objectives solve: run `make generate`\n%s", path, want)
	}
}
