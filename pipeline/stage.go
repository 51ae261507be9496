package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/internal/metric"
	"github.com/trimtab/trimtab/internal/pause"
)

// Stage is a step to run, and its surroundings.
type Stage struct {
	// Name labels metrics, logs, snapshots and readiness: "planner".
	Name string
	Bus  bus.Bus
	Step trimtab.Step
	// Consumes are the inputs; Handle is set by Run.
	Consumes []bus.Subscription
	// Tick is how often the step is called without a value; 0: never. Ticks that become due while
	// the step is busy are merged into one.
	Tick time.Duration
	// Snapshots stores the state of a trimtab.Snapshotter; nil: it is not stored.
	Snapshots *Snapshots
	// Leader makes the step run for leadership of a pool; nil: no lock.
	Leader *Leader
	// Work says what the stage must do to count as ready.
	Work Work
	// Metrics receives the counts; nil: they are not exported.
	Metrics *metric.Set
	// Logger; nil: silent.
	Logger *slog.Logger
	// Ready, if not nil, is called with "" when the stage works, and with the reason when it does
	// not. Calls do not overlap.
	Ready func(reason string)
}

// Validate checks that Run has all it needs.
func (s *Stage) Validate() error {
	switch {
	case s.Name == "" || s.Bus == nil || s.Step == nil:
		return trimtab.Invalidf("stage %q: needs a name, a bus and a step", s.Name)
	case s.Tick < 0:
		return trimtab.Invalidf("stage %s: tick %v", s.Name, s.Tick)
	case s.Leader != nil && s.Leader.Pool == "":
		return trimtab.Invalidf("stage %s: leader of a pool without a name", s.Name)
	}
	return nil
}

// stage is a running Stage. Fields below owner belong to the goroutine that owns the
// step.
type stage struct {
	Stage
	// owned has an element while a goroutine owns the step: that of a delivery or that of
	// [stage.own]. They take turns in the order in which they arrive.
	owned  chan struct{}
	lock   *lock // nil without Leader
	counts *counts
	health *Health
	ready  *ready

	// owner:
	clock  clock
	saver  *saver
	epoch  uint64 // the epoch that the step knows
	export *exporter
}

// Run runs s until ctx ends, and returns nil then. It returns an error when s
// is not valid or its inputs cannot be subscribed to. At the end it lets a
// running step finish, saves the snapshot and gives up the lock.
func Run(ctx context.Context, s Stage) error {
	if err := s.Validate(); err != nil {
		return err
	}
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	s.Logger = s.Logger.With("stage", s.Name)
	if s.Ready == nil {
		s.Ready = func(string) {}
	}
	r := &stage{Stage: s, owned: make(chan struct{}, 1), counts: newCounts(s.Metrics, s.Name), export: newExporter(s.Metrics, s.Logger),
		health: NewHealth(s.Work), ready: &ready{report: s.Ready}}
	r.Bus = r.health.Bus(s.Bus)
	return r.run(ctx)
}

// starting is a stage's reason for not being ready before its first report.
const starting = "starting"

func (r *stage) run(ctx context.Context) error {
	r.ready.says(starting)
	work, quit := graceful(ctx)
	defer quit()
	r.saver = r.openSaver(ctx)
	r.openLock(work)
	ended := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.own(work, ended)
	}()
	stop, err := r.subscribe(ctx, work)
	if err == nil {
		if r.lock == nil {
			r.ready.says("")
		}
		r.health.Report(ctx, r.Bus, r.ready.does)
	}
	stop()
	close(ended)
	<-done
	r.lock.close()
	r.saver.close()
	r.ready.says("stopped")
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("run stage %s: %w", r.Name, err)
	}
	return nil
}

// ready combines the stage's own reason for not being ready with that of its health, which counts
// if the stage has none.
type ready struct {
	report func(reason string)

	mu         sync.Mutex
	said, done string
}

func (r *ready) says(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = reason
	r.report(cmp.Or(r.said, r.done))
}

func (r *ready) does(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done = reason
	r.report(cmp.Or(r.said, r.done))
}

