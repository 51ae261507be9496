package jobs

import (
	"slices"
	"testing"
	"time"

	"github.com/trimtab/trimtab/planner/machines"
	"github.com/trimtab/trimtab/speculation"
)

// One test for each sentence of ROSE 6.3 (IEEE TPDS 2020) and of its algorithm 5.

// running1 is a bench with a task that runs on a, at a progress, and an idle host b.
func running1(t *testing.T, progress *float64) *bench {
	t.Helper()
	b := newBench(t, config(), "a", "b")
	b.m.Candidates([]string{"a"})
	b.submit(batch("j", 1))
	b.tick(time.Second)
	told := attemptAt("j", "t0", 1, speculation.AttemptRunning)
	told.Progress = progress
	b.report("a", told)
	b.report("b")
	b.tick(time.Second)
	b.wants("j", "t0", "running", "a")
	return b
}

// "In the event of unfulfilled resource requests due to insufficient resource, the JM will
// proactively dispatch several speculative tasks onto NMs (Algorithm 5 Lines 1-3)
// according to the latest result of MMF procedure."
func TestTasksWithoutAGrantAreDispatchedToTheLatestCandidates(t *testing.T) {
	b := newBench(t, config(), "a", "b", "c")
	b.m.Candidates([]string{"a"})
	b.m.Candidates([]string{"b", "c"})
	b.submit(batch("j", 6))
	b.tick(time.Second)
	if b.lists["a"] != nil && len(b.lists["a"].Tasks) > 0 {
		t.Fatalf("a is not a candidate any more, and got %+v", b.lists["a"].Tasks)
	}
	if n := len(b.lists["b"].Tasks) + len(b.lists["c"].Tasks); n != 6 {
		t.Fatalf("%d tasks are placed, want 6", n)
	}
	for _, p := range append(b.lists["b"].Tasks, b.lists["c"].Tasks...) {
		if p.Class != speculation.OversubscribedTask {
			t.Fatalf("%v is %s", p.AttemptID, p.Class)
		}
	}
}

// "if speculative tasks have not yet started (either staying in the queue …), we will
// cancel them and directly start the regular tasks (Lines 7-9)."
func TestAGrantedTaskInAQueueIsCancelledAndStartsRegularlyWhereItWasGranted(t *testing.T) {
	for _, granted := range []string{"b", "a"} {
		b := newBench(t, config(), "a", "b")
		b.m.Candidates([]string{"a"})
		b.submit(batch("j", 1))
		b.tick(time.Second)
		b.report("a", attemptAt("j", "t0", 1, speculation.AttemptQueued))
		b.report("b")
		if err := b.grant("j", "t0", granted); err != nil {
			t.Fatal(err)
		}
		b.tick(time.Second)
		if p := b.listed("a", "t0"); p == nil || p.Kill == "" {
			t.Fatalf("a is told %+v, want the end of the queued attempt", p)
		}
		if p := b.listed("b", "t0"); p != nil {
			t.Fatalf("b starts %+v before a told that the first has ended", p)
		}
		b.report("a", attemptAt("j", "t0", 1, speculation.AttemptRefused))
		b.tick(time.Second)
		p := b.listed(granted, "t0")
		if p == nil || p.Attempt != 2 || p.Class != speculation.RegularTask || p.Kill != "" {
			t.Fatalf("%s is told %+v, want a regular start", granted, p)
		}
	}
}

// "… or failing to find destinations), we will cancel them and directly start the regular
// tasks"
func TestAGrantedTaskWithoutADestinationStartsRegularly(t *testing.T) {
	b := newBench(t, config(), "a")
	b.m.Candidates(nil)
	b.submit(batch("j", 1))
	b.tick(time.Second)
	b.wants("j", "t0", "waiting", "")
	if err := b.grant("j", "t0", "a"); err != nil {
		t.Fatal(err)
	}
	b.tick(time.Second)
	if p := b.listed("a", "t0"); p == nil || p.Class != speculation.RegularTask {
		t.Fatalf("a is told %+v, want a regular start", p)
	}
}

// "Otherwise, if the launched task has already been executed on the same machine, we will
// directly re-label it as a regular task (Lines 10-11)."
func TestATaskThatRunsWhereItWasGrantedIsRelabelled(t *testing.T) {
	b := running1(t, pointer(.1))
	if err := b.grant("j", "t0", "a"); err != nil {
		t.Fatal(err)
	}
	b.tick(time.Second)
	if p := b.listed("a", "t0"); p == nil || p.Attempt != 1 || p.Class != speculation.RegularTask || p.Kill != "" {
		t.Fatalf("a is told %+v, want the same attempt as a regular one", p)
	}
}

