package welfare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/policy"
)

// drawProblem draws a problem small enough for search by hand, with plenty of
// ties: plateaus, equal curves, non-monotone bounds, unknown curves.
func drawProblem(t *rapid.T) *policy.Problem {
	n := rapid.IntRange(1, 4).Draw(t, "workloads")
	p := &policy.Problem{Units: rapid.IntRange(0, 9).Draw(t, "units"), Unit: rapid.SampledFrom([]float64{1, 0.1, 0.25}).Draw(t, "unit")}
	least := 0
	for i := range n {
		w := policy.Workload{Name: fmt.Sprint("w", i), Weight: 1, SLO: 0.75}
		w.Min = rapid.IntRange(0, 2).Draw(t, "min")
		if least+w.Min > p.Units {
			w.Min = 0
		}
		least += w.Min
		w.Max = rapid.IntRange(w.Min, 10).Draw(t, "max")
		w.Current = rapid.IntRange(0, 10).Draw(t, "current")
		w.Reports = rapid.SampledFrom([]int{0, 480, 10_000}).Draw(t, "reports")
		w.Utility = rapid.SampledFrom([]func(float64) float64{
			policy.Linear(0.75), policy.Quadratic(0.75), policy.SquareRoot(0.75),
			func(p float64) float64 { return math.Floor(2*p) / 2 },
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
	value := rapid.Custom(func(t *rapid.T) float64 {
		if rapid.Bool().Draw(t, "round") {
			return float64(rapid.IntRange(0, 4).Draw(t, "quarter")) / 4
		}
		return rapid.Float64Range(0, 1).Draw(t, "value")
	})
	for range rapid.IntRange(1, 5).Draw(t, "knots") {
		if rapid.Bool().Draw(t, "whole") {
			at += float64(rapid.IntRange(1, 4).Draw(t, "gap")) * unit
		} else {
			at += rapid.Float64Range(0.05, 4).Draw(t, "gap") * unit
		}
		v := []float64{value.Draw(t, "a"), value.Draw(t, "b"), value.Draw(t, "c")}
		b := trimtab.Band{Lower: min(v[0], v[1], v[2]), Upper: max(v[0], v[1], v[2])}
		b.Mean = v[0] + v[1] + v[2] - b.Lower - b.Upper
		b.Mean = min(max(b.Mean, b.Lower), b.Upper)
		c.Knots = append(c.Knots, trimtab.Knot{Allocation: at, Band: b})
	}
	return c
}

// every calls visit with every allocation of the known workloads, the unknown
// ones held as the solver holds them, in lexical order, greatest first.
func every(s *solver, visit func(units []int)) {
	units := append([]int(nil), s.answer.Units...)
	var walk func(i, left int)
	walk = func(i, left int) {
		if i == len(s.known) {
			visit(units)
			return
		}
		w := &s.problem.Workloads[s.known[i]]
		for k := min(w.Max, left); k >= w.Min; k-- {
			units[s.known[i]] = k
			walk(i+1, left-k)
		}
	}
	walk(0, s.left)
}

// obvious is a utility by the slow and obvious way: at each knot half way between
// the highest up to there and the lowest from there on, lines between, linear to
// 0 below the first knot.
func obvious(w *policy.Workload, unit, optimism float64, k int) float64 {
	a := float64(k) * unit
	mix := func(b trimtab.Band) float64 { return (1-optimism)*b.Mean + optimism*b.Upper }
	fit := trimtab.Curve{Knots: slices.Clone(w.Curve.Knots)}
	for i := range fit.Knots {
		highest, lowest := math.Inf(-1), math.Inf(1)
		for j, k := range w.Curve.Knots {
			if j <= i {
				highest = math.Max(highest, mix(k.Band))
			}
			if j >= i {
				lowest = math.Min(lowest, mix(k.Band))
			}
		}
		fit.Knots[i].Mean = (highest + lowest) / 2
	}
	if first := fit.Knots[0]; a < first.Allocation {
		return w.Utility(first.Mean * a / first.Allocation)
	}
	return w.Utility(fit.Eval(a).Mean)
}

func moved(p *policy.Problem, units []int) (moved, sum int) {
	for j, w := range p.Workloads {
		moved += max(units[j]-w.Current, w.Current-units[j])
		sum += units[j]
	}
	return moved, sum
}

func checkBounds(t *rapid.T, p *policy.Problem, s policy.Solution) {
	sum := 0
	for j, w := range p.Workloads {
		if s.Units[j] < w.Min || s.Units[j] > w.Max {
			t.Fatalf("%s got %d units, bounds %d to %d", w.Name, s.Units[j], w.Min, w.Max)
		}
		if s.Binding[j].Kind == "" {
			t.Fatalf("%s: nothing binds", w.Name)
		}
		sum += s.Units[j]
	}
	if sum > p.Units {
		t.Fatalf("%d units of %d", sum, p.Units)
	}
}

func TestUtilityFollowsTheCurve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		for j := range p.Workloads {
			w := &p.Workloads[j]
			u, ok := utilityOf(w, p.Unit, utilities(0.3))
			for k := 0; ok && k <= 12; k++ {
				want := obvious(w, p.Unit, 0.3, k)
				// A step function may fall on either side of its step.
				if got := float64(u.value(k)) / quantum; math.Abs(got-want) > 1e-7 && math.Abs(got-want) != 0.5 {
					t.Fatalf("%s at %d units: %v, want %v", w.Name, k, got, want)
				}
			}
		}
	})
}

