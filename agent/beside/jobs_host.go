package beside

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/agent"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/jobs"
	"github.com/trimtab/trimtab/internal/metric"
	"github.com/trimtab/trimtab/planner/colocate"
	"github.com/trimtab/trimtab/planner/issue"
)

// jobActuator is the part of an actuator that a [jobHost] uses.
type jobActuator interface {
	Tick(ctx context.Context)
	Holding() *trimtab.Holding
	Handle(ctx context.Context, p *trimtab.Plan) *trimtab.Outcome
	Command(ctx context.Context, c *trimtab.Command) error
}

// jobHost is the controller of one host's best-effort jobs. It passes plans and outcomes between
// the co-location step and the actuator, and reports the results.
type jobHost struct {
	host, pool, policy string
	mode               trimtab.Mode
	period             time.Duration
	jobs               map[string]config.Workload
	knobs              jobKnobs
	actuator           jobActuator
	registry           *jobs.Registry
	files              *jobs.Files
	metrics            *metric.Set
	logger             *slog.Logger
	// around measures the other inputs of the step; nil: none can be measured.
	around  *around
	reports *serviceReports
	// bus receives the state of the jobs; nil: it is not published.
	bus publisher
	// savedState stores the state that outlives the process; nil: nothing is stored.
	savedState *savedState

	// Used by the loop alone.
	frame agent.Loop[*jobsSeen, *done]
	step  *colocate.Step
	last  time.Time // when the last tick was
	// given is the CPU time that jobs had, in core-seconds; reclaimed is the number of cores taken
	// back.
	given, reclaimed float64
	published        published

	mu    sync.Mutex
	shown *view.Colocation
}

func newJobHost(cfg *config.Config, host string, a jobActuator, r *jobs.Registry, knobs jobKnobs, services []serviceConfig) (*jobHost, error) {
	c := cfg.Beside.Jobs
	step, err := colocate.NewStep(stepConfig(cfg, host, knobs, services))
	if err != nil {
		return nil, fmt.Errorf("set up co-location: %w", err)
	}
	h := &jobHost{
		host: host, pool: colocation.JobsPool(cfg.Pool.Name), policy: c.Policy, mode: c.Mode, period: c.Period,
		jobs: jobsOf(cfg), knobs: knobs, step: step, actuator: a, registry: r, around: aroundOf(cfg, host, knobs),
		metrics: metric.NewSet(), logger: slog.New(slog.DiscardHandler), reports: newServiceReports(host, services, c.MaxAge),
	}
	h.files = jobs.NewFiles(h.takeFile)
	h.frame = agent.Loop[*jobsSeen, *done]{Every: h.period, Look: h.look, Decide: h.decide, Act: h.killed, Tell: h.tell, Save: h.save, SaveEvery: saveThresholds,
		Took: func(d time.Duration) { h.metrics.Histogram("trimtab_colocate_step_seconds").Observe(d.Seconds()) }}
	h.shown = h.blank()
	return h, nil
}

// stepConfig converts the configuration section for the step.
func stepConfig(cfg *config.Config, host string, knobs jobKnobs, services []serviceConfig) colocate.StepConfig {
	c := cfg.Beside.Jobs
	out := colocate.StepConfig{Pool: colocation.JobsPool(cfg.Pool.Name), Host: host, Policy: c.Policy, Config: policyConfig(c), Mode: stepMode(cfg), Lease: c.Lease}
	capacity := c.Capacity.ByResource()
	for _, resource := range knobs.resources {
		out.Resources = append(out.Resources, issue.Resource{Name: resource, Capacity: capacity[resource]})
	}
	out.Services = namesHere(services)
	return out
}

// stepMode returns act if any job may be acted on: the actuator applies each job's own mode.
func stepMode(cfg *config.Config) trimtab.Mode {
	for _, w := range cfg.Jobs() {
		if w.Mode == trimtab.Act {
			return trimtab.Act
		}
	}
	return cfg.Beside.Jobs.Mode
}

// jobsSeen has the inputs of one round.
type jobsSeen struct {
	news    []*colocation.Contributions
	around  *colocate.Surroundings
	holding *trimtab.Holding
	all     map[string]map[string]*trimtab.KnobState
}

// done is the result of one round.
type done struct {
	results []trimtab.Result
	refused string
	plans   int
	// status is the state of the step; all has the current allocations of the jobs.
	status colocate.Status
	all    map[string]map[string]*trimtab.KnobState
}

// look reads the allocations and progress of the jobs, and the state of the services.
func (h *jobHost) look(ctx context.Context, now time.Time) *jobsSeen {
	h.actuator.Tick(ctx)
	h.files.Poll(now, h.fileSources())
	seen := &jobsSeen{}
	if h.around != nil {
		seen.around = h.around.take() // measured since the last round
		h.around.measure(ctx, now)
	}
	if here, changed := h.reports.find(now); changed {
		h.step.Expect(here)
	}
	seen.holding = h.actuator.Holding()
	seen.all = jobsIn(seen.holding)
	h.account(now, seen.all)
	h.forget(seen.all)
	seen.news = h.reports.take()
	return seen
}

// decide passes plans and outcomes between step and actuator until both have no more: the step
// knows what a plan freed only once its outcome has come.
func (h *jobHost) decide(ctx context.Context, now time.Time, seen *jobsSeen) *done {
	out := &done{all: seen.all}
	give := func(v trimtab.Value) { h.pump(ctx, now, h.step.Step(now, v), out) }
	for _, c := range seen.news {
		give(c)
	}
	if seen.around != nil {
		give(seen.around)
	}
	for id := range seen.all {
		give(h.progressOf(now, id))
	}
	give(seen.holding)
	give(nil)
	if out.status = h.step.Status(); out.plans > 0 {
		out.all = jobsIn(h.actuator.Holding())
	}
	return out
}

