package jobs

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/speculation"
)

func TestNonsenseInAReportIsMissing(t *testing.T) {
	b := running1(t, nil)
	for _, progress := range []float64{math.NaN(), math.Inf(1), -1, 1.01} {
		b.report("a", running("j", "t0", 1, progress))
		b.tick(time.Second)
		if s := b.task("j", "t0"); s.Last.Progress != nil {
			t.Errorf("progress %v was taken for %v", progress, *s.Last.Progress)
		}
	}
	a := running("j", "t0", 1, .5)
	a.Started, a.Ended, a.Output = time.Date(99999, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC), -7
	a.LastLines = []string{"\x1b[2J\xff" + strings.Repeat("é", 5000)}
	a.State = speculation.AttemptFrozen
	b.report("a", a, a, a)
	out := b.tick(time.Second)
	if text, err := json.Marshal(out.States); err != nil || len(text) > 4<<10 {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
	a.State = "dancing"
	b.report("a", a)
	b.tick(time.Second)
	b.wants("j", "t0", "frozen", "a")
}

func TestReportsWithoutANameANumberOrAnEndAreRefused(t *testing.T) {
	b := newBench(t, config(), "a")
	good := speculation.Machine{Host: "a", Pool: "batch", Life: 1, Report: 100}
	for _, change := range []func(*speculation.Machine){
		func(m *speculation.Machine) { m.Host = "" },
		func(m *speculation.Machine) { m.Host = strings.Repeat("x", 300) },
		func(m *speculation.Machine) { m.Host = "\x00" },
		func(m *speculation.Machine) { m.Pool = "other" },
		func(m *speculation.Machine) { m.Life = 0 },
		func(m *speculation.Machine) { m.Report = 0 },
		func(m *speculation.Machine) { m.Attempts = make([]speculation.Attempt, speculation.MaxAttemptsHere+1) },
	} {
		r := good
		change(&r)
		if err := b.m.Machine(b.now, &r); err == nil {
			t.Errorf("taken: %.100v", r)
		}
	}
}

func TestAnAttemptOnAnotherHostOrThatWasNeverPlacedIsNobodysAndNotListed(t *testing.T) {
	b := running1(t, nil)
	b.report("b", exited("j", "t0", 1, 0), exited("j", "t0", 2, 0), running("j", "t9", 1, .5), running("../../x", "y", -1, .5))
	b.tick(time.Second)
	b.wants("j", "t0", "running", "a")
	if p := b.lists["b"]; p == nil || len(p.Tasks) != 0 {
		t.Fatalf("b is told %+v", p)
	}
}

func TestANumberThatAHostKnowsAlreadyIsNotGivenAgain(t *testing.T) {
	b := newBench(t, config(), "a")
	b.report("a", exited("j", "t0", 1, 0), exited("j", "t0", 2, 0)) // of a job long forgotten
	b.submit(batch("j", 1))
	b.tick(time.Second)
	if p := b.listed("a", "t0"); p == nil || p.Attempt != 3 {
		t.Fatalf("a is told %+v", p)
	}
}

func TestAHostWhoseLivesFlapIsAskedLessAndLess(t *testing.T) {
	c := config()
	c.LostLimit = 1000
	b := newBench(t, c, "flaps")
	b.submit(batch("j", 1))
	placed := 0
	for range 600 {
		out := b.tick(time.Second)
		for _, e := range out.Events {
			if e.Kind == Placed {
				placed++
			}
		}
		b.life["flaps"]++
		b.report("flaps")
	}
	if placed > 12 {
		t.Fatalf("%d attempts in 10 minutes", placed)
	}
}

func TestAHostThatFollowsALaterManagerGetsNothing(t *testing.T) {
	b := newBench(t, config(), "a")
	r := speculation.Machine{Host: "a", Pool: "batch", Life: 1, Report: 50, Epoch: 1 << 40, Sequence: math.MaxUint64}
	if err := b.m.Machine(b.now, &r); err != nil {
		t.Fatal(err)
	}
	b.submit(batch("j", 1))
	b.tick(time.Second)
	b.wants("j", "t0", "waiting", "")
}

func TestASequenceThatWasNeverSentAcknowledgesNothing(t *testing.T) {
	b := newBench(t, config(), "a", "b")
	b.m.Candidates([]string{"a"})
	b.submit(batch("j", 1))
	b.tick(time.Second)
	b.report("b")
	if err := b.grant("j", "t0", "b"); err != nil {
		t.Fatal(err)
	}
	b.tick(time.Second)
	r := speculation.Machine{Host: "a", Pool: "batch", Life: 1, Report: 50, Epoch: b.config.Epoch, Sequence: math.MaxUint64}
	if err := b.m.Machine(b.now, &r); err != nil {
		t.Fatal(err)
	}
	b.tick(time.Second)
	b.wants("j", "t0", "placed", "a")
}

func TestHostsWithoutEndTakeNoMemory(t *testing.T) {
	c := config()
	c.MaxHosts = 10
	b := newBench(t, c, "a")
	b.submit(batch("j", 1))
	b.tick(time.Second)
	for i := range 100 {
		_ = b.say(strings.Repeat("x", i+1))
	}
	if len(b.m.hosts.byName) > 10 {
		t.Fatalf("%d hosts", len(b.m.hosts.byName))
	}
	b.tick(20 * time.Second) // longer than the host time-out
	if err := b.say("late"); err != nil {
		t.Fatal("silent ones make no room:", err)
	}
	if b.m.hosts.byName["a"] == nil {
		t.Fatal("a host with an attempt is forgotten")
	}
}

func TestAClockThatGoesBackEndsNothing(t *testing.T) {
	b := running1(t, nil)
	b.now = b.now.Add(-time.Hour)
	b.report("a", running("j", "t0", 1, .5))
	b.tick(0)
	b.wants("j", "t0", "running", "a")
}

func TestJobsBeyondTheBoundsAreRefusedAndThoseThatEndedMakeRoom(t *testing.T) {
	c := config()
	c.MaxJobs, c.MaxTasks = 2, 30
	b := newBench(t, c, "a")
	b.submit(batch("one", 10))
	b.submit(batch("two", 10))
	if err := b.ask(speculation.JobRequest{Verb: speculation.SubmitJob, Job: batch("three", 1)}); err == nil {
		t.Fatal("a third job was taken")
	}
	if err := b.cancel("one"); err != nil {
		t.Fatal(err)
	}
	if err := b.ask(speculation.JobRequest{Verb: speculation.SubmitJob, Job: batch("three", 21)}); err == nil {
		t.Fatal("a 31st task was taken")
	}
	b.submit(batch("three", 20))
	for name, change := range map[string]func(*speculation.BatchJob){
		"no task":         func(j *speculation.BatchJob) { j.Tasks = nil },
		"two of a name":   func(j *speculation.BatchJob) { j.Tasks[1].Name = "t0" },
		"a bad name":      func(j *speculation.BatchJob) { j.Tasks[0].Name = "../x" },
		"NaN cores":       func(j *speculation.BatchJob) { j.Tasks[0].Cores = math.NaN() },
		"endless memory":  func(j *speculation.BatchJob) { j.Tasks[0].Memory = math.Inf(1) },
		"no command":      func(j *speculation.BatchJob) { j.Tasks[0].Command = nil },
		"a zero byte":     func(j *speculation.BatchJob) { j.Tasks[0].Command = []string{"a\x00"} },
		"a huge task":     func(j *speculation.BatchJob) { j.Tasks[0].Command = []string{strings.Repeat("x", 1<<19)} },
		"many retries":    func(j *speculation.BatchJob) { j.Retries = 1 << 30 },
		"a relative dir":  func(j *speculation.BatchJob) { j.Tasks[0].Dir = "x" },
		"a NaN time-out":  func(j *speculation.BatchJob) { j.QueueTimeout = trimtab.Seconds(math.NaN()) },
		"too many tasks":  func(j *speculation.BatchJob) { *j = batch("j", speculation.MaxBatchTasks+1) },
		"a negative wall": func(j *speculation.BatchJob) { j.Tasks[0].Wall = -1 },
	} {
		j := batch("j", 2)
		change(&j)
		if err := b.ask(speculation.JobRequest{Verb: speculation.SubmitJob, Job: j}); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
