package beside

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator/task"
	"github.com/trimtab/trimtab/agent/signals"
	"github.com/trimtab/trimtab/collector/load"
	"github.com/trimtab/trimtab/speculation"
)

// strange is a list as nobody should send it.
func strange(t *rapid.T, w *taskWorld) *speculation.Placements {
	p := &speculation.Placements{Pool: "default", Host: "h", Epoch: rapid.Uint64Range(0, 2).Draw(t, "epoch"), Sequence: w.sequence + rapid.Uint64Range(0, 2).Draw(t, "later"),
		Time: time.Now(), Life: w.told.Life, Report: w.told.Report - rapid.Uint64Range(0, 1).Draw(t, "ago"),
		Lease: trimtab.Seconds(rapid.SampledFrom([]float64{5, 10, 30, 5, 10, 30, -1, math.NaN(), math.Inf(1), 1e300}).Draw(t, "lease"))}
	w.sequence = p.Sequence
	amount := rapid.SampledFrom([]float64{0.5, 64 << 20, 0.5, 64 << 20, 0, -1, math.NaN(), math.Inf(1), 1e300})
	names := rapid.Permutation([]string{"a", "b", "c", "d"}).Draw(t, "names")
	for i := range rapid.IntRange(0, 5).Draw(t, "tasks") {
		one := place(append(names, "../d")[i])
		one.Attempt = 1 + rapid.IntRange(0, 20).Draw(t, "attempt")
		one.Class = rapid.SampledFrom([]speculation.TaskClass{speculation.OversubscribedTask, speculation.RegularTask}).Draw(t, "class")
		if rapid.IntRange(0, 100).Draw(t, "no class") == 0 {
			one.Class = "?"
		}
		one.Kill = rapid.SampledFrom([]string{"", "", "", "no longer"}).Draw(t, "kill")
		if rapid.IntRange(0, 4).Draw(t, "odd") == 0 {
			one.Spec.Cores, one.Spec.Memory = amount.Draw(t, "cores"), amount.Draw(t, "memory")
			one.Spec.Command = rapid.SampledFrom([][]string{nil, {}, {""}, {"/bin/true", "\x00"}, {"/etc/x"}, {".."}}).Draw(t, "command")
		}
		p.Tasks = append(p.Tasks, one)
	}
	return p
}

// Whatever a planner sends, and however tasks end, fail and turn.
func TestWhateverAPlannerSendsEachAttemptStartsOnceOneAtATimeAndNoLongerThanItsLease(t *testing.T) {
	outer, started, ended := t, 0, 0
	var readings []load.Reading // once for all: they are files
	for w := newTaskWorld(t, ""); len(readings) < 120; w.now += time.Second {
		readings = append(readings, w.loads.read())
	}
	rapid.Check(t, func(t *rapid.T) {
		w := newTaskWorld(outer, ", mode: UP, lease: 10s, queue: 3, tasks: 2, regular: {cpu: 1, memory: 256MiB}")
		n := 0
		w.loads.read = func() load.Reading { n++; r := readings[n%len(readings)]; r.At = w.now; return r }
		answered := w.now
		for range rapid.IntRange(4, 14).Draw(t, "ticks") {
			switch rapid.IntRange(0, 4).Draw(t, "event") {
			case 0, 1:
				w.inbox.put(strange(t, w))
				answered = w.now
			case 2:
				w.run.broken = rapid.SampledFrom([]error{nil, nil, errors.New("no")}).Draw(t, "broken")
			case 3:
				for id := range w.run.tasks {
					_ = w.run.change(id, func(i *task.Info) { i.State, i.Outcome = task.Ended, task.Exited })
					break
				}
			}
			w.seconds(rapid.IntRange(1, 4).Draw(t, "seconds"))
			live, regular := map[string]int{}, 0.0
			for id, i := range w.run.tasks {
				if i.State == task.Ended {
					continue
				}
				if live[id.Task]++; live[id.Task] > 1 {
					t.Fatalf("two attempts at task %s run", id.Task)
				}
				if w.now-answered > 20*time.Second {
					t.Fatalf("%v runs %v after the last list", id, w.now-answered)
				}
				if i.Class == task.Regular {
					regular += w.run.specs[id].Cores.Value
				}
			}
			if regular > 1 {
				t.Fatalf("%v cores are regular, the file allows 1", regular)
			}
		}
		ended += len(w.run.killed)
		once := map[task.ID]bool{}
		for _, id := range w.run.started {
			if once[id] {
				t.Fatalf("%v was started twice", id)
			}
			once[id] = true
			started++
			if s := w.run.specs[id]; s.User != "65534" || s.Command[0] != "/bin/true" {
				t.Fatalf("%+v", s)
			}
		}
	})
	if t.Logf("%d attempts started, %d killed", started, ended); started < 30 || ended < 10 {
		t.Error("too few to say anything")
	}
}

// BenchmarkTaskTick is a second of the loop with so many tasks, and nothing to do.
func BenchmarkTaskTick(b *testing.B) {
	for _, n := range []int{0, 64} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := newTaskWorld(b, ", mode: UP, ratio: {cpu: 100, memory: 100}")
			w.loads.read = load.Reader{}.Read
			var all []speculation.Placement
			for i := range n {
				all = append(all, place(fmt.Sprint(i)))
			}
			w.list(all...)
			w.seconds(n)
			for b.Loop() {
				w.now += time.Second
				w.frame.Round(context.Background(), signals.Time(w.now))
			}
		})
	}
}
