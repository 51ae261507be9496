package jobs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/speculation"
)

func TestAReplacedManagerCannotCompleteAStore(t *testing.T) {
	b := newBench(t, config(), "a")
	b.submit(batch("j", 3))
	b.tick(time.Second)
	old, oldClient := b.m, b.client
	b.restart()
	b.tick(time.Second) // its fence is there
	if err := old.Request(b.now, &speculation.JobRequest{Pool: "batch", Verb: speculation.SubmitJob, ID: "late", Job: batch("late", 1)}); err != nil {
		t.Fatal(err)
	}
	if err := oldClient.put(old.Tick(b.now).Store, 1000); err == nil {
		t.Fatal("it stored what nobody will know of")
	}
	b.restart()
	if len(b.m.Jobs()) != 1 {
		t.Fatalf("jobs %v: one was never committed", b.m.Jobs())
	}
	b.tick(time.Second)
	for key := range b.store.values {
		if strings.HasPrefix(key, "job.2.") {
			t.Errorf("%s is left", key)
		}
	}
}

func TestARestoreOfALaterEpochsRecordsIsRefused(t *testing.T) {
	b := newBench(t, config(), "a")
	b.tick(time.Second)
	c := b.config
	c.Epoch--
	if _, err := New(b.now, c, b.store.records()); !errors.Is(err, trimtab.ErrStale) {
		t.Fatal(err)
	}
}

func TestRecordsWithoutTheFenceAreNotTakenForNothing(t *testing.T) {
	b := newBench(t, config(), "a")
	b.submit(batch("j", 1))
	b.tick(time.Second)
	delete(b.store.values, FenceKey)
	if _, err := New(b.now, b.config, b.store.records()); !errors.Is(err, trimtab.ErrInvalid) {
		t.Fatal(err)
	}
}

func TestRecordsAreBoundedAndAChangeOfOneTaskWritesLittle(t *testing.T) {
	b := newBench(t, config(), "a")
	j := batch("j", 5000)
	for i := range j.Tasks {
		j.Tasks[i].Command = append(j.Tasks[i].Command, strings.Repeat("<", 40)) // 6 bytes each, in JSON
	}
	j.Tasks[7].Env = map[string]string{"LARGE": strings.Repeat("x", 100<<10), "TOO": strings.Repeat("y", 100<<10)}
	b.submit(j)
	out := b.tick(time.Second)
	sum := 0
	for _, r := range out.Store {
		sum += len(r.Value)
		if len(r.Value) > MaxRecord {
			t.Errorf("%s has %d bytes", r.Key, len(r.Value))
		}
	}
	t.Logf("%d tasks: %d records, %d bytes", len(j.Tasks), len(out.Store), sum)
	b.report("a", exited("j", "t0", 1, 0))
	b.m.Candidates(nil)
	out = b.tick(time.Second)
	if len(out.Store) != 2 || len(out.Store[0].Value) > 8<<10 || out.Store[1].Key != FenceKey {
		t.Fatalf("one change writes %d records, the first of %d bytes", len(out.Store), len(out.Store[0].Value))
	}
	b.restart()
	for i := range j.Tasks {
		if got := b.m.jobs.byName["j"].Tasks[i]; fmt.Sprint(got) != fmt.Sprint(j.Tasks[i]) {
			t.Fatalf("task %d came back as %.200v", i, got)
		}
	}
}

func TestTheLastLinesOfAllTasksOfAChunkFitInItsRecord(t *testing.T) {
	b := newBench(t, config(), "a")
	c := b.m.config
	b.m.config.Queued = c.Here
	j := batch("j", chunkTasks)
	j.Retries = 0
	b.submit(j)
	b.tick(time.Second)
	var told []speculation.Attempt
	for i := range chunkTasks {
		a := exited("j", fmt.Sprintf("t%d", i), 1, 1)
		for range 100 {
			a.LastLines = append(a.LastLines, strings.Repeat("\x00<&>\"", 500))
		}
		a.Reason, a.Problem, a.Outcome = strings.Repeat("<", 1<<16), strings.Repeat("\x01", 1<<16), strings.Repeat("\xff", 1<<10)
		told = append(told, a)
	}
	b.report("a", told...)
	out := b.tick(time.Second)
	for _, r := range out.Store {
		if len(r.Value) > 256<<10 {
			t.Errorf("%s has %d bytes", r.Key, len(r.Value))
		}
	}
	if s := b.m.State(b.now, "j"); s.Failed != chunkTasks || len(s.Tasks[0].Last.LastLines) == 0 {
		t.Fatalf("%d failed, last lines %q", s.Failed, s.Tasks[0].Last.LastLines)
	}
}

