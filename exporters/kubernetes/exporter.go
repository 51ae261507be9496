package kubernetes

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/internal/kube"
	"github.com/trimtab/trimtab/internal/metric"
	"github.com/trimtab/trimtab/internal/newest"
)

// Which events are written.
const (
	// NoEvents writes no events.
	NoEvents = "off"
	// Changes writes events of changes, and of those that were refused or failed.
	Changes = "changes"
	// AllEvents also writes what would be changed in mode recommend.
	AllEvents = "all"
)

// Config says what to write to a cluster.
type Config struct {
	// Pool is the one whose plans are followed.
	Pool string
	// Round is the time between two plans: an estimate that is two rounds old is stale.
	Round time.Duration
	// Resource is the pool's first one: curves are over it.
	Resource  string
	Workloads []Workload
	// Events is NoEvents, Changes or AllEvents.
	Events string
	// StartValues is the namespace of the ConfigMap with start values; "": none.
	StartValues string
	// Recommender is the name by which VPAs ask for recommendations; "": none.
	Recommender string
	// Watched returns the cluster. Required.
	Watched func() (*kube.Cluster, error)
	// Metrics counts the writes. Required.
	Metrics *metric.Set
	Logger  *slog.Logger
}

// Workload is a workload of the cluster.
type Workload struct {
	Name string
	Mode trimtab.Mode
	Ref  kube.Ref
	// Container is the one whose limits are planned; "": the only one.
	Container string
	// SLO is the target performance; 0: none.
	SLO float64
	// Max bounds the limit of one pod, by resource.
	Max map[string]float64
}

// Validate checks all but the cluster.
func (c *Config) Validate() error {
	switch {
	case c.Pool == "" || c.Round <= 0 || c.Watched == nil || c.Metrics == nil:
		return trimtab.Invalidf("kubernetes exporter: no pool, round, cluster or metrics")
	case !slices.Contains([]string{NoEvents, Changes, AllEvents}, c.Events):
		return trimtab.Invalidf("kubernetes exporter: events %.40q", c.Events)
	}
	return nil
}

// Exporter writes to a cluster. Its methods are safe for concurrent use.
type Exporter struct {
	config Config
	now    func() time.Time
	client *kube.Client // the last client, used at the end

	mu        sync.Mutex
	workloads map[string]*state
	newest    newest.Model
	events    events
	// had are the start values as they were read or written last, starts says when.
	had         *kube.ConfigMap
	starts      time.Time
	recommended map[string]time.Time
	begun       time.Time
	// quiet has the time until which a kind of write that was refused is not tried again.
	quiet map[string]time.Time
}

// state is the known state of one workload.
type state struct {
	Workload
	// limits are those of its serving pods, by resource, in the last report that had any of its pods,
	// which came at reportedAt.
	limits     map[string][]float64
	reportedAt time.Time
	// peaks are the highest bounds of the load, by hour.
	peaks map[int64]float64
}

// Open checks the configuration. It asks nothing of the cluster.
func Open(c Config) (*Exporter, error) { return open(c, time.Now) }

func open(c Config, now func() time.Time) (*Exporter, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	e := &Exporter{config: c, now: now, workloads: map[string]*state{}, recommended: map[string]time.Time{}, quiet: map[string]time.Time{}, begun: now()}
	for _, w := range c.Workloads {
		e.workloads[w.Name] = &state{Workload: w, peaks: map[int64]float64{}}
	}
	e.newest = newest.Model{Hosts: newest.Hosts{Max: maxHosts}, MaxWorkloads: len(c.Workloads), Followed: 2 * c.Round, Admits: e.declares}
	return e, nil
}

// Follow subscribes to the values that it exports; stop ends it.
func (e *Exporter) Follow(ctx context.Context, b bus.Bus) (stop func(), err error) {
	return bus.Follow(ctx, b, false, e.Observe, trimtab.KindPlan, trimtab.KindOutcome, trimtab.KindHolding, trimtab.KindEstimate)
}

// Observe reads one value.
func (e *Exporter) Observe(v trimtab.Value) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch v := v.(type) {
	case *trimtab.Plan:
		if v.Pool == e.config.Pool {
			e.newest.Observe(v, e.now())
		}
	case *trimtab.Outcome:
		if v.Pool == e.config.Pool && e.config.Events != NoEvents {
			e.happened(v)
		}
	case *trimtab.Holding:
		if v.Pool == e.config.Pool {
			e.holds(v)
		}
	case *trimtab.Estimate:
		if s := e.workloads[v.Workload]; s != nil {
			e.newest.Observe(v, e.now())
			s.peak(v, e.now())
		}
	}
}

// declares reports whether a workload is one of the cluster.
func (e *Exporter) declares(name string) bool { return e.workloads[name] != nil }

// maxHosts bounds the actuators whose knobs are followed.
const maxHosts = 1000

// tick is how often Run checks whether something is to be written.
const tick = time.Second

// Run writes until ctx ends, and then removes the start values.
func (e *Exporter) Run(ctx context.Context) error {
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return e.End()
		case <-t.C:
			e.Step(ctx)
		}
	}
}

// Step makes the writes that are due.
func (e *Exporter) Step(ctx context.Context) {
	cluster, err := e.config.Watched()
	if err != nil {
		return // its actuator says so
	}
	e.client = cluster.Client
	e.sendEvents(ctx, cluster)
	e.writeStarts(ctx, cluster)
	e.recommend(ctx, cluster)
}

// refusedFor is how long a kind of write is not tried again after it was forbidden.
const refusedFor = 10 * time.Minute

// tries reports whether a kind of write may be tried.
func (e *Exporter) tries(what string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.now().Before(e.quiet[what])
}

// failed records that a kind of write failed. It is tried again later; much later if a right is
// missing.
func (e *Exporter) failed(what string, err error) {
	wait := 15 * time.Second
	if errors.Is(err, trimtab.ErrRefused) {
		wait = refusedFor
	}
	e.mu.Lock()
	e.quiet[what] = e.now().Add(wait)
	e.mu.Unlock()
	e.config.Metrics.Counter("trimtab_kubernetes_written_total", what, "failed").Inc()
	e.config.Logger.Warn("the cluster is not told", "what", what, "again_in", wait, "err", err)
}

func (e *Exporter) wrote(what string) {
	e.config.Metrics.Counter("trimtab_kubernetes_written_total", what, "written").Inc()
}
