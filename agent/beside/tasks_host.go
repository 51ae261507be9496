package beside

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/trimtab/trimtab/actuator/placed"
	"github.com/trimtab/trimtab/actuator/task"
	"github.com/trimtab/trimtab/agent"
	"github.com/trimtab/trimtab/agent/signals"
	"github.com/trimtab/trimtab/collector/load"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/metric"
	"github.com/trimtab/trimtab/planner/throttle"
	"github.com/trimtab/trimtab/speculation"
)

// runner is the part of package task that a [taskHost] uses.
type runner interface {
	Start(ctx context.Context, s task.Spec, lease time.Duration) (task.Info, error)
	Renew(ctx context.Context, lease time.Duration, ids ...task.ID) error
	Freeze(ctx context.Context, id task.ID) error
	Thaw(ctx context.Context, id task.ID) error
	Kill(ctx context.Context, id task.ID, reason string) (task.Info, error)
	Relabel(ctx context.Context, id task.ID, class task.Class) error
	Pin(ctx context.Context, id task.ID, cpus string) error
	List(ctx context.Context) ([]task.Info, error)
	Forget(id task.ID) error
	Close(ctx context.Context) error
}

const (
	// speculateEvery is the interval of decisions, speculateGap the least time between two
	// decisions when events come.
	speculateEvery = time.Second
	speculateGap   = 50 * time.Millisecond
	// tellMachine is how often this host reports to the planner while nothing changes.
	tellMachine = 5 * time.Second
	// saveLearned is how often the learned state is saved.
	saveLearned = time.Minute
	// turnWait is the time limit for one operation on a task.
	turnWait = 30 * time.Second
	// maxInbox is the largest number of waiting lists. Each list is complete, so the older ones may
	// be dropped.
	maxInbox = 16
)

// taskHost runs the speculative tasks of one host. It carries out the planner's lists, within the
// limits of the configuration and the throttling policy, and reports the results.
type taskHost struct {
	host, pool, dir, user, group string
	life                         uint64
	config                       *config.BesideTasks
	runner                       runner
	signals                      *signals.Set
	publish                      func(context.Context, *speculation.Machine) error
	metrics                      *metric.Set
	logger                       *slog.Logger
	clock                        func() time.Duration // returns the time since the host booted
	inbox                        inbox
	turns                        turns

	// Used by the loop alone.
	frame   agent.Loop[*throttle.Observation, throttle.Decision]
	policy  *throttle.Policy
	ledger  *placed.Ledger
	loads   *loadLevels
	known   known
	shown   shown
	pins    *pins         // nil: tasks are not bound to cores
	account *taskAccount  // nil: tasks claim nothing
	granted []task.ID     // granted tasks that wait for memory
	now     time.Duration // of this round
}

// known has what the ledger does not know of each task.
type known struct {
	infos   map[task.ID]task.Info // as the runner, or an earlier run of the agent, reported it
	classes map[task.ID]throttle.Class
	used    map[task.ID]usage
	failed  map[task.ID]string // why it could not be started
	lately  time.Duration      // when a task last ran
}

// usage is the total CPU time of a task at a time.
type usage struct{ at, cpu time.Duration }

func (k *known) forget(id task.ID) {
	delete(k.infos, id)
	delete(k.failed, id)
	delete(k.classes, id)
	delete(k.used, id)
}

func newTaskHost(cfg *config.Config, host string, life uint64, r runner, services []signals.Service) (*taskHost, error) {
	c := cfg.Beside.Tasks
	policy, err := throttle.New(throttleConfig(c))
	if err != nil {
		return nil, fmt.Errorf("set up speculative tasks: %w", err)
	}
	ledger, err := placed.New(placed.Config{Pool: cfg.Pool.Name, Host: host, Life: life, MaxLease: c.Lease})
	if err != nil {
		return nil, fmt.Errorf("set up speculative tasks: %w", err)
	}
	wake := make(chan struct{}, 1)
	h := &taskHost{
		host: host, pool: cfg.Pool.Name, life: life, config: c, runner: r, signals: signals.New(services), metrics: metric.NewSet(),
		logger: slog.New(slog.DiscardHandler), clock: hostfs.BootTime, policy: policy, ledger: ledger, loads: &loadLevels{read: load.Reader{}.Read},
		known: known{map[task.ID]task.Info{}, map[task.ID]throttle.Class{}, map[task.ID]usage{}, map[task.ID]string{}, -time.Hour},
		shown: shown{at: -time.Hour, signals: map[shownSignal]bool{}}, inbox: inbox{wake: wake}, turns: turns{wake: wake, busy: map[task.ID]bool{}},
		publish: func(context.Context, *speculation.Machine) error { return nil },
	}
	h.frame = agent.Loop[*throttle.Observation, throttle.Decision]{Every: speculateEvery, Wake: wake, Gap: speculateGap,
		Look: h.see, Decide: h.decide, Act: h.act, Tell: h.tell, Save: h.save, SaveEvery: saveLearned,
		Took: func(d time.Duration) { h.metrics.Histogram("trimtab_speculate_tick_seconds").Observe(d.Seconds()) }}
	return h, nil
}

