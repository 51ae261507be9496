package actuator_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// nursery is where instances of the workload w come and go: the files w* of a
// directory.
type nursery struct {
	dir string
	// broken is what Find says, stuck what a write says.
	broken, stuck error
	// stopped are those that are gone and left their file behind.
	stopped map[string]bool
	// open counts the knobs that are open.
	open int
}

// bornKnob is the knob of one of them.
type bornKnob struct {
	*fileKnob
	nursery *nursery
	closed  bool
}

func (k *bornKnob) Close() error {
	if !k.closed {
		k.closed = true
		k.nursery.open--
	}
	return nil
}

func (n *nursery) path(name string) string { return filepath.Join(n.dir, "w"+name) }

func (n *nursery) finder() actuator.Finder {
	return actuator.Finder{
		Workload: "w", Pattern: "w*",
		Like: []actuator.Target{{KnobID: trimtab.KnobID{Resource: "cpu"}, Min: 0.1, Max: 8}},
		Find: func(context.Context) (all []actuator.Instance, err error) {
			paths, err := filepath.Glob(n.path("*"))
			for _, p := range paths {
				var s syscall.Stat_t
				name := strings.TrimPrefix(filepath.Base(p), "w")
				if syscall.Stat(p, &s) == nil && !n.stopped[name] {
					all = append(all, actuator.Instance{Name: name, ID: s.Ino})
				}
			}
			return all, errors.Join(err, n.broken)
		},
		Open: func(name string) ([]actuator.Target, error) {
			n.open++
			k := &bornKnob{fileKnob: &fileKnob{Path: n.path(name), before: func(trimtab.Amount) error { return n.stuck }}, nursery: n}
			return []actuator.Target{{KnobID: trimtab.KnobID{Resource: "cpu"}, Knob: k, Min: 0.1, Max: 8, Mode: trimtab.Act}}, nil
		},
	}
}

// newNursery makes a host that has nothing but instances, none of them yet.
func newNursery(t testing.TB) (*host, *nursery) {
	h := newHost(t)
	n := &nursery{dir: filepath.Join(h.dir, "instances"), stopped: map[string]bool{}}
	if err := os.Mkdir(n.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	h.config.Finders = []actuator.Finder{n.finder()}
	return h, n
}

// bear makes an instance, or a new one of that name: another file, which is made
// while the old one is there, so that its number is another.
func (n *nursery) bear(t testing.TB, name string, v trimtab.Amount) {
	t.Helper()
	next := filepath.Join(n.dir, "next")
	if err := errors.Join(os.WriteFile(next, []byte(format(v)), 0o644), os.Rename(next, n.path(name))); err != nil {
		t.Fatal(err)
	}
}

func (n *nursery) remove(t testing.TB, name string) {
	t.Helper()
	if err := os.Remove(n.path(name)); err != nil {
		t.Fatal(err)
	}
}

// holds returns what an instance has.
func (n *nursery) holds(t testing.TB, name string) trimtab.Amount {
	t.Helper()
	v, err := (&fileKnob{Path: n.path(name)}).Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// sum is what the named instances have together, but those that are stopped.
func (n *nursery) sum(t testing.TB, all map[string]trimtab.Amount) (sum float64) {
	for name := range all {
		if !n.stopped[name] {
			sum += n.holds(t, name).Value
		}
	}
	return sum
}

// turn is an action on an instance.
func turn(name string, expect, value trimtab.Amount) trimtab.Action {
	a := set(0, expect, value)
	a.Workload, a.Instance = "w", name
	return a
}

// names lists the instances in the holding.
func names(h *host) (all []string) {
	for _, k := range h.Holding().Targets {
		all = append(all, k.Instance)
	}
	return all
}

// journaled lists the knobs in the journal.
func journaled(t testing.TB, h *host) (all []string) {
	t.Helper()
	state, _, err := hostfs.ReadJournal(h.config.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for k := range state {
		if strings.HasPrefix(k, "knob/") {
			all = append(all, k)
		}
	}
	return all
}
