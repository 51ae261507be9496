package throttle

import (
	"math"
	"time"

	"github.com/trimtab/trimtab"
)

// Mode is the cluster's switch between use and responsiveness.
type Mode string

// The modes.
const (
	// UP prioritises utilization: admission only, nothing is throttled.
	UP Mode = "UP"
	// RP prioritises the responsiveness of long-running applications.
	RP Mode = "RP"
)

// Class is the class of the cores on which a task runs.
type Class string

// The classes of cores.
const (
	// First is of the cores that LRAs requested and of the slack cores.
	First Class = "first"
	// Second is of the rest, where speculative tasks go first.
	Second Class = "second"
)

// Observation is what a host knows at one tick. The policy does not change it and
// keeps nothing of it but strings.
type Observation struct {
	// Time goes on from tick to tick, as the boot time of the host does. Where it
	// does not, leases cannot end: then nothing stays throttled.
	Time time.Time
	// Mode is UP or RP; another one counts as RP.
	Mode Mode
	// Metrics are the loads of the host in the order of [Config.Metrics], Capacity
	// what it has in the order of [Config.Resources]. NaN, and what is not in the
	// list, is missing.
	Metrics, Capacity []float64
	// Cores is how many cores the host has; 0: not known.
	Cores int
	// LRAs are the long-running applications here.
	LRAs []LRA
	// Tasks are the speculative tasks that were started here and have not ended.
	Tasks []Task
	// Revoke is what regular tasks ask back and do not have yet, in the order of
	// [Config.Resources].
	Revoke []float64
}

// LRA is one long-running application on this host.
type LRA struct {
	Workload string
	// Cores is what it requested.
	Cores float64
	// Samples are those since the last tick, of any signals, the oldest first. One
	// that was seen before is passed over.
	Samples []Sample
}

// Sample is one measurement of one signal of an LRA; higher is worse.
type Sample struct {
	// Signal is its name: cpi, mpki, psi, run-queue delay, latency.
	Signal string
	// Time is the end of the measurement, Length what it covers.
	Time   time.Time
	Length time.Duration
	// Value and Boundary are in the unit of the signal. Above the boundary a value
	// is an outlier. Value >= 0, Boundary > 0.
	Value, Boundary float64
	// Anomaly says that the analyzer takes the signal for anomalous, by this and
	// what was before. An analyzer that judges each value by itself says what
	// Value > Boundary says.
	Anomaly bool
}

// Task is a speculative task that was started here.
type Task struct {
	ID, Job string
	// Class is that of its cores.
	Class Class
	// Holds is what it was given, in the order of [Config.Resources].
	Holds []float64
	// Progress is in [0, 1], NaN where it is not known.
	Progress float64
	// Activity is what it did since the last tick, such as cores used, in any unit
	// that stays the same; NaN: not known.
	Activity float64
	// Expires is when its lease ends unless it was renewed. See [Config.MaxLease].
	Expires time.Time
}

// Decision is what to do until the next tick.
type Decision struct {
	// Start are the tasks that leave the queue, in this order, and begin to run.
	Start []Start
	// End are the tasks to be ended, running or queued.
	End []End
	// Throttled is the whole list of tasks that are not to run freely. A task that
	// is not in it, and one whose Until has passed, runs.
	Throttled []Throttled
	// Blocked is why no task was started; "": nothing prevents it, or the queue is empty.
	Blocked Reason
	// Cores is how the cores are divided.
	Cores Classes
	// Events are what happened since the last tick, for people.
	Events []Event
}

// Start is a task that begins to run on cores of a class.
type Start struct {
	Request
	Class Class
}

// End is a task whose grant has ended.
type End struct {
	Task string
	Why  Reason
}

// Throttled is the limit of one task for now.
type Throttled struct {
	Task string
	// Share is the part of its cores that is left to it; 0: it is frozen.
	Share float64
	// Until ends it, whatever becomes of the policy.
	Until time.Time
	// Guilty says that a proof is behind it; before, the task is only accused.
	Guilty bool
	// Victim is the LRA for which it is throttled, Signal what is watched.
	Victim, Signal string
}

// Reason says why a task is not accepted, not started or ended.
type Reason string

