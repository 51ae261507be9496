package jobs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab/speculation"
)

func TestTasksThatExitAtOnceAThousandTimesBackOffAndFailWithTheirLastLines(t *testing.T) {
	b := newBench(t, config(), "a", "b")
	j := batch("j", 10)
	j.Retries = 99
	b.submit(j)
	starts := map[string][]time.Time{}
	count := 0
	for range 40_000 {
		b.report("a")
		b.report("b")
		b.tick(time.Second)
		s := b.m.State(b.now, "j")
		if s.State == "failed" {
			break
		}
		told := map[string][]speculation.Attempt{}
		for _, task := range s.Tasks {
			if task.State == "placed" {
				starts[task.Name] = append(starts[task.Name], b.now)
				count++
				e := exited("j", task.Name, task.Attempts, 3)
				e.LastLines = []string{"no such file: input", "giving up"}
				told[task.Host] = append(told[task.Host], e)
			}
		}
		for host, attempts := range told {
			b.report(host, attempts...)
		}
	}
	if s := b.m.State(b.now, "j"); s.State != "failed" || s.Failed != 10 || count != 1000 {
		t.Fatalf("%+v after %d starts", s, count)
	}
	b.restart()
	s := b.task("j", "t3")
	if !slices.Equal(s.Last.LastLines, []string{"no such file: input", "giving up"}) || !strings.Contains(s.Why, "failed 100 times: exited 3") {
		t.Fatalf("why %q, last %+v", s.Why, s.Last)
	}
	for n, want := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
		if got := starts["t3"][n+1].Sub(starts["t3"][n]); got < want*time.Second || got > (want+2)*time.Second {
			t.Errorf("after failure %d it waits %v, want %d s", n+1, got, want)
		}
	}
}

func TestAFullQueueIsRefusedAtOnceAndTheTaskDispatchedElsewhere(t *testing.T) {
	c := config()
	c.Dispatch = RoundRobin
	b := newBench(t, c, "a", "b")
	b.submit(batch("j", 1))
	b.tick(time.Second)
	b.wants("j", "t0", "placed", "a")
	b.report("a", attemptAt("j", "t0", 1, speculation.AttemptRefused))
	b.tick(0)
	b.wants("j", "t0", "placed", "b")
}

func TestRefusalsAndLossesCostNoRetryAndHaveLimitsOfTheirOwn(t *testing.T) {
	for _, c := range []struct {
		told speculation.Attempt
		want string
	}{
		{attemptAt("j", "t0", 0, speculation.AttemptRefused), "refused 4 times"},
		{ended("j", "t0", 0, "lost"), "lost with its host, or killed by it, 3 times"},
		{ended("j", "t0", 0, "killed"), "lost with its host, or killed by it, 3 times"},
	} {
		cfg := config()
		cfg.RefusedLimit, cfg.LostLimit = 3, 2
		b := newBench(t, cfg, "a", "b")
		j := batch("j", 1)
		j.Retries = 0
		b.submit(j)
		for range 200 {
			b.report("a")
			b.report("b")
			b.tick(time.Second)
			s := b.task("j", "t0")
			if s.State != "placed" {
				continue
			}
			told := c.told
			told.Attempt = s.Attempts
			b.report(s.Host, told)
		}
		if s := b.task("j", "t0"); s.State != "failed" || !strings.Contains(s.Why, c.want) {
			t.Errorf("%+v, want %q", s, c.want)
		}
	}
}

func TestAFailureIsARetryAndASuccessAfterItIsDone(t *testing.T) {
	b := newBench(t, config(), "a")
	b.submit(batch("j", 1))
	b.tick(time.Second)
	b.report("a", ended("j", "t0", 1, "timed out"))
	b.tick(0)
	if s := b.task("j", "t0"); s.State != "waiting" || !s.Next.Equal(b.now.Add(time.Second)) {
		t.Fatalf("%+v", s)
	}
	b.tick(time.Second)
	b.wants("j", "t0", "placed", "a")
	b.report("a", exited("j", "t0", 2, 0))
	b.tick(0)
	b.wants("j", "t0", "done", "a")
	if s := b.m.State(b.now, "j"); s.State != "done" || s.Done != 1 {
		t.Fatalf("%+v", s)
	}
	if p := b.lists["a"]; len(p.Tasks) != 0 {
		t.Fatalf("a is told of %+v, want that it may forget", p.Tasks)
	}
}

func TestAHostGetsNoMoreThanItsBoundsAndTheRestWaits(t *testing.T) {
	c := config()
	c.Queued, c.Here = 2, 5
	b := newBench(t, c, "a")
	b.submit(batch("j", 20))
	b.tick(time.Second)
	if n := len(b.lists["a"].Tasks); n != 2 {
		t.Fatalf("%d are queued, want 2", n)
	}
	if s := b.m.State(b.now, "j"); !strings.Contains(s.Problem, "full") {
		t.Fatalf("problem %q", s.Problem)
	}
	var told []speculation.Attempt
	for range 10 {
		told = nil
		for _, p := range b.lists["a"].Tasks {
			told = append(told, running("j", p.Task, p.Attempt, .1))
		}
		b.report("a", told...)
		b.tick(time.Second)
	}
	if n := len(b.lists["a"].Tasks); n != 5 {
		t.Fatalf("%d are there, want 5", n)
	}
}

