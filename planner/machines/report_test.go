package machines

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
)

func value(v float64) *float64 { return &v }

// world is three machines with cpu (bounded) and waiting tasks.
type world struct {
	*testing.T
	x *Index[float32]
}

func open(t *testing.T, change func(*Config)) world {
	t.Helper()
	c := Config{
		Dimensions: []Dimension{
			{Name: "cpu", Bounded: true, MaxCapacity: 1024, Threshold: value(0.9), Load: value(1)},
			{Name: "waiting", Queue: value(1)},
		},
		Timeout: 30 * time.Second, SettleAfter: 10 * time.Minute, RatingPeriod: time.Hour,
	}
	if change != nil {
		change(&c)
	}
	x, err := New[float32](c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.SetMachines([]string{"a", "b", "c"}); err != nil {
		t.Fatal(err)
	}
	return world{t, x}
}

func (w world) report(at time.Duration, id string, cpu float64) (int, error) {
	return w.x.Update(start().Add(at), &Report{Machine: id, Time: start().Add(at), Load: []float64{cpu, 1}, Capacity: []float64{16, math.NaN()}, CPI: math.NaN(), MPKI: math.NaN()})
}

// all lets the machines report at this time.
func (w world) all(at time.Duration, ids ...string) {
	w.Helper()
	for _, id := range ids {
		if bad, err := w.report(at, id, 4); err != nil || bad != 0 {
			w.Fatalf("machine %s: %d bad, %v", id, bad, err)
		}
	}
}

// want demands these candidates at this time.
func (w world) want(at time.Duration, ids ...string) []Reason {
	w.Helper()
	r, err := w.x.Filter(start().Add(at), Rule{Limit: 3, Widen: 2}, nil)
	if err != nil {
		w.Fatal(err)
	}
	var got []string
	for _, i := range r.Candidates {
		got = append(got, w.x.IDs()[i])
	}
	if !slices.Equal(got, ids) {
		w.Fatalf("at %v: candidates %q, want %q (reasons %v)", at, got, ids, r.Why)
	}
	return r.Why
}

func TestAMachineThatNeverReportedIsDisconnected(t *testing.T) {
	w := open(t, nil)
	w.all(0, "a", "b")
	if why := w.want(0, "a", "b"); why[2] != Disconnected|Missing {
		t.Fatalf("reason %v", why[2])
	}
}

func TestNonsenseIsMissingAndAMachineWithAMissingLoadIsNoCandidate(t *testing.T) {
	for name, cpu := range map[string]float64{
		"NaN": math.NaN(), "infinite": math.Inf(1), "negative": -1, "over 100%": 16.2, "over the numbers": 1e300,
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t, nil)
			w.all(0, "a", "b", "c")
			bad, err := w.report(time.Second, "b", cpu)
			if err != nil || (bad == 1) == math.IsNaN(cpu) {
				t.Fatalf("%d bad, %v", bad, err)
			}
			if why := w.want(time.Second, "a", "c"); why[1] != Missing {
				t.Fatalf("reason %v", why[1])
			}
			w.all(2*time.Second, "b")
			w.want(2*time.Second, "a", "b", "c")
		})
	}
}

func TestAnIdleMachineIsNoMissingOne(t *testing.T) {
	w := open(t, nil)
	if _, err := w.report(0, "b", 0); err != nil {
		t.Fatal(err)
	}
	w.want(0, "b")
}

func TestMeasurementJustOverTheCapacityIsNoNonsense(t *testing.T) {
	w := open(t, func(c *Config) { c.Dimensions[0].Threshold = nil })
	if bad, err := w.report(0, "b", 16.1); err != nil || bad != 0 {
		t.Fatalf("%d bad, %v", bad, err)
	}
	w.want(0, "b")
}

func TestABoundedValueWithoutACapacityIsMissing(t *testing.T) {
	w := open(t, nil)
	w.all(0, "a")
	bad, err := w.x.Update(start(), &Report{Machine: "b", Time: start(), Load: []float64{4, 1}, Capacity: []float64{math.NaN(), math.NaN()}})
	if err != nil || bad != 1 {
		t.Fatalf("%d bad, %v", bad, err)
	}
	w.want(0, "a")
}

