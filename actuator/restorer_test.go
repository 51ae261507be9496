package actuator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
)

// bagKnob is a file with letters, whose amount is their number: there are several
// bags of as many letters.
type bagKnob struct {
	Path string `json:"path"`
	// Letters are those that were there when it was read last.
	Letters string `json:"letters"`
}

func (k *bagKnob) String() string                 { return "bag " + filepath.Base(k.Path) }
func (k *bagKnob) Resource() string               { return "cpu" }
func (k *bagKnob) Probe(context.Context) error    { return nil }
func (k *bagKnob) MayWrite(context.Context) error { return nil }
func (k *bagKnob) Traits() actuator.Traits        { return actuator.Traits{Restore: k.Restore} }
func (k *bagKnob) Close() error                   { return nil }
func (k *bagKnob) Undo() []byte                   { b, _ := json.Marshal(k); return b }

func (k *bagKnob) Nearest(a trimtab.Amount) trimtab.Amount {
	return trimtab.Units(float64(int(a.Value)))
}

func (k *bagKnob) Read(context.Context) (trimtab.Amount, error) {
	b, err := os.ReadFile(k.Path)
	k.Letters = string(b)
	return trimtab.Units(float64(len(b))), err
}

// Write puts others in the bag, as many as are asked for.
func (k *bagKnob) Write(_ context.Context, a trimtab.Amount) error {
	return os.WriteFile(k.Path, []byte(strings.Repeat("x", int(a.Value))), 0o644)
}

func (k *bagKnob) Restore(_ context.Context, undo []byte) error {
	var was bagKnob
	if err := json.Unmarshal(undo, &was); err != nil {
		return err
	}
	switch was.Letters {
	case "lost":
		return fmt.Errorf("bring back %s: %w", was.Letters, trimtab.ErrUnsupported)
	case "broken":
		return errors.New("the bag is broken")
	}
	return os.WriteFile(k.Path, []byte(was.Letters), 0o644)
}

func reopenBag(undo []byte) (actuator.Knob, error) {
	var k bagKnob
	if err := json.Unmarshal(undo, &k); err != nil || k.Path == "" {
		return nil, fmt.Errorf("reopen bag: %w", trimtab.ErrUnsupported)
	}
	k.Letters = ""
	return &k, nil
}

// newBag is a host with one bag, which held letters before a plan set each amount in
// turn.
func newBag(t *testing.T, letters string, amounts ...float64) (*host, *bagKnob) {
	t.Helper()
	h := newHost(t)
	k := &bagKnob{Path: filepath.Join(h.dir, "bag")}
	if err := os.WriteFile(k.Path, []byte(letters), 0o644); err != nil {
		t.Fatal(err)
	}
	h.config.Reopen = reopenBag
	h.config.Targets = []actuator.Target{{KnobID: trimtab.KnobID{Workload: "w0", Resource: "cpu"}, Knob: k, Max: 8, Mode: trimtab.Act}}
	h.open()
	now := float64(len(letters))
	for i, v := range amounts {
		if s := h.statuses(h.plan(1, uint64(i+1), set(0, units(now), units(v)))); s[0] != trimtab.Written {
			t.Fatalf("%v", s)
		}
		now = v
	}
	return h, k
}

func (k *bagKnob) content(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(k.Path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestWhatIsMoreThanAnAmountComesBackExactlyWhoeverRestoresIt(t *testing.T) {
	for _, amounts := range [][]float64{{1}, {3}, {1, 2}} { // also where as much is there again, of something else
		h, k := newBag(t, "ab", amounts...)
		if err := h.Close(t.Context()); err != nil || k.content(t) != "ab" {
			t.Errorf("%v: stopped: %q, %v", amounts, k.content(t), err)
		}
		h, k = newBag(t, "ab", amounts...)
		h.crash()
		report, err := actuator.Restore(t.Context(), h.config.Dir, reopenBag)
		if err != nil || k.content(t) != "ab" || len(report.Items) != 1 {
			t.Errorf("%v: another process: %q, %+v, %v", amounts, k.content(t), report, err)
		}
		h, k = newBag(t, "ab", amounts...)
		h.crash()
		h.config.Targets[0].Knob = &bagKnob{Path: k.Path} // a new one, which knows nothing
		h.open()
		h.pass(31e9)
		h.Tick(t.Context())
		if k.content(t) != "ab" {
			t.Errorf("%v: the next life: %q", amounts, k.content(t))
		}
	}
}

func TestWhatNothingCanBringBackIsSaidAndIsNoFailure(t *testing.T) {
	h, k := newBag(t, "lost", 0)
	h.crash()
	for range 2 {
		report, err := actuator.Restore(t.Context(), h.config.Dir, reopenBag)
		if err != nil || k.content(t) != "" {
			t.Fatalf("%q, %v", k.content(t), err)
		}
		for _, i := range report.Items {
			if i.Status != trimtab.Refused || !strings.Contains(i.Reason, "bring back lost") {
				t.Errorf("%+v", i)
			}
		}
	}
	h, _ = newBag(t, "broken", 1)
	h.crash()
	for range 2 { // a failure is tried again
		if report, err := actuator.Restore(t.Context(), h.config.Dir, reopenBag); err == nil || len(report.Items) != 1 {
			t.Errorf("%+v, %v", report, err)
		}
	}
}

func TestARestorerIsLeftWithNoMoreThanItsRest(t *testing.T) {
	for letters, want := range map[string]string{"abcdef": "xx", "a": "a"} {
		h := newHost(t)
		k := &bagKnob{Path: filepath.Join(h.dir, "bag")}
		if err := os.WriteFile(k.Path, []byte(letters), 0o644); err != nil {
			t.Fatal(err)
		}
		rest := units(2)
		h.config.Reopen = reopenBag
		h.config.Targets = []actuator.Target{{KnobID: trimtab.KnobID{Workload: "w0", Resource: "cpu"}, Knob: k, Max: 8, Rest: &rest, Mode: trimtab.Act}}
		h.open()
		for i, v := range []float64{4, 5} {
			now, err := k.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			is(t, h.statuses(h.plan(1, uint64(i+1), set(0, now, units(v)))), trimtab.Written)
		}
		h.crash()
		for range 2 { // a restore of what is restored changes nothing
			if _, err := actuator.Restore(t.Context(), h.config.Dir, reopenBag); err != nil {
				t.Fatal(err)
			}
			if b, err := os.ReadFile(k.Path); err != nil || string(b) != want {
				t.Errorf("of %q: %q, %v, want %q", letters, b, err, want)
			}
		}
	}
}