func TestAJobThatCannotBeReadIsLeftAloneAndTheOthersRun(t *testing.T) {
	for _, damage := range []string{"job.1.head", "job.1.spec.0", "job.1.state.0"} {
		b := newBench(t, config(), "a")
		b.submit(batch("broken", 2))
		b.submit(batch("whole", 2))
		b.tick(time.Second)
		b.store.values[damage] = []byte(`{"v":1,"tasks":[{"n":-4}]`)
		before := bytes.Clone(b.store.values["job.1.head"])
		b.config.Epoch++
		m, err := New(b.now, b.config, b.store.records())
		if err != nil || len(m.Unreadable()) != 1 {
			t.Fatalf("%s: %v, %v", damage, err, m.Unreadable())
		}
		if len(m.Jobs()) != 1 || m.Jobs()[0] != "whole" {
			t.Fatalf("%s: jobs %v", damage, m.Jobs())
		}
		b.m, b.client = m, b.store.client()
		b.tick(time.Second)
		if !bytes.Equal(b.store.values["job.1.head"], before) || b.store.values[damage] == nil {
			t.Fatalf("%s: its records were changed", damage)
		}
		if damage != "job.1.head" && b.ask(speculation.JobRequest{Verb: speculation.SubmitJob, Job: batch("broken", 1)}) == nil {
			t.Fatalf("%s: its name was given away", damage)
		}
	}
}

func TestAStoreThatIsCutOffAnywhereIsGoneOnWith(t *testing.T) {
	for limit := 0; ; limit++ {
		b := newBench(t, config(), "a", "b")
		b.submit(batch("j", 40))
		b.submit(batch("k", 1))
		b.tick(time.Second)
		b.report("a", exited("k", "t0", 1, 0), exited("j", "t0", 1, 0))
		b.report("b", exited("k", "t0", 1, 0), exited("j", "t0", 1, 0))
		if err := b.cancel("j"); err != nil {
			t.Fatal(err)
		}
		out := b.m.Tick(b.now)
		err := b.client.put(out.Store, limit)
		b.restart()
		for _, name := range b.m.Jobs() {
			for i := range b.m.jobs.byName[name].tasks {
				if s := b.m.jobs.byName[name].tasks[i].status; s == cancelled && b.m.jobs.byName[name].cancelled == "" {
					t.Fatalf("cut off after %d records: task %d of %s is cancelled, the job is not", limit, i, name)
				}
			}
		}
		if len(b.m.Jobs()) != 2 {
			t.Fatalf("cut off after %d records: jobs %v", limit, b.m.Jobs())
		}
		if err == nil {
			return
		}
	}
}

func TestAFirstStoreThatIsCutOffIsGoneOnWith(t *testing.T) {
	for limit := range 10 {
		b := newBench(t, config(), "a")
		b.submit(batch("j", 40))
		err := b.client.put(b.m.Tick(b.now).Store, limit)
		b.restart()
		if got := len(b.m.Jobs()); err == nil != (got == 1) {
			t.Fatalf("cut off after %d records: %d jobs, %v", limit, got, err)
		}
		b.submit(batch("j2", 1))
		b.tick(time.Second)
	}
}

func TestAListIsBoundedInBytesAndParts(t *testing.T) {
	c := config()
	c.Queued, c.Here = 1000, 1000
	for name, change := range map[string]func(*speculation.TaskSpec){
		"words": func(s *speculation.TaskSpec) { s.Command = slices.Repeat([]string{"x"}, 1000) },
		"bytes": func(s *speculation.TaskSpec) { s.Command = append(s.Command, strings.Repeat("<", 8<<10)) },
	} {
		b := newBench(t, c, "a")
		for k := range 4 {
			j := batch(fmt.Sprintf("j%d", k), 50)
			for i := range j.Tasks {
				change(&j.Tasks[i].TaskSpec)
			}
			b.submit(j)
		}
		b.tick(time.Second) // which validates what is listed
		text, err := json.Marshal(b.lists["a"])
		if err != nil || len(text) > 1<<20 || len(b.lists["a"].Tasks) < 10 {
			t.Errorf("%s: %d bytes, %d tasks, %v", name, len(text), len(b.lists["a"].Tasks), err)
		}
	}
}

func TestAJobThatIsNeverCommittedDoesNotTakeTheNumbersOfItsName(t *testing.T) {
	c := config()
	c.Keep = 0
	b := newBench(t, c, "a")
	b.submit(batch("j", 1))
	b.tick(time.Second)
	b.report("a", exited("j", "t0", 1, 0))
	b.tick(time.Second)
	b.tick(time.Second)
	for limit := range 4 {
		b.submit(batch("j", 1))
		_ = b.client.put(b.m.Tick(b.now).Store, limit)
		b.restart()
		if len(b.m.Jobs()) > 0 {
			break
		}
		b.report("a")
		b.tick(time.Second)
		if b.m.store.recall("j") != 1 {
			t.Fatalf("cut off after %d records: attempts at j were made up to %d", limit, b.m.store.recall("j"))
		}
	}
}
