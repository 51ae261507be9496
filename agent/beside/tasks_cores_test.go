package beside

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator/cpuset"
	"github.com/trimtab/trimtab/actuator/task"
	"github.com/trimtab/trimtab/agent/signals"
	"github.com/trimtab/trimtab/planner/throttle"
	"github.com/trimtab/trimtab/speculation"
)

func TestTasksGetTheHighestCoresThatNoServiceHasForItselfAndWholeOnes(t *testing.T) {
	threads := []cpuset.Set{{0, 4}, {1, 5}, {2, 6}, {3, 7}}
	for _, c := range []struct {
		first, second int
		held          cpuset.Set
		want          string
	}{
		{2, 6, nil, "1-3,5-7"}, {3, 5, nil, "2-3,6-7"}, {7, 1, nil, ""}, {6, 2, nil, "3,7"}, {2, 6, cpuset.Set{3, 7}, "0-2,4-6"},
		{4, 4, cpuset.Set{7}, "1-2,5-6"}, {0, 8, nil, ""}, {8, 0, nil, ""}, {20, 4, nil, ""}, {1, 7, cpuset.Set{0, 1, 2, 3}, ""},
	} {
		want, err := cpuset.ParseSet(c.want)
		if err != nil && c.want != "" {
			t.Fatal(err)
		}
		got := (&pins{cores: threads}).second(throttle.Classes{First: c.first, Second: c.second}, c.held)
		if got.String() != want.String() {
			t.Errorf("%d first, %d second, held %s: %s, want %s", c.first, c.second, c.held, got, want)
		}
	}
}

func TestTheCoresOfServicesAreReadOfThoseThatHaveNotAll(t *testing.T) {
	root := t.TempDir()
	for group, cpus := range map[string]string{"shop/1": "2-3\n", "shop/2": "5\n", "all": "0-7\n", "own": "\n", "stranger": "7\n"} {
		if err := os.MkdirAll(filepath.Join(root, group), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, group, "cpuset.cpus"), []byte(cpus), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := cpuset.ParseSet("0-7")
	if err != nil {
		t.Fatal(err)
	}
	held := heldBy(root, all, []signals.Service{{Path: "shop/*"}, {Path: "all"}, {Path: "own"}, {Path: "gone"}})
	if held.String() != "2-3,5" {
		t.Errorf("held are %s", held)
	}
}

func TestATaskRunsOnTheSecondClassBesideAServiceAndOnAllCoresWithAGrant(t *testing.T) {
	w := newTaskWorld(t, ", mode: RP, regular: {cpu: 2, memory: 1GiB}")
	w.pins = &pins{cores: []cpuset.Set{{0}, {1}, {2}}, held: func() cpuset.Set { return nil }, last: map[task.ID]string{}}
	w.signals = signals.New(nil) // nobody is measured, so nobody hinders a start
	a, granted := place("a"), place("b")
	granted.Class = speculation.RegularTask
	w.list(a, granted)
	if got := w.run.specs[a.AttemptID].CPUs; got != "" {
		t.Errorf("without a service it starts on %q", got)
	}
	classes := throttle.Classes{First: 1, Second: 2}
	w.classify(classes)
	w.bind(t.Context())
	w.turns.running.Wait()
	if got, regular := w.run.pinned[a.AttemptID], w.run.pinned[granted.AttemptID]; got != "1-2" || regular != "" {
		t.Errorf("on %q, with a grant on %q", got, regular)
	}
	w.settle()
	clear(w.run.pinned)
	w.bind(t.Context())
	w.turns.running.Wait()
	if len(w.run.pinned) > 0 {
		t.Errorf("bound again: %v", w.run.pinned)
	}
	w.known.classes[a.AttemptID] = throttle.First
	w.bind(t.Context())
	w.turns.running.Wait()
	if got, asked := w.run.pinned[a.AttemptID]; !asked || got != "" {
		t.Errorf("of the first class on %q", got)
	}
}

func TestAHostThatCannotBindTasksSaysWhy(t *testing.T) {
	for _, r := range []cpusOf{{"", trimtab.ErrUnsupported}, {"x", nil}} {
		if p, err := openPins(r, t.TempDir(), nil); err == nil || p != nil {
			t.Errorf("%+v: %v, %v", r, p, err)
		}
	}
	if _, err := openPins(cpusOf{"", trimtab.ErrUnsupported}, "", nil); !errors.Is(err, trimtab.ErrUnsupported) {
		t.Error(err)
	}
}

// cpusOf is what a runner says.
type cpusOf struct {
	text string
	err  error
}

func (c cpusOf) CPUs() (string, error) { return c.text, c.err }
