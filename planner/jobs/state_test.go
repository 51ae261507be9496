package jobs

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/trimtab/trimtab/speculation"
)

func TestTheStateOfALargeJobNamesTheFailedThenThePlacedAndCountsTheRest(t *testing.T) {
	c := config()
	c.Queued = 50
	b := newBench(t, c, "a")
	j := batch("j", 5000)
	j.Retries = 0
	b.submit(j)
	b.tick(time.Second)
	b.report("a", exited("j", "t40", 1, 9), running("j", "t7", 1, .25))
	b.m.Candidates(nil)
	out := b.tick(time.Second)
	s := out.States[0]
	if s.Failed != 1 || s.Running != 1 || s.Waiting != 4998 || s.Omitted != 4900 || len(s.Tasks) != 100 || s.State != "running" {
		t.Fatalf("%+v", s)
	}
	if !slices.ContainsFunc(s.Tasks, func(t speculation.TaskState) bool { return t.Name == "t40" && t.State == "failed" }) {
		t.Fatal("the failed task is not among them")
	}
	placed := 0
	for _, t := range s.Tasks {
		if t.State == "placed" || t.State == "running" {
			placed++
		}
	}
	if placed != 49 {
		t.Fatalf("%d of 49 placed tasks are among them", placed)
	}
	if !slices.IsSortedFunc(s.Tasks, func(x, y speculation.TaskState) int { return len(x.Name) - len(y.Name) }) {
		t.Fatal("they are not in the order of the job")
	}
}

func TestStatesAreToldWhenTheyChangeAndNotMoreOftenThanSet(t *testing.T) {
	c := config()
	c.StateEvery = 5 * time.Second
	b := newBench(t, c, "a")
	b.submit(batch("j", 3))
	told := 0
	var last *speculation.JobState
	for i := range 60 {
		if i > 0 && i <= 20 {
			state := speculation.AttemptRunning
			if i%2 == 0 {
				state = speculation.AttemptFrozen
			}
			b.report("a", attemptAt("j", "t0", 1, state))
		}
		if out := b.tick(time.Second); len(out.States) > 0 {
			told++
			last = out.States[0]
		}
	}
	if told < 4 || told > 6 {
		t.Fatalf("told %d times", told)
	}
	if a, b := fmt.Sprint(last.Tasks[0].State), b.task("j", "t0").State; a != b {
		t.Fatalf("told last that it is %s, it is %s", a, b)
	}
}

func TestTheLargestStateFitsInAMessage(t *testing.T) {
	b := newBench(t, config(), "a")
	b.m.config.Queued = 200
	j := batch("j", 200)
	j.Retries = 0
	b.submit(j)
	b.tick(time.Second)
	var told []speculation.Attempt
	for i := range 200 {
		a := exited("j", fmt.Sprintf("t%d", i), 1, 1)
		for range 100 {
			a.LastLines = append(a.LastLines, "<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<")
		}
		a.Reason, a.Problem, a.Outcome = string(make([]byte, 5000)), "<"+string(make([]byte, 5000)), "<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<"
		told = append(told, a)
	}
	b.report("a", told...)
	out := b.tick(time.Second)
	if text, err := json.Marshal(out.States[0]); err != nil || len(text) > MaxRecord {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
}

func TestTheSameInputsGiveTheSameOutputs(t *testing.T) {
	run := func() string {
		b := newBench(t, config(), "a", "b", "c")
		text := ""
		for i := range 4 {
			b.submit(batch(fmt.Sprintf("j%d", i), 10))
			b.report("a", attemptAt("j0", "t0", 1, speculation.AttemptRefused), attemptAt("j0", "t1", 1, speculation.AttemptRefused))
			out := b.tick(20 * time.Second)
			line, _ := json.Marshal(out)
			text += string(line)
			if i == 2 {
				b.restart()
			}
		}
		return text
	}
	first := run()
	for range 5 {
		if run() != first {
			t.Fatal("two runs differ")
		}
	}
}
