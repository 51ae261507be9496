package trimtab

// Kind names what travels between stages.
type Kind string

// The kinds. [Kinds] has the table of their subjects and guarantees.
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
	// KindContributions is telemetry, like KindSketch.
	KindContributions Kind = "contributions"
	// KindColocation is telemetry too: nobody carries it out.
	KindColocation Kind = "colocation"
	// KindMachine and KindPlacements are the two halves of a dialogue that repeats itself: each
	// list answers a report, so that a lost one is replaced by the next.
	KindMachine    Kind = "machine"
	KindPlacements Kind = "placements"
	KindCandidates Kind = "candidates"
	KindJobRequest Kind = "jobrequest"
	KindJobState   Kind = "jobstate"
	// KindLeader never travels: the pipeline hands it to a planner step.
	KindLeader Kind = "leader"
)

// Value is anything that a stage gives to another. Implementations are the
// struct types of this package, always handed over as pointers and never
// changed after they were handed over.
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

// Delivery is the guarantee that a kind travels with.
type Delivery string

// The guarantees.
const (
	// Shed: core NATS, at most once; loss is counted by sequence numbers.
	Shed Delivery = "shed"
	// Answered: core NATS request; Publish returns when one consumer handled
	// it, so nothing is lost unnoticed and the sender is slowed down.
	Answered Delivery = "answered"
	// Durable: JetStream, at least once, in order per subject. If a new value makes older ones of
	// its subject void, only the newest is kept.
	Durable Delivery = "durable"
	// Latest: JetStream, at least once, one message kept per subject; a new
	// consumer first gets the last value of every key.
	Latest Delivery = "latest"
	// Local: handed over inside a process only.
	Local Delivery = "local"
)

// KindInfo is one row of the table of kinds.
type KindInfo struct {
	Kind     Kind
	Delivery Delivery
	// From and To name the stages.
	From, To string
	// KeyIs says what the key is.
	KeyIs string
	// New returns a pointer to a zero value to decode into.
	New func() Value
}

// Kinds is the one table of what travels between stages. The subject of a
// value is "trimtab.<kind>.<escaped key>".
func Kinds() []KindInfo {
	table := kinds()
	return table[:]
}

func kinds() [18]KindInfo {
	return [...]KindInfo{
		{KindSpans, Answered, "collector", "analyzer path", "partition", func() Value { return new(SpanFrame) }},
		{KindSketch, Shed, "analyzer path", "analyzer learn", "workload", func() Value { return new(Sketch) }},
		{KindSample, Shed, "collector", "analyzer learn", "workload", func() Value { return new(Sample) }},
		{KindAlert, Durable, "collector", "planner", "workload", func() Value { return new(Alert) }},
		{KindEstimate, Latest, "analyzer learn", "planner", "workload", func() Value { return new(Estimate) }},
		{KindPlan, Durable, "planner", "actuator, console", "pool", func() Value { return new(Plan) }},
		{KindPart, Durable, "planner", "actuator", "pool and host", func() Value { return new(Plan) }},
		{KindOutcome, Durable, "actuator", "planner", "pool and host", func() Value { return new(Outcome) }},
		{KindHolding, Latest, "actuator", "analyzer learn, planner", "pool and host", func() Value { return new(Holding) }},
		{KindCommand, Durable, "console", "planner, actuator", "pool", func() Value { return new(Command) }},
		{KindContributions, Shed, "analyzer learn", "actuator, console, planner", "workload", func() Value { return new(Contributions) }},
		{KindColocation, Shed, "agent", "analyzer learn, console", "pool and host", func() Value { return new(Colocation) }},
		{KindMachine, Shed, "agent", "planner, console", "pool and host", func() Value { return new(Machine) }},
		{KindPlacements, Shed, "planner", "agent", "pool and host", func() Value { return new(Placements) }},
		{KindCandidates, Shed, "planner", "planner", "pool", func() Value { return new(Candidates) }},
		{KindJobRequest, Durable, "console", "planner", "pool", func() Value { return new(JobRequest) }},
		{KindJobState, Latest, "planner", "console", "pool and job", func() Value { return new(JobState) }},
		{KindLeader, Local, "pipeline", "planner", "pool", func() Value { return new(Leader) }},
	}
}

// InfoOf returns the row of k, and false for an unknown kind. It is asked for
// every value, and the table is made anew each time: hence the array.
func InfoOf(k Kind) (KindInfo, bool) {
	table := kinds()
	for i := range table {
		if table[i].Kind == k {
			return table[i], true
		}
	}
	return KindInfo{}, false
}