// graceful returns a context that outlives ctx by grace, for outputs under way when a stage is
// stopped.
func graceful(ctx context.Context) (context.Context, context.CancelFunc) {
	work, quit := context.WithCancel(context.WithoutCancel(ctx))
	off := context.AfterFunc(ctx, func() {
		pause.For(work, grace)
		quit()
	})
	return work, func() { off(); quit() }
}

// grace is how long outputs of the last step may take to be published.
const grace = 2 * time.Second

// subscribe starts all inputs; stop ends those that were started. What they lead to is
// published until work ends.
func (r *stage) subscribe(ctx, work context.Context) (stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, s := range stops {
			s()
		}
	}
	for _, sub := range r.Consumes {
		sub.Handle, sub.For = r.handler(ctx, work), r.Name
		s, err := r.Bus.Subscribe(ctx, sub)
		if err != nil {
			return stop, err
		}
		stops = append(stops, s)
	}
	return stop, nil
}

// handler steps with one delivery, on the goroutine that brings it.
func (r *stage) handler(run, work context.Context) func(context.Context, bus.Delivery) error {
	return func(ctx context.Context, d bus.Delivery) error {
		select {
		case r.owned <- struct{}{}:
			defer r.disown()
			return r.deliver(work, d)
		case <-run.Done():
		case <-ctx.Done():
		}
		return errStopping
	}
}

// disown lets the next goroutine own the step.
func (r *stage) disown() { <-r.owned }

// errStopping leaves a delivery on the bus.
var errStopping = errors.New("stage is stopping")

// own calls the step for everything but deliveries until ended, and then saves it.
func (r *stage) own(ctx context.Context, ended <-chan struct{}) {
	var ticks, saves <-chan time.Time
	if r.Tick > 0 {
		t := time.NewTicker(r.Tick)
		defer t.Stop()
		ticks = t.C
	}
	if every := r.saver.every(); every > 0 {
		t := time.NewTicker(every)
		defer t.Stop()
		saves = t.C
	}
	counting := pause.Ticks(ctx, exportEvery)
	turn := func() {
		if r.Tick > 0 {
			r.health.turn(time.Now(), r.Tick)
		}
	}
	due := func(do func()) {
		turn()
		r.owned <- struct{}{}
		defer r.disown()
		do()
	}
	turn()
	for {
		select {
		case <-ticks:
			// Without an input there is nothing to bring again: logged inside.
			due(func() { _ = r.step(ctx, nil) })
		case <-r.lock.changes():
			due(func() { r.publishLeader(ctx) })
		case <-saves:
			due(func() { r.save(false) })
		case <-counting:
			due(func() { r.export.read(r.Step) })
		case <-ended:
			due(func() {
				r.export.read(r.Step)
				r.save(true)
			})
			return
		}
	}
}

// deliver handles one delivery. The error brings it again or puts it aside.
func (r *stage) deliver(ctx context.Context, d bus.Delivery) error {
	r.counts.input(d)
	r.lock.saw(d.Value)
	return r.step(ctx, d.Value)
}

// step calls the step and publishes its outputs.
func (r *stage) step(ctx context.Context, in trimtab.Value) error {
	if r.lock != nil {
		r.publishLeader(ctx)
	}
	out, err := r.call(in)
	if err != nil {
		return err
	}
	return r.publish(ctx, out)
}

// call calls the step once; a panic becomes an error that is ErrInvalid, so
// that the bus puts the value aside.
func (r *stage) call(in trimtab.Value) (out []trimtab.Value, err error) {
	began := time.Now()
	running := r.health.begin(began)
	defer func() {
		r.health.end(running)
		r.counts.took(time.Since(began))
		if p := recover(); p != nil {
			r.counts.panicked()
			what := "a tick"
			if in != nil {
				what = fmt.Sprintf("%s of %.80q", in.Kind(), in.Key())
			}
			r.Logger.Error("step panicked", "input", what, "panic", fmt.Sprint(p), "stack", stack())
			out, err = nil, trimtab.Invalidf("step %s on %s: panic: %v", r.Name, what, p)
		}
	}()
	return r.Step.Step(r.clock.now(began), in), nil
}
