package planner_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner"
)

// answered is what a query says of the load of "a" in a second, when nothing of its
// performance is known; negative: the query has no answer.
func answered(now time.Time, load float64) *trimtab.Estimate {
	in := trimtab.Input{Name: "load", Value: load, Source: "prometheus"}
	e := &trimtab.Estimate{Workload: "a", Time: now, Model: "test/1"}
	if load < 0 {
		in = trimtab.Input{Name: "load", Source: "prometheus", Missing: "no series"}
	} else {
		e.Load = &trimtab.LoadForecast{Now: load, Mean: load, Upper: load, Level: 0.9, Model: "test"}
	}
	e.Inputs = []trimtab.Input{in}
	e.Hold = &trimtab.Held{Code: codes.HeldAbsent, Text: "no performance from spans", Input: "performance"}
	return e
}

// sleeps plays seconds in which only its load is told.
func (d *deployment) sleeps(p *planner.Planner, from time.Time, seconds int, load func(second int) float64) (all []*trimtab.Plan) {
	for i := range seconds {
		now := from.Add(time.Duration(i) * time.Second)
		d.run(now)
		out := plans(p.Step(now, d.holding(now)))
		out = append(out, plans(p.Step(now, answered(now, load(i))))...)
		out = append(out, plans(p.Step(now, nil))...)
		for len(out) > 0 {
			all = append(all, out[0])
			out = append(out[1:], plans(p.Step(now, d.carryOut(out[0], now)))...)
		}
	}
	return all
}

// mayRest lets "a" go to zero after a minute without load.
func mayRest(w *planner.WorkloadConfig) { w.Count.AllowZero, w.Count.Cooldown = true, time.Minute }

func TestWithoutLoadForTheWindowThatIsConfiguredItGoesToZeroReplicas(t *testing.T) {
	p, d := counted(t, 16, mayRest), deployed(2, 0.5)
	d.play(p, t0, 60, steady(0.9))
	all := d.sleeps(p, t0.Add(60*time.Second), 60, steady(0))
	if n := numbersOf(all); len(n) > 0 {
		t.Fatalf("within the window it went to %v", n)
	}
	all = d.sleeps(p, t0.Add(120*time.Second), 90, steady(0))
	if d.replicas != 0 || !strings.Contains(saysOf(all), "no load for 1m0s") {
		t.Errorf("%d replicas after the window:\n%s", d.replicas, saysOf(all))
	}
}

func TestItGoesToZeroOnlyWhereTheConfigurationAllowsIt(t *testing.T) {
	p, d := counted(t, 16, nil), deployed(2, 0.5)
	d.play(p, t0, 60, steady(0.9))
	all := d.sleeps(p, t0.Add(60*time.Second), 600, steady(0))
	if d.replicas < 1 {
		t.Errorf("it went to %v:\n%s", numbersOf(all), saysOf(all))
	}
}

func TestALoadThatWaitsBringsAtLeastOneReplicaBackFromZero(t *testing.T) {
	p, d := counted(t, 16, mayRest), deployed(0, 0.5)
	if n := numbersOf(d.sleeps(p, t0, 60, steady(0))); len(n) > 0 {
		t.Fatalf("without load it went to %v", n)
	}
	all := d.sleeps(p, t0.Add(60*time.Second), 15, steady(0.01))
	if d.replicas < 1 || !strings.Contains(saysOf(all), "replicas raised from 0 to 1") {
		t.Errorf("%d replicas for a load of 0.01/s:\n%s", d.replicas, saysOf(all))
	}
	p, d = counted(t, 0.4, mayRest), deployed(0, 0.5)
	if d.sleeps(p, t0, 60, steady(5)); d.replicas != 0 {
		t.Errorf("%d replicas of 0.5 in a pool of 0.4", d.replicas)
	}
}

