package steptest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codec"
)

// Life is the inputs of a step, in order, and its outputs.
type Life struct {
	t     *rapid.T
	step  trimtab.Step
	calls []call
	rests []rest
	// resting makes it save its state at each rest. Most properties need no states, and saving
	// takes longer than the steps.
	resting bool
}

// call records one call of the step. The texts are those of the values at that time.
type call struct {
	at   time.Time
	in   trimtab.Value // nil: a tick
	out  []trimtab.Value
	took []byte
	gave [][]byte
}

// rest is a point in a life, after so many calls, with the step's state.
type rest struct {
	calls int
	state map[string][]byte
	again []trimtab.Value
}

// Give gives the step a value, or nil for a tick, and returns its outputs.
func (l *Life) Give(at time.Time, in trimtab.Value) []trimtab.Value {
	if in != nil {
		if err := in.Validate(); err != nil {
			l.t.Fatalf("the suite's own test gives an invalid value: %v", err)
		}
	}
	took := text(l.t, in)
	out := l.step.Step(at, in)
	l.calls = append(l.calls, call{at, in, out, took, texts(l.t, out)})
	return out
}

// Rest marks a point from which a step restored from the snapshot must go on as this one does,
// after it was given again, at the time of the latest call.
func (l *Life) Rest(again ...trimtab.Value) {
	if s, ok := l.step.(trimtab.Snapshotter); ok && l.resting {
		l.rests = append(l.rests, rest{len(l.calls), s.Snapshot(), again})
	}
}

// live draws a life.
func (s *Suite) live(t *rapid.T) *Life { return s.begin(&Life{t: t, step: s.New()}) }

// liveWithRests draws a life that keeps its state where it rests.
func (s *Suite) liveWithRests(t *rapid.T) *Life {
	return s.begin(&Life{t: t, step: s.New(), resting: true})
}

func (s *Suite) begin(l *Life) *Life {
	s.Live(l.t, l)
	if len(l.calls) == 0 {
		l.t.Skip("this life gives nothing") // rapid fails where hardly any life gives something
	}
	s.cases++
	return l
}

// replay gives a new step the calls of l. change may replace a call by several, the last of which
// counts; nil: unchanged. It returns the step and its outputs.
func (s *Suite) replay(l *Life, change func(i int, c call) []call) (trimtab.Step, [][]byte) {
	step := s.New()
	var gave [][]byte
	for i, c := range l.calls {
		calls := []call{c}
		if change != nil {
			calls = change(i, c)
		}
		for _, c := range calls {
			gave = append(gave, texts(l.t, step.Step(c.at, c.in))...)
		}
	}
	return step, gave
}

// gave is all outputs of the life.
func (l *Life) gave() (all [][]byte) {
	for _, c := range l.calls {
		all = append(all, c.gave...)
	}
	return all
}

// same fails unless the step's outputs and state equal those of l.
func (l *Life) same(what string, step trimtab.Step, gave [][]byte) {
	l.t.Helper()
	l.sameTexts(what, l.gave(), gave)
	l.sameStates(what, l.step, step)
}

func (l *Life) sameTexts(what string, want, got [][]byte) {
	l.t.Helper()
	for i := range min(len(want), len(got)) {
		if !bytes.Equal(want[i], got[i]) {
			l.t.Fatalf("%s: value %d that comes out %s", what, i, differ(got[i], want[i]))
		}
	}
	if len(want) != len(got) {
		more := got
		if len(want) > len(got) {
			more = want
		}
		l.t.Fatalf("%s: %d values come out, want %d; the first of the others is\n%.1000s", what, len(got), len(want), more[min(len(want), len(got))])
	}
}

func (l *Life) sameStates(what string, want, got trimtab.Step) {
	l.t.Helper()
	a, b := states(want), states(got)
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if !bytes.Equal(a[name], b[name]) {
			l.t.Fatalf("%s: its state %s %s", what, name, differ(b[name], a[name]))
		}
	}
	if len(a) != len(b) {
		l.t.Fatalf("%s: it has %d states, want %d", what, len(b), len(a))
	}
}

// differ shows where two texts begin to differ.
func differ(got, want []byte) string {
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	around := func(b []byte) []byte { return b[max(0, at-200):min(len(b), at+200)] }
	return fmt.Sprintf("is, around byte %d,\n%s\nwant\n%s", at, around(got), around(want))
}

// states is the snapshot of a step that makes one.
func states(step trimtab.Step) map[string][]byte {
	if s, ok := step.(trimtab.Snapshotter); ok {
		return s.Snapshot()
	}
	return nil
}

// text is a value as bytes.
func text(t *rapid.T, v trimtab.Value) []byte {
	switch v := v.(type) {
	case nil:
		return nil
	case *trimtab.SpanFrame:
		return append([]byte(v.Key()+" "), v.Data...)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("write %s: %v", v.Kind(), err)
	}
	return append([]byte(v.Kind()+" "), b...)
}

func texts(t *rapid.T, values []trimtab.Value) (all [][]byte) {
	for _, v := range values {
		all = append(all, text(t, v))
	}
	return all
}

// copyOf is the value as it arrives from elsewhere.
func copyOf(t *rapid.T, v trimtab.Value) trimtab.Value {
	switch v := v.(type) {
	case nil:
		return nil
	case *trimtab.SpanFrame:
		return &trimtab.SpanFrame{Partition: v.Partition, Data: bytes.Clone(v.Data)}
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("write %s: %v", v.Kind(), err)
	}
	out, err := codec.DecodeValue(v.Kind(), codec.Version, b)
	if err != nil {
		t.Fatalf("read %s: %v", b, err)
	}
	return out
}
