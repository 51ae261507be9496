package throttle

import (
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// anything is a number, or none.
func anything(t *rapid.T, name string, sane float64) float64 {
	switch rapid.IntRange(0, 11).Draw(t, name+" kind") {
	case 0:
		return math.NaN()
	case 1:
		return rapid.Float64().Draw(t, name)
	case 2:
		return math.Inf(rapid.IntRange(-1, 1).Draw(t, name))
	}
	return sane * rapid.Float64Range(0, 1).Draw(t, name)
}

// hostile draws the next observation: tasks come, go, come twice, numbers are no
// numbers, and the time goes on, stands still, goes back and leaps.
func hostile(t *rapid.T, now time.Time) *Observation {
	switch rapid.IntRange(0, 20).Draw(t, "time") {
	case 0:
		now = now.Add(-time.Duration(rapid.Int64Range(0, 1e13).Draw(t, "back")))
	case 1:
		now = now.Add(time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "ahead")))
	case 2:
	default:
		now = now.Add(time.Duration(rapid.Int64Range(1, 3e9).Draw(t, "step")))
	}
	o := &Observation{Time: now, Mode: rapid.SampledFrom([]Mode{RP, RP, RP, RP, UP, "?"}).Draw(t, "mode"), Cores: rapid.IntRange(-1, 16).Draw(t, "cores")}
	for k := range rapid.SampledFrom([]int{2, 2, 2, 1, 3}).Draw(t, "resources") {
		o.Capacity = append(o.Capacity, anything(t, fmt.Sprint("capacity", k), 64))
	}
	o.Metrics = []float64{anything(t, "metric", 1)}
	for range rapid.IntRange(0, 6).Draw(t, "tasks") {
		id := fmt.Sprint(rapid.IntRange(0, 8).Draw(t, "id"))
		o.Tasks = append(o.Tasks, Task{ID: id, Job: id[:1], Class: rapid.SampledFrom([]Class{First, Second, "?"}).Draw(t, "class"),
			Holds: []float64{anything(t, "cpu", 2), anything(t, "memory", 8)}, Progress: anything(t, "progress", 1), Activity: anything(t, "activity", 1),
			Expires: now.Add(time.Duration(rapid.Int64Range(-1e9, 1e13).Draw(t, "lease")))})
	}
	if rapid.IntRange(0, 9).Draw(t, "revoke") == 0 {
		o.Revoke = []float64{anything(t, "revoke cpu", 2), anything(t, "revoke memory", 4)}
	}
	for range rapid.IntRange(0, 3).Draw(t, "LRAs") {
		l := LRA{Workload: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "LRA"), Cores: anything(t, "requested", 4)}
		for range rapid.IntRange(0, 3).Draw(t, "samples") {
			l.Samples = append(l.Samples, Sample{Signal: rapid.SampledFrom([]string{"cpi", "psi", ""}).Draw(t, "signal"),
				Time: now.Add(-time.Duration(rapid.Int64Range(-1e9, 3e9).Draw(t, "age"))), Length: time.Duration(rapid.Int64Range(-1, 1e9).Draw(t, "length")),
				Value: anything(t, "value", 3), Boundary: anything(t, "boundary", 2), Anomaly: rapid.IntRange(0, 3).Draw(t, "anomaly") > 0})
		}
		o.LRAs = append(o.LRAs, l)
	}
	return o
}

// eager makes a policy that accuses and gives up quickly.
func eager() Config {
	c := config()
	c.Resources[0].Ratio, c.Resources[1].Ratio = 0.1, 0.1
	c.Proof = Proof{Fraction: 0.3, Confirm: -1, Calm: 1, Watch: 2, Patience: 3 * time.Second, Settle: time.Nanosecond, WrongConviction: 0.3, MissedGuilt: 0.3,
		Hold: 4 * time.Second, MaxHold: 20 * time.Second, Backoff: 2 * time.Second}
	c.Quiet = time.Second
	return c
}

