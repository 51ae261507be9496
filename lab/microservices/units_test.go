package microservices

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
)

func drawProblem(t *rapid.T) *units {
	n := rapid.IntRange(1, 4).Draw(t, "n")
	p := &units{}
	least := 0
	for range n {
		low := rapid.IntRange(0, 3).Draw(t, "min")
		p.Min = append(p.Min, low)
		p.Max = append(p.Max, low+rapid.IntRange(0, 6).Draw(t, "more"))
		least += low
	}
	p.Units = least + rapid.IntRange(0, 8).Draw(t, "units")
	return p
}

// all calls f with every allocation of p.
func all(p *units, f func([]int)) {
	at := make([]int, len(p.Min))
	var place func(i, left int)
	place = func(i, left int) {
		if i == len(at) {
			f(at)
			return
		}
		for u := p.Min[i]; u <= min(p.Max[i], left); u++ {
			at[i] = u
			place(i+1, left-u)
		}
	}
	place(0, p.Units)
}

func inside(t *rapid.T, p *units, units []int) {
	sum := 0
	for i, u := range units {
		if u < p.Min[i] || u > p.Max[i] {
			t.Fatalf("component %d has %d units, bounds %d to %d", i, u, p.Min[i], p.Max[i])
		}
		sum += u
	}
	if sum > p.Units {
		t.Fatalf("%d units of %d", sum, p.Units)
	}
}

func TestASeparableCostIsSolvedExactlyWhateverItsCurves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		costs := map[[2]int]float64{}
		cost := func(i, u int) float64 {
			if _, ok := costs[[2]int{i, u}]; !ok {
				costs[[2]int{i, u}] = rapid.Float64Range(-5, 5).Draw(t, "cost")
			}
			return costs[[2]int{i, u}]
		}
		sum := func(units []int) float64 {
			s := 0.0
			for i, u := range units {
				s += cost(i, u)
			}
			return s
		}
		got, err := p.separable(cost)
		if err != nil {
			t.Fatal(err)
		}
		inside(t, p, got)
		least := math.Inf(1)
		all(p, func(units []int) { least = math.Min(least, sum(units)) })
		if sum(got) > least+1e-9 {
			t.Fatalf("%v costs %v, the least is %v", got, sum(got), least)
		}
	})
}

func TestAscendNeverLeavesTheBoundsNorGetsWorseAndRepeatsItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		target := make([]float64, len(p.Min))
		for i := range target {
			target[i] = rapid.Float64Range(0, 9).Draw(t, "target")
		}
		calls := 0
		cost := func(units []int) float64 {
			calls++
			inside(t, p, units)
			s := 0.0
			for i, u := range units {
				s += (float64(u) - target[i]) * (float64(u) - target[i])
			}
			return s
		}
		budget := rapid.IntRange(0, 300).Draw(t, "budget")
		got := p.ascend(p.Min, cost, budget, rand.New(rand.NewPCG(1, 2)))
		if calls > budget {
			t.Fatalf("%d evaluations of %d", calls, budget)
		}
		if cost(got) > cost(p.Min) {
			t.Fatalf("%v is worse than the start", got)
		}
		if again := p.ascend(p.Min, cost, budget, rand.New(rand.NewPCG(1, 2))); !slices.Equal(again, got) {
			t.Fatalf("%v, then %v", got, again)
		}
		if budget < 300 {
			return
		}
		all(p, func(units []int) {
			if d := distance(units, got); d <= 2 && sumOf(units) == sumOf(got) && cost(units) < cost(got)-1e-9 {
				t.Fatalf("%v is one exchange from %v and better", units, got)
			}
		})
	})
}

func distance(a, b []int) (d int) {
	for i := range a {
		d += max(a[i]-b[i], b[i]-a[i])
	}
	return d
}

func sumOf(a []int) (s int) {
	for _, u := range a {
		s += u
	}
	return s
}

func TestMalformedProblemsAreNamed(t *testing.T) {
	good := func() *units {
		return &units{Units: 4, Min: []int{1, 1}, Max: []int{3, 3}}
	}
	for name, c := range map[string]struct {
		spoil func(*units)
		want  error
	}{
		"no component":        {func(p *units) { p.Min = nil }, trimtab.ErrInvalid},
		"a maximum is absent": {func(p *units) { p.Max = p.Max[:1] }, trimtab.ErrInvalid},
		"max below min":       {func(p *units) { p.Max[0] = 0 }, trimtab.ErrInvalid},
		"negative":            {func(p *units) { p.Min[0] = -1 }, trimtab.ErrInvalid},
		"too many units":      {func(p *units) { p.Units = 1 << 30 }, trimtab.ErrInvalid},
		"the minimums exceed": {func(p *units) { p.Units = 1 }, trimtab.ErrInfeasible},
	} {
		p := good()
		c.spoil(p)
		if _, err := p.separable(func(int, int) float64 { return 0 }); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
