package actuator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
)

// fileKnob is a knob on a plain file, so that other processes see it. It
// rounds to hundredths.
type fileKnob struct {
	Path string `json:"path"`
	// before is called before each write, and its error is the write's.
	before func(v trimtab.Amount) error
	writes int
	// readOnly: a write would be refused.
	readOnly bool
}

func (k *fileKnob) String() string              { return "file " + filepath.Base(k.Path) }
func (k *fileKnob) Resource() string            { return "cpu" }
func (k *fileKnob) Location() (string, error)   { _, err := os.Stat(k.Path); return k.Path, err }
func (k *fileKnob) Probe(context.Context) error { _, err := os.Stat(k.Path); return err }
func (k *fileKnob) MayWrite(context.Context) error {
	if k.readOnly {
		return fmt.Errorf("%s is somebody else's: %w", k, trimtab.ErrRefused)
	}
	return nil
}
func (k *fileKnob) Close() error            { return nil }
func (k *fileKnob) Traits() actuator.Traits { return actuator.Traits{Location: k.Location} }
func (k *fileKnob) Undo() []byte            { b, _ := json.Marshal(k); return b }

func (k *fileKnob) Nearest(a trimtab.Amount) trimtab.Amount {
	v, _ := parse(format(a))
	return v
}

func (k *fileKnob) Read(context.Context) (trimtab.Amount, error) {
	b, err := os.ReadFile(k.Path)
	if err != nil {
		return trimtab.Amount{}, err
	}
	return parse(string(b))
}

func (k *fileKnob) Write(_ context.Context, a trimtab.Amount) error {
	if k.before != nil {
		if err := k.before(a); err != nil {
			return err
		}
	}
	k.writes++
	f, err := os.OpenFile(k.Path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(format(a))
	return errors.Join(err, f.Close())
}

// format has a fixed width, so that one write replaces the value as a whole.
func format(a trimtab.Amount) string {
	if a.Unlimited {
		return "        max\n"
	}
	return fmt.Sprintf("%11.2f\n", a.Value)
}

func parse(s string) (trimtab.Amount, error) {
	if s == format(trimtab.Unlimited()) {
		return trimtab.Unlimited(), nil
	}
	var v float64
	_, err := fmt.Sscan(s, &v)
	return trimtab.Units(v), err
}

func reopen(undo []byte) (actuator.Knob, error) {
	var k fileKnob
	if err := json.Unmarshal(undo, &k); err != nil || k.Path == "" {
		return nil, trimtab.Invalidf("undo %q", undo)
	}
	grow(filepath.Dir(k.Path))
	return &k, nil
}

// host is a host with targets w0, w1, … and clocks of its own.
type host struct {
	t      testing.TB
	dir    string
	knobs  []*fileKnob
	config actuator.Config
	wall   time.Time
	boot   time.Duration
	bootID string
	*actuator.Actuator
}

// newHost makes a host whose knobs hold the given values, bounded to [0.1, 8].
func newHost(t testing.TB, values ...trimtab.Amount) *host {
	t.Helper()
	h := &host{
		t: t, dir: tempDir(t), wall: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), boot: time.Hour, bootID: "boot-1",
	}
	h.config = actuator.Config{Host: "h", Pool: "p", Dir: filepath.Join(h.dir, "journal"), LockDir: filepath.Join(h.dir, "locks"), Reopen: reopen, JournalSize: 64 << 10}
	for i, v := range values {
		k := &fileKnob{Path: filepath.Join(h.dir, "w"+strconv.Itoa(i))}
		h.put(k, v)
		h.knobs = append(h.knobs, k)
		h.config.Targets = append(h.config.Targets, actuator.Target{
			KnobID: trimtab.KnobID{Workload: "w" + strconv.Itoa(i), Resource: "cpu"}, Knob: k, Min: 0.1, Max: 8, Mode: trimtab.Act,
		})
	}
	return h
}

// tempDir is in memory where that is to be had: a thousand syncs are quick.
func tempDir(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "trimtab-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// open starts the actuator.
func (h *host) open() *host {
	h.t.Helper()
	a, err := actuator.OpenAt(h.t.Context(), h.config,
		func() time.Time { return h.wall }, func() time.Duration { return h.boot }, h.bootID)
	if err != nil {
		h.t.Fatal(err)
	}
	h.Actuator = a
	h.t.Cleanup(func() { a.Close(context.Background()) })
	return h
}

// crash ends the actuator as SIGKILL would: nothing is restored.
func (h *host) crash() *host {
	h.t.Helper()
	if err := h.Abandon(); err != nil {
		h.t.Fatal(err)
	}
	return h
}

// put sets a file as somebody else would.
func (h *host) put(k *fileKnob, v trimtab.Amount) {
	h.t.Helper()
	if err := os.WriteFile(k.Path, []byte(format(v)), 0o644); err != nil {
		h.t.Fatal(err)
	}
}

// want compares all files.
func (h *host) want(values ...trimtab.Amount) {
	h.t.Helper()
	for i, k := range h.knobs {
		if got, err := k.Read(h.t.Context()); err != nil || got != values[i] {
			h.t.Errorf("w%d holds %v (%v), want %v", i, got, err, values[i])
		}
	}
}

// set is an action: target i from expect to value.
func set(i int, expect, value trimtab.Amount) trimtab.Action {
	return trimtab.Action{KnobID: trimtab.KnobID{Pool: "p", Host: "h", Workload: "w" + strconv.Itoa(i), Resource: "cpu"}, Expect: expect, Set: value, Mode: trimtab.Act}
}

func units(v float64) trimtab.Amount { return trimtab.Units(v) }

// plan makes a last step with a lease of 30 s and room for everything.
func (h *host) plan(epoch, sequence uint64, actions ...trimtab.Action) *trimtab.Plan {
	return &trimtab.Plan{
		Pool: "p", Epoch: epoch, Sequence: sequence, Step: 1, Last: true, Time: h.wall, Capacity: 1000, Lease: 30, Actions: actions,
	}
}

// statuses handles a plan that must be accepted and returns what became of
// each action.
func (h *host) statuses(p *trimtab.Plan) []trimtab.Status {
	h.t.Helper()
	o := h.Handle(h.t.Context(), p)
	if err := o.Validate(); err != nil {
		h.t.Fatalf("outcome: %v", err)
	}
	if o.Refused != "" {
		h.t.Fatalf("plan %s was refused: %s", p.ID(), o.Refused)
	}
	s := make([]trimtab.Status, len(o.Results))
	for i, r := range o.Results {
		s[i] = r.Status
	}
	return s
}

// refused handles a plan that must be refused as a whole.
func (h *host) refused(p *trimtab.Plan) string {
	h.t.Helper()
	o := h.Handle(h.t.Context(), p)
	if o.Refused == "" || len(o.Results) > 0 {
		h.t.Fatalf("plan %s step %d was accepted: %+v", p.ID(), p.Step, o)
	}
	return o.Refused
}

// pass lets time go by on both clocks.
func (h *host) pass(d time.Duration) {
	h.wall, h.boot = h.wall.Add(d), h.boot+d
}

// problem returns the reported problem of target i.
func (h *host) problem(i int) string { return h.Holding().Targets[i].Problem }