func TestWhateverIsSeenNothingIsThrottledForEverAndNothingStartsAboveTheBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := eager()
		c.Proof.NoControl = rapid.Bool().Draw(t, "no control")
		p, err := New(c)
		twin, _ := New(c)
		if err != nil {
			t.Fatal(err)
		}
		now, since, asked := time.Unix(1e6, 0), map[string]time.Duration{}, map[string][]float64{}
		passed, started := time.Duration(0), map[string]time.Duration{}
		for i := range rapid.IntRange(1, 60).Draw(t, "ticks") {
			if rapid.Bool().Draw(t, "offer") {
				r := Request{ID: fmt.Sprint("n", i), Job: "n", Wants: []float64{anything(t, "wants cpu", 2), anything(t, "wants memory", 4)}, Expires: now.Add(time.Minute)}
				if why := p.Offer(now, r); why != twin.Offer(now, r) {
					t.Fatal("not the same twice")
				}
				asked[r.ID] = r.Wants
			}
			o := hostile(t, now)
			step := o.Time.Sub(now)
			if i == 0 { // nothing was before
				step = 0
			}
			d := p.Decide(o)
			if again := twin.Decide(o); !reflect.DeepEqual(d, again) {
				t.Fatalf("not the same twice: %+v and %+v", d, again)
			}
			if now = o.Time; step > 0 {
				passed += min(step, time.Hour)
			}
			checkStarts(t, p, o, &d, asked, started, passed)
			checkThrottled(t, p, o, &d, since, passed, step)
			n := p.Counts()
			if pending := n.Accusations - n.Proofs - n.Joint - n.FalseAccusations - n.Undecided; pending > uint64(len(p.trial.set)+len(p.trial.rest)) {
				t.Fatalf("%d accused without an end: %+v", pending, n)
			}
			if len(p.tasks) > len(o.Tasks)+p.Starts*60 || len(p.lras.apps) > 3 || len(p.jobs) > 10 {
				t.Fatalf("%d tasks, %d LRAs, %d jobs are kept", len(p.tasks), len(p.lras.apps), len(p.jobs))
			}
		}
	})
}

// checkStarts adds up what tasks hold, slowly.
func checkStarts(t *rapid.T, p *Policy, o *Observation, d *Decision, asked map[string][]float64, started map[string]time.Duration, passed time.Duration) {
	if len(d.Start) == 0 {
		return
	}
	if !(o.Metrics[0] < p.Metrics[0].Upper) {
		t.Fatalf("started at %v", o.Metrics)
	}
	sum := [2]float64{}
	here := map[string]bool{}
	for _, task := range o.Tasks {
		if !here[task.ID] {
			sum[0], sum[1] = sum[0]+task.Holds[0], sum[1]+task.Holds[1]
		}
		here[task.ID] = true
	}
	for _, s := range d.Start {
		started[s.ID] = passed
	}
	for id, at := range started {
		if passed-at < startsWithin && !here[id] {
			sum[0], sum[1] = sum[0]+asked[id][0], sum[1]+asked[id][1]
		}
	}
	for k := range sum {
		if !(sum[k] <= p.Resources[k].Ratio*o.Capacity[k]*(1+1e-9)) {
			t.Fatalf("tasks hold %v of %v", sum, o.Capacity)
		}
	}
}

func checkThrottled(t *rapid.T, p *Policy, o *Observation, d *Decision, since map[string]time.Duration, passed, step time.Duration) {
	now := map[string]bool{}
	for _, th := range d.Throttled {
		now[th.Task] = true
		if _, before := since[th.Task]; !before {
			since[th.Task] = passed
		}
		if left := th.Until.Sub(o.Time); left <= 0 || left > p.Proof.MaxHold {
			t.Fatalf("%+v at %v", th, o.Time)
		}
		if passed-since[th.Task] > p.Proof.MaxHold+min(step, time.Hour) {
			t.Fatalf("%s is throttled for %v", th.Task, passed-since[th.Task])
		}
		if o.Mode == UP || step < 0 {
			t.Fatalf("%+v in mode %s after %v", th, o.Mode, step)
		}
	}
	for id := range since {
		if !now[id] {
			delete(since, id)
		}
	}
}

func TestInATrueWorldEveryInnocentTaskIsReleased(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 12).Draw(t, "tasks"))
		c := config()
		c.Proof.Fraction = rapid.Float64Range(0.01, 1).Draw(t, "fraction")
		c.Proof.MaxHold = time.Minute
		p, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		throttled := map[string]bool{}
		second := func() Decision {
			d := p.Decide(w.observe(func(id string) float64 {
				if throttled[id] {
					return 0
				}
				return 1
			}))
			clear(throttled)
			for _, th := range d.Throttled {
				throttled[th.Task] = true
			}
			return d
		}
		for range 100 {
			second()
		}
		w.harm = 0
		for range 90 {
			second()
		}
		left := 0
		for range 60 { // noise may accuse one for a moment, and is rare
			left += len(second().Throttled)
		}
		if left > 30*w.n/2 {
			t.Fatalf("%d task-seconds throttled without harm", left)
		}
	})
}
