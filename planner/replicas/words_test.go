package replicas

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
)

func TestAFallbackThatLowersOnMissingInputIsRefusedWithTheWordThatIsAccepted(t *testing.T) {
	for _, f := range []Fallback{{3, 4, ""}, {3, 4, Static}, {3, 9, CurrentReplicasIfLower}, {3, 9, ScalingModifiers}} {
		if err := f.Accept(6); !errors.Is(err, trimtab.ErrInvalid) || !strings.Contains(err.Error(), "currentReplicasIfHigher") {
			t.Errorf("%+v: error %v", f, err)
		}
	}
	for _, f := range []Fallback{{3, 6, ""}, {0, 7, Static}, {3, 2, CurrentReplicasIfHigher}, {3, 2, CurrentReplicas}} {
		if err := f.Accept(6); err != nil {
			t.Errorf("%+v: %v", f, err)
		}
	}
	for _, f := range []Fallback{{-1, 6, ""}, {3, -6, Static}, {3, 2, "higher"}} {
		if err := f.Accept(6); err == nil {
			t.Errorf("%+v: no error", f)
		}
	}
}

func TestAFallbackCountsAfterMoreThanItsThresholdOfFailures(t *testing.T) {
	w, s := shop(4, 1, 4), &State{}
	w.Missing, w.Fallback = "spans are gone", &Fallback{FailureThreshold: 2, Replicas: 7, Behavior: CurrentReplicasIfHigher}
	for round, want := range []int{4, 4, 7} {
		if d := w.Decide(noon(), s, endless()); d.Replicas != want {
			t.Errorf("round %d: %+v, want %d", round, d, want)
		}
	}
	w.Missing = ""
	w.Decide(noon(), s, endless())
	w.Missing = "again"
	if d := w.Decide(noon(), s, endless()); d.Replicas != 4 {
		t.Errorf("after a round that was known: %+v, want 4", d)
	}
}

func TestTheBoundOfTheStartTimeHoldsAsOftenAsItSays(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	second := func(v float64) time.Duration { return time.Duration(v * float64(time.Second)) }
	for name, c := range map[string]struct {
		draw func() float64
		q90  float64
	}{
		"uniform":     {func() float64 { return 5 + 55*r.Float64() }, 54.5},
		"exponential": {func() float64 { return 20 * r.ExpFloat64() }, 20 * math.Log(10)},
		"lognormal":   {func() float64 { return 10 * math.Exp(r.NormFloat64()) }, 10 * math.Exp(1.2815515655446004)},
	} {
		for _, n := range []int{22, 30, 60, 128, 300} {
			const trials = 2000
			held := 0
			for range trials {
				s := Startup{Declared: time.Second}
				for range n {
					s.Observe(second(c.draw()))
				}
				if s.Upper() >= second(c.q90) {
					held++
				}
			}
			if share := float64(held) / trials; share < 0.88 { // 0.9 less three standard errors
				t.Errorf("%s, %d starts: the bound holds in %.3f, want 0.9", name, n, share)
			}
		}
	}
}

func TestBeforeEnoughStartsWereSeenTheGreaterOfTheLargestAndWhatWasDeclaredCounts(t *testing.T) {
	s := &Startup{}
	if s.Upper() != DefaultStartup {
		t.Errorf("%v, want %v", s.Upper(), DefaultStartup)
	}
	s.Observe(5 * time.Second)
	if s.Upper() != DefaultStartup {
		t.Errorf("after one: %v, want %v", s.Upper(), DefaultStartup)
	}
	s.Observe(90 * time.Second)
	if s.Upper() != 90*time.Second {
		t.Errorf("%v, want the largest", s.Upper())
	}
	for range 60 {
		s.Observe(5 * time.Second)
	}
	if s.Upper() != 5*time.Second {
		t.Errorf("after 60 of 5 s: %v", s.Upper())
	}
}

func TestAStartThatGoesOnLastsAtLeastAsLongAsItHas(t *testing.T) {
	w, s := shop(3, 1, 3), &State{Startup: Startup{Declared: 10 * time.Second}}
	w.Instances[2].Ready, w.Instances[2].Age = false, 40*time.Second
	if got := w.Upper(s); got != 40*time.Second {
		t.Errorf("%v, want 40 s", got)
	}
	w.Instances[2].Age = time.Hour // it will not start
	if got := w.Upper(s); got != 10*time.Second {
		t.Errorf("%v, want 10 s", got)
	}
}

func TestTheMarginGrowsUntilAsFewMinutesAreMissedAsMayBe(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for name, noise := range map[string]func() float64{
		"normal":      func() float64 { return 0.04 * r.NormFloat64() },
		"exponential": func() float64 { return 0.02 * r.ExpFloat64() },
	} {
		m, missed := &Margin{}, 0
		const minutes = 100_000
		for range minutes {
			late := 1+noise() > m.Add(Need{1, 1}).Round
			if late {
				missed++
			}
			m.Observe(late)
		}
		if share, most := float64(missed)/minutes, missable+mostMargin/marginStep/minutes; share > most {
			t.Errorf("%s: %.5f of the minutes missed, want at most %.5f", name, share, most)
		}
		if m.Share == 0 || m.Share == mostMargin {
			t.Errorf("%s: margin %v", name, m.Share)
		}
	}
}