func TestACurveThatFallsIsReadAsTheNearestThatDoesNot(t *testing.T) {
	at := func(a, p float64) trimtab.Knot {
		return trimtab.Knot{Allocation: a, Band: trimtab.Band{Lower: p - 0.02, Mean: p, Upper: p + 0.02}}
	}
	w := policy.Workload{Curve: &trimtab.Curve{Load: 1, Level: 0.9, Knots: []trimtab.Knot{at(1, 0.7), at(2, 0.76), at(4, 0.72), at(6, 0.72), at(7, 0.97)}},
		Utility: func(p float64) float64 { return math.Min(p, 1) }}
	u, _ := utilityOf(&w, 1, utilities(0))
	for k, want := range map[int]float64{1: 0.7, 2: 0.74, 4: 0.74, 6: 0.74, 7: 0.97} {
		if got := float64(u.value(k)) / quantum; math.Abs(got-want) > 1e-9 {
			t.Errorf("%d units are read as %v, want %v", k, got, want)
		}
	}
}

// bySearch returns the best allocation of all: the greatest value by compare,
// then the fewest units moved, when they cost nothing, then the fewest used,
// then most for the first name.
func bySearch[V any](s *solver, value func(units []int) V, compare func(a, b V) int) (best []int, of V) {
	bestMoved, bestSum := 0, 0
	every(s, func(units []int) {
		v := value(units)
		m, sum := moved(s.problem, units)
		c := 1
		if best != nil {
			c = cmp.Or(compare(v, of), bestMoved-m, bestSum-sum)
		}
		if c > 0 {
			best, of, bestMoved, bestSum = slices.Clone(units), v, m, sum
		}
	})
	return best, of
}

// total is the sum of what how reads, less cost for every unit moved.
func total(s *solver, cost int64) func(units []int) int64 {
	return func(units []int) int64 {
		worth := int64(0)
		for _, j := range s.known {
			w := &s.problem.Workloads[j]
			worth += s.of[j].value(units[j]) - cost*int64(max(units[j]-w.Current, w.Current-units[j]))
		}
		return worth
	}
}

// ascending is the utilities of the known workloads, in ascending order.
func ascending(s *solver) func(units []int) []int64 {
	return func(units []int) []int64 {
		var v []int64
		for _, j := range s.known {
			v = append(v, s.of[j].value(units[j]))
		}
		slices.Sort(v)
		return v
	}
}

func solved(t *rapid.T, policy policy.Policy, p *policy.Problem) policy.Solution {
	t.Helper()
	got, err := policy.Solve(p)
	if err != nil {
		t.Fatal(err)
	}
	checkBounds(t, p, got)
	if got.Gap() != 0 {
		t.Fatalf("%s is not proven: value %v, bound %v", policy.Name(), got.Value, got.Bound)
	}
	return got
}

func TestSocialIsTheBestOfAllAllocationsAndTies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		policy := Social{MoveCost: rapid.SampledFrom([]float64{0, 0, 0.01, 1}).Draw(t, "cost")}
		got := solved(t, policy, p)
		s := newSolver(p, policy.reading())
		want, _ := bySearch(s, total(s, unitCost(policy.MoveCost, p)), cmp.Compare[int64])
		if d := gocmp.Diff(want, got.Units); d != "" {
			t.Fatalf("want by search (-), got (+): %s", d)
		}
	})
}

func TestAGainThatIsWorthExactlyWhatItsMovesCostMovesNobody(t *testing.T) {
	flat := func(from float64) *trimtab.Curve {
		return &trimtab.Curve{Load: 1, Level: 0.9, Knots: []trimtab.Knot{{Allocation: from, Band: trimtab.Band{Lower: 1, Mean: 1, Upper: 1}}}}
	}
	// One unit costs 1 * 3 workloads / 6 units. It would have to be moved away
	// from one workload and to another, which gains a utility of 1 by it.
	p := &policy.Problem{Units: 6, Unit: 1}
	for i, w := range []policy.Workload{{Max: 0}, {Max: 1}, {Min: 1, Max: 6, Current: 6}} {
		w.Name, w.Weight, w.SLO, w.Utility, w.Curve = fmt.Sprint("w", i), 1, 0.75, policy.Linear(0.75), flat(1)
		p.Workloads = append(p.Workloads, w)
	}
	got, err := Social{MoveCost: 1}.Solve(p)
	if err != nil {
		t.Fatal(err)
	}
	if d := gocmp.Diff([]int{0, 0, 6}, got.Units); d != "" {
		t.Error(d)
	}
}

