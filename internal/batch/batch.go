// Package batch runs the manager of the jobs of a pool (planner/jobs) for as long as this
// process has the lock: it hears hosts and people, asks the manager, stores what it
// decided, and then tells it. A term that cannot store ends, and another begins with what
// is stored.
//
// Source: ROSE, sections 5.2 and 6.3. It decides nothing: planner/jobs, planner/machines.
//
//	part, err := batch.Part(&process, cfg, holder)
package batch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/bus/natsbus"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/metric"
	"github.com/trimtab/trimtab/internal/pause"
	"github.com/trimtab/trimtab/internal/supervise"
	"github.com/trimtab/trimtab/pipeline"
	"github.com/trimtab/trimtab/planner/jobs"
	"github.com/trimtab/trimtab/planner/machines"
	"github.com/trimtab/trimtab/speculation"
)

const (
	// batchName is the part that manages jobs.
	batchName = "jobs"
	// batchTick is the interval of the manager's ticks, batchStore how long storing one record
	// may take.
	batchTick  = time.Second
	batchStore = 5 * time.Second
	// batchView is how long candidates count after their last report.
	batchView = time.Minute
	// batchInputs are handled before the manager ticks.
	batchInputs = 256
)

// Part manages the jobs of the pool, under a lock in which holder names this process. It receives
// reports and requests, stores its decisions, and then publishes them.
func Part(p *supervise.Process, cfg *config.Config, holder string) (supervise.Part, error) {
	c, rule := managerConfig(cfg), newSelector(cfg.Beside.Manager)
	try := c
	try.Epoch = 1
	if err := errors.Join(try.Validate(), rule.check()); err != nil {
		return supervise.Part{}, fmt.Errorf("set up job manager: %w", err)
	}
	m := jobManager{config: c, rule: rule, bus: p.Bus, logger: p.Logger, metrics: p.Metrics, ready: func(why string) { p.Ready.Set(batchName, why) }, raised: new(time.Time)}
	alone := m.alone(holder, cfg.NATS.URL == "")
	start := func(ctx context.Context) (func() error, error) {
		p.Ready.Set(batchName, "starting")
		return p.Background(ctx, batchName, func(ctx context.Context) error { return alone.RunTerm(ctx, m.lead) }), nil
	}
	return supervise.Part{Name: batchName, Key: supervise.KeyOf(c, *cfg.Beside.Manager, holder), Start: start}, nil
}

// jobManager is shared by all terms of one process.
type jobManager struct {
	config  jobs.Config
	rule    selector
	bus     bus.Bus
	logger  *slog.Logger
	metrics *metric.Set
	ready   func(why string)
	// raised is when a host's report last ended a term.
	raised *time.Time
}

// raiseEvery bounds how often a host can make a term end by telling of a later one.
const raiseEvery = time.Minute

// alone is the lock of the job manager of a pool.
func (m jobManager) alone(holder string, sole bool) pipeline.Alone {
	return pipeline.Alone{Bus: m.bus, Bucket: "leaders", Key: m.config.Pool + "/jobs", Holder: holder, Sole: sole,
		What: "jobs of pool " + m.config.Pool, Logger: m.logger, Ready: m.ready}
}

// lead manages the jobs for a term.
func (m jobManager) lead(ctx context.Context, term pipeline.Term) error {
	c := m.config
	c.Epoch, c.Seed = term.Epoch, uint64(time.Now().UnixNano())
	t := &batchTerm{bus: m.bus, logger: m.logger, metrics: m.metrics, term: term, raised: m.raised}
	err := t.manage(ctx, c, m.rule, func() { m.ready("") })
	if err == nil || ctx.Err() != nil {
		return nil
	}
	// It is unknown whether the last record was stored: a new term begins with what is stored.
	m.logger.Warn("job manager begins again", "err", err)
	m.ready(err.Error())
	step := uint64(1)
	if errors.Is(err, trimtab.ErrStale) { // the stored records are of a later manager
		step = 1000
	}
	for pause.For(ctx, batchTick) {
		term.Saw(term.Epoch + step)
	}
	return nil
}

// managerConfig returns the job manager's configuration, without its epoch.
func managerConfig(cfg *config.Config) jobs.Config {
	c, b := jobs.Defaults(), cfg.Beside.Manager
	c.Pool, c.Tau, c.Lease, c.QueueTimeout = cfg.Pool.Name, *b.Keep, b.Lease, b.QueueTimeout
	c.HostTimeout = min(c.HostTimeout, 3*c.Lease/4)
	if b.Dispatch == "round-robin" {
		c.Dispatch = jobs.RoundRobin
	}
	return c
}