// "If the progress surpasses a predefined threshold (e.g., 60 percent) (indicating a
// near-completed task), we retain the task and also reserve the recently approved resource
// in the event of speculative task failure (Lines 12-14)."
func TestATaskBeyondTauIsKeptAndItsGrantReservedForItsFailure(t *testing.T) {
	b := running1(t, pointer(.61))
	if err := b.grant("j", "t0", "b"); err != nil {
		t.Fatal(err)
	}
	b.tick(time.Second)
	if p := b.listed("a", "t0"); p == nil || p.Kill != "" || p.Class != speculation.OversubscribedTask {
		t.Fatalf("a is told %+v, want that it stays as it is", p)
	}
	if s := b.task("j", "t0"); s.Granted != "b" {
		t.Fatalf("granted on %q", s.Granted)
	}
	b.restart() // the reservation outlives a manager
	b.report("a", running("j", "t0", 1, .2))
	b.report("b")
	b.tick(time.Second)
	if p := b.listed("a", "t0"); p == nil || p.Kill != "" {
		t.Fatalf("after a restart a is told %+v", p)
	}
	b.report("a", exited("j", "t0", 1, 1))
	b.tick(time.Second)
	b.report("b")
	b.tick(time.Second) // the back-off
	if p := b.listed("b", "t0"); p == nil || p.Attempt != 2 || p.Class != speculation.RegularTask {
		t.Fatalf("b is told %+v, want a regular start in the reserve", p)
	}
}

// "If the task is started with a progress no greater than the threshold, the task is killed
// directly and launched using new resources (Lines 15-17)."
func TestATaskNotBeyondTauIsKilledAndStartsRegularlyElsewhere(t *testing.T) {
	for _, progress := range []*float64{pointer(.6), pointer(0), nil} {
		b := running1(t, progress)
		if err := b.grant("j", "t0", "b"); err != nil {
			t.Fatal(err)
		}
		b.tick(time.Second)
		if p := b.listed("a", "t0"); p == nil || p.Kill == "" {
			t.Fatalf("a is told %+v, want its end", p)
		}
		b.report("a", running("j", "t0", 1, .7)) // not yet
		b.tick(time.Second)
		if p := b.listed("b", "t0"); p != nil {
			t.Fatalf("b starts %+v while a runs", p)
		}
		b.report("a", ended("j", "t0", 1, "killed"))
		b.tick(time.Second)
		if p := b.listed("b", "t0"); p == nil || p.Attempt != 2 || p.Class != speculation.RegularTask {
			t.Fatalf("b is told %+v, want a regular start", p)
		}
		if b.m.jobs.byName["j"].tasks[0].failures+b.m.jobs.byName["j"].tasks[0].lost != 0 {
			t.Fatal("the kill cost an attempt")
		}
	}
}

// "However, the reserved resource can be oversubscribed again to other tasks".
func TestAReservedHostTakesOtherSpeculativeTasks(t *testing.T) {
	b := running1(t, pointer(.9))
	if err := b.grant("j", "t0", "b"); err != nil {
		t.Fatal(err)
	}
	b.m.Candidates([]string{"b"})
	b.submit(batch("k", 1))
	b.tick(time.Second)
	b.wants("k", "t0", "placed", "b")
}

// "If the waiting time is over a finite timing-out bound, the task will be re-dispatched to
// machines by using the latest MMF result."
func TestATaskThatWaitsTooLongIsDispatchedAgainToTheLatestCandidates(t *testing.T) {
	b := newBench(t, config(), "a", "b")
	b.m.Candidates([]string{"a"})
	b.submit(batch("j", 1))
	b.tick(time.Second)
	queued := attemptAt("j", "t0", 1, speculation.AttemptQueued)
	b.m.Candidates([]string{"b"})
	b.idle(55*time.Second, map[string][]speculation.Attempt{"a": {queued}, "b": nil})
	if p := b.listed("a", "t0"); p == nil || p.Kill != "" {
		t.Fatalf("a is told %+v before the time-out", p)
	}
	b.idle(10*time.Second, map[string][]speculation.Attempt{"a": {queued}, "b": nil})
	if p := b.listed("a", "t0"); p == nil || p.Kill == "" {
		t.Fatalf("a is told %+v after the time-out", p)
	}
	b.report("a") // it has taken it from its queue
	b.tick(time.Second)
	b.wants("j", "t0", "placed", "b")
	if b.m.jobs.byName["j"].tasks[0].failures+b.m.jobs.byName["j"].tasks[0].refused != 0 {
		t.Fatal("the time-out cost an attempt")
	}
}

// "dispatch speculative tasks by exploiting these machine candidates in a random or
// round-robin way" (3.2).
func TestDispatchIsRandomOrRoundRobin(t *testing.T) {
	placed := func(d Dispatch, seed uint64) (hosts []string) {
		c := config()
		c.Dispatch, c.Seed = d, seed
		b := newBench(t, c, "a", "b", "c")
		b.submit(batch("j", 6))
		b.tick(time.Second)
		for _, s := range b.m.State(b.now, "j").Tasks {
			hosts = append(hosts, s.Host)
		}
		return hosts
	}
	if got := placed(RoundRobin, 1); !slices.Equal(got, []string{"a", "b", "c", "a", "b", "c"}) {
		t.Errorf("round robin: %v", got)
	}
	if !slices.Equal(placed(Random, 1), placed(Random, 1)) {
		t.Error("one seed gives two results")
	}
	if slices.Equal(placed(Random, 1), placed(Random, 2)) && slices.Equal(placed(Random, 1), placed(Random, 3)) {
		t.Error("three seeds give one result")
	}
}