// The reasons.
const (
	Full      Reason = "the queue is full"
	Duplicate Reason = "the task is here already"
	Invalid   Reason = "the request makes no sense"
	TooLarge  Reason = "the request is more than speculative tasks may hold together"
	Expired   Reason = "the lease has ended"
	Missing   Reason = "a metric, a capacity or what a task holds is missing"
	Loaded    Reason = "a metric is not under its threshold"
	NoRoom    Reason = "the oversubscription ratio leaves no room"
	NoCores   Reason = "no cores of the second class are free"
	Anomalous Reason = "an LRA is anomalous"
	Unwatched Reason = "an LRA has no fresh signal"
	Settling  Reason = "an LRA was anomalous a moment ago"
	OnHold    Reason = "a task of the same job is throttled, guilty"
	Clock     Reason = "the time did not go on"
	Preempted Reason = "regular tasks ask for what it holds"
)

// EventKind names what happened.
type EventKind string

// The kinds of events.
const (
	AnomalyBegan   EventKind = "anomaly"
	AnomalyEnded   EventKind = "recovered"
	Noise          EventKind = "noise"
	Accused        EventKind = "accused"
	Guilty         EventKind = "guilty"
	Jointly        EventKind = "guilty with others"
	Innocent       EventKind = "innocent"
	Undecided      EventKind = "undecided"
	Released       EventKind = "released"
	NotOurs        EventKind = "not caused by speculative tasks"
	LeaseEnded     EventKind = "lease ended"
	TakenBack      EventKind = "preempted"
	ThrottleCapped EventKind = "throttled for the longest time allowed"
)

// Event is one thing that happened, to a task or an LRA.
type Event struct {
	Kind           EventKind
	Task, Job      string
	Victim, Signal string
	// Samples is of how many samples the word is.
	Samples int
}

// Metric is a load of the host with the bound under which it must be.
type Metric struct {
	Name string
	// Upper is the threshold: a task starts only if the metric is below.
	Upper float64
}

// Resource is a resource that tasks hold.
type Resource struct {
	Name string
	// Ratio is the oversubscription ratio: the part of the capacity that
	// speculative tasks may hold together, >= 0.
	Ratio float64
	// Stock says that a frozen task keeps it, such as memory.
	Stock bool
}

// Config configures a [Policy].
type Config struct {
	// Metrics and Resources give the order of all lists; at most [MaxDimensions].
	Metrics   []Metric
	Resources []Resource
	// CPU is the index of the cores in Resources, -1 where there is none: then classes of cores
	// are not filled up.
	CPU int
	// Slack is how many cores beyond those that LRAs requested are first class.
	Slack int
	// KeepFirst starts no task on cores of the first class.
	KeepFirst bool
	// Queue is the longest queue; 0: 100. Starts is how many tasks start in one
	// tick, since metrics follow later; 0: 4. Passes is how often later tasks that
	// fit may start before one that does not; 0: 16.
	Queue, Starts, Passes int
	// MaxLease bounds a lease, whatever the task's Expires says: from when that was
	// first seen; 0: 10 min.
	MaxLease time.Duration
	// MaxAge is how old the last sample of an LRA may be; 0: 10 s. Quiet is how long
	// after the last anomaly no task starts; 0: 5 s.
	MaxAge, Quiet time.Duration
	Proof         Proof
}

// Proof configures how the guilty task is found.
type Proof struct {
	// Cut is the share of its cores that a throttled task keeps; 0: it is frozen.
	Cut float64
	// Fraction is what part of the resources of the suspects is freed at once as
	// long as the victim's sensitivity is not known; 0: 0.1. At least one task is
	// throttled.
	Fraction float64
	// Confirm is how many more samples beyond the boundary an anomaly needs before tasks are
	// suspected; 0: 2, -1: none. Calm is how many samples in a row below the boundary end it; 0:
	// 3.
	Confirm, Calm int
	// Watch is after how many samples, at most, the suspect is found guilty or innocent; 0: 10.
	// Patience is the longest that this may take; 0: 20 s.
	Watch    int
	Patience time.Duration
	// Settle is what passes before a sample counts; 0: 500 ms.
	Settle time.Duration
	// WrongConviction and MissedGuilt are the error probabilities of one trial, in (0, 1/2); 0:
	// 0.005 and 0.05.
	WrongConviction, MissedGuilt float64
	// NoControl takes one recovery as proof. Without it, a task whose job was never found guilty
	// is released once more: it is guilty if the victim misses its boundary again and recovers
	// when the task is throttled again. That costs the victim a few samples, and clears tasks in
	// whose trial the anomaly ended by chance.
	NoControl bool
	// Hold is how long a guilty task stays throttled; each proof against its job
	// doubles it, up to MaxHold, which also bounds any throttling; 0: 30 s and
	// 10 min.
	Hold, MaxHold time.Duration
	// Backoff is how long no task is suspected for a victim that did not recover with all tasks
	// throttled; it doubles up to MaxHold; 0: 30 s.
	Backoff time.Duration
}