// run decides every second, and after each event, until ctx ends.
func (h *taskHost) run(ctx context.Context) error {
	var measuring sync.WaitGroup
	measuring.Go(func() {
		if err := h.signals.Run(ctx); err != nil {
			h.logger.Warn("measure services beside speculative tasks", "err", err)
		}
	})
	defer measuring.Wait()
	h.adopt(ctx)
	return h.frame.Run(ctx)
}

// close ends all tasks, and saves the learned state.
func (h *taskHost) close(ctx context.Context) error {
	err := h.runner.Close(ctx)
	h.turns.running.Wait()
	return errors.Join(err, h.account.close(err != nil), h.signals.Close(), h.signals.Save(h.dir, h.policy))
}

// adopt records the tasks that ended in an earlier run of the agent.
func (h *taskHost) adopt(ctx context.Context) {
	all, err := h.runner.List(ctx)
	if err != nil {
		return // the agent is stopping
	}
	for _, i := range all {
		if i.ID.Validate() == nil {
			h.known.infos[i.ID] = i
			h.ledger.Adopt(h.clock(), i.ID, speculation.TaskClass(i.Class))
		}
	}
}

// see collects results of operations and of tasks, carries out the planner's lists, and measures
// the host.
func (h *taskHost) see(ctx context.Context, _ time.Time) *throttle.Observation {
	now := h.clock()
	h.now = now
	h.settle()
	h.look(ctx, now)
	if h.loads.levels != nil { // once the capacity is known, tasks that can never fit are refused at once
		for _, p := range h.inbox.take() {
			h.carryOut(ctx, now, p)
		}
	}
	h.expire(ctx, now)
	h.account.publish(ctx, now, h.claims)
	h.loads.add(now)
	o := h.observe(now)
	return &o
}

// decide asks the policy.
func (h *taskHost) decide(_ context.Context, _ time.Time, o *throttle.Observation) throttle.Decision {
	return h.policy.Decide(o)
}

// save saves the learned state.
func (h *taskHost) save(context.Context, time.Time) {
	if err := h.signals.Save(h.dir, h.policy); err != nil {
		h.logger.Warn("keep what was learned", "err", err)
	}
}

// settle collects the results of operations.
func (h *taskHost) settle() {
	for _, t := range h.turns.take() {
		result := "ok"
		if t.err != nil {
			result = "failed"
			h.logger.Warn("speculative task", "task", t.id.String(), "turn", t.what, "err", t.err)
			switch t.what {
			case turnStart:
				h.known.failed[t.id] = t.err.Error()
			case turnRelabel: // the next list of the planner repeats the request
				h.ledger.Relabelled(t.id, speculation.TaskClass(h.known.infos[t.id].Class))
			}
		}
		h.metrics.Counter("trimtab_speculate_turns_total", h.host, t.what, result).Inc()
	}
}

// look lists the tasks, and records in the ledger which have ended.
func (h *taskHost) look(ctx context.Context, now time.Duration) {
	all, err := h.runner.List(ctx)
	if err != nil {
		return // the agent is stopping
	}
	there := map[task.ID]bool{}
	for _, i := range all {
		there[i.ID] = true
		h.known.infos[i.ID] = i
		if i.State != task.Ended {
			h.known.lately = now
		}
	}
	for _, a := range h.ledger.Attempts() {
		if a.State != placed.Running || h.turns.isBusy(a.AttemptID) && !there[a.AttemptID] {
			continue
		}
		i, known := h.known.infos[a.AttemptID]
		why, failed := h.known.failed[a.AttemptID]
		switch {
		case known && i.State == task.Ended:
			h.ledger.End(a.AttemptID)
			h.metrics.Counter("trimtab_speculate_ended_total", h.host, string(i.Outcome)).Inc()
			h.logger.Info("speculative task ended", "task", a.AttemptID.String(), "how", i.String())
		case there[a.AttemptID]:
		case failed:
			h.refuse(a.AttemptID, why)
			delete(h.known.failed, a.AttemptID)
		default: // the runner has forgotten it, so it has ended
			h.known.infos[a.AttemptID] = task.Info{ID: a.AttemptID, Class: task.Class(a.Class), State: task.Ended, Outcome: task.Lost, Reason: "it is not known any more"}
			h.ledger.End(a.AttemptID)
		}
	}
}

// refuse records that an attempt will never run here.
func (h *taskHost) refuse(id task.ID, why string) {
	h.ledger.Refuse(id, why)
	h.metrics.Counter("trimtab_speculate_refused_total", h.host).Inc()
	h.logger.Info("speculative task refused", "task", id.String(), "why", why)
}

// finite returns v, or NaN if it is unknown or not a finite number.
func finite(v float64, known bool) float64 {
	if !known || math.IsInf(v, 0) {
		return math.NaN()
	}
	return v
}
