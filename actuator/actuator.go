package actuator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator/watchdog"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/metric"
)

// lockWait is how long Open waits while a watchdog restores the knobs.
const lockWait = 3 * time.Second

// Actuator controls the knobs of one host for one pool. Its methods are safe for concurrent use: a
// mutex serialises plans, commands and ticks.
//
// It is made of parts, each with fields of its own, which know only the parts before them:
//
//	base       configuration, clocks, journal, metrics, and the news that the holding changed
//	fence      which plans are accepted, and until when what they set holds
//	knobs      what each knob is set to, whose it is, and what the journal has of it
//	baselines  puts back what was found
//	instances  the knobs of workloads that come and go
//	lending    the envelopes within which a fast loop moves knobs between plans
//	host       what the pool may have of this host
//	above      the group above those of the pool
//	approvals  which plans a person asked to apply
//	executor   carries out the steps of plans
//
// No part has a lock: mu is held whenever a method of one is called.
type Actuator struct {
	*base
	// life is a random number that distinguishes this actuator from another one that uses the same
	// host name.
	life uint64
	lock *hostfs.Lock
	// presence is a second lock that only actuators take: a watchdog that restores takes only lock.
	presence *hostfs.Lock
	watchdog *watchdog.Guarded

	mu        sync.Mutex
	fence     *fence
	knobs     *knobs
	baselines *baselines
	instances *instances
	lending   *lending
	host      *host
	above     *groupAbove
	approvals *approvals
	executor  *executor
}

// Open takes the directory's lock, reads the journal and every knob. Baselines of targets that are
// no longer declared, and all of them if the lease has expired meanwhile, are restored before Open
// returns. A knob that does not work is no error: the holding reports its problem, and plans for it
// are refused.
func Open(ctx context.Context, c Config) (*Actuator, error) {
	id, err := hostfs.BootID()
	if err != nil {
		return nil, fmt.Errorf("open actuator: %w", err)
	}
	return open(ctx, c, clock{wall: wall, boot: hostfs.BootTime, id: id})
}

// wall returns the current time as it looks after encoding: in UTC, without a monotonic reading.
func wall() time.Time { return time.Now().Round(0).UTC() }

func open(ctx context.Context, c Config, k clock) (*Actuator, error) {
	b, err := newBase(c, k)
	if err != nil {
		return nil, fmt.Errorf("open actuator: %w", err)
	}
	a := newActuator(b)
	if a.lock, err = hostfs.AcquireLock(ctx, c.Dir, lockWait); err != nil {
		return nil, fmt.Errorf("open actuator: %w", err)
	}
	if a.presence, err = hostfs.AcquireFile(ctx, presencePath(c.Dir), lockWait); err != nil {
		a.lock.Close()
		return nil, fmt.Errorf("open actuator: %w", err)
	}
	for _, l := range []*hostfs.Lock{a.lock, a.presence} {
		if aside := l.Aside(); aside != "" {
			a.logger.Warn("something else was in place of a lock file and was renamed: it is of no use to trimtab", "file", aside)
		}
	}
	if a.journal, err = a.openJournal(ctx); err != nil {
		return nil, fmt.Errorf("open actuator: %w", errors.Join(err, a.presence.Close(), a.lock.Close()))
	}
	_ = a.presence.SetContent([]byte("there is a journal\n")) // best effort: see readRestorable
	a.start(ctx)
	started := func() { a.metrics.Counter("trimtab_actuator_watchdog_starts_total").Inc() }
	if a.watchdog, err = watchdog.Guard(watchdog.Config{Command: c.Watchdog, Slots: 2, Started: started, Logger: a.logger}); err != nil {
		a.logger.Error("there is no watchdog", "err", err)
	}
	return a, nil
}

// newActuator puts the parts together.
func newActuator(b *base) *Actuator {
	f := &fence{base: b, outcomes: map[int]*answer{}}
	ks := &knobs{base: b, fence: f}
	back := &baselines{base: b, fence: f, knobs: ks}
	l := &lending{base: b, fence: f, knobs: ks, looked: never}
	hs := newHost(b, ks, l)
	back.ask = hs.ask
	g := &groupAbove{base: b, knobs: ks, baselines: back, lending: l, host: hs}
	in := &instances{base: b, knobs: ks, baselines: back}
	ws := &approvals{base: b, byPlan: map[string]approval{}, arrived: make(chan struct{}, 1)}
	return &Actuator{
		base: b, fence: f, knobs: ks, baselines: back, instances: in, lending: l, host: hs, above: g, approvals: ws,
		executor: &executor{base: b, fence: f, knobs: ks, instances: in, lending: l, host: hs, above: g, approvals: ws},
		life:     uint64(max(0, b.clock.wall().UnixMicro())),
	}
}

