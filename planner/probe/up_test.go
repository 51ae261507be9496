package probe_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/probe"
)

// short misses its SLO by .2, and ten units more help with three in four.
func short() probe.Short {
	return probe.Short{Aim: 10, To: 20, SLO: 0.9, Here: trimtab.Band{Lower: 0.65, Mean: 0.7, Upper: 0.75}, There: trimtab.Band{Lower: 0.6, Mean: 0.75, Upper: 1}}
}

func TestATrialUpwardsNeedsAPromiseIdleCapacityAndBudget(t *testing.T) {
	c := probe.Config{Share: 0.2}
	for name, change := range map[string]func(x *probe.Short, idle *int, burning *bool, c *probe.Config){
		"less is idle than it takes":    func(_ *probe.Short, idle *int, _ *bool, _ *probe.Config) { *idle = 9 },
		"no share of the budget":        func(_ *probe.Short, _ *int, _ *bool, c *probe.Config) { c.Share = 0 },
		"trials have used their share":  func(x *probe.Short, _ *int, _ *bool, _ *probe.Config) { x.Account.Tried = 0.9 },
		"somebody else's budget burns":  func(_ *probe.Short, _ *int, burning *bool, _ *probe.Config) { *burning = true },
		"it meets its SLO":              func(x *probe.Short, _ *int, _ *bool, _ *probe.Config) { x.Here.Mean = 0.9 },
		"more promises no more":         func(x *probe.Short, _ *int, _ *bool, _ *probe.Config) { x.There.Upper = 0.7 },
		"it is on such a trial already": func(x *probe.Short, _ *int, _ *bool, _ *probe.Config) { x.Account = x.Account.Raised(1) },
		"it is no more":                 func(x *probe.Short, _ *int, _ *bool, _ *probe.Config) { x.To = 10 },
	} {
		x, idle, burning, cfg := short(), 10, false, c
		if at, risk := cfg.Raise(idle, burning, []probe.Short{x}); at != 0 || math.Abs(risk-0.25) > 1e-9 {
			t.Fatalf("the trial itself: %d at risk %v", at, risk)
		}
		change(&x, &idle, &burning, &cfg)
		if at, _ := cfg.Raise(idle, burning, []probe.Short{x}); at >= 0 {
			t.Errorf("raised although: %s", name)
		}
	}
}

func TestTheGreatestPromiseIsTriedUpwards(t *testing.T) {
	vain, little := short(), short()
	vain.There.Lower = 0
	little.Here.Mean = 0.85
	if at, _ := (probe.Config{Share: 0.2}).Raise(100, false, []probe.Short{vain, little, short()}); at != 2 {
		t.Errorf("raised %d", at)
	}
}

func TestABudgetBurnsAfterAMissWhileSomeOfItIsLeft(t *testing.T) {
	c := probe.Config{Share: 0.2}
	for _, x := range []struct {
		a     probe.Account
		burns bool
	}{
		{probe.Account{}, false},
		{probe.Account{Missed: 1, Met: 0}, true},
		{probe.Account{Missed: 1, Met: 3}, false},
		{probe.Account{Missed: 30, Met: 0}, false},
	} {
		if c.Burns(x.a) != x.burns {
			t.Errorf("%+v burns: %v", x.a, !x.burns)
		}
	}
}

// All trials upwards are in vain: they stop at their share of the budget.
func TestTrialsUpwardsStopAtTheirShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := probe.Config{Share: rapid.Float64Range(0.01, 1).Draw(t, "share")}
		a := probe.Account{}
		for range 300 {
			x := short()
			x.There.Lower = rapid.Float64Range(0, 0.69).Draw(t, "lower")
			x.Account = a
			if at, risk := c.Raise(100, false, []probe.Short{x}); at >= 0 {
				a = a.Charge(risk).Raised(1)
			}
			if a.Tried > c.Share*5+1e-9 || !a.Valid() {
				t.Fatalf("trials risked %v rounds of %v", a.Tried, c.Share*5)
			}
			if a = c.After(a, true); c.Over(a) {
				a = a.Ended()
			}
		}
	})
}
