package actuator_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
)

// partsKnob turns one file more with each write, up to three, and puts back what each
// held.
type partsKnob struct {
	fileKnob
	Was map[string]string `json:"was"`
	// fresh: this process wrote nothing and was told nothing yet.
	fresh bool
}

func (k *partsKnob) part(i int) string { return k.Path + string(rune('a'+i)) }

func (k *partsKnob) Undo() []byte {
	u := partsKnob{fileKnob: fileKnob{Path: k.Path}, Was: map[string]string{}}
	for i := range min(3, len(k.Was)+1) {
		name := k.part(i)
		b, _ := os.ReadFile(name)
		u.Was[name] = string(b)
		if v, ok := k.Was[name]; ok {
			u.Was[name] = v
		}
	}
	b, _ := json.Marshal(u)
	return b
}

func (k *partsKnob) Recall(undo []byte) error { k.fresh = false; return json.Unmarshal(undo, k) }

func (k *partsKnob) Traits() actuator.Traits {
	t := k.fileKnob.Traits()
	t.Recall = k.Recall
	return t
}

func (k *partsKnob) turn() {
	u := partsKnob{}
	if json.Unmarshal(k.Undo(), &u) == nil {
		k.Was = u.Was
	}
}

func reopenParts(undo []byte) (actuator.Knob, error) {
	k := &partsKnob{}
	return k, k.Recall(undo)
}

// What a knob turns first with a later write is in the journal before that write, in
// the process that began and in the next one.
func TestTheJournalLearnsWhatARecallerTurnsLater(t *testing.T) {
	h := newHost(t)
	path := filepath.Join(h.dir, "w")
	fresh := func() *partsKnob { return &partsKnob{fileKnob: fileKnob{Path: path}, fresh: true} }
	h.put(&fileKnob{Path: path}, units(8))
	for i, v := range []string{"one", "two", "three"} {
		if err := os.WriteFile(fresh().part(i), []byte(v), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var seen []map[string]string
	h.config.Reopen = reopenParts
	for i, v := range []float64{4, 3, 2} {
		k := fresh()
		k.before = func(trimtab.Amount) error {
			u := partsKnob{}
			if err := json.Unmarshal(k.Undo(), &u); err != nil {
				return err
			}
			seen = append(seen, u.Was)
			k.turn()
			for name := range k.Was {
				if err := os.WriteFile(name, []byte("turned"), 0o644); err != nil {
					return err
				}
			}
			return nil
		}
		h.config.Targets = []actuator.Target{{KnobID: trimtab.KnobID{Workload: "w0", Resource: "cpu"}, Knob: k, Max: 8, Mode: trimtab.Act}}
		h.open()
		if k.fresh != (i == 0) {
			t.Errorf("process %d: told nothing is %v", i, k.fresh)
		}
		if s := h.statuses(h.plan(1, uint64(i+1), set(0, h.Holding().Targets[0].Now, units(v)))); s[0] != trimtab.Written {
			t.Fatalf("%v", s)
		}
		h.crash()
	}
	last := seen[len(seen)-1]
	for i, want := range []string{"one", "two", "three"} {
		if got := last[fresh().part(i)]; got != want {
			t.Errorf("part %d held %q by the journal, want %q", i, got, want)
		}
	}
}
