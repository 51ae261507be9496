package probe_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/probe"
)

// calm is an account that has met its SLO for long.
func calm() probe.Account { return probe.Account{Met: 50} }

// candidate could save ten units at a risk of one in four.
func candidate() probe.Candidate {
	return probe.Candidate{Aim: 20, To: 10, SLO: 0.9, Account: calm(), Band: trimtab.Band{Lower: 0.85, Mean: 0.95, Upper: 1.05}}
}

func TestATrialNeedsIdleCapacityAndErrorBudget(t *testing.T) {
	c := probe.Config{Share: 0.2}
	for name, change := range map[string]func(x *probe.Candidate, idle *int, c *probe.Config){
		"less idle capacity than it frees": func(_ *probe.Candidate, idle *int, _ *probe.Config) { *idle = 9 },
		"no share of the budget":           func(_ *probe.Candidate, _ *int, c *probe.Config) { c.Share = 0 },
		"trials have used their share":     func(x *probe.Candidate, _ *int, _ *probe.Config) { x.Account.Tried = 0.9 },
		"misses have used the budget":      func(x *probe.Candidate, _ *int, _ *probe.Config) { x.Account.Missed = 4.9 },
		"the budget burns":                 func(x *probe.Candidate, _ *int, _ *probe.Config) { x.Account.Met = 2 },
		"certain to miss":                  func(x *probe.Candidate, _ *int, _ *probe.Config) { x.Band.Upper = 0.89 },
		"nothing to learn":                 func(x *probe.Candidate, _ *int, _ *probe.Config) { x.Band.Lower = 0.9 },
		"nothing to save":                  func(x *probe.Candidate, _ *int, _ *probe.Config) { x.To = 20 },
	} {
		x, idle, cfg := candidate(), 10, c
		if at, risk := cfg.Choose(idle, []probe.Candidate{x}); at != 0 || math.Abs(risk-0.25) > 1e-9 {
			t.Fatalf("the trial itself: %d at risk %v", at, risk)
		}
		change(&x, &idle, &cfg)
		if at, _ := cfg.Choose(idle, []probe.Candidate{x}); at >= 0 {
			t.Errorf("tried although: %s", name)
		}
	}
}

func TestTheMostThatIsLikelySavedIsTried(t *testing.T) {
	small, risky := candidate(), candidate()
	small.To = 15
	risky.Band.Lower = 0
	if at, _ := (probe.Config{Share: 0.2}).Choose(100, []probe.Candidate{small, risky, candidate()}); at != 2 {
		t.Errorf("tried %d", at)
	}
}

// A trial a round as long as one is allowed, each of which misses, by bad luck:
// the misses of any window stay within the budget, and trials within their
// share of it.
func TestTrialsStopBeforeTheBudgetIsUsed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := probe.Config{Share: rapid.Float64Range(0.01, 1).Draw(t, "share")}
		a, misses := probe.Account{}, make([]int, 0, 500)
		for range 500 {
			x := candidate()
			x.Band.Lower = rapid.Float64Range(0.01, 0.89).Draw(t, "lower")
			x.Account = a
			at, risk := c.Choose(100, []probe.Candidate{x})
			if at >= 0 {
				a = a.Charge(risk)
			}
			if a.Tried > c.Share*5+1e-9 {
				t.Fatalf("trials risked %v rounds of %v", a.Tried, c.Share*5)
			}
			a = c.After(a, at >= 0)
			misses = append(misses, 0)
			if at >= 0 {
				misses[len(misses)-1] = 1
			}
			// Of 100 rounds 5 may miss at once, and as many as fade meanwhile.
			sum := 0
			for _, m := range misses[max(0, len(misses)-100):] {
				sum += m
			}
			if sum > 11 {
				t.Fatalf("%d of 100 rounds missed", sum)
			}
			if !a.Valid() || c.Left(a) < 0 || c.Left(a) > 1 {
				t.Fatalf("%+v with %v left", a, c.Left(a))
			}
		}
	})
}
