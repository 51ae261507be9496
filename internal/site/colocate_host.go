package site

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/jobs"
	"github.com/trimtab/trimtab/internal/metric"
	"github.com/trimtab/trimtab/planner/colocate"
)

// turner is what a [jobHost] needs of its actuator.
type turner interface {
	Tick(ctx context.Context)
	Holding() *trimtab.Holding
	Handle(ctx context.Context, p *trimtab.Plan) *trimtab.Outcome
}

// jobHost decides for the best-effort jobs of one host and turns their knobs.
type jobHost struct {
	host, pool, name string
	mode             trimtab.Mode
	period, lease    time.Duration
	capacity, step   map[string]float64
	services         []serviceConfig
	jobs             map[string]config.Workload
	knobs            jobKnobs
	policy           colocate.Config
	decider          colocate.Policy
	actuator         turner
	registry         *jobs.Registry
	metrics          *metric.Set
	logger           *slog.Logger

	// Of the loop alone.
	epoch, sequence uint64
	last            time.Time // the last tick
	renewed         time.Time // the last plan
	// states are what was done to the jobs in mode act: one that is missing was not
	// started.
	states  map[string]colocate.State
	reading atomic.Bool

	mu sync.Mutex
	// files are those of progress, by job: when the one that was read last was written.
	files         map[string]time.Time
	contributions map[string]heard
	shown         *view.Colocation
}

func newJobHost(cfg *config.Config, host string, a turner, r *jobs.Registry, knobs jobKnobs, services []serviceConfig) (*jobHost, error) {
	c := cfg.Colocate
	policy := policyConfig(c)
	decider, err := colocate.New(c.Policy, policy)
	if err != nil {
		return nil, fmt.Errorf("set up co-location: %w", err)
	}
	h := &jobHost{
		host: host, pool: JobsPool(cfg.Pool.Name), name: c.Policy, mode: c.Mode, period: c.Period, lease: c.Lease,
		capacity: c.Capacity.ByResource(), step: c.Step.ByResource(), services: services, jobs: jobsOf(cfg), knobs: knobs,
		policy: policy, decider: decider, actuator: a, registry: r, metrics: metric.NewSet(), logger: slog.New(slog.DiscardHandler),
		states: map[string]colocate.State{}, files: map[string]time.Time{}, contributions: map[string]heard{},
	}
	// A term of its own: what the last life of this process began is over.
	h.epoch = a.Holding().Epoch + 1
	h.shown = h.blank()
	return h, nil
}

// tick looks, decides and acts, once.
func (h *jobHost) tick(ctx context.Context, now time.Time) {
	began := time.Now()
	h.actuator.Tick(ctx)
	h.readFiles(now)
	holding := h.actuator.Holding()
	all := h.found(now, holding)
	h.account(now, all)
	h.forget(all)
	h.mu.Lock()
	services, shown := h.observe(now)
	h.mu.Unlock()
	o := &colocate.Observation{Time: now, Services: services, Capacity: h.room(holding)}
	for _, j := range all {
		if j.turned && !dead(j) {
			o.Jobs = append(o.Jobs, j.Job)
		}
	}
	d := h.decider.Decide(o)
	plan := h.plan(now, &d, all, o.Capacity)
	var outcome *trimtab.Outcome
	if len(plan.Actions) > 0 || h.renews(now, holding) {
		h.sequence++
		plan.Sequence = h.sequence
		outcome = h.actuator.Handle(ctx, plan)
		h.renewed = now
	}
	h.settle(&d, all, outcome)
	h.show(now, &d, all, o, shown, outcome)
	h.metrics.Histogram("trimtab_colocate_step_seconds").Observe(time.Since(began).Seconds())
}

// renews tells whether what is held needs a plan to go on.
func (h *jobHost) renews(now time.Time, holding *trimtab.Holding) bool {
	return holding.LeaseLeft > 0 && now.Sub(h.renewed) >= h.lease/4
}

// dead reports whether a job has no process: there is nothing to run.
func dead(j *hostJob) bool {
	k := j.knobs[alive]
	return k != nil && k.Problem == "" && !k.Now.Unlimited && k.Now.Value == 0
}

// room is what the jobs may have together: what is declared, and no more than what the
// host has, less its reserve and what its other pools claim or use.
func (h *jobHost) room(holding *trimtab.Holding) colocate.Amounts {
	out := colocate.Amounts{}
	for _, resource := range h.knobs.resources {
		if resource == running || resource == alive {
			continue
		}
		declared, given := h.capacity[resource]
		left, measured := holding.Capacity[resource]
		switch {
		case given && measured:
			out[resource] = min(declared, left)
		case given:
			out[resource] = declared
		case measured:
			out[resource] = left
		}
	}
	return out
}

// account adds up what the jobs were given since the last tick.
func (h *jobHost) account(now time.Time, all []*hostJob) {
	d := now.Sub(h.last)
	if h.last.IsZero() || d <= 0 || d > time.Minute {
		d = 0
	}
	h.last = now
	for _, j := range all {
		cores := 0.0
		if k := j.knobs[trimtab.CPU]; k != nil && k.Problem == "" {
			cores = amountOf(k)
		}
		if j.State != colocate.Running || dead(j) || d == 0 {
			continue
		}
		h.registry.Change(j.id, func(p *jobs.Progress) { p.Run(d, cores) })
		h.metrics.Counter("trimtab_colocate_given_core_seconds_total").Add(d.Seconds() * cores)
	}
}

// forget drops what is known of jobs that are gone.
func (h *jobHost) forget(all []*hostJob) {
	there := map[string]bool{}
	for _, j := range all {
		there[j.id] = true
		if dead(j) {
			delete(h.states, j.id)
		}
	}
	for _, s := range h.registry.Registered() {
		there[s.ID()] = true
	}
	h.registry.Keep(there)
	maps.DeleteFunc(h.states, func(id string, _ colocate.State) bool { return !there[id] })
	h.mu.Lock()
	maps.DeleteFunc(h.files, func(id string, _ time.Time) bool { return !there[id] })
	h.mu.Unlock()
	for _, id := range h.registry.Forget() {
		h.logger.Info("job is gone", "job", id)
	}
}
