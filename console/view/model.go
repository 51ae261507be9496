package view

import (
	"context"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/internal/newest"
	"github.com/trimtab/trimtab/speculation"
)

// maxWorkloads is the largest number of workloads in the view, including discovered ones.
const maxWorkloads = MaxRows

// Config has the settings that the view starts with, before any message arrives.
type Config struct {
	Pool      string
	Resource  string
	Capacity  float64
	Objective string
	Round     time.Duration
	Workloads []Workload
	// Dir is the directory whose unnamed files hold the decisions that need not stay in
	// memory; "": all stay there. A later [Model.Configure] does not change it.
	Dir string
}

// Workload is the declared part of one workload.
type Workload struct {
	Name  string
	Mode  trimtab.Mode
	Class trimtab.Class
	// SLO is for people, as in "95% under 200ms"; Target is the performance
	// asked for.
	SLO    string
	Target float64
	// Share says that performance is a share of requests, in [0, 1].
	Share bool
	// Utility maps performance to [0, 1]; nil shows none.
	Utility func(float64) float64
	// Doubt says why the measured performance may mean the opposite; "": it does not.
	Doubt string
	// MemoryAlone: nothing but its memory limits is planned.
	MemoryAlone bool
}

// Model is the read model: the newest value of everything, and the past within
// bounds. It is safe for concurrent use.
type Model struct {
	mu     sync.Mutex
	config Config
	// began is when the view was made.
	began     time.Time
	workloads workloads
	fleet     fleet
	jobs      jobBook
	batch     batchBook
	plans     plans
	book      book
	// changed is closed at the next change.
	changed chan struct{}
	// awaited says that waiters may have to be woken for a change.
	awaited bool
}

// New returns an empty view.
func New(c Config) *Model {
	v := &Model{began: time.Now(), workloads: workloads{all: map[string]*state{}}, fleet: fleet{newest.Hosts{Max: maxHosts}, map[newest.HostKey]*trend{}}, changed: make(chan struct{})}
	v.workloads.hosts, v.book.shelf.dir = &v.fleet.Hosts, c.Dir
	v.Configure(c)
	return v
}

// Configure replaces the declared part and keeps the observed state.
func (v *Model) Configure(c Config) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.config, v.fleet.Pool = c, c.Pool
	v.workloads.version++
	for h := range v.fleet.All() {
		if c.Pool != "" && h.Pool != c.Pool {
			v.fleet.mark(v.fleet.Drop(h), h.Time, &v.workloads)
		}
	}
	for _, s := range v.workloads.all {
		s.declared = false
		s.Workload = Workload{Name: s.Name, Mode: trimtab.Off}
		s.version = v.workloads.version
	}
	for _, w := range c.Workloads {
		v.workloads.evictFor(w.Name)
		known := v.workloads.all[w.Name] != nil
		if s := v.workloads.state(w.Name); s != nil {
			s.Workload, s.declared = w, true
			if !known {
				v.fleet.mark([]string{w.Name}, time.Now(), &v.workloads)
			}
		}
	}
	v.publish()
}

// publish wakes all waiters for a change.
func (v *Model) publish() {
	if !v.awaited {
		return
	}
	close(v.changed)
	v.changed, v.awaited = make(chan struct{}), false
}

// Follow subscribes to everything that is shown, the decisions that the bus
// still has among it. stop ends it.
func (v *Model) Follow(ctx context.Context, b bus.Bus) (stop func(), err error) {
	return bus.Follow(ctx, b, true, v.Observe,
		trimtab.KindEstimate, colocation.KindContributions, colocation.KindColocation, trimtab.KindHolding, trimtab.KindPlan, trimtab.KindOutcome,
		speculation.KindMachine, speculation.KindJobState)
}

// Observe takes one value into the view.
func (v *Model) Observe(value trimtab.Value) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.workloads.version++
	switch x := value.(type) {
	case *trimtab.Estimate:
		if s := v.workloads.state(x.Workload); s != nil {
			s.observe(x, v.config.Round, len(v.workloads.all))
		}
	case *colocation.Contributions:
		if s := v.workloads.state(x.Workload); s != nil {
			s.contributions.Update(x, x.Time, time.Now())
		}
	case *colocation.Colocation:
		if v.config.Pool != "" && x.Pool != colocation.JobsPool(v.config.Pool) {
			return
		}
		v.jobs.observe(x, time.Now())
	case *speculation.Machine:
		if v.config.Pool != "" && x.Pool != v.config.Pool {
			return
		}
		v.batch.observeMachine(x, time.Now())
	case *speculation.JobState:
		if v.config.Pool != "" && x.Pool != v.config.Pool {
			return
		}
		v.batch.observeJob(x)
	case *trimtab.Holding:
		if !x.Of(v.config.Pool) && v.config.Pool != "" {
			return
		}
		v.fleet.observe(x, time.Now(), v.config.Resource, &v.workloads)
	case *trimtab.Plan:
		v.observePlan(x)
	case *trimtab.Outcome:
		v.book.settle(x, v.plans.newest.Value, &v.workloads)
	default:
		return
	}
	v.publish()
}

// observePlan takes a plan, or a step of one, unless it is late.
func (v *Model) observePlan(p *trimtab.Plan) {
	switch v.plans.newest.Observe(p, time.Now(), 3*v.config.Round+newest.Ahead) {
	case newest.Late:
		return
	case newest.Refutes:
		v.plans.refute(p)
		v.book.refute(p)
	}
	v.plans.observe(p, &v.workloads)
	v.book.tally.judged(p)
	for _, its := range together(p.Actions) {
		s := v.workloads.state(its[0].Workload)
		if s == nil {
			continue
		}
		a, moves := mergeActions(its)
		if (a.Resource == v.config.Resource || v.config.Resource == "") && (s.estimate.Value == nil || p.Time.Before(s.estimate.Value.Time)) {
			s.series.recall(s.recalled(p, &a, len(moves) > 0), len(v.workloads.all))
		}
		v.book.decide(s, p, a, moves, spread{v.config.Round, len(v.workloads.all)})
	}
	v.book.passed(p)
}

// Pool returns the name of the pool; empty: there is none.
func (v *Model) Pool() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.config.Pool
}