func TestNashIsTheBestOfAllAllocationsAndTies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		policy := Nash{MoveCost: rapid.SampledFrom([]float64{0, 0, 0.01, 1}).Draw(t, "cost")}
		got := solved(t, policy, p)
		// By hand: the number of those with any utility, then the sum of logs.
		type welfare struct {
			some int
			logs float64
		}
		how, c := policy.reading(p)
		cost := float64(max(1, int64(float64(unitCost(policy.MoveCost, p))/quantum*math.Log2E*c.steps))) / c.steps
		s, linear := newSolver(p, how), newSolver(p, policy.linear())
		// Less than 2^-40 is no utility, also where it is rounded to that.
		some := func(j, units int) bool { return s.of[j].value(units) > 0 }
		_, want := bySearch(s, func(units []int) (v welfare) {
			for _, j := range s.known {
				w := &p.Workloads[j]
				if some(j, units[j]) {
					v.some++
					v.logs += math.Log2(float64(linear.of[j].value(units[j])) / quantum)
				}
				v.logs -= cost * float64(max(units[j]-w.Current, w.Current-units[j]))
			}
			return v
		}, func(a, b welfare) int { return cmp.Or(cmp.Compare(a.some, b.some), cmp.Compare(a.logs, b.logs)) })
		// Of a utility of a few steps, the logarithm is coarse.
		n, logs, coarse := 0, 0.0, false
		for _, j := range s.known {
			w := &p.Workloads[j]
			if u := linear.of[j].value(got.Units[j]); some(j, got.Units[j]) {
				coarse = coarse || u < 1<<22
				n++
				logs += math.Log2(float64(u) / quantum)
			}
			logs -= cost * float64(max(got.Units[j]-w.Current, w.Current-got.Units[j]))
		}
		if n != want.some || !coarse && math.Abs(logs-want.logs) > 1e-6 {
			t.Fatalf("%v: %d with utility and logs %v, want %d and %v", got.Units, n, logs, want.some, want.logs)
		}
		exact, _ := bySearch(s, total(s, max(1, int64(cost*c.steps))), cmp.Compare[int64])
		if d := gocmp.Diff(exact, got.Units); d != "" {
			t.Fatalf("want by search (-), got (+): %s", d)
		}
	})
}

func TestEgalitarianIsTheLeximinOfAllAllocationsAndTies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		got := solved(t, Egalitarian{}, p)
		s := newSolver(p, Egalitarian{}.reading())
		want, of := bySearch(s, ascending(s), slices.Compare[[]int64])
		if d := gocmp.Diff(want, got.Units); d != "" {
			t.Fatalf("want by search (-), got (+): %s", d)
		}
		if len(of) > 0 && math.Abs(got.Value-float64(of[0])/quantum) > 1e-9 {
			t.Fatalf("value %v, want %v", got.Value, float64(of[0])/quantum)
		}
	})
}

// Without the programme over whole vectors the answer is the same wherever no
// two are stuck at the same utility.
func TestTheClimbIsTheLeximinUnlessSeveralAreStuckTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		s := newSolver(p, utilities(0.1))
		l := newLevels(s)
		l.raise()
		l.climb()
		s.keep(l.need)
		got := ascending(s)(s.answer.Units)
		_, want := bySearch(s, ascending(s), slices.Compare[[]int64])
		if len(want) > 0 && got[0] != want[0] {
			t.Fatalf("the worst has %d, want %d", got[0], want[0])
		}
		if slices.Compare(got, want) > 0 {
			t.Fatalf("%v is better than the best, %v", got, want)
		}
		if !l.chose && slices.Compare(got, want) != 0 {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}

func TestTheOperatorsObjectiveIsTheBestOfAllAllocations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		for j := range p.Workloads {
			w := &p.Workloads[j]
			weight := rapid.Float64Range(0.1, 1).Draw(t, "weight")
			w.Worth = func(v float64) float64 { return weight * w.Utility(v) }
		}
		for _, o := range []Own{{Title: "sum", Scale: 3}, {Title: "min", Least: true, Scale: 3}} {
			got := solved(t, o, p)
			s := newSolver(p, o.reading())
			want, _ := bySearch(s, total(s, unitCost(0, p)), cmp.Compare[int64])
			plain := o.reading()
			plain.holds = false
			worth := total(newSolver(p, plain), 0)(want)
			if o.Least {
				var of []int64
				want, of = bySearch(s, ascending(s), slices.Compare[[]int64])
				worth = append(of, 0)[0]
			}
			if d := gocmp.Diff(want, got.Units); d != "" {
				t.Fatalf("%s: want by search (-), got (+): %s", o.Title, d)
			}
			if math.Abs(got.Value-3*float64(worth)/quantum) > 1e-9 {
				t.Fatalf("%s: value %v, want %v", o.Title, got.Value, 3*float64(worth)/quantum)
			}
		}
	})
}

func TestTooLargeMinimumsAreInfeasible(t *testing.T) {
	p := &policy.Problem{Units: 3, Unit: 1, Workloads: []policy.Workload{{Name: "a", Weight: 1, Min: 4, Max: 5}}}
	for _, policy := range []policy.Policy{Social{}, Egalitarian{}} {
		if _, err := policy.Solve(p); err == nil {
			t.Errorf("%s solved it", policy.Name())
		}
	}
}
