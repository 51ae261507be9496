package task

import (
	"fmt"
	"time"

	"github.com/trimtab/trimtab/internal/jobs"
)

// State is the state of a task.
type State string

// The states, in order. An unkillable task was killed and has not ended.
const (
	Starting   State = "starting"
	Running    State = "running"
	Frozen     State = "frozen"
	Killing    State = "killing"
	Unkillable State = "unkillable"
	Ended      State = "ended"
)

// Outcome is how a task ended.
type Outcome string

// The outcomes. Exited has a code and Signaled a signal, both caused by the task itself; Lost is
// a task whose agent died.
const (
	Exited      Outcome = "exited"
	Signaled    Outcome = "signaled"
	OutOfMemory Outcome = "out of memory"
	TimedOut    Outcome = "timed out"
	Killed      Outcome = "killed"
	Lost        Outcome = "lost"
)

// Info is the state and result of a task.
type Info struct {
	ID
	Class Class `json:"class"`
	State State `json:"state"`
	// Resources are its limits.
	Resources Resources `json:"resources,omitzero"`
	// PID is the process ID of the first process; 0: it has ended, or another agent started it.
	PID     int       `json:"pid,omitempty"`
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
	// Outcome is empty until it has ended. Code and Signal are those of its first process, even if
	// Outcome has another cause; OOMKills counts processes that were killed for its memory limit.
	Outcome  Outcome `json:"outcome,omitempty"`
	Code     int     `json:"code,omitempty"`
	Signal   string  `json:"signal,omitempty"`
	OOMKills int     `json:"oom_kills,omitempty"`
	// Reason says who killed it, and why.
	Reason string `json:"reason,omitempty"`
	// Problem says what is wrong now; "": nothing.
	Problem string `json:"problem,omitempty"`
	// Lease is the time until it is killed unless it is renewed.
	Lease time.Duration `json:"-"`
	// CPU is the CPU time of its group since the task entered it; nil: unknown, or it has ended.
	CPU *time.Duration `json:"-"`
	// Output is how many bytes it printed; Dropped is how many of them were not kept.
	Output  int64 `json:"output_bytes,omitempty"`
	Dropped int64 `json:"dropped_bytes,omitempty"`
	// LastLines are the last that it printed, without control characters.
	LastLines []string `json:"last_lines,omitempty"`
	// Progress is the task's own report; nil: there is none, or ProgressProblem says why it is
	// invalid.
	Progress        *jobs.Report `json:"-"`
	ProgressProblem string       `json:"-"`
}

// Succeeded reports whether it ended by itself, with code 0.
func (i Info) Succeeded() bool { return i.Outcome == Exited && i.Code == 0 }

// String is for people: "render/3#1 ended: exited 0".
func (i Info) String() string {
	text := fmt.Sprintf("%v %s", i.ID, i.State)
	switch i.Outcome {
	case "":
	case Exited:
		text += fmt.Sprintf(": exited %d", i.Code)
	case Signaled:
		text += ": " + i.Signal
	default:
		text += ": " + string(i.Outcome)
	}
	if i.Reason != "" {
		text += " (" + i.Reason + ")"
	}
	if i.Problem != "" {
		text += ": " + i.Problem
	}
	return text
}
