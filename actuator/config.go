package actuator

import (
	"context"
	"log/slog"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/metric"
)

// DefaultHeartbeat is how often knobs are read and leases checked.
const DefaultHeartbeat = time.Second

// RepeatOf is the Repeat for plans of a lease: a host of which nothing was heard
// for a third of one is taken for lost, so that five of six may be missed. With
// 1,000 hosts, planner, analyzer and console read 1,000 holdings a second otherwise,
// most of which say nothing new.
func RepeatOf(lease time.Duration) time.Duration {
	return min(5*time.Second, max(DefaultHeartbeat, lease/20))
}

// Config says what an actuator may turn, and where it keeps its journal.
type Config struct {
	// Host names this host in plans, outcomes and holdings.
	Host string
	// Pool is the pool whose plans are carried out; others are refused.
	Pool string
	// Dir is the journal's directory, made when absent, for one actuator at a
	// time.
	Dir string
	// Shared tells that other hosts have knobs of the pool. A plan may go on there
	// without a step for this host, so what it took here is not given back when
	// no more comes: that is for the next plan, or the end of the lease.
	Shared bool
	// LockDir is where the locks of knobs and the claims of pools are, one for all
	// processes that turn knobs of this host; "": this process believes to be the
	// only one.
	LockDir string
	// Targets are the declared knobs; Pool and Host of their names are filled in.
	// They are the actuator's from Open on, which closes them unless it fails.
	Targets []Target
	// Finders find instances of other workloads, at the start and at every heartbeat.
	Finders []Finder
	// MaxKnobs is how many knobs are turned, those of instances among them; 0: [MaxKnobs].
	MaxKnobs int
	// Measure returns what the pool may give out of this host, by resource; nil:
	// nobody knows. It bounds plans where the pool is Shared, and is reported.
	Measure func() (map[string]float64, error)
	// Roots are the groups of processes that Measure measures, by resource, as absolute
	// paths; one that is missing is the host. Pools whose roots are apart do not share
	// what they have.
	Roots map[string]string
	// Reopen makes a knob from what its Undo returned, perhaps in another
	// process or release: for baselines whose target is no longer declared.
	Reopen func(undo []byte) (Knob, error)
	// Heartbeat is how often knobs are read, and a holding is published that says
	// something new; 0: [DefaultHeartbeat].
	Heartbeat time.Duration
	// Repeat is after how long a holding is published again that says nothing new;
	// 0: after every heartbeat. See [RepeatOf].
	Repeat time.Duration
	// Limits bound what plans may do here; the zero value hardly does.
	Limits Limits
	// NoApply forbids plans that a person applied to act on targets whose mode
	// is recommend.
	NoApply bool
	// ForeignHold is how long a remote knob that somebody else turned is left alone; what
	// was found is its baseline from then on. 0: until a resume.
	ForeignHold time.Duration
	// KeepOnStop makes Close leave the allocation to its lease. By default
	// Close restores the baselines.
	KeepOnStop bool
	// Watchdog is the command that runs [Watchdog] on Dir as a child process;
	// nil: no watchdog.
	Watchdog []string
	// JournalSize is the size of each copy of the journal in bytes; 0:
	// hostfs.DefaultJournalSize, and four times that where there are finders.
	JournalSize int
	// Parent is the quota of a group above those of the pool, which holds what the pool may
	// give here and is set when that changes, never between: each write to a quota refills
	// what it bounds. nil: there is none; then what a loop moves may give a little more than
	// the sum of what is set, and what shares by weight is bounded by the host alone.
	Parent Knob
	// Fast lets a loop of this host move knobs inside the envelopes of plans; else plans
	// alone do.
	Fast bool
	// OpenJournal opens a journal that is not in Dir; nil: it is in Dir. What restores for
	// this actuator must read the same one.
	OpenJournal func(ctx context.Context) (Journal, error)
	// Metrics and Logger may be nil.
	Metrics *metric.Set
	Logger  *slog.Logger
}

// Target is one declared knob.
type Target struct {
	// KnobID is what plans call it.
	trimtab.KnobID
	Knob Knob
	// Min and Max bound what is ever set, 0 <= Min <= Max, Max > 0.
	Min, Max float64
	// Rest is what a restore sets where the knob was found above it: what is given
	// to a best-effort job ends with its lease, and what it had before was a gift of
	// nobody; nil: what was found.
	Rest *trimtab.Amount
	// Mode is how far plans may go, whatever they ask for.
	Mode trimtab.Mode
}

// Validate checks names, bounds and that no knob is declared twice.
func (c *Config) Validate() error {
	if c.Host == "" || c.Pool == "" || c.Dir == "" {
		return trimtab.Invalidf("actuator: host %q, pool %q, directory %q: none may be empty", c.Host, c.Pool, c.Dir)
	}
	if c.Reopen == nil {
		return trimtab.Invalidf("actuator: no Reopen")
	}
	if err := c.Limits.validate(); err != nil {
		return err
	}
	seen := map[trimtab.KnobID]bool{}
	for i := range c.Targets {
		t := &c.Targets[i]
		if err := t.validate(); err != nil {
			return err
		}
		id := c.here(t.KnobID)
		if seen[id] {
			return trimtab.Invalidf("actuator: %s is declared twice", id.Name())
		}
		seen[id] = true
	}
	for _, f := range c.Finders {
		if f.Workload == "" || f.Find == nil || f.Open == nil {
			return trimtab.Invalidf("actuator: finder of %q: needs a workload, and ways to find and to open", f.Workload)
		}
	}
	return nil
}

// filled returns the configuration with the defaults in place of zero values.
func (c *Config) filled() Config {
	full := *c
	full.Limits.fill()
	if full.Heartbeat <= 0 {
		full.Heartbeat = DefaultHeartbeat
	}
	if full.MaxKnobs <= 0 {
		full.MaxKnobs = MaxKnobs
	}
	if full.JournalSize == 0 && len(full.Finders) > 0 {
		full.JournalSize = 4 * hostfs.DefaultJournalSize // for MaxKnobs, and as many in one plan
	}
	return full
}

// here returns the name of a knob as one of this pool and host: a journal was
// perhaps written under other names of the two, or by a build without them.
func (c *Config) here(id trimtab.KnobID) trimtab.KnobID {
	id.Pool, id.Host = c.Pool, c.Host
	return id
}

func (t *Target) validate() error {
	if t.Workload == "" || t.Resource == "" || t.Knob == nil {
		return trimtab.Invalidf("target %q: resource %q: needs a name, a resource and a knob", t.Workload, t.Resource)
	}
	lower, upper := trimtab.Units(t.Min), trimtab.Units(t.Max)
	if lower.Validate() != nil || upper.Validate() != nil || t.Min > t.Max || t.Max == 0 {
		return trimtab.Invalidf("target %s: bounds %v to %v", t.Workload, t.Min, t.Max)
	}
	if t.Rest != nil && t.Rest.Validate() != nil {
		return trimtab.Invalidf("target %s: rest %v", t.Workload, *t.Rest)
	}
	if t.Mode != trimtab.Off && t.Mode != trimtab.Recommend && t.Mode != trimtab.Act {
		return trimtab.Invalidf("target %s: mode %.20q", t.Workload, t.Mode)
	}
	return nil
}