// pump lets the actuator carry out plans until the step makes no more.
func (h *jobHost) pump(ctx context.Context, now time.Time, values []trimtab.Value, out *done) {
	for _, v := range values {
		p, ok := v.(*trimtab.Plan)
		if !ok {
			continue
		}
		o := h.actuator.Handle(ctx, p)
		out.plans++
		out.results = append(out.results, o.Results...)
		if out.refused = o.Refused; o.Refused != "" {
			h.logger.Warn("plan for best-effort jobs refused", "plan", p.ID(), "reason", o.Refused)
		}
		h.pump(ctx, now, h.step.Step(now, o), out)
	}
}

// progressOf returns how far a job has got. The progress of a job that no longer reports is not
// used for predictions.
func (h *jobHost) progressOf(now time.Time, id string) *colocate.Progress {
	known, p := h.registry.Progress(id), &colocate.Progress{Job: id, Time: now}
	elapsed, since := known.Elapsed, known.SinceCheckpoint
	p.Elapsed, p.SinceCheckpoint, p.Finished = &elapsed, &since, known.Last.Finished
	switch h.predictOf(id) {
	case config.DataParallel:
		if f, ok := known.Fraction(); ok {
			p.Predict, p.Done = colocate.PredictDataParallel, &f
		}
	case config.Training:
		if left, rate, ok := known.Steps(); ok {
			p.Predict, p.Remaining, p.Rate = colocate.PredictTraining, &left, &rate
		}
	}
	return p
}

// lives reports whether a job has a process; true if that is not known.
func lives(knobs map[string]*trimtab.KnobState) bool {
	k := knobs[alive]
	return k == nil || k.Problem != "" || k.InForce().Unlimited || k.InForce().Value != 0
}

// ends reports whether a job was killed and still has processes.
func ends(knobs map[string]*trimtab.KnobState) bool {
	k := knobs[alive]
	return lives(knobs) && k != nil && k.Problem == "" && k.Effective != nil
}

// runs reports whether a job is not frozen.
func runs(knobs map[string]*trimtab.KnobState) bool {
	k := knobs[running]
	return lives(knobs) && !ends(knobs) && (k == nil || k.Problem != "" || k.Now.Unlimited || k.Now.Value != 0)
}

// coresOf returns the CPU time that a job has, in cores.
func coresOf(knobs map[string]*trimtab.KnobState) float64 {
	if k := knobs[trimtab.CPU]; k != nil && k.Problem == "" {
		return amountOf(k)
	}
	return 0
}

// account adds the CPU time that the jobs had since the last tick.
func (h *jobHost) account(now time.Time, all map[string]map[string]*trimtab.KnobState) {
	d := now.Sub(h.last)
	if h.last.IsZero() || d < 0 || d > time.Minute {
		d = 0
	}
	h.last = now
	for id, knobs := range all {
		if !runs(knobs) {
			continue
		}
		cores := coresOf(knobs)
		h.registry.Change(id, func(p *jobs.Progress) { p.Run(d, cores) })
		h.given += d.Seconds() * cores
		h.metrics.Counter("trimtab_colocate_given_core_seconds_total").Add(d.Seconds() * cores)
	}
}

// forget drops the state of jobs that are gone.
func (h *jobHost) forget(all map[string]map[string]*trimtab.KnobState) {
	there := map[string]bool{}
	for id := range all {
		there[id] = true
	}
	for _, s := range h.registry.Registered() {
		there[s.ID()] = true
	}
	h.registry.Keep(there)
	for _, id := range h.registry.Forget() {
		h.logger.Info("job is gone", "job", id)
	}
}

// killed records the work that was lost with killed jobs, and the cores that were taken back.
func (h *jobHost) killed(_ context.Context, _ time.Time, out *done) {
	for i := range out.results {
		r := &out.results[i]
		if r.Status != trimtab.Written && r.Status != trimtab.Pending || !r.Found.Less(r.Before) {
			continue
		}
		id := jobs.IDOf(r.Workload, r.Instance)
		switch {
		case r.Resource == trimtab.CPU && !r.Before.Unlimited:
			h.reclaimed += r.Before.Value - r.Found.Value
			h.metrics.Counter("trimtab_colocate_reclaimed_cores_total", h.host).Add(r.Before.Value - r.Found.Value)
		case r.Resource == alive:
			before := 0.0
			h.registry.Change(id, func(p *jobs.Progress) { before = p.Lost; p.Kill(h.hadCores(id)) })
			lost := h.registry.Progress(id).Lost - before
			h.metrics.Counter("trimtab_colocate_lost_core_seconds_total").Add(lost)
			h.logger.Warn("best-effort job killed", "job", id, "lost_core_seconds", lost)
			h.mu.Lock()
			next := *h.shown
			next.Kills++
			next.Lost += lost
			h.shown = &next
			h.mu.Unlock()
		}
	}
}

// hadCores returns the cores that a job had in the state that was shown last.
func (h *jobHost) hadCores(id string) float64 {
	for _, j := range h.Colocation().Jobs {
		if j.ID == id {
			return j.Has[trimtab.CPU]
		}
	}
	return 0
}