func TestTheHigherPriorityIsPlacedFirstThenTheEarlierJob(t *testing.T) {
	c := config()
	c.Queued = 3
	b := newBench(t, c, "a")
	b.m.Candidates(nil)
	for name, priority := range map[string]int{"low": 1, "high": 5} {
		j := batch(name, 2)
		j.Priority = priority
		b.submit(j)
	}
	b.tick(time.Second)
	if s := b.m.State(b.now, "low"); s.Problem != "no host is a candidate" {
		t.Fatalf("problem %q", s.Problem)
	}
	b.m.Candidates([]string{"a"})
	b.tick(time.Second)
	var got []string
	for _, p := range b.lists["a"].Tasks {
		got = append(got, fmt.Sprint(p.Job, p.Priority))
	}
	if !slices.Equal(got, []string{"high5", "high5", "low1"}) {
		t.Fatal(got)
	}
}

func TestACancelledJobEndsWhenItsHostsToldSo(t *testing.T) {
	b := newBench(t, config(), "a")
	b.submit(batch("j", 20))
	b.tick(time.Second)
	b.report("a", running("j", "t0", 1, .5), exited("j", "t1", 1, 0))
	if err := b.cancel("j"); err != nil {
		t.Fatal(err)
	}
	b.tick(time.Second)
	if p := b.listed("a", "t0"); p == nil || p.Kill != "cancelled by ann" {
		t.Fatalf("a is told %+v", p)
	}
	if s := b.m.State(b.now, "j"); s.State != "running" || s.Done != 1 {
		t.Fatalf("%+v", s)
	}
	if err := b.cancel("j"); err != nil {
		t.Fatal("a repeated cancel:", err)
	}
	b.report("a", ended("j", "t0", 1, "killed"))
	b.tick(time.Second)
	if s := b.m.State(b.now, "j"); s.State != "cancelled" {
		t.Fatalf("%+v", s)
	}
	b.wants("j", "t1", "done", "a")
	b.wants("j", "t19", "cancelled", "")
	b.restart()
	if s := b.m.State(b.now, "j"); s.State != "cancelled" {
		t.Fatalf("after a restart %+v", s)
	}
}

func TestAJobThatEndedIsForgottenAfterAWhileAndItsNameFree(t *testing.T) {
	b := newBench(t, config(), "a")
	b.submit(batch("j", 1))
	b.tick(time.Second)
	if err := b.ask(speculation.JobRequest{Verb: speculation.SubmitJob, ID: "other", Job: batch("j", 1)}); err == nil {
		t.Fatal("a second job of the name was taken")
	}
	b.report("a", exited("j", "t0", 1, 0))
	b.tick(time.Second)
	b.submit(batch("j", 1)) // the name is free, the numbers go on
	b.tick(time.Second)
	if p := b.listed("a", "t0"); p == nil || p.Attempt != 2 {
		t.Fatalf("a is told %+v, want attempt 2", p)
	}
	if s := b.task("j", "t0"); s.Attempts != 1 {
		t.Fatalf("%d attempts", s.Attempts)
	}
	b.report("a", exited("j", "t0", 2, 0))
	b.tick(time.Second)
	out := b.tick(25 * time.Hour)
	if len(b.m.Jobs()) != 0 || !slices.Equal(out.Forgotten, []string{"j"}) || len(b.store.values) != 2 {
		t.Fatalf("jobs %v, forgotten %v, stored %d", b.m.Jobs(), out.Forgotten, len(b.store.values))
	}
	b.restart()
	b.report("a")
	b.submit(batch("j", 1)) // of an old name: hosts may remember its attempts
	b.tick(time.Second)
	if p := b.listed("a", "t0"); p == nil || p.Attempt != 3 {
		t.Fatalf("a is told %+v, want attempt 3", p)
	}
}

func TestARequestThatComesTwiceCountsOnce(t *testing.T) {
	b := newBench(t, config(), "a")
	r := speculation.JobRequest{Verb: speculation.SubmitJob, ID: "x", Job: batch("j", 1)}
	for range 2 {
		if err := b.ask(r); err != nil {
			t.Fatal(err)
		}
		b.tick(time.Second)
	}
	b.restart()
	b.report("a", exited("j", "t0", 1, 0))
	b.tick(time.Second)
	if err := b.ask(r); err != nil || b.m.State(b.now, "j").State != "done" {
		t.Fatal("the job runs again", err)
	}
}

func TestAHostThatStartsNothingGetsNothingAndTheJobSaysWhy(t *testing.T) {
	b := newBench(t, config(), "a", "b")
	for _, host := range []string{"a", "b"} {
		b.number[host]++
		r := speculation.Machine{Host: host, Pool: "batch", Life: 1, Report: b.number[host], Blocked: "cpu over its threshold"}
		if err := b.m.Machine(b.now, &r); err != nil {
			t.Fatal(err)
		}
	}
	b.submit(batch("j", 1))
	b.tick(time.Second)
	b.wants("j", "t0", "waiting", "")
	if s := b.m.State(b.now, "j"); !strings.Contains(s.Problem, "cpu over its threshold") {
		t.Fatalf("problem %q", s.Problem)
	}
	b.report("b")
	b.tick(time.Second)
	b.wants("j", "t0", "placed", "b")
}

func TestTheNamesOfDeletedJobsAreBounded(t *testing.T) {
	c := config()
	c.Keep = 0
	b := newBench(t, c, "a")
	for i := range keptNames + 5 {
		name := fmt.Sprintf("j%d", i)
		b.submit(batch(name, 1))
		b.tick(time.Second)
		b.report("a", exited(name, "t0", 1, 0))
		b.tick(time.Second)
	}
	b.tick(time.Second)
	b.restart()
	if n := len(b.m.store.names); n != keptNames || b.m.store.names[n-1].Name != fmt.Sprintf("j%d", keptNames+4) {
		t.Fatalf("%d names, the newest %+v", n, b.m.store.names[n-1])
	}
}
