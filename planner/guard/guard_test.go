package guard

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab/internal/trial"
)

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// hostile draws wishes as no sound policy has them.
func hostile(t *rapid.T) Round {
	n := rapid.IntRange(1, 12).Draw(t, "workloads")
	r := Round{Now: t0, Unit: 0.1, Capacity: 10}
	r.Spare = r.Capacity
	value := rapid.OneOf(rapid.Float64Range(0, 10), rapid.SampledFrom([]float64{0, math.NaN(), math.Inf(1), math.Inf(-1), -5, 1e300}))
	for i := range n {
		w := Workload{Name: fmt.Sprintf("w%02d", i), Now: float64(rapid.IntRange(0, 100/n).Draw(t, "now")) / 10}
		w.Want, w.Target = value.Draw(t, "want"), value.Draw(t, "target")
		if rapid.Bool().Draw(t, "near") {
			w.Want = w.Now + rapid.Float64Range(-1, 1).Draw(t, "by")
			w.Target = w.Want
		}
		w.Fresh, w.Missing, w.Meets = rapid.Bool().Draw(t, "fresh"), rapid.Bool().Draw(t, "missing"), rapid.Bool().Draw(t, "meets")
		w.Last = Move{Direction: rapid.IntRange(-1, 1).Draw(t, "direction"), At: t0.Add(-time.Duration(rapid.IntRange(0, 600).Draw(t, "ago")) * time.Second)}
		if rapid.Bool().Draw(t, "reversed") {
			w.Last.Reversed = w.Last.At
		}
		w.Advice = rapid.IntRange(0, 3).Draw(t, "advice") == 0
		r.Spare -= w.Now
		r.Workloads = append(r.Workloads, w)
	}
	return r
}

// R12: at most -20% per step and 25% of the targets per round, at most a
// quarter of the capacity moved; nothing without proof; never over capacity.
func TestABlastIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := hostile(t)
		grants := Config{}.Apply(r)
		var lowered, targets [2]int
		var freed [2]float64
		sum := 0.0
		for i, g := range grants {
			w := r.Workloads[i]
			s := side(&w)
			targets[s]++
			if math.IsNaN(g.Set) || math.IsInf(g.Set, 0) || g.Set < 0 {
				t.Fatalf("%s is set to %v", w.Name, g.Set)
			}
			if g.Set < w.Now {
				lowered[s]++
				freed[s] += w.Now - g.Set
				if !w.Fresh {
					t.Fatalf("%s is lowered without proof", w.Name)
				}
				if g.Set < 0.8*w.Now-1e-9 {
					t.Fatalf("%s falls from %v to %v", w.Name, w.Now, g.Set)
				}
			}
			if g.Set > w.Now && g.Set > w.Want+1e-9 || g.Set < w.Now && g.Set < w.Want-1e-9 {
				t.Fatalf("%s goes from %v to %v, beyond the wish of %v", w.Name, w.Now, g.Set, w.Want)
			}
			sum += g.Set
		}
		for s := range lowered {
			if lowered[s] > max(1, targets[s]/4) {
				t.Fatalf("%d of %d lowered", lowered[s], targets[s])
			}
			if freed[s] > 0.25*r.Capacity+1e-9 {
				t.Fatalf("%v of %v moved", freed[s], r.Capacity)
			}
		}
		if sum > r.Capacity+1e-9 {
			t.Fatalf("%v granted of %v", sum, r.Capacity)
		}
	})
}

// R12: everybody's demand is gone at once, and stays so.
func TestADemandThatDropsToNothingLowersAFewALittleEachRound(t *testing.T) {
	const n = 40
	now, moves := make([]float64, n), make([]Move, n)
	for i := range now {
		now[i] = 2
	}
	for round := range 1000 {
		at, sum := t0.Add(time.Duration(round)*30*time.Second), 0.0
		r := Round{Now: at, Unit: 0.01, Capacity: 2 * n}
		for i := range now {
			sum += now[i]
			r.Workloads = append(r.Workloads, Workload{Name: fmt.Sprint("w", i), Now: now[i], Fresh: true, Last: moves[i]})
		}
		r.Spare = r.Capacity - sum
		lowered := 0
		for i, g := range (Config{}).Apply(r) {
			if g.Set < 0.8*now[i]-1e-9 || g.Set > now[i] {
				t.Fatalf("round %d: w%d goes from %v to %v", round, i, now[i], g.Set)
			}
			if g.Set < now[i] {
				lowered++
				moves[i] = moves[i].Then(-1, at)
			}
			now[i] = g.Set
		}
		if lowered > n/4 {
			t.Fatalf("round %d: %d of %d lowered", round, lowered, n)
		}
	}
	if least := slices.Max(now); least > 0.1 {
		t.Errorf("after 1000 rounds somebody still has %v", least)
	}
}

