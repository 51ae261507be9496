package actuator

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/trimtab/trimtab"
)

// UndoOf encodes the result of [Knob.Undo]: an object with the fields of v, a struct, after "kind",
// the name of the format. It panics if JSON cannot represent v.
func UndoOf(kind string, v any) []byte {
	name, err := json.Marshal(kind)
	b, bad := json.Marshal(v)
	if err != nil || bad != nil || len(b) <= len("{}") {
		panic(fmt.Sprintf("actuator: encode undo of %s: %v, %v", kind, err, bad))
	}
	return fmt.Appendf(nil, `{"kind":%s,%s`, name, b[1:])
}

// ReadUndo decodes what UndoOf encoded. The error is trimtab.ErrUnsupported if undo belongs to
// another kind of knob.
func ReadUndo[T any](kind string, undo []byte) (v T, err error) {
	var of struct {
		Kind string `json:"kind"`
	}
	if json.Unmarshal(undo, &of) != nil || of.Kind != kind || json.Unmarshal(undo, &v) != nil {
		return v, fmt.Errorf("reopen %.60q as %s: %w", undo, kind, trimtab.ErrUnsupported)
	}
	return v, nil
}

// Reopen opens the knob whose configuration UndoOf encoded. Its errors are those of ReadUndo and of
// open.
func Reopen[C, K any](kind string, undo []byte, open func(C) (K, error)) (k K, err error) {
	c, err := ReadUndo[C](kind, undo)
	if err != nil {
		return k, err
	}
	return open(c)
}

// Reopens returns a [Kind].Reopen for knobs of one type.
func Reopens[K Knob](reopen func(undo []byte) (K, error)) func(undo []byte) (Knob, error) {
	return func(undo []byte) (Knob, error) { return OrNil(reopen(undo)) }
}

// AnyOf returns a Reopen for knobs of any of the kinds.
func AnyOf(kinds []Kind) func(undo []byte) (Knob, error) {
	all := make([]func([]byte) (Knob, error), len(kinds))
	for i := range kinds {
		all[i] = kinds[i].Reopen
	}
	return FirstOf(all...)
}

// FirstOf returns a Reopen that tries several: each recognises its own knobs.
func FirstOf(all ...func(undo []byte) (Knob, error)) func(undo []byte) (Knob, error) {
	return func(undo []byte) (Knob, error) {
		for _, reopen := range all {
			if knob, err := reopen(undo); err == nil || !errors.Is(err, trimtab.ErrUnsupported) {
				return knob, err
			}
		}
		return nil, fmt.Errorf("reopen %.60q: no kind of knob knows it: %w", undo, trimtab.ErrUnsupported)
	}
}
