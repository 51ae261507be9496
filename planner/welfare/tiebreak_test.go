package welfare

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/policy"
)

// objectives are all that can be secured.
func objectives() []Objective {
	return []Objective{Egalitarian{}, Social{}, Nash{}, Own{Title: "sum", Scale: 1}, Own{Title: "least", Scale: 1, Least: true}}
}

func TestNobodyLosesByWhatIsSecured(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		o := rapid.SampledFrom(objectives()).Draw(t, "objective")
		before, after := solved(t, o, p), solved(t, TieBreak{o}, p)
		s := newSolver(p, o.readingOf(p))
		for _, j := range s.known {
			if u := &s.of[j]; u.value(after.Units[j]) < u.value(before.Units[j]) {
				t.Fatalf("%s: %v is worth less to %d than %v", o.Name(), after.Units, j, before.Units)
			}
		}
	})
}

// The slow way goes through all allocations that are worth as much to
// everybody.
func TestWhatIsLeftOverIsTheLeximinOfWhatIsCertain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		o := rapid.SampledFrom(objectives()).Draw(t, "objective")
		before, after := solved(t, o, p), solved(t, TieBreak{o}, p)
		s := newSolver(p, o.readingOf(p))
		certain := s.readAt(func(b trimtab.Band) float64 { return b.Lower }).of
		sorted := func(units []int) (v []int64) {
			for _, j := range s.known {
				v = append(v, certain[j].value(units[j]))
			}
			slices.Sort(v)
			return v
		}
		var best []int64
		every(s, func(units []int) {
			for _, j := range s.known {
				if s.of[j].value(units[j]) < s.of[j].value(before.Units[j]) {
					return
				}
			}
			if v := sorted(units); slices.Compare(v, best) > 0 {
				best = v
			}
		})
		got, was := sorted(after.Units), sorted(before.Units)
		if slices.Compare(got, was) < 0 {
			t.Fatalf("%v is less certain than %v", after.Units, before.Units)
		}
		if len(best) > 0 && got[0]+worthSecuring < best[0] {
			t.Fatalf("%s: %v secures %d of the least certain, %d can be had", o.Name(), after.Units, got[0], best[0])
		}
	})
}

// twice is a problem of two that meet their objectives on average, with
// room for more: the first is known well, the second badly.
func twice(first, second int) *policy.Problem {
	curve := func(doubt float64) *trimtab.Curve {
		c := &trimtab.Curve{Load: 1, Level: 0.9}
		for a := 1.0; a <= 10; a++ {
			p := min(1, a/4)
			c.Knots = append(c.Knots, trimtab.Knot{Allocation: a, Band: trimtab.Band{Lower: p * min(1, (1-doubt)*(1+doubt*a/5)), Mean: p, Upper: 1}})
		}
		return c
	}
	p := &policy.Problem{Units: 12, Unit: 1}
	for i, doubt := range []float64{0.01, 0.5} {
		w := policy.Workload{Name: string(rune('a' + i)), Weight: 1, SLO: 0.95, Max: 10, Utility: policy.Linear(0.95), Curve: curve(doubt)}
		w.Current = []int{first, second}[i]
		p.Workloads = append(p.Workloads, w)
	}
	return p
}

func TestWhoIsKnownBadlyGetsWhatNobodyNeeds(t *testing.T) {
	for _, o := range objectives() {
		s, err := TieBreak{o}.Solve(twice(8, 4))
		if err != nil {
			t.Fatal(err)
		}
		if s.Units[1] < 7 || s.Units[0] < 4 {
			t.Errorf("%s: %v, want more for the second and enough for the first", o.Name(), s.Units)
		}
	}
}

func TestNobodyIsMovedForALittleCertainty(t *testing.T) {
	for gain, want := range map[float64][]int{0.005: {8, 4}, 0.05: {7, 5}} {
		p := twice(8, 4)
		for i := range p.Workloads[1].Curve.Knots {
			k := &p.Workloads[1].Curve.Knots[i]
			if k.Lower = 0.5; k.Allocation >= 5 {
				k.Lower += gain
			}
			k.Lower = min(k.Lower, k.Mean)
		}
		for _, o := range objectives() {
			s, err := TieBreak{o}.Solve(p)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(s.Units, want) {
				t.Errorf("%s: for %v more in one unit: %v, want %v", o.Name(), gain, s.Units, want)
			}
		}
	}
}

// unknownAbove is a problem of one that was never seen with more than 4 units,
// which are not enough, and of one that holds more than it needs.
func unknownAbove(upper float64) *policy.Problem {
	p := twice(4, 8)
	w := &p.Workloads[0]
	w.Curve = &trimtab.Curve{Load: 1, Level: 0.9}
	for a := 1.0; a <= 10; a++ {
		seen := 0.2 * min(a, 4)
		b := trimtab.Band{Lower: seen - 0.005, Mean: seen, Upper: seen + 0.005}
		if a > 4 {
			b.Upper = upper
		}
		w.Curve.Knots = append(w.Curve.Knots, trimtab.Knot{Allocation: a, Band: b})
	}
	p.Workloads[1].Curve = twice(8, 4).Workloads[0].Curve
	return p
}

func TestWhoFallsShortIsTriedWithWhatNobodyNeeds(t *testing.T) {
	for _, o := range objectives() {
		s, err := TieBreak{o}.Solve(unknownAbove(1))
		if err != nil {
			t.Fatal(err)
		}
		if s.Units[0] < 5 || s.Binding[0].Kind != "left over" {
			t.Errorf("%s: %v %q: 4 units are not enough for the first, and the second needs only 4 of 8", o.Name(), s.Units, s.Binding)
		}
	}
}

func TestWhereMoreWasSeenNotToHelpNobodyIsTriedWithIt(t *testing.T) {
	for _, o := range objectives() {
		s, err := TieBreak{o}.Solve(unknownAbove(0.805))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(s.Units, []int{4, 8}) {
			t.Errorf("%s: %v", o.Name(), s.Units)
		}
	}
}
