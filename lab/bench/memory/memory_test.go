package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab/internal/num"
	"github.com/trimtab/trimtab/lab/bench/rig"
	"github.com/trimtab/trimtab/pipeline"
)

// used is a day in which a service used so many MiB, read twice a second.
func used(of func(second float64) float64) (out []reading) {
	for at := time.Duration(0); at <= 40*time.Second; at += 500 * time.Millisecond {
		v := of(at.Seconds()) * mib
		out = append(out, reading{at, rig.MemoryUse{Usage: v + mib, Working: v}})
	}
	return out
}

func flat(float64) float64 { return 400 }

func TestADayGoesUpAndDownWithItsSteps(t *testing.T) {
	c := day(100 * time.Second)
	for at, want := range map[time.Duration]float64{0: 0.3, 50 * time.Second: 0.8, 30 * time.Second: 0.9, 65 * time.Second: 1, 100 * time.Second: 0.3} {
		if got := c.level(at); math.Abs(got-want) > 1e-9 {
			t.Errorf("at %v: %v, want %v", at, got, want)
		}
	}
	w := worst(100 * time.Second)
	if w.Length != 55*time.Second || w.level(0) != c.level(20*time.Second) || w.level(45*time.Second) != 1 {
		t.Errorf("the worst part: %+v", w)
	}
	a, again, other := c.arrivals(50, 1, 2), c.arrivals(50, 1, 2), c.arrivals(50, 1, 3)
	if len(a) != len(again) || a[len(a)/2] != again[len(a)/2] || a[0] == other[0] {
		t.Error("the same seed must give the same requests, another stream others")
	}
	high := 0
	for _, r := range a {
		if r.At >= 60*time.Second && r.At < 72*time.Second {
			high++
		}
		if r.At >= c.Length || r.User < 0 || r.User >= users {
			t.Fatalf("%+v", r)
		}
	}
	if math.Abs(float64(high)-600) > 100 {
		t.Errorf("%d requests in the step, want about 600", high)
	}
}

func TestADayIsStretchedTo24HoursAndRepeated(t *testing.T) {
	end := time.Unix(1e9, 0)
	out := stretch([][]reading{used(flat), used(func(float64) float64 { return 300 })}, 3, end)
	if n := len(out); n != 3*81 || out[n-1].at != end || end.Sub(out[0].at) != 3*24*time.Hour || out[0].bytes != 400*mib || out[81].bytes != 300*mib || out[n-1].bytes != 400*mib {
		t.Errorf("%d readings from %+v to %+v", n, out[0], out[n-1])
	}
}

func TestTheRulesAskForWhatTheirWordsSay(t *testing.T) {
	days := [][]reading{used(flat)}
	if v := vpa(days) / mib; v < 1.15*400 || v > 1.15*1.07*400 {
		t.Errorf("VPA asks for %v", v)
	}
	if v := need(days) / mib; math.Abs(v-400) > 1 {
		t.Errorf("the need is %v", v)
	}
	if v := peak([][]reading{used(flat), used(func(s float64) float64 { return 10 * s })}) / mib; v != 400 {
		t.Errorf("the peak is %v", v)
	}
}

// trimtab follows the hours of a day, VPA has one limit for all of them.
func TestTheReplayJudgesEachReadingByTheLimitSetBeforeIt(t *testing.T) {
	wave := used(func(s float64) float64 { return 400 + 200*math.Sin(2*math.Pi*s/40) })
	other, ours := replay([][]reading{wave})
	if other.Given < 1.15*600*mib || ours.Given > 0.85*other.Given || ours.Given < 400*mib || other.Overruns+ours.Overruns != 0 {
		t.Errorf("VPA %+v, trimtab %+v", other, ours)
	}
}

func TestAScoreIsOfWhatWasAskedAndOfWhatWasGiven(t *testing.T) {
	s := seen{
		Outcomes: []outcome{{OK: true, Took: time.Millisecond}, {OK: true, Took: time.Second}, {Took: time.Millisecond}, {OK: true, Took: 2 * time.Millisecond}},
		Readings: []reading{{0, rig.MemoryUse{Usage: 100, Working: 80, Kills: 1, Met: 2, Refaults: 3}}, {1, rig.MemoryUse{Usage: 100, Working: 90, Limit: 300, Kills: 2, Met: 5, Refaults: 10}}},
	}
	want := figures{Given: 200, Working: 85, Peak: 90, InTime: 0.5, P99: 1, Kills: 1, Met: 3, Refaults: 7}
	if got := score(s, 200*time.Millisecond); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := score(seen{}, time.Second); got.InTime != 0 || got.Given != 0 {
		t.Errorf("of nothing: %+v", got)
	}
}