func TestOneMachineCannotHideTheLoadOfTheOthersWithItsCapacity(t *testing.T) {
	w := open(t, nil)
	w.all(0, "a")
	if _, err := w.report(0, "b", 15); err != nil {
		t.Fatal(err)
	}
	w.want(0, "a")
	bad, err := w.x.Update(start(), &Report{Machine: "c", Time: start(), Load: []float64{4, 1}, Capacity: []float64{1e9, math.NaN()}})
	if err != nil || bad != 2 {
		t.Fatalf("%d bad, %v", bad, err)
	}
	w.want(0, "a")
}

func TestTheLargestCapacityLeavesWithItsMachine(t *testing.T) {
	w := open(t, nil)
	w.all(0, "a")
	if _, err := w.x.Update(start(), &Report{Machine: "c", Time: start(), Load: []float64{4, 1}, Capacity: []float64{64, math.NaN()}}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.report(0, "b", 15); err != nil {
		t.Fatal(err)
	}
	w.want(0, "a", "b", "c") // 15 of 64
	if changed, err := w.x.SetMachines([]string{"b", "a"}); err != nil || !changed {
		t.Fatal(changed, err)
	}
	w.want(0, "a") // 15 of 16
}

func TestTheLargestCapacityShrinksWithItsMachine(t *testing.T) {
	w := open(t, nil)
	for at, capacity := range []float64{64, 16} {
		now := start().Add(time.Duration(at) * time.Second)
		if _, err := w.x.Update(now, &Report{Machine: "c", Time: now, Load: []float64{4, 1}, Capacity: []float64{capacity, math.NaN()}}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.report(time.Duration(at)*time.Second, "b", 15); err != nil {
			t.Fatal(err)
		}
		if at == 0 {
			w.want(0, "b", "c") // 15 of 64
		}
	}
	w.want(time.Second, "c") // 15 of 16
}

func TestAReportWhoseTimeGoesBackIsRefusedAndNoSignOfLife(t *testing.T) {
	w := open(t, nil)
	w.all(10*time.Second, "a")
	for _, told := range []time.Duration{10 * time.Second, 9 * time.Second, -time.Hour} {
		arrived := start().Add(35 * time.Second)
		_, err := w.x.Update(arrived, &Report{Machine: "a", Time: start().Add(told), Load: []float64{0, 0}, Capacity: []float64{16, 0}})
		if !errors.Is(err, trimtab.ErrStale) {
			t.Fatalf("time %v: %v", told, err)
		}
	}
	w.want(40*time.Second, "a")
	w.want(41 * time.Second)
}

func TestAMachineWhoseClockWasSetBackComesBackAfterTheTimeout(t *testing.T) {
	w := open(t, func(c *Config) { c.SettleAfter = 0 })
	w.all(0, "a")
	now := start().Add(31 * time.Second)
	if _, err := w.x.Update(now, &Report{Machine: "a", Time: start().Add(-time.Hour), Load: []float64{4, 1}, Capacity: []float64{16, 0}}); err != nil {
		t.Fatal(err)
	}
	w.want(31*time.Second, "a")
}

func TestAClockThatIsAheadKeepsNobodyAlive(t *testing.T) {
	w := open(t, nil)
	if _, err := w.x.Update(start(), &Report{Machine: "a", Time: start().AddDate(100, 0, 0), Load: []float64{4, 1}, Capacity: []float64{16, 0}}); err != nil {
		t.Fatal(err)
	}
	w.want(0, "a")
	w.want(31 * time.Second)
}

func TestTimesThatCannotBeAreRefused(t *testing.T) {
	w := open(t, nil)
	for _, told := range []time.Time{{}, start().AddDate(1000, 0, 0), start().AddDate(-1000, 0, 0)} {
		if _, err := w.x.Update(start(), &Report{Machine: "a", Time: told, Load: []float64{4, 1}, Capacity: []float64{16, 0}}); !errors.Is(err, trimtab.ErrInvalid) {
			t.Fatalf("time %v: %v", told, err)
		}
	}
}

func TestAfterTheAggregatorsClockWasSetBackMachinesMustSpeakAgain(t *testing.T) {
	w := open(t, nil)
	w.all(time.Hour, "a")
	w.want(0)
	w.all(time.Second, "a")
	w.want(time.Second, "a")
}

func TestAFlappingMachineIsNoCandidateUntilItSettled(t *testing.T) {
	w := open(t, func(c *Config) { c.SettleAfter = 2 * time.Minute })
	stay := func(from, to time.Duration) {
		for at := from; at <= to; at += 10 * time.Second {
			w.all(at, "a")
		}
	}
	stay(0, time.Minute)
	w.want(time.Minute, "a")
	stay(3*time.Minute, 4*time.Minute) // lost after one minute
	if why := w.want(4 * time.Minute); why[0] != Unsettled {
		t.Fatalf("reason %v", why[0])
	}
	stay(4*time.Minute+10*time.Second, 5*time.Minute)
	w.want(5*time.Minute, "a")             // two minutes without a gap
	stay(8*time.Minute, 8*time.Minute)     // it had been there for two minutes: no flapping
	w.want(8*time.Minute, "a")             //
	stay(10*time.Minute, 10*time.Minute)   // lost at once
	w.want(10 * time.Minute)               //
	stay(12*time.Minute, 14*time.Minute)   // lost again, then two minutes
	w.want(14*time.Minute, "a")            //
	w.want(14*time.Minute + time.Hour)     // gone
	stay(30*time.Minute, 30*time.Minute)   //
	w.want(30*time.Minute, "a")            // settled before it went
	_ = w.x.Disconnect("a")                //
	_ = w.x.Disconnect("a")                // said twice
	w.want(30 * time.Minute)               //
	stay(31*time.Minute, 31*time.Minute)   //
	w.want(31 * time.Minute)               // it had been there for a moment
	stay(31*time.Minute+1, 33*time.Minute) //
	w.want(33*time.Minute, "a")
}

func TestOfAnUnknownMachineNothingIsKept(t *testing.T) {
	w := open(t, nil)
	if _, err := w.report(0, "stranger", 1); !errors.Is(err, trimtab.ErrInvalid) {
		t.Fatal(err)
	}
	if err := w.x.Disconnect("stranger"); !errors.Is(err, trimtab.ErrInvalid) {
		t.Fatal(err)
	}
	if n := len(w.x.IDs()); n != 3 || len(w.x.columns.cpi) != 3 {
		t.Fatalf("%d machines", n)
	}
}

func TestAReportOfAnotherFormChangesNothing(t *testing.T) {
	w := open(t, nil)
	w.all(0, "a")
	if _, err := w.x.Update(start().Add(time.Minute), &Report{Machine: "a", Time: start().Add(time.Minute), Load: []float64{1}, Capacity: []float64{1}}); !errors.Is(err, trimtab.ErrInvalid) {
		t.Fatal(err)
	}
	w.want(time.Minute)
}

func TestAListThatCannotBeIsRefusedWhole(t *testing.T) {
	w := open(t, nil)
	w.all(0, "a", "b", "c")
	for _, ids := range [][]string{{"a", ""}, {"a", "b", "a"}, {string(make([]byte, MaxName+1))}} {
		if _, err := w.x.SetMachines(ids); !errors.Is(err, trimtab.ErrInvalid) {
			t.Fatalf("%q: %v", ids, err)
		}
	}
	w.want(0, "a", "b", "c")
}

func TestMachinesThatStayKeepWhatIsKnownOfThem(t *testing.T) {
	w := open(t, nil)
	w.all(0, "a", "b", "c")
	if err := w.x.Rate(start(), "job", []Count{{Machine: 0, Tasks: 2}, {Machine: 2, Tasks: 1}}, 8); err != nil {
		t.Fatal(err)
	}
	if _, err := w.x.SetMachines([]string{"c", "new", "b"}); err != nil {
		t.Fatal(err)
	}
	w.want(0, "c", "b")
	if w.x.Score(0) != -1 || w.x.Score(1) != 0 {
		t.Fatalf("scores %d, %d", w.x.Score(0), w.x.Score(1))
	}
	w.x.Forgive(start().Add(time.Hour + 1))
	if w.x.Score(0) != 0 || w.x.Score(1) != 0 || w.x.Score(2) != 0 {
		t.Fatalf("scores %v", w.x.columns.score)
	}
}

func TestARatingCountsOnceHoweverOftenItComes(t *testing.T) {
	w := open(t, nil)
	for _, tasks := range []int{3, 3, 5, 2} {
		if err := w.x.Rate(start(), "job", []Count{{Machine: 1, Tasks: tasks}, {Machine: 0, Tasks: 1}}, 1); err != nil {
			t.Fatal(err)
		}
		if w.x.Score(1) != -int64(tasks) || w.x.Score(0) != 0 {
			t.Fatalf("scores %v after %d tasks", w.x.columns.score, tasks)
		}
	}
	_ = w.x.Rate(start().Add(time.Minute), "other", []Count{{Machine: 1, Tasks: 1 << 40}}, 1)
	w.x.Forgive(start().Add(time.Hour + 1))
	if w.x.Score(1) != -math.MaxUint16 || len(w.x.ratings.at) != 1 {
		t.Fatalf("scores %v", w.x.columns.score)
	}
}

func TestARatingOfUnknownMachinesIsRefused(t *testing.T) {
	w := open(t, nil)
	for _, counts := range [][]Count{{{Machine: 3, Tasks: 1}}, {{Machine: 1, Tasks: 1}, {Machine: 1, Tasks: 1}}, {{Machine: 1, Tasks: -1}}} {
		if err := w.x.Rate(start(), "job", counts, 3); !errors.Is(err, trimtab.ErrInvalid) {
			t.Fatalf("%v: %v", counts, err)
		}
	}
	if len(w.x.ratings.jobs) != 0 {
		t.Fatal("a refused rating is kept")
	}
}

func TestTheBaselinesSelectByOneThingOnly(t *testing.T) {
	w := open(t, nil)
	for i, id := range []string{"a", "b", "c"} {
		cpu, waiting := []float64{16, 1, 8}[i], []float64{0, 9, 5}[i]
		if _, err := w.x.Update(start(), &Report{Machine: id, Time: start(), Load: []float64{cpu, waiting}, Capacity: []float64{16, math.NaN()}}); err != nil {
			t.Fatal(err)
		}
	}
	first := func(p Policy, rng *rand.Rand) uint32 {
		r, err := w.x.Filter(start(), Rule{Policy: p, Limit: 1, Widen: 2}, rng)
		if err != nil || len(r.Candidates) != 1 {
			t.Fatalf("%v: %v, %v", p, r.Candidates, err)
		}
		return r.Candidates[0]
	}
	if got := [3]uint32{first(SLB, nil), first(QLB, nil), first(MMF, nil)}; got != [3]uint32{1, 0, 2} {
		t.Fatalf("SLB, QLB, MMF select %v", got)
	}
	seen, rng := map[uint32]bool{}, rand.New(rand.NewPCG(1, 2))
	for range 100 {
		seen[first(RB, rng)] = true
	}
	if len(seen) != 3 {
		t.Fatalf("RB selects %v", seen)
	}
	if _, err := w.x.Filter(start(), Rule{Policy: RB}, nil); !errors.Is(err, trimtab.ErrInvalid) {
		t.Fatal(err)
	}
}

func TestSettingsThatCannotBeAreRefused(t *testing.T) {
	for _, c := range []Config{{}, {Timeout: 1, SettleAfter: -1}, {Timeout: 1, Dimensions: []Dimension{{Load: value(math.NaN())}}}} {
		if _, err := New[float32](c); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	w := open(t, nil)
	for _, r := range []Rule{{Limit: -1}, {Widen: math.NaN()}, {Widen: -1}, {Policy: 7}, {Mode: -1}, {WorstCPI: -1}} {
		if _, err := w.x.Filter(start(), r, nil); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%+v: %v", r, err)
		}
	}
}
