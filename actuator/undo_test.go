package actuator_test

import (
	"errors"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
)

// place is what a kind of knob needs to find a limit again.
type place struct {
	Root string `json:"root"`
	Path string `json:"path,omitempty"`
}

func TestAnUndoIsAnObjectThatBeginsWithItsKindAndOnlyThatKindReadsIt(t *testing.T) {
	undo := actuator.UndoOf("a/1", place{Root: "/r"})
	if string(undo) != `{"kind":"a/1","root":"/r"}` { // journals of earlier releases have this form
		t.Errorf("%s", undo)
	}
	open := func(p place) (*place, error) { return &p, nil }
	if p, err := actuator.Reopen("a/1", undo, open); err != nil || *p != (place{Root: "/r"}) {
		t.Errorf("%v, %v", p, err)
	}
	for _, bad := range []string{`{"kind":"a/2","root":"/r"}`, `{"root":"/r"}`, `{"kind":"a/1","root":1}`, `{"kind":"a/1"`, `[]`, ``} {
		if p, err := actuator.Reopen("a/1", []byte(bad), open); p != nil || !errors.Is(err, trimtab.ErrUnsupported) {
			t.Errorf("%s: %v, %v", bad, p, err)
		}
	}
}
