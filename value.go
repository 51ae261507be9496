package trimtab

// Kind names what travels between stages.
type Kind string

// The kinds of the values in this package. Packages speculation and colocation have others; package
// topic is the table of them all, with their subjects and guarantees.
const (
	KindSpans    Kind = "spans"
	KindSketch   Kind = "sketch"
	KindSample   Kind = "sample"
	KindAlert    Kind = "alert"
	KindEstimate Kind = "estimate"
	KindPlan     Kind = "plan"
	// KindPart is what one host has to do of a plan for several; see [Plan.Split].
	KindPart    Kind = "part"
	KindOutcome Kind = "outcome"
	KindHolding Kind = "holding"
	KindCommand Kind = "command"
	// KindLeader never travels: the pipeline hands it to a planner step.
	KindLeader Kind = "leader"
)

// Value is anything that a stage gives to another: a struct of this package, of speculation or of
// colocation. It is always handed over as a pointer, and never changed afterwards.
type Value interface {
	// Kind says which of the kinds this is.
	Kind() Kind
	// Key is the last part of the subject: the workload of a sample, sketch or estimate, the pool
	// of a plan or command, pool and host of an outcome or holding, the partition of spans. Any
	// text: the bus escapes it.
	Key() string
	// Validate returns an error that is ErrInvalid when a stage must not act
	// on the value. Publishers and receivers both call it.
	Validate() error
}

// Origin identifies one publication: Sequence counts from 1 within an Incarnation (one run of the
// process) of a Source. (Source, Incarnation, Sequence) is unique, so a repeated delivery can be
// told from a new value, and a gap in Sequence is a counted loss.
type Origin struct {
	Source      string `json:"source"`
	Incarnation uint64 `json:"incarnation"`
	Sequence    uint64 `json:"sequence"`
}
