package shortage

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const mib = 1 << 20

// calm is a reading of an instance that uses 50 of 100 MiB and needs nothing.
func calm() Reading {
	return Reading{Name: Name{Workload: "w"}, Use: 50 * mib, Anonymous: 50 * mib, Limit: 100 * mib}
}

func rule() *Rule {
	return &Rule{Margin: func(string) (float64, bool) { return 0.07, true }}
}

// next looks at one more reading, a second after the one before.
func next(r *Rule, second int, s Reading) (to float64, cause Cause) {
	for _, x := range r.Look(time.Duration(second)*time.Second, []Reading{s}) {
		to, cause = x.To, x.Cause
	}
	return to, cause
}

func TestAnInstanceNearItsLimitRisesByAFifthAtTheFirstSignOfShortage(t *testing.T) {
	for want, change := range map[Cause]func(*Reading){
		Pressure: func(s *Reading) { s.Pressure = 0.1 },
		SoftEdge: func(s *Reading) { s.High = 1 },
		AtLimit:  func(s *Reading) { s.Max = 1 },
		"":       func(s *Reading) { s.Pressure = 0.05 },
	} {
		r, s := rule(), calm()
		s.Use, s.Anonymous = 95*mib, 95*mib
		next(r, 0, s)
		change(&s)
		to, cause := next(r, 1, s)
		if cause != want || want != "" && to != 120*mib {
			t.Errorf("%q: %v, %q", want, to/mib, cause)
		}
		s.Use = 50 * mib
		if _, cause := next(rule(), 0, s); cause != "" {
			t.Errorf("%q counts although the use is half of the limit", cause)
		}
	}
}

func TestARiseThatReachesTheLimitWithinFiveSecondsIsAnsweredBefore(t *testing.T) {
	r, s := rule(), calm()
	for i, use := range []float64{50, 52, 60, 70, 80} {
		s.Use = use * mib
		to, cause := next(r, i, s)
		if i < 4 && cause != "" || i == 4 && (cause != Forecast || to < 140*mib*1.07) {
			t.Errorf("at %v MiB: %v, %q", use, to/mib, cause)
		}
	}
}

func TestARiseThatReachesTheNewLimitWithinTheSameSecondIsAnsweredAgain(t *testing.T) {
	r, s := rule(), calm()
	look := func(millis int, use, limit float64) (to float64) {
		s.Use, s.Anonymous, s.Limit, s.Max = use*mib, use*mib, limit*mib, 1
		for _, x := range r.Look(time.Duration(millis)*time.Millisecond, []Reading{s}) {
			to = x.To / mib
		}
		return to
	}
	look(0, 10, 100)
	first := look(500, 60, 100)
	if first < 160 {
		t.Errorf("raised to %v", first)
	}
	for name, got := range map[string]float64{"the raise is not in force": look(510, 100, 100), "it met the old limit": look(520, 95, 200)} {
		if got != 0 {
			t.Errorf("%s: raised to %v", name, got)
		}
	}
	if again := look(530, 120, first); again < 300 {
		t.Errorf("raised again to %v", again)
	}
}

func TestARiseOverAGapSaysNothing(t *testing.T) {
	r, s := rule(), calm()
	next(r, 0, s)
	s.Use = 85 * mib
	if _, cause := next(r, 20, s); cause != "" {
		t.Errorf("%q", cause)
	}
}

func TestPageCacheThatIsNotReadAgainIsNoShortageUnlessTasksWait(t *testing.T) {
	s := calm()
	s.Use, s.Anonymous, s.Max, s.High = 99*mib, 10*mib, 50, 50
	if _, cause := next(rule(), 0, s); cause != "" {
		t.Errorf("%q", cause)
	}
	for want, change := range map[Cause]func(*Reading){Pressure: func(s *Reading) { s.Pressure = 0.5 }, SoftEdge: func(s *Reading) { s.Refaults = 10 }} {
		s := s
		if change(&s); true {
			if _, cause := next(rule(), 0, s); cause != want {
				t.Errorf("%q, want %q", cause, want)
			}
		}
	}
}

func TestTheNextInstanceAfterAKillBeginsWithWhatTheKilledOneAskedFor(t *testing.T) {
	for _, x := range []struct {
		what            string
		failed, before  float64
		swap, want, has float64
	}{
		{"at least a fifth more", 1, 100, 0, 120, 100},
		{"the charges that were refused", 160, 100, 0, 140, 100},
		{"the rise before the kill", 1, 40, 0, 160, 100},
		{"with what was swapped out", 1, 100, 10, 130, 100},
		{"at most twice the limit", 1e6, 0, 500, 200, 100},
		{"an instance that has more keeps it", 1, 100, 0, 0, 300},
	} {
		r, s := rule(), calm()
		s.Use, s.Anonymous = x.before*mib, 100*mib
		s.Refaults, s.Pressure = math.NaN(), math.NaN()
		next(r, 0, s)
		s.Use, s.Max, s.Kills, s.Swap = 100*mib, x.failed, 1, x.swap*mib
		next(r, 1, s)
		fresh := calm()
		fresh.Instance = "next"
		fresh.ID, fresh.Limit = 7, x.has*mib
		to, cause := next(r, 3600, fresh)
		if math.Abs(to-x.want*mib) > 1 || (cause == Killed) != (x.want > 0) {
			t.Errorf("%s: %v MiB, %q", x.what, to/mib, cause)
		}
		if _, again := next(r, 3602, fresh); again != "" {
			t.Errorf("%s: asked twice: %q", x.what, again)
		}
		fresh.ID = 8
		if _, late := next(r, 2*24*3600, fresh); late != "" {
			t.Errorf("%s: after two days: %q", x.what, late)
		}
	}
}

func TestAWorkloadWithoutAMarginIsLeftAlone(t *testing.T) {
	r, s := &Rule{Margin: func(string) (float64, bool) { return 0, false }}, calm()
	s.Use, s.Max, s.Kills = s.Limit, 1, 1
	if _, cause := next(r, 0, s); cause != "" {
		t.Errorf("%q", cause)
	}
}

// Whatever is read, a raise is a finite limit above the limit in force, at most one a second and
// instance besides the one after a kill.
func TestARaiseIsAlwaysFiniteAndAboveTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rule()
		v := rapid.OneOf(rapid.Float64Range(0, 1e12), rapid.Just(math.NaN()), rapid.Just(math.Inf(1)), rapid.Just(-1.0), rapid.Just(math.MaxFloat64))
		for i := range rapid.IntRange(1, 12).Draw(t, "readings") {
			s := Reading{Name: Name{Workload: "w"}, Use: v.Draw(t, "use"), Anonymous: v.Draw(t, "anon"), Swap: v.Draw(t, "swap"), Limit: v.Draw(t, "limit"),
				Pressure: v.Draw(t, "pressure"), Refaults: v.Draw(t, "refaults"), High: v.Draw(t, "high"), Max: v.Draw(t, "max"), Kills: v.Draw(t, "kills")}
			at := time.Duration(i) * time.Second
			for _, x := range r.Look(at, []Reading{s}) {
				if !known(x.To) || !(x.To > s.Limit) || x.Cause == "" {
					t.Fatalf("%+v of %+v", x, s)
				}
			}
			if again := r.Look(at, []Reading{s}); len(again) > 1 || len(again) == 1 && again[0].Cause != Killed {
				t.Fatalf("twice at once: %+v", again)
			}
		}
	})
}