// start takes over the state in the journal.
func (a *Actuator) start(ctx context.Context) {
	s := readState(journalState(a.journal))
	if n := a.journal.Damaged() + s.unreadable; n > 0 {
		a.metrics.Counter("trimtab_actuator_journal_damaged_total").Add(float64(n))
		a.reportDamage(n, len(s.entries))
	}
	a.fence.position, a.fence.lease, a.fence.paused, a.knobs.released = s.position, s.lease, s.paused, s.released
	for _, t := range a.config.Targets {
		t.KnobID = a.config.here(t.KnobID)
		h := newManaged(t)
		h.block.released = s.released[t.Workload]
		a.knobs.insert(h)
	}
	a.above.open(ctx)
	for _, f := range a.config.Finders {
		a.instances.finders = append(a.instances.finders, &finder{Finder: f, there: map[string]uint64{}})
	}
	a.instances.seek(ctx, false)
	a.host.measure()
	a.knobs.orphans = a.knobs.adopt(s.entries)
	a.knobs.remember(s.touched)
	if a.config.LockDir != "" {
		// So that a restore that has only the journal finds the locks.
		if err := a.journal.Append(put(locksKey, a.config.LockDir)); err != nil {
			a.logger.Error("journal the directory of locks", "err", err)
		}
	}
	for _, h := range a.knobs.all {
		if h.Mode == trimtab.Act {
			a.knobs.claim(ctx, h)
		}
	}
	a.baselines.restoreOrphans(ctx)
	for _, h := range a.knobs.all {
		if h.Mode == trimtab.Act {
			a.knobs.claim(ctx, h) // it could not be claimed before the orphan was restored
		}
		a.knobs.probe(ctx, h)
	}
	a.baselines.expire(ctx)
	a.baselines.endLoans(ctx)
	a.host.arbitrate(ctx)
}

func journalState(j Journal) (map[string][]byte, []string) {
	keys := j.Keys("")
	state := make(map[string][]byte, len(keys))
	for _, k := range keys {
		state[k], _ = j.Get(k)
	}
	return state, keys
}

// Tick looks for instances, reads all knobs, renews the lease while paused, and restores the
// baselines when the lease has expired. Run calls it at every heartbeat.
func (a *Actuator) Tick(ctx context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fence.closed {
		return
	}
	a.instances.seek(ctx, false)
	a.host.measure()
	look := hostfs.Look(ctx)
	for _, h := range a.knobs.all {
		if a.knobs.unchanged(h) {
			continue
		}
		if h.Mode == trimtab.Act || h.lock != nil {
			a.knobs.claim(ctx, h)
		}
		if h.can.remote() || h.block.problem != "" && !h.block.foreign || !h.known {
			a.knobs.probe(look, h)
		} else {
			a.knobs.observe(look, h)
		}
	}
	if a.knobs.holds() {
		a.fence.keep()
	}
	a.executor.compensate(ctx)
	a.baselines.abandon(ctx)
	a.baselines.expire(ctx)
	a.baselines.goOn(ctx)
	a.lending.tend(ctx)
	a.host.arbitrate(ctx)
	a.gauges()
}

func (a *Actuator) gauges() {
	a.metrics.Gauge("trimtab_actuator_held_knobs").Set(float64(len(a.knobs.where((*managed).journaled))))
	instances := 0
	for _, f := range a.instances.finders {
		instances += len(f.there)
	}
	a.metrics.Gauge("trimtab_actuator_instances").Set(float64(instances))
	a.metrics.Gauge("trimtab_actuator_lease_seconds").Set(a.fence.left().Seconds())
	paused := 0.0
	if !a.fence.paused.IsZero() {
		paused = 1
	}
	a.metrics.Gauge("trimtab_actuator_paused").Set(paused)
}

// base has what all parts of an actuator use.
type base struct {
	config  Config
	clock   clock
	logger  *slog.Logger
	metrics *metric.Set
	journal Journal
	// changed receives an element when the holding has changed; it has a buffer of one.
	changed chan struct{}
}

// newBase validates a configuration, and creates the directory of the journal.
func newBase(c Config, k clock) (*base, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	b := &base{config: c.filled(), clock: k, logger: c.Logger, metrics: c.Metrics, changed: make(chan struct{}, 1)}
	if b.logger == nil {
		b.logger = slog.New(slog.DiscardHandler)
	}
	if b.metrics == nil {
		b.metrics = metric.NewSet()
	}
	err := os.MkdirAll(c.Dir, 0o700)
	if err == nil {
		b.config.Dir, err = filepath.Abs(c.Dir)
	}
	return b, err
}

// clock has the two clocks that the actuator reads. Tests replace them with clocks that jump.
type clock struct {
	wall func() time.Time
	boot func() time.Duration
	// id identifies the boot from which the clock boot counts.
	id string
}

// store writes entries to the journal where the actuator continues even if that fails; it counts
// and reports the failure.
func (b *base) store(what string, entries ...hostfs.Entry) error {
	err := b.journal.Append(entries...)
	if err != nil {
		b.metrics.Counter("trimtab_actuator_journal_errors_total").Inc()
		b.logger.Error(what, "err", err)
	}
	return err
}

// reportProblem reports the current problem of something, with what to do about it; "": it has none.
func (b *base) reportProblem(of, problem, remedy string) {
	level := slog.LevelWarn
	if problem == "" {
		level = slog.LevelInfo
	}
	b.logger.Log(context.Background(), level, of, "problem", problem, "do", remedy)
	b.notify()
}

// notify asks Run to publish the holding.
func (b *base) notify() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

func (b *base) openJournal(ctx context.Context) (Journal, error) {
	if b.config.OpenJournal != nil {
		return b.config.OpenJournal(ctx)
	}
	return hostfs.OpenJournal(b.config.Dir, b.config.JournalSize)
}