// Bounds of the policy's memory.
const (
	// MaxDimensions is the most metrics, and the most resources.
	MaxDimensions = 16
	// MaxTasks is the most tasks that are considered, MaxVictims the most signals of LRAs,
	// MaxJobs the most jobs whose verdicts are remembered.
	MaxTasks, MaxVictims, MaxJobs = 10_000, 1024, 1024
	// greatestAmount is the most of a resource.
	greatestAmount = 1e18
)

func (c *Config) check() error {
	switch {
	case len(c.Metrics) > MaxDimensions || len(c.Resources) > MaxDimensions:
		return trimtab.Invalidf("throttle: %d metrics and %d resources: want at most %d", len(c.Metrics), len(c.Resources), MaxDimensions)
	case c.CPU < -1 || c.CPU >= len(c.Resources):
		return trimtab.Invalidf("throttle: cpu is resource %d: want -1 to %d", c.CPU, len(c.Resources)-1)
	case c.Slack < 0 || c.Queue < 0 || c.Starts < 0 || c.Passes < 0:
		return trimtab.Invalidf("throttle: slack %d, queue %d, starts %d, passes %d: want none below 0", c.Slack, c.Queue, c.Starts, c.Passes)
	case c.MaxLease < 0 || c.MaxAge < 0 || c.Quiet < 0:
		return trimtab.Invalidf("throttle: lease %v, age %v, quiet %v: want none below 0", c.MaxLease, c.MaxAge, c.Quiet)
	}
	for _, m := range c.Metrics {
		if math.IsNaN(m.Upper) || math.IsInf(m.Upper, 0) {
			return trimtab.Invalidf("throttle: threshold of %.40q: %v: want a number", m.Name, m.Upper)
		}
	}
	for _, r := range c.Resources {
		if !(r.Ratio >= 0 && r.Ratio <= 1e6) {
			return trimtab.Invalidf("throttle: oversubscription ratio of %.40q: %v: want 0 to 1e6", r.Name, r.Ratio)
		}
	}
	return c.Proof.check()
}

func (p *Proof) check() error {
	switch {
	case !(p.Cut >= 0 && p.Cut < 1) || !(p.Fraction >= 0 && p.Fraction <= 1):
		return trimtab.Invalidf("throttle: cut to %v, fraction %v: want 0 to 1, and a cut below 1", p.Cut, p.Fraction)
	case !(p.WrongConviction >= 0 && p.WrongConviction < 0.5) || !(p.MissedGuilt >= 0 && p.MissedGuilt < 0.5):
		return trimtab.Invalidf("throttle: chances of error %v and %v: want 0 to 0.5", p.WrongConviction, p.MissedGuilt)
	case p.Confirm < -1 || p.Calm < 0 || p.Watch < 0:
		return trimtab.Invalidf("throttle: confirm %d, calm %d, watch %d samples: want none below 0", p.Confirm, p.Calm, p.Watch)
	case p.Patience < 0 || p.Settle < 0 || p.Hold < 0 || p.MaxHold < 0 || p.Backoff < 0:
		return trimtab.Invalidf("throttle: patience %v, settle %v, hold %v to %v, back-off %v: want none below 0", p.Patience, p.Settle, p.Hold, p.MaxHold, p.Backoff)
	case p.MaxHold > 0 && p.MaxHold < p.Hold:
		return trimtab.Invalidf("throttle: hold %v is longer than the longest, %v", p.Hold, p.MaxHold)
	}
	return nil
}