// batchTerm is one term of a job manager.
type batchTerm struct {
	pool    string
	bus     bus.Bus
	logger  *slog.Logger
	metrics *metric.Set
	term    pipeline.Term
	raised  *time.Time
	manager *jobs.Manager
	store   *recordStore
	fleet   *fleet
	view    *machines.View
	lists   bus.Bucket
	inputs  chan batchInput
	// waiting receive the results of their requests when these are stored.
	waiting []chan<- error
	// unsaid are jobs whose state could not be published, gone those to be forgotten.
	unsaid, gone map[string]bool
}

// batchInput is a received value; done, if not nil, gets the result when it is stored.
type batchInput struct {
	value trimtab.Value
	done  chan<- error
}

// manage runs one term until ctx ends or something cannot be stored.
func (t *batchTerm) manage(ctx context.Context, c jobs.Config, rule selector, works func()) error {
	t.pool, t.inputs, t.unsaid, t.gone = c.Pool, make(chan batchInput), map[string]bool{}, map[string]bool{}
	if err := t.open(ctx, c, rule); err != nil {
		return err
	}
	// The manager's own record comes before any of a job, and shows that it can store.
	if err := t.tick(ctx); err != nil {
		return err
	}
	for _, sub := range []bus.Subscription{
		{Kind: speculation.KindMachine, For: batchName},
		{Kind: speculation.KindCandidates, Key: c.Pool, For: batchName},
		{Kind: speculation.KindJobRequest, Key: c.Pool, Consumer: batchName + "-" + c.Pool, For: batchName},
	} {
		sub.Handle = t.hear
		stop, err := t.bus.Subscribe(ctx, sub)
		if err != nil {
			return fmt.Errorf("manage jobs: %w", err)
		}
		defer stop()
	}
	works()
	return t.run(ctx)
}

// open reads the stored records.
func (t *batchTerm) open(ctx context.Context, c jobs.Config, rule selector) (err error) {
	began := time.Now()
	bucket, err := t.bus.Bucket(ctx, natsbus.BucketJobs)
	if err != nil {
		return fmt.Errorf("manage jobs: %w", err)
	}
	if t.lists, err = t.bus.Bucket(ctx, natsbus.BucketMachines); err != nil {
		return fmt.Errorf("manage jobs: %w", err)
	}
	t.store = &recordStore{bucket, c.Pool + "/", map[string]uint64{}}
	stored, err := t.store.read(ctx)
	if err != nil {
		return fmt.Errorf("manage jobs: %w", err)
	}
	// The lock was held before the records were read.
	if t.manager, err = jobs.New(began, c, stored); err != nil {
		return fmt.Errorf("manage jobs: %w", err)
	}
	for _, err := range t.manager.Unreadable() {
		t.logger.Error("a stored job cannot be read; it is left as it is", "err", err)
	}
	for _, name := range t.manager.Jobs() {
		t.unsaid[name] = true
	}
	if t.fleet, err = newFleet(rule, t.term.Epoch); err != nil {
		return fmt.Errorf("manage jobs: %w", err)
	}
	t.view, err = machines.NewView(batchView)
	return err
}