// alone applies the guard to one workload in a pool with room.
func alone(c Config, w Workload) Grant {
	return c.Apply(Round{Now: t0, Unit: 0.1, Capacity: 100, Spare: 90, Workloads: []Workload{w}})[0]
}

func TestGuardedSteps(t *testing.T) {
	ago := func(s int) time.Time { return t0.Add(-time.Duration(s) * time.Second) }
	for name, c := range map[string]struct {
		w       Workload
		want    float64
		binding string
	}{
		"a rise into spare capacity is free":        {Workload{Now: 2, Target: 9, Want: 9}, 9, ""},
		"a fall needs a fresh estimate":             {Workload{Now: 2, Target: 1, Want: 1}, 2, "fresh"},
		"a fall is a fifth at most":                 {Workload{Now: 2, Target: 1, Want: 1, Fresh: true}, 1.6, "20%"},
		"a fall inside the band is none":            {Workload{Now: 2, Target: 1.85, Want: 1.85, Fresh: true}, 2, "within"},
		"a rise inside the band is none":            {Workload{Now: 2, Target: 2.1, Want: 2.1, Missing: true}, 2, "within"},
		"unless an objective weighed it":            {Workload{Now: 2, Target: 2.1, Want: 2.1, Weighed: true}, 2.1, ""},
		"which also moves nobody by half a percent": {Workload{Now: 20.1, Target: 20, Want: 20, Fresh: true, Weighed: true}, 20.1, "within 0.5%"},
		"unless it is needed and enough":            {Workload{Now: 2, Target: 2.1, Want: 2.1, Missing: true, Meets: true}, 2.1, ""},
		"a small step to a far target is no noise":  {Workload{Now: 2, Target: 1, Want: 1.9, Fresh: true}, 1.9, ""},
		"a fall waits after a rise":                 {Workload{Now: 2, Target: 1, Want: 1.9, Fresh: true, Last: Move{1, ago(299), time.Time{}}}, 2, "reversal"},
		"for one window":                            {Workload{Now: 2, Target: 1, Want: 1.9, Fresh: true, Last: Move{1, ago(300), time.Time{}}}, 1.9, ""},
		"a rise after a fall is one reversal":       {Workload{Now: 2, Target: 3, Want: 3, Last: Move{-1, ago(1), time.Time{}}}, 3, ""},
		"a second reversal waits":                   {Workload{Now: 2, Target: 3, Want: 3, Last: Move{-1, ago(1), ago(100)}}, 2, "reversal"},
		"unless the SLO is missed":                  {Workload{Now: 2, Target: 3, Want: 3, Missing: true, Last: Move{-1, ago(1), ago(100)}}, 3, ""},
		"a clock that was set back is no window":    {Workload{Now: 2, Target: 1, Want: 1.9, Fresh: true, Last: Move{1, ago(-1e6), ago(-1e6)}}, 1.9, ""},
		"a fall below one unit is none":             {Workload{Now: 0.4, Target: 0, Want: 0, Fresh: true}, 0.4, "20%"},
	} {
		t.Run(name, func(t *testing.T) {
			g := alone(Config{}, c.w)
			if math.Abs(g.Set-c.want) > 1e-9 || !strings.Contains(g.Binding.String(), c.binding) || c.binding == "" && g.Binding.Kind != "" {
				t.Errorf("got %v (%q), want %v (%q)", g.Set, g.Binding, c.want, c.binding)
			}
		})
	}
}

func TestANeededRiseIsPaidForInsideTheBand(t *testing.T) {
	r := Round{Now: t0, Unit: 0.1, Capacity: 4, Workloads: []Workload{
		{Name: "a", Now: 2, Target: 1.9, Want: 1.9, Fresh: true},
		{Name: "b", Now: 2, Target: 2.1, Want: 2.1, Fresh: true, Missing: true, Meets: true},
	}}
	g := Config{}.Apply(r)
	if math.Abs(g[0].Set-1.9) > 1e-9 || math.Abs(g[1].Set-2.1) > 1e-9 {
		t.Errorf("grants: %+v", g)
	}
	r.Workloads[1].Meets = false
	if g := (Config{}).Apply(r); g[0].Set != 2 || g[1].Set != 2 {
		t.Errorf("noise moves: %+v", g)
	}
}

func TestCapacityIsMetInsideTheBand(t *testing.T) {
	r := Round{Now: t0, Unit: 0.1, Capacity: 4, Spare: -0.1, Workloads: []Workload{
		{Name: "a", Now: 2.05, Target: 2, Want: 2, Fresh: true}, {Name: "b", Now: 2.05, Target: 2, Want: 2, Fresh: true}}}
	if g := (Config{Lowered: 1}).Apply(r); g[0].Set != 2 || g[1].Set != 2 {
		t.Errorf("grants: %+v", g)
	}
}

