package colocate

import (
	"time"

	"github.com/trimtab/trimtab/planner/reclaim"
)

// Amounts are amounts by resource, in its unit: "cpu" and "cores" in cores, "llc" in ways, "membw"
// as the kernel counts it, "memory" in bytes, "frequency" in MHz, "network" in bytes per second. A
// resource that is missing is not controlled here.
type Amounts map[string]float64

// Observation has the inputs of a decision. A policy does not change it, and keeps no reference to
// it.
type Observation struct {
	Time time.Time
	// Services are the services with a Servpod here, by name.
	Services []Service
	// Jobs are the best-effort jobs that run, are suspended or wait here, by ID.
	Jobs []Job
	// Capacity is the present capacity for best-effort jobs: that of the host, less what its
	// Servpods have or use.
	Capacity Amounts
	// Power is nil if it cannot be measured.
	Power *Power
	// Link is nil if nothing is known of it.
	Link *Link
}

// Service is the state of a latency-critical service and of its Servpod here.
type Service struct {
	Workload string
	// Age is the age of the numbers.
	Age time.Duration
	// Window is the length of the measurement of the slack, which ended Age ago. A window that
	// began before the last change of jobs does not show the effect of that change. 0: an instant.
	Window time.Duration
	// Slack is (SLO − tail latency) / SLO, at most 1; nil: not known.
	Slack *float64
	// Load is the load as a fraction of the largest that the service can carry; nil: unknown.
	Load *float64
	// Share is C_i / Σ C of its Servpod here, in [0, 1]: the Servpod's share of the contributions
	// to the latency.
	Share float64
	// LoadLimit and SlackLimit are nil if they are unknown: then a policy starts with its own
	// limits.
	LoadLimit, SlackLimit *float64
	// Frequency is the clock of its cores and LeastFrequency the least that they should have, in
	// MHz; 0: unknown.
	Frequency, LeastFrequency float64
	// Idle: by the kernel's counters the service uses nothing of the host and waits for nothing. It
	// need not report any numbers then.
	Idle bool
}

// Power is the power that the CPU package of the host draws, and its limit (TDP), in watts.
type Power struct{ Draws, TDP float64 }

// Link is the bandwidth of the network link, and the part of it that Servpods use, in bytes per
// second.
type Link struct{ Bandwidth, Used float64 }

// State is the state of a job.
type State string

// The states of a job. A killed job waits again, or is gone. A suspended job only keeps its memory:
// the controller takes its other resources.
const (
	Waiting   State = "waiting"
	Running   State = "running"
	Suspended State = "suspended"
	// Ending is a job that was killed and whose processes still exist, for example because they
	// wait for a device. Policies do not see it, and it keeps its resources.
	Ending State = "does not end"
)

// Job is one best-effort job on this host.
type Job struct {
	// Job has its name, and what is lost if it is killed.
	reclaim.Job
	// Predictable says that Loss is known.
	Predictable bool
	State       State
	// Has are its present amounts; nil for a waiting job.
	Has Amounts
	// Least are the amounts below which it cannot be cut, such as memory in use. It may be nil. If
	// its memory use is unknown, its memory is not cut.
	Least Amounts
	// Most are the largest amounts that it can get; missing: no bound.
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

// Act is an operation on one job.
type Act string

// The acts. Those that take resources away come first in a [Decision].
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
	// To are the amounts of the job afterwards; nil for Kill and Suspend.
	To Amounts
}

// Decision has the changes to make until the next tick.
type Decision struct {
	Verb Verb
	// By is the service that determined the decision; "": there is none.
	By string
	// Why is one sentence for people, with the numbers that were compared.
	Why     string
	Changes []Change
}

// Policy decides the resources of jobs. It may keep state between ticks, and is not safe for
// concurrent use. It is deterministic.
type Policy interface {
	Name() string
	Decide(o *Observation) Decision
}

// The policies that New makes.
const (
	// None never runs a best-effort job.
	None = "none"
	// Heracles has the same limits for all Servpods of a service: no jobs above 85% load, no growth
	// below 10% slack, and a stop kills all jobs at once.
	Heracles = "heracles"
	// Indiscriminate is Rhythm without distinguishable reclamation: limits per Servpod, and a stop
	// kills all jobs at once (the paper's Rhythm-CDC).
	Indiscriminate = "rhythm-indiscriminate"
	// Rhythm is the complete policy.
	Rhythm = "rhythm"
	// Deflation takes the same share from all jobs, and never kills.
	Deflation = "deflation"
)

// Config has the settings that all policies share.
type Config struct {
	// Host is the name of this host. Hosts try unproven amounts at times that depend on their
	// names, so that each can see the effect of its own try.
	Host string
	// Period is the time between two ticks; 0: 2 s.
	Period time.Duration
	// Start are the amounts of a new job, Step those that one decision gives or takes. Nil:
	// DefaultStart and DefaultStep of the greatest Capacity seen.
	Start, Step Amounts
	// MaxAge is the age from which a service's numbers count as missing: then no job grows, and
	// after MaxAge again all are suspended. 0: 5 periods.
	MaxAge time.Duration
	// Search configures how unknown limits are found.
	Search SearchConfig
}
