package colocate

import (
	"time"

	"github.com/trimtab/trimtab/planner/reclaim"
)

// Amounts are amounts by resource, in its unit: "cpu" and "cores" in cores, "llc" in
// ways, "membw" as the kernel counts it, "memory" in bytes, "frequency" in MHz,
// "network" in bytes per second. A resource that is missing is not turned here.
type Amounts map[string]float64

// Observation is what a host knows at one tick. A decider does not change it, and
// keeps nothing of it.
type Observation struct {
	Time time.Time
	// Services are those with a Servpod here, by name.
	Services []Service
	// Jobs are the best-effort jobs that run, are suspended or wait here, by ID.
	Jobs []Job
	// Capacity is what best-effort jobs may have together, now: what the host has,
	// less what its Servpods have or use.
	Capacity Amounts
	// Power is nil where it cannot be measured.
	Power *Power
	// Link is nil where nothing is known of it.
	Link *Link
}

// Service is the state of a latency-critical service and of its Servpod here.
type Service struct {
	Workload string
	// Age is how long ago the numbers were true.
	Age time.Duration
	// Window is the time that the slack was measured over; it ended Age ago. A window that began
	// before the last act does not show the effect of that act. 0: an instant.
	Window time.Duration
	// Slack is (SLO − tail latency) / SLO, at most 1; nil: not known.
	Slack *float64
	// Load is a share of the most that the service can carry; nil: not known.
	Load *float64
	// Share is C_i / Σ C of its Servpod here, in [0, 1].
	Share float64
	// LoadLimit and SlackLimit are nil where they are not known: then a policy begins with limits
	// of its own.
	LoadLimit, SlackLimit *float64
	// Frequency is what its cores run at and LeastFrequency what they should run at, at least, in
	// MHz; 0: not known.
	Frequency, LeastFrequency float64
}

// Power is what the CPU package of the host draws and may draw, in watts.
type Power struct{ Draws, TDP float64 }

// Link is the bandwidth of the network link, and what Servpods use of it, in bytes
// per second.
type Link struct{ Bandwidth, Used float64 }

// State is what a job does.
type State string

// The states of a job. A killed job waits again, or is gone. A suspended job counts with its
// memory only: the controller takes the rest back.
const (
	Waiting   State = "waiting"
	Running   State = "running"
	Suspended State = "suspended"
	// Ending is a job that was killed and whose processes still exist, such as those that wait
	// for a device. No policy sees it, and it keeps all that it has.
	Ending State = "does not end"
)

// Job is one best-effort job on this host.
type Job struct {
	// What it would lose, with its name.
	reclaim.Job
	// Predictable says that Loss is known.
	Predictable bool
	State       State
	// Has is what it was given; nil of one that waits.
	Has Amounts
	// Least is what it cannot be cut below: memory that is in use. It may be nil. If its memory
	// use is unknown, its memory is not cut.
	Least Amounts
	// Most is what more than which it cannot be given; missing: there is no bound.
	Most Amounts
}

// Verb is one of the five decisions of algorithm 2.
type Verb string

// The verbs, the strictest first.
const (
	StopBE           Verb = "StopBE"
	SuspendBE        Verb = "SuspendBE"
	CutBE            Verb = "CutBE"
	DisallowBEGrowth Verb = "DisallowBEGrowth"
	AllowBEGrowth    Verb = "AllowBEGrowth"
)

// Act is what is done to one job.
type Act string

// The acts. Those that take away come first in a [Decision].
const (
	Kill    Act = "kill"
	Suspend Act = "suspend"
	Cut     Act = "cut"
	Resume  Act = "resume"
	Grow    Act = "grow"
	Start   Act = "start"
)

// Change is one act on one job.
type Change struct {
	Job string
	Act Act
	// To is what the job has afterwards; nil of Kill and Suspend.
	To Amounts
}

// Decision is what to do until the next tick.
type Decision struct {
	Verb Verb
	// By is the service that decided; "": there is none.
	By string
	// Why is one sentence for a person, with the numbers that it compares.
	Why     string
	Changes []Change
}

// Policy decides what jobs may have. It may keep state between ticks, and is not safe for
// concurrent use. The same observations in the same order give the same decisions.
type Policy interface {
	Name() string
	Decide(o *Observation) Decision
}

// The policies that New makes.
const (
	// None never runs a best-effort job.
	None = "none"
	// Heracles has one rule for all of a service: no jobs above 85% load, no growth
	// below 10% slack, and all jobs go at once.
	Heracles = "heracles"
	// Indiscriminate is Rhythm without distinguishable reclamation: thresholds per
	// Servpod, and all jobs go at once (the paper's Rhythm-CDC).
	Indiscriminate = "rhythm-indiscriminate"
	// Rhythm is all of it.
	Rhythm = "rhythm"
	// Deflation takes from all jobs the same share, and never kills.
	Deflation = "deflation"
)

// Config has the settings that all policies share.
type Config struct {
	// Host is the name of this host. Hosts try unproven amounts at times that differ by their
	// names, so that each can tell what its own try brought.
	Host string
	// Period is the time between two ticks; 0: 2 s.
	Period time.Duration
	// Start is what a new job gets, Step what one decision gives or takes of each
	// resource. Nil: DefaultStart and DefaultStep of the greatest Capacity seen.
	Start, Step Amounts
	// MaxAge is how old a service's numbers may be before they count as missing: then no job
	// grows, and after as long again all are suspended. 0: 5 periods.
	MaxAge time.Duration
	// Search is how limits are found that nobody knows.
	Search SearchConfig
}
