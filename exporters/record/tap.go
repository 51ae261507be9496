package record

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

// Tap records every call of the step that it wraps. It implements trimtab.Parted and trimtab.Counted,
// and passes those calls on if the step has them. Like every step it belongs to one goroutine.
type Tap struct {
	stage    string
	step     trimtab.Step
	recorder func() *Recorder
	last     *Recorder
	called   bool
}

// NewTap returns a tap around step. Each call asks recorder for the present one, so that recording
// may start and end while the step runs; nil: it does not run.
func NewTap(stage string, step trimtab.Step, recorder func() *Recorder) *Tap {
	return &Tap{stage: stage, step: step, recorder: recorder}
}

// Step implements trimtab.Step.
func (t *Tap) Step(now time.Time, in trimtab.Value) (out []trimtab.Value) {
	r := t.begin(now)
	if r == nil {
		return t.step.Step(now, in)
	}
	// Deferred, so that the input of a step that panics is recorded too.
	defer func() { r.record(call{stage: t.stage, now: now, in: in, out: out}) }()
	return t.step.Step(now, in)
}

// begin returns the recorder, after giving a new one the present state of the step.
func (t *Tap) begin(now time.Time) *Recorder {
	r, fresh := t.recorder(), !t.called
	t.called = true
	if r == t.last {
		return r
	}
	t.last = r
	if r == nil {
		return nil
	}
	lines := []*Line{{Received: now, Stage: t.stage, Role: Begin, Fresh: fresh}}
	if !fresh {
		states := t.Snapshot()
		for _, name := range slices.Sorted(maps.Keys(states)) {
			lines = append(lines, &Line{Received: now, Stage: t.stage, Role: Restore, Name: name, State: states[name]})
		}
	}
	r.record(call{stage: t.stage, now: now, lines: lines})
	return r
}

// Snapshot implements trimtab.Snapshotter.
func (t *Tap) Snapshot() map[string][]byte {
	if s, ok := t.step.(trimtab.Snapshotter); ok {
		return s.Snapshot()
	}
	return nil
}

// States implements trimtab.Parted, as far as the step within does.
func (t *Tap) States() []string {
	if p, ok := t.step.(trimtab.Parted); ok {
		return p.States()
	}
	return nil
}

// State implements trimtab.Parted.
func (t *Tap) State(name string) ([]byte, bool) {
	if p, ok := t.step.(trimtab.Parted); ok {
		return p.State(name)
	}
	return nil, false
}

// Restore implements trimtab.Snapshotter.
func (t *Tap) Restore(name string, state []byte) error {
	s, ok := t.step.(trimtab.Snapshotter)
	if !ok {
		return fmt.Errorf("restore %s: the step keeps no state: %w", t.stage, trimtab.ErrUnsupported)
	}
	// A state comes before the first call, with no time of its own.
	now := time.Now().UTC()
	if r := t.begin(now); r != nil {
		r.record(call{stage: t.stage, now: now, lines: []*Line{{Received: now, Stage: t.stage, Role: Restore, Name: name, State: slices.Clone(state)}}})
	}
	return s.Restore(name, state)
}

// Counts implements trimtab.Counted.
func (t *Tap) Counts(yield func(name string, value float64, labels ...string)) {
	if c, ok := t.step.(trimtab.Counted); ok {
		c.Counts(yield)
	}
}

// call is one call of a step, or lines about it.
type call struct {
	stage string
	now   time.Time
	in    trimtab.Value // nil: a tick
	out   []trimtab.Value
	lines []*Line // instead
}

// all returns the lines of the call.
func (c *call) all() []*Line {
	if c.lines != nil {
		return c.lines
	}
	first := &Line{Received: c.now, Stage: c.stage, Role: Tick}
	if c.in != nil {
		first.Role, first.Value = In, c.in
	}
	lines := []*Line{first}
	for _, v := range c.out {
		if v != nil {
			lines = append(lines, &Line{Received: c.now, Stage: c.stage, Role: Out, Value: v})
		}
	}
	return lines
}