func TestTheStateOfAWorkloadGetsTheLearnerAndKeepsTheRest(t *testing.T) {
	state, err := num.Seal(learnKind, map[string]any{"workload": "redis", "closed": 7, "memory": []map[string]any{{"host": "h", "limit": 5, "use": 1}}})
	if err != nil {
		t.Fatal(err)
	}
	end := time.Unix(1e9, 0).UTC()
	raw, err := taught(pipeline.Seal(state), learnt([][]reading{used(flat)}, end))
	if err != nil {
		t.Fatal(err)
	}
	if state, err = pipeline.Unseal(raw); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Workload string
		Closed   int
		Memory   []struct {
			Host       string
			Limit, Use float64
			Last       time.Time
		}
	}
	if err := num.Unseal(learnKind, state, &got); err != nil || got.Workload != "redis" || got.Closed != 7 || len(got.Memory) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	if m := got.Memory[0]; m.Host != "h" || m.Limit != 5 || m.Use != 400*mib || !m.Last.Equal(end) {
		t.Errorf("%+v", m)
	}
	none, _ := num.Seal(learnKind, map[string]json.RawMessage{"memory": []byte("[]")})
	if _, err := taught(pipeline.Seal(none), learnt([][]reading{used(flat)}, end)); !errors.Is(err, errUnstored) {
		t.Errorf("without an instance: %v", err)
	}
}

// played is a run of one service with these limits in MiB.
func played(limits map[string]float64) *result {
	r := &result{services: []*service{{kind: kind{name: "redis"}}}, Days: map[string][][]reading{"redis": {used(flat)}}}
	for _, name := range []string{rowKernel, rowUntouched, rowThumb, rowVPA, rowTrimtab} {
		r.Rows = append(r.Rows, row{Name: name, Services: []figures{{Given: limits[name] * mib, InTime: 1, P99: 0.02}}})
	}
	r.Sweep = []found{{Least: 100 * mib, Broken: 97 * mib, Need: 105 * mib, Why: "1 kills"}}
	return r
}

func TestTheVerdictSaysWhatIsReachedAndWhoIsCheapest(t *testing.T) {
	for _, c := range []struct {
		ours, killed, late float64
		want               []string
	}{
		{84, 0, 0.1, []string{"NOT reached  memory given: 58% less than untouched, asked 25% at the SLO; least in time 90.0%"}},
		{84, 0, 0, []string{"reached      memory given: 58% less than untouched", "reached      memory given: 16% less than VPA", "no more kills than untouched: trimtab (84 MiB", "+5% from the sweep"}},
		{90, 0, 0, []string{"NOT reached  memory given: 10% less than VPA", "no more kills than untouched: trimtab"}},
		{84, 1, 0, []string{"NOT reached  memory given: 58% less than untouched", "no more kills than untouched: VPA"}},
		{120, 0, 0, []string{"NOT reached  memory given: 20% more than VPA", "no more kills than untouched: VPA"}},
	} {
		r := played(map[string]float64{rowKernel: 70, rowUntouched: 200, rowThumb: 150, rowVPA: 100, rowTrimtab: c.ours})
		r.Rows[4].Services[0].Kills, r.Rows[4].Services[0].InTime = c.killed, 1-c.late
		var b bytes.Buffer
		if err := r.text(&b); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(b.String(), want) {
				t.Errorf("no %q in:\n%s", want, b.String())
			}
		}
	}
}

func TestATrialIsJudgedByWhatTheObserverSaw(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(1e9, 0).Add(time.Duration(ms) * time.Millisecond) }
	for _, c := range []struct {
		w    watch
		want string
	}{
		{watch{step: at(0), pressed: at(900), raised: at(2400), first: 10, last: 12}, "1 with a larger limit, 1 short of memory, from that to the larger limit 1.50 s"},
		{watch{step: at(0), pressed: at(900), first: 10, last: 10}, "1 short of memory, 1 of them without a larger limit"},
		{watch{step: at(0), raised: at(500), first: 10, last: 12}, "1 with a larger limit, 0 short of memory"},
	} {
		var x trial
		c.w.judge(&x)
		if got := brief([]trial{x}); !strings.Contains(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	r := &result{Trials: []trial{{To: 1.4, Short: true, Raised: 1, Pressed: 3 * time.Second}, {To: 1.2, Kills: 1}, {To: 0.9}}}
	if got := strings.Join(r.ofTrials(), "\n"); !strings.Contains(got, "NOT reached  1 kills in 3 trials, asked 0 in 200; 0 in the 1 with a load not above") || !strings.Contains(got, "NOT reached  from pressure to a larger limit: at most 3.00 s, asked 2s; later, or never, in 1 trials") {
		t.Error(got)
	}
}

func TestFlagsOutOfRangeAreRefused(t *testing.T) {
	for _, args := range []string{"--service mysql", "--part all", "--day 1s", "--rate 0", "--trials -1", "--within 5s", "more"} {
		if _, err := parse(strings.Fields(args)); err == nil {
			t.Errorf("%s is taken", args)
		}
	}
	if o, err := parse(nil); err != nil || len(o.Services) != 5 || len(o.Parts) != 3 {
		t.Errorf("%+v, %v", o, err)
	}
}
