package baseline

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
)

// two returns a job that misses its SLO and one that more than meets it.
func two() []Job {
	return []Job{
		{Name: "a", Type: "x", Weight: 1, Min: 1, Max: 100, Units: 50, SLO: 0.9, Fraction: true, Performance: 0.5, Load: 10, Utility: 0.5 / 0.9},
		{Name: "b", Type: "x", Weight: 1, Min: 1, Max: 100, Units: 50, SLO: 100, Performance: 200, Load: 10, Utility: 1},
	}
}

func TestRulesDoWhatTheyAreNamedFor(t *testing.T) {
	for name, want := range map[string][2]int{
		"greedy-egalitarian": {51, 49}, // a unit from the better to the worse
		"minerva":            {64, 36}, // 50/(.5/.9) : 50/1 = 90 : 50 of 98 units over the minimum
		"miad":               {51, 49}, // demands 75 and 49, of 100
		"parties":            {55, 45}, // demands 70 and 45
		"hpa":                {50, 50}, // 100 and, for five minutes, still 50
	} {
		rule, err := New(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := rule.Next(100, two())
		if err != nil || got[0] != want[0] || got[1] != want[1] {
			t.Errorf("%s: %v (%v), want %v", name, got, err, want)
		}
	}
}

func TestTheHPARuleComesDownAfterFiveMinutes(t *testing.T) {
	rule, _ := New("hpa")
	var got []int
	for range 4 {
		got, _ = rule.Next(1000, two())
	}
	if got[0] != 100 || got[1] != 25 {
		t.Errorf("%v, want 100 (twice as much, its maximum) and 25 (half)", got)
	}
}

func TestErnestFindsTheDemandOfACurveOfItsForm(t *testing.T) {
	e := &ernest{fits: map[string]*fit{}}
	// 1/p = 0.001 + 0.02 l/a: p = 500 at l/a = 0.05, a = 200 for l = 10.
	want := 0.0
	for a := 50; a <= 150; a += 10 {
		y := 0.001 + 0.02*10/float64(a)
		want = e.demand(&Job{Name: "a", Min: 1, Max: 1000, Units: a, SLO: 500, Performance: 1 / y, Load: 10})
	}
	if math.Abs(want-200) > 2 {
		t.Errorf("demand %v, want 200", want)
	}
}

func TestQuasarTakesOverWhatJobsOfTheSameTypeShowed(t *testing.T) {
	rule, _ := New("quasar")
	job := func(name string, units int, p float64) Job {
		return Job{Name: name, Type: "x", Weight: 1, Min: 1, Max: 1000, Units: units, SLO: 1, Performance: p, Load: 10, Utility: min(1, p)}
	}
	var got []int
	for _, u := range []int{2, 5, 10, 20, 40, 80} {
		got, _ = rule.Next(3000, []Job{job("a", u, math.Min(1, float64(u)/40)), job("b", u, math.Min(1, float64(u)/40)), job("c", 5, 5.0/40)})
	}
	// c was seen at 5 units alone; its fellows need about 40.
	if got[2] < 20 || got[2] > 120 {
		t.Errorf("%v: want about 40 for the third, as its fellows need", got)
	}
}

func TestNoRuleExceedsTheCapacityOrABound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule, err := New(rapid.SampledFrom(Names()).Draw(t, "rule"))
		if err != nil {
			t.Fatal(err)
		}
		units := rapid.IntRange(0, 200).Draw(t, "units")
		n := rapid.IntRange(0, 6).Draw(t, "jobs")
		for range rapid.IntRange(1, 4).Draw(t, "rounds") {
			var jobs []Job
			least := 0
			for i := range n {
				j := Job{Name: string(rune('a' + i)), Type: "x", Weight: rapid.Float64Range(0.1, 5).Draw(t, "weight"),
					Min: rapid.IntRange(0, 3).Draw(t, "min"), SLO: rapid.Float64Range(0.01, 1).Draw(t, "slo"), Fraction: rapid.Bool().Draw(t, "fraction"),
					Performance: rapid.Float64Range(0, 1).Draw(t, "performance"), Load: rapid.Float64Range(0, 50).Draw(t, "load"), Utility: rapid.Float64Range(0, 1).Draw(t, "utility")}
				j.Max = j.Min + rapid.IntRange(0, 100).Draw(t, "room")
				j.Units = rapid.IntRange(0, 120).Draw(t, "has")
				least += j.Min
				jobs = append(jobs, j)
			}
			got, err := rule.Next(units, jobs)
			if least > units {
				if !errors.Is(err, trimtab.ErrInfeasible) {
					t.Fatalf("%s: %v for %d units and minimums of %d", rule.Name(), err, units, least)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", rule.Name(), err)
			}
			sum := 0
			for i, u := range got {
				if u < jobs[i].Min || u > jobs[i].Max {
					t.Fatalf("%s: %d units, bounds %d to %d", rule.Name(), u, jobs[i].Min, jobs[i].Max)
				}
				sum += u
			}
			if sum > units {
				t.Fatalf("%s: %d of %d units", rule.Name(), sum, units)
			}
		}
	})
}

func TestAnUnknownRuleIsAnError(t *testing.T) {
	if _, err := New("minerwa"); !errors.Is(err, trimtab.ErrInvalid) {
		t.Error(err)
	}
}
