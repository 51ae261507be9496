package trimtab

import "time"

// Step is a stage without its shell: given the same inputs in the same order
// it returns the same outputs, byte for byte. Production, simulator and replay
// run the same steps.
type Step interface {
	// Step takes one value, or nil for a tick, at time now and returns what to publish, in order.
	// The step must not change in; it may keep it, since values are immutable, but the bytes of a
	// SpanFrame are only valid during the call. It counts invalid input and otherwise ignores it:
	// a step never fails and never panics on a value that passed Validate. Now never decreases
	// between calls of one step.
	Step(now time.Time, in Value) []Value
}

// Snapshotter is a step whose state is worth keeping over a restart.
type Snapshotter interface {
	// Snapshot returns named states, each of which Restore reads back.
	Snapshot() map[string][]byte
	// Restore restores one state. An error means that it was not used; the step continues as if
	// it had not been there.
	Restore(name string, state []byte) error
}

// Parted is a Snapshotter whose states can be taken one by one, between calls of Step: those of
// two thousand workloads take 100 MiB together, and half a second.
type Parted interface {
	Snapshotter
	// States returns the names of what Snapshot would return; nil: they cannot be taken one by
	// one.
	States() []string
	// State returns one of them; false: there is none any more.
	State(name string) ([]byte, bool)
}

// Counted is a step that counts what it saw. Names are those of the table in
// internal/metric; a counter's value is the total since the step was made.
type Counted interface {
	// Counts calls yield for each count. It is called between steps.
	Counts(yield func(name string, value float64, labels ...string))
}