func TestALoadThatIsMissingIsNoneAndNeverLowersANumber(t *testing.T) {
	for name, e := range map[string]func(now time.Time) *trimtab.Estimate{
		"no series":     func(now time.Time) *trimtab.Estimate { return answered(now, -1) },
		"by spans":      func(now time.Time) *trimtab.Estimate { e := answered(now, 0); e.Inputs[0].Source = "spans"; return e },
		"too old":       func(now time.Time) *trimtab.Estimate { e := answered(now, 0); e.Inputs[0].Age = 3600; return e },
		"an old answer": func(time.Time) *trimtab.Estimate { return answered(t0, 0) },
		"not a number":  func(now time.Time) *trimtab.Estimate { return answered(now, math.NaN()) },
		"negative":      func(now time.Time) *trimtab.Estimate { e := answered(now, 0); e.Inputs[0].Value = -1; return e },
		"none at all":   func(now time.Time) *trimtab.Estimate { e := answered(now, 0); e.Inputs = nil; return e },
	} {
		p, d := counted(t, 16, mayRest), deployed(3, 0.5)
		for i := range 900 {
			now := t0.Add(time.Duration(i) * time.Second)
			for _, v := range []trimtab.Value{d.holding(now), e(now), nil} {
				for _, plan := range plans(p.Step(now, v)) {
					p.Step(now, d.carryOut(plan, now))
				}
			}
			if d.replicas < 3 {
				t.Errorf("%s: %d replicas after %d s", name, d.replicas, i)
				break
			}
		}
	}
}

func TestAMissingLoadBeginsTheWindowAnew(t *testing.T) {
	p, d := counted(t, 16, mayRest), deployed(1, 0.5)
	d.sleeps(p, t0, 110, func(second int) float64 {
		if second > 45 && second < 60 {
			return -1
		}
		return 0
	})
	if d.replicas != 1 {
		t.Errorf("%d replicas: no answer between is no zero", d.replicas)
	}
	if d.sleeps(p, t0.Add(110*time.Second), 40, steady(0)); d.replicas != 0 {
		t.Errorf("%d replicas after a whole window", d.replicas)
	}
}

// carries starts a planner with what another one knew.
func carries(t *testing.T, from *planner.Planner) *planner.Planner {
	t.Helper()
	p := counted(t, 16, mayRest)
	for name, b := range from.Snapshot() {
		if err := p.Restore(name, b); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func TestTheTimeThatAWorkloadHadNoLoadOutlivesARestart(t *testing.T) {
	p, d := counted(t, 16, mayRest), deployed(1, 0.5)
	d.sleeps(p, t0, 40, steady(0))
	p = carries(t, p)
	if d.sleeps(p, t0.Add(45*time.Second), 35, steady(0)); d.replicas != 0 {
		t.Errorf("%d replicas 80 s after the load ended, with a restart of 5 s between", d.replicas)
	}
	p, d = counted(t, 16, mayRest), deployed(1, 0.5)
	d.sleeps(p, t0, 40, steady(0))
	p = carries(t, p)
	if d.sleeps(p, t0.Add(time.Hour), 50, steady(0)); d.replicas != 1 {
		t.Errorf("%d replicas: nobody looked for an hour, so the window begins anew", d.replicas)
	}
}

func TestWhatWentToZeroHasAnInstanceAgainWhenItsLoadIsNotKnownForTheWindow(t *testing.T) {
	p, d := counted(t, 16, mayRest), deployed(2, 0.5)
	if d.sleeps(p, t0, 90, steady(0)); d.replicas != 0 {
		t.Fatalf("%d replicas without load", d.replicas)
	}
	if d.sleeps(p, t0.Add(90*time.Second), 55, steady(-1)); d.replicas != 0 {
		t.Errorf("%d replicas within the window", d.replicas)
	}
	all := d.sleeps(p, t0.Add(145*time.Second), 30, steady(-1))
	if d.replicas != 1 || !strings.Contains(saysOf(all), "whether it has load is not known since") {
		t.Errorf("%d replicas of unknown load:\n%s", d.replicas, saysOf(all))
	}
	// What somebody else took there stays: it is nobody's instance to bring back.
	p, d = counted(t, 16, mayRest), deployed(0, 0.5)
	if d.sleeps(p, t0, 300, steady(-1)); d.replicas != 0 {
		t.Errorf("%d replicas of a workload that was found with none", d.replicas)
	}
}
