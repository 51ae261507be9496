package view

import (
	"time"

	"github.com/trimtab/trimtab"
)

// Pipeline has the state of the stages: GET /api/v1/pipeline.
type Pipeline struct {
	Time time.Time `json:"time"`
	// Leader holds the lock of the pool, in its term Epoch.
	Leader string `json:"leader,omitempty"`
	Epoch  uint64 `json:"epoch,omitempty"`
	// Plan is the newest; PlanAge its age.
	Plan    string           `json:"plan,omitempty"`
	PlanAge *trimtab.Seconds `json:"plan_age_s,omitempty"`
	Stages  []StageState     `json:"stages"`
	// Inputs lists the inputs that are missing, the one missing longest first.
	Inputs []MissingInput `json:"missing_inputs"`
	// Shed counts, by kind, the values that were lost on the way to this process because
	// a reader was too slow; Unreadable those that could not be
	// decoded; Aside those that are stored in the stream UNREADABLE.
	Shed       map[string]uint64 `json:"shed"`
	Unreadable map[string]uint64 `json:"unreadable"`
	Aside      map[string]uint64 `json:"put_aside"`
	// Problem is why Aside or the Queues are not known now.
	Problem string `json:"problem,omitempty"`
}

// StageState is one part of the process.
type StageState struct {
	Name  string `json:"name"`
	Ready bool   `json:"ready"`
	// Reason is why it is not ready, Since when.
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	// Missing names what the stage works without, such as monitors that its host does not have.
	Missing string `json:"lacks,omitempty"`
	// Waiting are the values that wait for it, Redelivered those that it was
	// given more than once and has not handled, over all its Queues.
	Waiting     uint64  `json:"waiting"`
	Redelivered uint64  `json:"redelivered"`
	Queues      []Queue `json:"queues,omitempty"`
}

// Queue counts the messages that wait for one subscription of a stage.
type Queue struct {
	Kind        trimtab.Kind `json:"kind"`
	Waiting     uint64       `json:"waiting"`
	Redelivered uint64       `json:"redelivered"`
	// Lag is the age of the oldest value that waits; absent: none, or unknown.
	Lag *trimtab.Seconds `json:"lag_s,omitempty"`
}

// MissingInput is one input of one workload that is not there.
type MissingInput struct {
	Workload string    `json:"workload"`
	Input    string    `json:"input"`
	Source   string    `json:"source,omitempty"`
	Reason   string    `json:"reason"`
	Since    time.Time `json:"since"`
}

// [whatif.Answer] is the answer of
// GET /api/v1/what-if?capacity:cpu=6&slo:checkout=200ms&weight:shop=2, of any number
// of such parameters: what the objective wants for each workload as things are, and
// with the change.
