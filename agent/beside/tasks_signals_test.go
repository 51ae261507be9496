package beside

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator/task"
	"github.com/trimtab/trimtab/agent/signals"
	"github.com/trimtab/trimtab/quantity"
	"github.com/trimtab/trimtab/speculation"
)

// says lets the collectors tell one round of the service.
func (w *taskWorld) says(values map[quantity.Quantity]float64) {
	at := time.Unix(0, int64(w.now))
	for q, v := range values {
		w.signals.Add(w.now-signals.Settled, &trimtab.Sample{Workload: "shop", Host: "h", Quantity: q, Source: "perf", Time: at, Window: 1, Value: v})
	}
}

// lives lets the service run for so many seconds, at a CPI with a little noise.
func (w *taskWorld) lives(n int, cpi float64, r *rand.Rand) {
	w.Helper()
	for range n {
		w.says(map[quantity.Quantity]float64{quantity.CPI: cpi * (1 + 0.01*r.NormFloat64()), quantity.MPKI: 2, quantity.RPKI: 20, quantity.TaskClock: 1, quantity.RunDelay: 0.5})
		w.seconds(1)
	}
}

func (w *taskWorld) frozen(p speculation.Placement) bool {
	w.run.mu.Lock()
	defer w.run.mu.Unlock()
	return w.run.tasks[p.AttemptID].State == task.Frozen
}

func TestATaskThatDisturbsAServiceIsFrozenTriedAndRemembered(t *testing.T) {
	w := newTaskWorld(t, "")
	r := rand.New(rand.NewPCG(1, 2))
	a := place("a")
	w.list(a)
	if len(w.run.started) > 0 || w.told.Blocked != "an LRA has no fresh signal" {
		t.Fatalf("started beside a service of which nothing is known: %q", w.told.Blocked)
	}
	w.lives(10, 1, r)
	w.list(a)
	w.lives(10, 1, r)
	w.list(a)
	if s := w.state(a); s.State != speculation.AttemptRunning || w.told.CPI == nil || *w.told.CPI < 0.9 || w.told.MPKI == nil {
		t.Fatalf("%+v of %+v", s.State, *w.told)
	}
	// From here on the service runs at a CPI of 1.5 while the task runs.
	frozen, told := 0, 0
	for range 90 {
		cpi := 1.5
		if w.frozen(a) {
			cpi = 1
			frozen++
		}
		if w.state(a).State == speculation.AttemptFrozen {
			told++
		}
		w.lives(1, cpi, r)
		w.sequence++
		w.inbox.put(&speculation.Placements{Pool: "default", Host: "h", Epoch: 1, Sequence: w.sequence, Time: time.Now(), Life: 7, Report: w.told.Report, Lease: 30, Tasks: []speculation.Placement{a}})
	}
	if c := w.policy.Counts(); frozen < 30 || told < 30 || c.Proofs == 0 || c.FalseAccusations != 0 {
		t.Errorf("frozen for %d s, told for %d, %+v", frozen, told, c)
	}
	// What was learned survives the agent.
	if err := w.signals.Save(w.dir, w.policy); err != nil {
		t.Fatal(err)
	}
	next := newTaskWorld(t, "")
	if err := next.signals.Restore(w.dir, next.policy); err != nil {
		t.Fatal(err)
	}
	if err := next.signals.Save(next.dir, next.policy); err != nil {
		t.Fatal(err)
	}
	saved, _ := os.ReadFile(filepath.Join(w.dir, "learned.json"))
	again, _ := os.ReadFile(filepath.Join(next.dir, "learned.json"))
	if !strings.Contains(string(again), `"signal":"cpi"`) || len(again) != len(saved) { // in another order
		t.Errorf("what services are like is forgotten: %d bytes of %d", len(again), len(saved))
	}
	next.now = w.now
	next.lives(3, 1, r)
	if got := next.policy.Snapshot()["throttle"]; string(got) != string(w.policy.Snapshot()["throttle"]) {
		t.Error("verdicts are forgotten")
	}
	b := place("b")
	next.list(b)
	next.lives(3, 1, r)
	if s := next.state(b); s.State != speculation.AttemptRunning {
		t.Errorf("it learns anew: %s, %q", s.State, next.told.Blocked)
	}
}

func TestEachSignalIsToldWithItsFitAndItsMeasuredFalseAlarms(t *testing.T) {
	w := newTaskWorld(t, "")
	r := rand.New(rand.NewPCG(3, 4))
	w.lives(120, 1, r)
	w.now += tellMachine
	w.lives(1, 1, r)
	of := map[string]speculation.ServiceSignal{}
	for _, s := range w.told.Signals {
		of[s.Signal] = s
	}
	cpi, mpki, delay := of[signals.CPI], of[signals.MPKI], of[signals.Delay]
	if cpi.Workload != "shop" || cpi.Judged < 100 || cpi.Boundary < 1.03 || cpi.Typical < 0.98 || cpi.Model == "unknown" || cpi.Distance == nil || cpi.Windows < 100 || cpi.Anomaly {
		t.Errorf("%+v", cpi)
	}
	if rate, known := cpi.FalseAlarmRate(); !known || rate > 0.02 {
		t.Errorf("false alarms %v, %v", rate, known)
	}
	if _, known := mpki.FalseAlarmRate(); mpki.Value != 2 || mpki.Windows < 100 || known {
		t.Errorf("%+v", mpki)
	}
	if delay.Value != 2 || delay.Judged < 100 { // half of the time: twice as long
		t.Errorf("%+v", delay)
	}
	series := func() (n int) {
		all, err := w.metrics.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range all {
			if name := f.GetName(); name == "trimtab_speculate_signal_ratio" || name == "trimtab_speculate_false_alarms_ratio" || name == "trimtab_speculate_fit_distance" {
				n += len(f.GetMetric())
			}
		}
		return n
	}
	if n := series(); n != 7 { // three boundaries, two rates, two fits: what never differs has none
		t.Errorf("%d series", n)
	}
	w.seconds(2 * int(signals.ShownFor/time.Second))
	if n := series(); n != 0 || len(w.told.Signals) != 0 {
		t.Errorf("%d series of what is not measured any more, told %+v", n, w.told.Signals)
	}
}