func TestADisabledGuardOnlyKeepsTheCapacity(t *testing.T) {
	r := Round{Now: t0, Unit: 0.1, Capacity: 4, Workloads: []Workload{
		{Name: "a", Now: 3, Target: 0.1, Want: 0.1, Fresh: true}, {Name: "b", Now: 1, Target: 9, Want: 9, Fresh: true}}}
	g := Config{Disabled: true}.Apply(r)
	if math.Abs(g[0].Set-0.1) > 1e-9 || math.Abs(g[1].Set-3.9) > 1e-9 {
		t.Errorf("grants: %+v", g)
	}
}

// R11: 24 h of noise inside +/-10% give no action; a square wave reverses at
// most once in 300 s while no SLO is missed.
func TestNoFlapping(t *testing.T) {
	tr := trial.Start(t, 1)
	r := tr.Rand
	run := func(target func(s int) float64) (actions int, reversals []int) {
		now, m := 5.0, Move{}
		for s := 0; s < 24*3600; s += 10 {
			at := t0.Add(time.Duration(s) * time.Second)
			want := target(s)
			g := Config{}.Apply(Round{Now: at, Unit: 0.01, Capacity: 100, Spare: 100 - now, Workloads: []Workload{
				{Name: "a", Now: now, Target: want, Want: want, Fresh: true, Last: m}}})[0]
			if math.Abs(g.Set-now) < 1e-9 {
				continue
			}
			actions++
			direction := 1
			if g.Set < now {
				direction = -1
			}
			if m.Direction == -direction {
				reversals = append(reversals, s)
			}
			now, m = g.Set, m.Then(direction, at)
		}
		return actions, reversals
	}
	for range tr.N {
		if n, _ := run(func(int) float64 { return 5 * (0.905 + 0.19*r.Float64()) }); n != 0 {
			tr.Failf("%d actions on noise", n)
		}
		tr.Case()
	}
	for _, period := range []int{20, 120, 300, 610, 1800, 7200} {
		_, reversals := run(func(s int) float64 { return 3 + 6*float64(s/(period/2)%2) })
		for i := 1; i < len(reversals); i++ {
			if reversals[i]-reversals[i-1] < 300 {
				t.Errorf("period %d s: reversals at %d and %d s", period, reversals[i-1], reversals[i])
				break
			}
		}
	}
}

func TestSharesNeverExceedRoomOrAsk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		asks := rapid.SliceOf(rapid.Float64Range(0, 5)).Draw(t, "asks")
		room := rapid.Float64Range(-1, 12).Draw(t, "room")
		sum, asked := 0.0, 0.0
		for i, got := range Share(asks, room, 0.1) {
			if got < 0 || got > asks[i] {
				t.Fatalf("got %v of %v", got, asks[i])
			}
			sum += got
			asked += asks[i]
		}
		if sum > max(room, 0)+1e-9 {
			t.Fatalf("%v of %v", sum, room)
		}
		// What is left is less than a unit, or less than a unit is asked of it.
		if left := math.Min(asked, room) - sum; left > 0.1*float64(len(asks)+1) {
			t.Fatalf("%v left of %v for %v", left, room, asks)
		}
	})
}

func TestConfigIsChecked(t *testing.T) {
	for _, c := range []Config{{Fall: 2}, {Fall: -0.1}, {Lowered: math.NaN()}, {Moved: 1.1}, {Band: 1}, {Band: math.NaN()}} {
		if c.Validate() == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
	if d := cmp.Diff(Config{Fall: 0.2, Lowered: 0.25, Moved: 0.25, Band: 0.1, Window: 5 * time.Minute}, Config{}.withDefaults()); d != "" {
		t.Error(d)
	}
}

func TestWhatWasGivenLatelyIsTakenForWhoLacksItBeyondItsNoise(t *testing.T) {
	for _, c := range []struct {
		lack  float64
		ago   time.Duration
		falls bool
	}{
		{0, 10 * time.Second, false},
		{0.5, 10 * time.Second, false},
		{1.5, 10 * time.Second, true},
		{0.5, 200 * time.Second, true},
	} {
		r := Round{Now: t0, Unit: 0.1, Capacity: 10, Workloads: []Workload{
			{Name: "gave", Now: 5, Target: 4, Want: 4, Fresh: true, Meets: true, Safe: 3.5, Last: Move{Direction: 1, At: t0.Add(-c.ago)}},
			{Name: "lacks", Now: 5, Target: 6, Want: 6, Fresh: true, Missing: true, Meets: true, Deficit: c.lack},
		}}
		if got := (Config{}).Apply(r)[0]; (got.Set < 5) != c.falls {
			t.Errorf("a lack of %v standard errors %v after the rise: set to %v (%s)", c.lack, c.ago, got.Set, got.Binding)
		}
	}
}
