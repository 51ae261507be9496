package beside

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/bus/bustest"
	"github.com/trimtab/trimtab/colocation"
)

// ear keeps what is told; deaf: it refuses.
type ear struct {
	all  []*colocation.Colocation
	deaf bool
}

func (e *ear) Publish(_ context.Context, v trimtab.Value) error {
	if e.deaf {
		return errors.New("the link is cut")
	}
	if err := v.Validate(); err != nil {
		return err
	}
	e.all = append(e.all, v.(*colocation.Colocation))
	return nil
}

func TestAFleetHearsOfEachDecisionAtOnceAndAtTimesInBetween(t *testing.T) {
	w, heard := newJobWorld(t, "act", 2), new(ear)
	w.bus = heard
	for range 300 { // 30 s
		w.pass(1, 20, 0.4)
	}
	last := heard.all[len(heard.all)-1]
	if last.Running != 2 || last.Last.Verb != "AllowBEGrowth" || last.Jobs[0].Has["cpu"] < 0.5 || last.Given <= 0 || last.Services[0].LoadOrigin != colocation.FromHistory || last.Pool != "default/best-effort" || last.Host != "h" {
		t.Errorf("%+v", last)
	}
	decided := map[time.Time]bool{}
	for _, d := range w.Colocation().Decisions {
		decided[d.Time] = true
	}
	for _, c := range heard.all {
		delete(decided, c.Last.Time)
	}
	if n := len(heard.all); len(decided) > 0 || n > 7+len(w.Colocation().Decisions)+4 {
		t.Errorf("told %d times; decisions that were not told: %v", n, decided)
	}
	before := len(heard.all)
	w.pass(1, 130, 0.4)
	if len(heard.all) != before+1 || heard.all[before].Last.Verb != "StopBE" || heard.all[before].Reclaimed <= 0 {
		t.Errorf("%+v", heard.all[before:])
	}
}

func TestJobsAreDecidedOnWhetherOrNotAnybodyIsTold(t *testing.T) {
	w := newJobWorld(t, "act", 2)
	w.bus = &ear{deaf: true}
	for range 60 {
		w.pass(1, 20, 0.4)
	}
	if w.states()["running"] != 2 {
		t.Errorf("%v", w.states())
	}
}

// command is what a person asks of the pool of services.
func (w *jobWorld) command(verb trimtab.Verb, workload string) {
	w.t.Helper()
	if err := w.order(w.t.Context(), &trimtab.Command{Pool: "default", Verb: verb, Workload: workload, Time: time.Now()}); err != nil {
		w.t.Fatal(err)
	}
}

func TestAPauseHoldsEveryJobWhereItIsUntilAResume(t *testing.T) {
	w := newJobWorld(t, "act", 2)
	w.pass(8, 20, 0.4)
	w.command(trimtab.Pause, "")
	w.pass(1, 20, 0.4)
	before, states, decisions := w.sum(2), w.states(), len(w.Colocation().Decisions)
	for _, tail := range []float64{20, 130, 99} { // neither growth nor what takes away
		w.pass(10, tail, 0.4)
		if sum := w.sum(2); sum != before || w.states()["running"] != states["running"] {
			t.Errorf("tail %v: %v cores, before %v", tail, sum, before)
		}
	}
	if c := w.Colocation(); !c.Paused || len(c.Decisions) != decisions {
		t.Errorf("paused %v, %d decisions, before %d", c.Paused, len(c.Decisions), decisions)
	}
	if left := w.actuator.Holding().LeaseLeft; left <= 0 {
		t.Error("the lease ended")
	}
	w.command(trimtab.Resume, "")
	w.pass(1, 130, 0.4)
	if c := w.Colocation(); c.Paused || c.Last.Verb != "StopBE" || w.states()["running"] != 0 {
		t.Errorf("%+v", c.Last)
	}
}

func TestAJobThatIsReleasedGetsTheLeastAndIsLetGoUntilAResume(t *testing.T) {
	w := newJobWorld(t, "act", 1)
	w.pass(10, 20, 0.4)
	w.command(trimtab.Release, "web") // a service: not ours
	w.pass(1, 20, 0.4)
	if w.sum(1) < 0.4 {
		t.Fatalf("%v cores", w.sum(1))
	}
	w.command(trimtab.Release, "batch")
	w.pass(20, 20, 0.4)
	if w.read(0, "cpu.max") != "1000 100000" || w.read(0, "cgroup.freeze") != "0" {
		t.Errorf("cpu.max %s, freeze %s", w.read(0, "cpu.max"), w.read(0, "cgroup.freeze"))
	}
	w.command(trimtab.Resume, "")
	w.pass(20, 20, 0.4)
	if w.sum(1) < 0.4 {
		t.Errorf("%v cores after the resume: %+v", w.sum(1), w.Colocation())
	}
}

// What is ordered while the jobs start reaches them, and who has the actuator of
// services hears of a command once and hands it on.
func TestCommandsForThePoolReachItsJobs(t *testing.T) {
	w, s := newJobWorld(t, "act", 1), new(Host)
	memory := bustest.NewMemory()
	defer memory.Close()
	services := 0
	stop, err := orders{memory, s.order}.Subscribe(t.Context(), bus.Subscription{Kind: trimtab.KindCommand, Key: "default", Consumer: "actuator-h",
		Handle: func(context.Context, bus.Delivery) error { services++; return nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	early := &trimtab.Command{Pool: "default", Verb: trimtab.Pause, Time: time.Now()}
	if err := s.order(t.Context(), early); err != nil {
		t.Fatal(err)
	}
	s.jobs.Store(w.jobHost)
	if err := s.catchUp(t.Context(), w.jobHost); err != nil || !w.actuator.Holding().Paused {
		t.Fatalf("paused %v, %v", w.actuator.Holding().Paused, err)
	}
	if err := memory.Publish(t.Context(), &trimtab.Command{Pool: "default", Verb: trimtab.Resume, Time: time.Now()}); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if !w.actuator.Holding().Paused {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("paused after the resume, of which the services heard %d times", services)
}
