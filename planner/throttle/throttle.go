package throttle

import (
	"math"
	"time"

	"github.com/trimtab/trimtab"
)

// Mode selects between utilization and responsiveness, for the whole cluster.
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
	// First has the cores that LRAs requested, and the slack cores.
	First Class = "first"
	// Second has the other cores, which speculative tasks get first.
	Second Class = "second"
)

// Observation is the state of a host at one tick. The policy does not change it, and keeps nothing
// of it but strings.
type Observation struct {
	// Time must increase from tick to tick, as the boot time of the host does. If it does not,
	// leases cannot end, and nothing stays throttled.
	Time time.Time
	// Mode is UP or RP; another one counts as RP.
	Mode Mode
	// Metrics are the loads of the host in the order of [Config.Metrics], Capacity its capacities
	// in the order of [Config.Resources]. A value that is NaN or not in the list is missing.
	Metrics, Capacity []float64
	// Cores is the number of cores of the host; 0: unknown.
	Cores int
	// LRAs are the long-running applications here.
	LRAs []LRA
	// Tasks are the speculative tasks that were started here and have not ended.
	Tasks []Task
	// Revoke is what regular tasks ask for and do not have yet, in the order of [Config.Resources].
	Revoke []float64
}

// LRA is one long-running application on this host.
type LRA struct {
	Workload string
	// Cores is the number of cores that it requested.
	Cores float64
	// Samples are the samples since the last tick, of any signals, the oldest first. Repeated ones
	// are ignored.
	Samples []Sample
}

// Sample is one measurement of one signal of an LRA; higher is worse.
type Sample struct {
	// Signal is its name: cpi, mpki, psi, run-queue delay, latency.
	Signal string
	// Time is the end of the measurement, Length its duration.
	Time   time.Time
	Length time.Duration
	// Value and Boundary are in the unit of the signal. Above the boundary a value
	// is an outlier. Value >= 0, Boundary > 0.
	Value, Boundary float64
	// Anomaly: the analyzer considers the signal anomalous, from this and earlier values. An
	// analyzer without memory sets it to Value > Boundary.
	Anomaly bool
}

// Task is a speculative task that was started here.
type Task struct {
	ID, Job string
	// Class is the class of its cores.
	Class Class
	// Holds are its resources, in the order of [Config.Resources].
	Holds []float64
	// Progress is in [0, 1]; NaN: unknown.
	Progress float64
	// Activity is how much it did since the last tick, such as the cores that it used, in any fixed
	// unit; NaN: unknown.
	Activity float64
	// Expires is when its lease ends unless it was renewed. See [Config.MaxLease].
	Expires time.Time
}

// Decision is what to do until the next tick.
type Decision struct {
	// Start are the tasks that leave the queue, in this order, and begin to run.
	Start []Start
	// End has the tasks to be ended, running or queued.
	End []End
	// Throttled has all tasks that are to be throttled. A task that is not listed, or whose Until
	// has passed, runs freely.
	Throttled []Throttled
	// Blocked says why no task was started; "": nothing prevents a start, or the queue is empty.
	Blocked Reason
	// Cores is how the cores are divided.
	Cores Classes
	// Events happened since the last tick; they are for people.
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

// Throttled is the limit of one task until the next decision.
type Throttled struct {
	Task string
	// Share is the fraction of its cores that the task keeps; 0: it is frozen.
	Share float64
	// Until is when the throttling ends, even if the policy is gone.
	Until time.Time
	// Guilty: a trial found it guilty; otherwise the task is only accused.
	Guilty bool
	// Victim is the LRA that is protected, Signal its anomalous signal.
	Victim, Signal string
}

// Reason says why a task is refused, not started or ended.
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
	// Samples is the number of samples that the event is based on.
	Samples int
}

// Metric is a load of the host, with the threshold below which tasks may start.
type Metric struct {
	Name string
	// Upper is the threshold: a task starts only if the metric is below.
	Upper float64
}

// Resource is a resource that tasks use.
type Resource struct {
	Name string
	// Ratio is the oversubscription ratio: the fraction of the capacity that all speculative tasks
	// together may use, >= 0.
	Ratio float64
	// Stock: a frozen task keeps it, as it does memory.
	Stock bool
}

// Config configures a [Policy].
type Config struct {
	// Metrics and Resources give the order of all lists; at most [MaxDimensions].
	Metrics   []Metric
	Resources []Resource
	// CPU is the index of the cores in Resources; −1: they are not listed, and classes of cores are
	// not limited.
	CPU int
	// Slack is how many cores are first class beyond those that LRAs requested.
	Slack int
	// KeepFirst starts no task on cores of the first class.
	KeepFirst bool
	// Queue is the longest queue; 0: 100. Starts is how many tasks may start in one tick, since the
	// metrics react later; 0: 4. Passes is how many later tasks may start before one that does not
	// fit; 0: 16.
	Queue, Starts, Passes int
	// MaxLease limits a lease, whatever the task's Expires says, from the time that value was first
	// seen; 0: 10 min.
	MaxLease time.Duration
	// MaxAge is how old the last sample of an LRA may be; 0: 10 s. Quiet is for how long after the
	// last anomaly no task starts; 0: 5 s.
	MaxAge, Quiet time.Duration
	Proof         Proof
}

// Proof configures how the guilty tasks are found.
type Proof struct {
	// Cut is the share of its cores that a throttled task keeps; 0: it is frozen.
	Cut float64
	// Fraction is the fraction of the suspects' resources that is freed at once as long as the
	// victim's sensitivity is unknown; 0: 0.1. At least one task is throttled.
	Fraction float64
	// Confirm is how many more samples beyond the boundary an anomaly needs before tasks are
	// suspected; 0: 2, -1: none. Calm is how many samples in a row below the boundary end it; 0:
	// 3.
	Confirm, Calm int
	// Watch is the number of samples after which the suspect is found guilty or innocent at the
	// latest; 0: 10. Patience is the longest time that this may take; 0: 20 s.
	Watch    int
	Patience time.Duration
	// Settle is the time after a change of the throttling before a sample counts; 0: 500 ms.
	Settle time.Duration
	// WrongConviction and MissedGuilt are the error probabilities of one trial, in (0, 1/2); 0:
	// 0.005 and 0.05.
	WrongConviction, MissedGuilt float64
	// NoControl takes one recovery as proof. Without it, a task whose job was never found guilty
	// is released once more: it is guilty if the victim misses its boundary again and recovers
	// when the task is throttled again. That costs the victim a few samples, and clears tasks in
	// whose trial the anomaly ended by chance.
	NoControl bool
	// Hold is how long a guilty task stays throttled; each guilty verdict on its job doubles it, up
	// to MaxHold, which also limits any throttling; 0: 30 s and 10 min.
	Hold, MaxHold time.Duration
	// Backoff is for how long no task is suspected after a victim did not recover with all tasks
	// throttled; it doubles up to MaxHold; 0: 30 s.
	Backoff time.Duration
}

// Limits of the policy's memory.
const (
	// MaxDimensions is the largest number of metrics, and of resources.
	MaxDimensions = 16
	// MaxTasks is the largest number of tasks that are considered, MaxVictims that of signals of
	// LRAs, MaxJobs that of jobs whose verdicts are remembered.
	MaxTasks, MaxVictims, MaxJobs = 10_000, 1024, 1024
	// greatestAmount is the largest valid amount of a resource.
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
