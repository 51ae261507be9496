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

// RepeatOf is the Repeat for plans of a lease: the planner considers a host lost if no holding came
// for a third of the lease, so five of six may get lost. If 1,000 hosts published at every
// heartbeat, planner, analyzer and console would each read 1,000 holdings a second, most without
// news.
func RepeatOf(lease time.Duration) time.Duration {
	return min(5*time.Second, max(DefaultHeartbeat, lease/20))
}

// Config says which knobs an actuator controls, and where it keeps its journal.
type Config struct {
	// Host is the name of this host in plans, outcomes and holdings.
	Host string
	// Pool is the pool whose plans are carried out; others are refused.
	Pool string
	// Dir is the journal's directory, created if missing. Only one actuator at a time may use it.
	Dir string
	// Shared says that other hosts have knobs of the pool. The rest of a plan may then have no step
	// for this host, so the actuator does not undo reductions when no further step comes: the next
	// plan, or the end of the lease, does.
	Shared bool
	// LockDir is the directory of the locks of knobs and the claims of pools, the same for all
	// processes that control knobs of this host; "": this process assumes that it is the only one.
	LockDir string
	// Targets are the declared knobs; Pool and Host of their names are filled in. If Open succeeds,
	// the actuator owns them and closes them.
	Targets []Target
	// Finders find instances of other workloads, at the start and at every heartbeat.
	Finders []Finder
	// MaxKnobs is the largest number of knobs, including those of instances; 0: [MaxKnobs].
	MaxKnobs int
	// Measure returns the capacity of this host for the pool, by resource; nil: unknown. It limits
	// plans if the pool is Shared, and is reported in the holding.
	Measure func() (map[string]float64, error)
	// FreeMemory returns how much memory of this host is free, less what is reserved, and how much is
	// in use, in bytes. With it a memory limit rises by what is free, whatever the sum of the limits
	// is (raise.go). nil: the sum of the limits is at most the capacity.
	FreeMemory func() (free, used float64, err error)
	// Roots are the control groups whose capacity Measure measures, by resource, as absolute paths;
	// a missing one means the whole host. Pools whose roots do not contain each other do not share
	// capacity.
	Roots map[string]string
	// Reopen makes a knob from the result of its Undo, perhaps of another process or release, to
	// restore a baseline whose target is no longer declared.
	Reopen func(undo []byte) (Knob, error)
	// Heartbeat is how often knobs are read, and a changed holding is published; 0:
	// [DefaultHeartbeat].
	Heartbeat time.Duration
	// Repeat is the time after which an unchanged holding is published again; 0: at every
	// heartbeat. See [RepeatOf].
	Repeat time.Duration
	// Limits limit what plans may do on this host; the zero value has only the defaults.
	Limits Limits
	// NoApply forbids plans that a person applied to act on targets whose mode
	// is recommend.
	NoApply bool
	// ForeignHold is how long the actuator does not write a remote knob that another program
	// changed. After that the value found is its baseline. 0: until a resume.
	ForeignHold time.Duration
	// KeepOnStop makes Close keep the allocation until its lease expires. By default Close restores
	// the baselines.
	KeepOnStop bool
	// Watchdog is the command that runs [Watchdog] on Dir as a child process;
	// nil: no watchdog.
	Watchdog []string
	// JournalSize is the size of each copy of the journal in bytes; 0:
	// hostfs.DefaultJournalSize, and four times that where there are finders.
	JournalSize int
	// Parent is the quota of the parent of the pool's groups. It is set to the pool's capacity on
	// this host, only when that changes, since each write to a quota refills it. nil: there is no
	// parent. The fast loop may then exceed the sum of the quotas a little, and only the host
	// limits groups that share by weight.
	Parent Knob
	// Fast lets a fast loop of this host move knobs inside the envelopes of plans; without it only
	// plans change knobs.
	Fast bool
	// OpenJournal opens a journal that is not in Dir; nil: it is in Dir. A watchdog or a restore
	// must read the same journal.
	OpenJournal func(ctx context.Context) (Journal, error)
	// Metrics and Logger may be nil.
	Metrics *metric.Set
	Logger  *slog.Logger
}

// Target is one declared knob.
type Target struct {
	// KnobID is the knob's name in plans.
	trimtab.KnobID
	Knob Knob
	// Min and Max limit every value that is set, 0 <= Min <= Max, Max > 0.
	Min, Max float64
	// Rest is the value to restore if the value found was above it. It is for best-effort jobs,
	// whose allocation ends with its lease; nil: the value found is restored.
	Rest *trimtab.Amount
	// Mode limits what plans may do with the knob.
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
		full.JournalSize = 4 * hostfs.DefaultJournalSize // twice MaxKnobs entries
	}
	return full
}

// here returns a knob's name with this pool and host. The journal may have been written under
// another pool or host name, or by a release without them.
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