// hear passes a value to the manager. A request is acknowledged when its result is stored.
func (t *batchTerm) hear(ctx context.Context, d bus.Delivery) error {
	if m, ok := d.Value.(*speculation.Machine); ok && m.Pool != t.pool {
		return nil
	}
	in := batchInput{value: d.Value}
	var done chan error
	if d.Value.Kind() == speculation.KindJobRequest {
		done = make(chan error, 1)
		in.done = done
	}
	select {
	case t.inputs <- in:
	case <-ctx.Done():
		return ctx.Err()
	}
	if done == nil {
		return nil
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run handles inputs and ticks.
func (t *batchTerm) run(ctx context.Context) error {
	tick := time.NewTicker(batchTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case in := <-t.inputs:
			t.take(ctx, in)
			t.takeMore(ctx)
		case <-tick.C:
			t.choose(ctx)
		}
		if err := t.tick(ctx); err != nil {
			return err
		}
	}
}

// takeMore handles the inputs that are waiting already.
func (t *batchTerm) takeMore(ctx context.Context) {
	for range batchInputs {
		select {
		case in := <-t.inputs:
			t.take(ctx, in)
		default:
			return
		}
	}
}

func (t *batchTerm) take(ctx context.Context, in batchInput) {
	now := time.Now()
	switch v := in.value.(type) {
	case *speculation.Machine:
		if v.Epoch > t.term.Epoch && now.Sub(*t.raised) > raiseEvery {
			*t.raised = now
			t.term.Saw(v.Epoch) // the store was set back: hosts follow no lower epoch
		}
		if err := t.manager.Machine(now, v); err != nil && !errors.Is(err, trimtab.ErrStale) {
			t.logger.Warn("a report of a host was not taken", "host", v.Host, "err", err)
		}
		t.fleet.hear(now, v)
	case *speculation.Candidates:
		t.receive(ctx, now, v)
	case *speculation.JobRequest:
		err := t.manager.Request(now, v)
		if err != nil {
			t.metrics.Counter("trimtab_batch_requests_total", "refused").Inc()
			t.logger.Warn("request on jobs refused", "verb", v.Verb, "job", v.Job.Name, "by", v.By, "err", err)
			in.done <- nil // the repetition would be refused again
			return
		}
		t.metrics.Counter("trimtab_batch_requests_total", "taken").Inc()
		t.waiting = append(t.waiting, in.done)
	}
}

// receive applies the candidates' message, and reads the list that it refers to if needed.
func (t *batchTerm) receive(ctx context.Context, now time.Time, c *speculation.Candidates) {
	err := t.view.Receive(now, c.Message)
	if err == nil && t.view.MustAsk() {
		var full []byte
		if full, _, err = t.lists.Get(ctx, t.pool); err == nil {
			err = t.view.Receive(now, full)
		}
	}
	if err != nil && !errors.Is(err, trimtab.ErrStale) && !errors.Is(err, bus.ErrNotFound) {
		t.logger.Warn("candidates were not taken", "err", err)
	}
}

// choose selects the candidates when due, and publishes them for all job managers.
func (t *batchTerm) choose(ctx context.Context) {
	now := time.Now()
	message, list, err := t.fleet.choose(now)
	if err == nil && list != nil {
		_, err = t.lists.Put(ctx, t.pool, list)
		t.fleet.listed(err == nil)
	}
	if err == nil && message != nil {
		err = t.bus.Publish(ctx, &speculation.Candidates{Pool: t.pool, Message: message})
	}
	if err != nil && ctx.Err() == nil {
		t.logger.Warn("candidates were not told", "err", err)
	}
	names, _ := t.view.Candidates(now)
	t.manager.Candidates(names)
	t.metrics.Gauge("trimtab_batch_machines").Set(float64(t.fleet.size()))
	t.metrics.Gauge("trimtab_batch_candidates").Set(float64(len(names)))
}

// tick runs a round of the manager, stores its decisions, and then publishes them.
func (t *batchTerm) tick(ctx context.Context) error {
	began := time.Now()
	out := t.manager.Tick(began)
	waiting := t.waiting
	t.waiting = nil
	err := t.store.write(ctx, out.Store)
	for _, done := range waiting {
		done <- err
	}
	if err != nil {
		return fmt.Errorf("store jobs: %w", err)
	}
	if len(out.Store) > 0 {
		t.metrics.Histogram("trimtab_batch_store_seconds").Observe(time.Since(began).Seconds())
	}
	if ctx.Err() != nil {
		return nil // it no longer has the lock
	}
	t.tell(ctx, &out)
	return nil
}

// tell publishes what was stored.
func (t *batchTerm) tell(ctx context.Context, out *jobs.Output) {
	for _, p := range out.Placements {
		if err := t.bus.Publish(ctx, p); err != nil && ctx.Err() == nil {
			t.logger.Warn("a host was not told its tasks; it is with its next report", "host", p.Host, "err", err)
		}
	}
	for _, e := range out.Events {
		t.metrics.Counter("trimtab_batch_events_total", string(e.Kind)).Inc()
		t.logger.Info("job "+e.Job, "event", e.Kind, "task", e.Task, "attempt", e.Attempt, "host", e.Host, "why", e.Text)
	}
	for _, name := range out.Rated {
		t.fleet.rate(time.Now(), name, t.manager)
	}
	for _, name := range out.Forgotten {
		t.gone[name] = true
	}
	for _, state := range out.States { // of a new job of that name, too
		t.unsaid[state.Name] = true
		delete(t.gone, state.Name)
	}
	t.tellStates(ctx)
}

// tellStates publishes the unpublished states, for as long as that is quick.
func (t *batchTerm) tellStates(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, batchTick)
	defer cancel()
	now := time.Now()
	for name := range t.unsaid {
		state := t.manager.State(now, name)
		if state == nil {
			t.gone[name] = true
			delete(t.unsaid, name)
			continue
		}
		if err := t.bus.Publish(ctx, state.Brief()); err != nil {
			return // again with the next tick
		}
		delete(t.unsaid, name)
	}
	for name := range t.gone {
		if err := t.bus.Publish(ctx, &speculation.JobState{Pool: t.pool, Name: name, Time: now, State: speculation.StateForgotten}); err != nil {
			return
		}
		delete(t.gone, name)
	}
}
