// Package topic is the one table of what travels between the stages: the kinds of value, who
// publishes and who reads them, and with which guarantee. The values themselves are in packages
// trimtab, speculation and colocation, and their form is that of package codec; the bus keeps the
// guarantees.
package topic

import (
	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/speculation"
)

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

// Topic is one row of the table: what a kind of value is for, and how it travels.
type Topic struct {
	Kind     trimtab.Kind
	Delivery Delivery
	// From and To name the stages.
	From, To string
	// KeyIs says what the key is.
	KeyIs string
	// New returns a pointer to a zero value to decode into.
	New func() trimtab.Value
}

// All returns the table. The subject of a value is "trimtab.<kind>.<escaped key>".
func All() []Topic {
	all := table()
	return all[:]
}

func table() [18]Topic {
	return [...]Topic{
		{trimtab.KindSpans, Answered, "collector", "analyzer path", "partition", func() trimtab.Value { return new(trimtab.SpanFrame) }},
		{trimtab.KindSketch, Shed, "analyzer path", "analyzer learn", "workload", func() trimtab.Value { return new(trimtab.Sketch) }},
		{trimtab.KindSample, Shed, "collector", "analyzer learn", "workload", func() trimtab.Value { return new(trimtab.Sample) }},
		{trimtab.KindAlert, Durable, "collector", "planner", "workload", func() trimtab.Value { return new(trimtab.Alert) }},
		{trimtab.KindEstimate, Latest, "analyzer learn", "planner", "workload", func() trimtab.Value { return new(trimtab.Estimate) }},
		{trimtab.KindPlan, Durable, "planner", "actuator, console", "pool", func() trimtab.Value { return new(trimtab.Plan) }},
		{trimtab.KindPart, Durable, "planner", "actuator", "pool and host", func() trimtab.Value { return new(trimtab.Plan) }},
		{trimtab.KindOutcome, Durable, "actuator", "planner", "pool and host", func() trimtab.Value { return new(trimtab.Outcome) }},
		{trimtab.KindHolding, Latest, "actuator", "analyzer learn, planner", "pool and host", func() trimtab.Value { return new(trimtab.Holding) }},
		{trimtab.KindCommand, Durable, "console", "planner, actuator", "pool", func() trimtab.Value { return new(trimtab.Command) }},
		{colocation.KindContributions, Shed, "analyzer learn", "actuator, console, planner", "workload", func() trimtab.Value { return new(colocation.Contributions) }},
		{colocation.KindColocation, Shed, "agent", "analyzer learn, console", "pool and host", func() trimtab.Value { return new(colocation.Colocation) }},
		{speculation.KindMachine, Shed, "agent", "planner, console", "pool and host", func() trimtab.Value { return new(speculation.Machine) }},
		{speculation.KindPlacements, Shed, "planner", "agent", "pool and host", func() trimtab.Value { return new(speculation.Placements) }},
		{speculation.KindCandidates, Shed, "planner", "planner", "pool", func() trimtab.Value { return new(speculation.Candidates) }},
		{speculation.KindJobRequest, Durable, "console", "planner", "pool", func() trimtab.Value { return new(speculation.JobRequest) }},
		{speculation.KindJobState, Latest, "planner", "console", "pool and job", func() trimtab.Value { return new(speculation.JobState) }},
		{trimtab.KindLeader, Local, "pipeline", "planner", "pool", func() trimtab.Value { return new(trimtab.Leader) }},
	}
}

// Of returns the row of k, and false for an unknown kind. It is called for every value, and the
// table is made anew each time: hence the array.
func Of(k trimtab.Kind) (Topic, bool) {
	all := table()
	for i := range all {
		if all[i].Kind == k {
			return all[i], true
		}
	}
	return Topic{}, false
}
