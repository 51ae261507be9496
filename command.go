package trimtab

import (
	"time"

	"github.com/trimtab/trimtab/internal/valid"
)

// Alert is a message of an alerting system about one workload. It can ask for a round; no value
// in it becomes an allocation.
type Alert struct {
	Workload string `json:"workload"`
	// Name, Group and Fingerprint identify it in the alerting system.
	Name        string `json:"name"`
	Group       string `json:"group"`
	Fingerprint string `json:"fingerprint"`
	Firing      bool   `json:"firing"`
	// Started is when it began to fire; Time is when it was received.
	Started time.Time `json:"started,omitzero"`
	Time    time.Time `json:"time"`
	// Until is when a firing alert counts as over unless it is repeated: the end that its sender
	// gave, or when a repetition is overdue by the sender's usual interval; zero: neither is
	// known.
	Until   time.Time `json:"until,omitzero"`
	Summary string    `json:"summary,omitempty"`
}

// Kind returns KindAlert.
func (a *Alert) Kind() Kind { return KindAlert }

// Key returns the workload.
func (a *Alert) Key() string { return a.Workload }

// Asker returns who asks.
func (c *Command) Asker() string {
	if c.By == "" {
		return "somebody"
	}
	return c.By
}

// Validate checks names and times.
func (a *Alert) Validate() error {
	if err := valid.Named("alert on workload", a.Workload); err != nil {
		return err
	}
	if err := valid.Named("alert", a.Name); err != nil {
		return err
	}
	if a.Time.IsZero() {
		return Invalidf("alert %s: no time", a.Name)
	}
	return nil
}

// Verb is what a person asks for.
type Verb string

// The verbs.
const (
	// Pause freezes every knob of the pool and keeps leases alive.
	Pause Verb = "pause"
	// Resume ends a pause.
	Resume Verb = "resume"
	// Apply executes the recommended plan that Plan names, once.
	Apply Verb = "apply"
	// Round starts a round now.
	Round Verb = "round"
	// Release restores the baseline of Workload and lets go of it.
	Release Verb = "release"
)

// Command is a person's request, for one pool.
type Command struct {
	Pool string    `json:"pool"`
	Verb Verb      `json:"verb"`
	Time time.Time `json:"time"`
	// Plan is the EPOCH-SEQUENCE that Apply names.
	Plan string `json:"plan,omitempty"`
	// Workload is what Release names.
	Workload string `json:"workload,omitempty"`
	// By says who asked, for the record.
	By string `json:"by,omitempty"`
}

// Kind returns KindCommand.
func (c *Command) Kind() Kind { return KindCommand }

// Key returns the pool.
func (c *Command) Key() string { return c.Pool }

// Validate checks that the fields that the verb needs are set.
func (c *Command) Validate() error {
	if err := valid.Named("command for pool", c.Pool); err != nil {
		return err
	}
	if c.Time.IsZero() {
		return Invalidf("command %s: no time", c.Verb)
	}
	if len(c.By) > 253 {
		return Invalidf("command %.20s: by %.40q: want at most 253 bytes", c.Verb, c.By)
	}
	switch c.Verb {
	case Pause, Resume, Round:
		return nil
	case Apply:
		_, _, err := ParsePlanID(c.Plan)
		return err
	case Release:
		return valid.Named("release of workload", c.Workload)
	}
	return Invalidf("command %.20q", c.Verb)
}

// Leader tells a planner step its term. The pipeline that holds the leader's lock passes it in;
// it is never sent.
type Leader struct {
	Pool string `json:"pool"`
	// Epoch is higher than that of every leader before; 0: not the leader,
	// publish nothing.
	Epoch uint64 `json:"epoch"`
}

// Kind returns KindLeader.
func (l *Leader) Kind() Kind { return KindLeader }

// Key returns the pool.
func (l *Leader) Key() string { return l.Pool }

// Validate checks the name.
func (l *Leader) Validate() error { return valid.Named("leader of pool", l.Pool) }