// Algorithm 3: "if Task's status ∈ {failed, crashed, tailed, killed} then … penaltyScore + 1".
func TestMachinesAreCountedByTasksThatFailedCrashedTailedOrWereKilled(t *testing.T) {
	c := config()
	c.StragglerAfter = 2
	b := newBench(t, c, "bad", "good")
	b.m.Candidates([]string{"bad"})
	b.submit(batch("j", 8))
	b.tick(time.Second)
	own := ended("j", "t6", 1, "killed")
	b.report("bad", exited("j", "t0", 1, 1), ended("j", "t1", 1, "out of memory"), ended("j", "t2", 1, "killed"),
		attemptAt("j", "t3", 1, speculation.AttemptRefused), exited("j", "t4", 1, 0), exited("j", "t5", 1, 0), running("j", "t6", 1, .5), running("j", "t7", 1, .5))
	b.m.Candidates(nil)
	b.tick(time.Second)
	if err := b.grant("j", "t6", "good"); err != nil { // the manager's own kill is no fault of the machine
		t.Fatal(err)
	}
	b.tick(time.Second)
	b.report("bad", own, running("j", "t7", 1, .5))
	out := b.tick(time.Second)
	want := []machines.Count{{Machine: 4, Tasks: 4}} // t0, t1, t2, and t7 which runs longer than 1.5 medians
	got := b.m.Counts("j", func(host string) (uint32, bool) { return 4, host == "bad" })
	if !slices.Equal(got, want) {
		t.Fatalf("counts %+v, want %+v", got, want)
	}
	if !slices.Contains(out.Rated, "j") {
		t.Fatalf("rated %v", out.Rated)
	}
	x, err := machines.New[float32](machines.Config{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.SetMachines([]string{"0", "1", "2", "3", "bad"}); err != nil {
		t.Fatal(err)
	}
	if err := x.Rate(b.now, "j", got, 8); err != nil || x.Score(4) != -4 {
		t.Fatalf("score %d, %v", x.Score(4), err)
	}
}

func TestAGrantThatComesBeforeAHostWasHeardWaitsForIt(t *testing.T) {
	b := running1(t, pointer(.9))
	b.restart()
	b.report("b")
	if err := b.grant("j", "t0", "b"); err != nil {
		t.Fatal(err)
	}
	b.tick(time.Second)
	b.report("a", running("j", "t0", 1, .95))
	b.tick(time.Second)
	if p := b.listed("a", "t0"); p == nil || p.Kill != "" {
		t.Fatalf("a is told %+v, want that it stays: it is nearly done", p)
	}
}

func TestAGrantOnAHostThatIsNotHeardIsRefused(t *testing.T) {
	b := running1(t, nil)
	if err := b.grant("j", "t0", "nobody"); err == nil {
		t.Fatal("taken")
	}
}

func TestARevokedGrantMakesTheTaskSpeculativeAgain(t *testing.T) {
	b := running1(t, nil)
	if err := b.grant("j", "t0", "a"); err != nil {
		t.Fatal(err)
	}
	b.tick(time.Second)
	if err := b.ask(speculation.JobRequest{Verb: speculation.RevokeGrant, Job: speculation.BatchJob{Name: "j"}, Task: "t0", Host: "a"}); err != nil {
		t.Fatal(err)
	}
	b.tick(time.Second)
	if p := b.listed("a", "t0"); p == nil || p.Class != speculation.OversubscribedTask || p.Kill != "" {
		t.Fatalf("a is told %+v", p)
	}
}

func TestAGrantWhoseHostGoesSilentEndsAndTheTaskIsSpeculativeAgain(t *testing.T) {
	b := newBench(t, config(), "a", "b")
	b.m.Candidates(nil)
	b.submit(batch("j", 1))
	b.tick(time.Second)
	b.report("b")
	if err := b.grant("j", "t0", "b"); err != nil {
		t.Fatal(err)
	}
	b.m.Candidates([]string{"a"})
	b.now = b.now.Add(20 * time.Second) // b is silent for longer than the host time-out
	b.idle(65*time.Second, map[string][]speculation.Attempt{"a": nil})
	b.wants("j", "t0", "placed", "a")
}

func TestAGrantWhoseHostRefusesLosesOrKillsTheTaskIsOver(t *testing.T) {
	for _, told := range []speculation.Attempt{attemptAt("j", "t0", 1, speculation.AttemptRefused), ended("j", "t0", 1, "killed"), ended("j", "t0", 1, "lost")} {
		b := newBench(t, config(), "a", "b")
		b.m.Candidates(nil)
		b.submit(batch("j", 1))
		b.tick(time.Second)
		if err := b.grant("j", "t0", "b"); err != nil {
			t.Fatal(err)
		}
		b.tick(time.Second)
		b.report("b", told)
		b.m.Candidates([]string{"a"})
		b.report("a")
		b.tick(time.Second)
		b.tick(2 * time.Second)
		if p := b.listed("a", "t0"); p == nil || p.Class != speculation.OversubscribedTask {
			t.Errorf("after %s %s a is told %+v", told.State, told.Outcome, p)
		}
	}
}
