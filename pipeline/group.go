package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/metric"
)

// Service is anything that runs until its context ends: a stage, a listener,
// a loop. It calls ready with "" when it works and with a reason when not.
type Service struct {
	Name string
	Run  func(ctx context.Context, ready func(reason string)) error
}

// Group runs services together. They are added in the order of the flow, the
// collector first and the actuator last; they start from the end, so that
// nobody sends to someone who is not there, and stop from the front, so that
// the actuator undoes last. The zero value is ready; Add before Run.
type Group struct {
	// Stop is how long one service may take to stop before the next is
	// stopped; 0: 10 s.
	Stop time.Duration
	// Start is how long to wait for one service's first word before the next
	// is started; 0: 2 s.
	Start   time.Duration
	Metrics *metric.Set
	Logger  *slog.Logger

	services []*running

	mu    sync.Mutex
	ready map[string]string
}

// running is a service with its life.
type running struct {
	Service
	spoke chan struct{} // closed at its first word
	once  sync.Once
	quit  context.CancelFunc
	done  chan struct{}
	err   error // after done
}

// Add appends a service. Names must differ.
func (g *Group) Add(s Service) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ready == nil {
		g.ready = map[string]string{}
	}
	g.ready[s.Name] = "not started"
	g.services = append(g.services, &running{Service: s, spoke: make(chan struct{}), done: make(chan struct{})})
}

// AddStage appends a stage.
func (g *Group) AddStage(s Stage) {
	g.Add(Service{Name: s.Name, Run: func(ctx context.Context, ready func(string)) error {
		s.Ready = ready
		return Run(ctx, s)
	}})
}

// Ready returns, per service, "" or the reason why it is not ready.
func (g *Group) Ready() map[string]string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.ready)
}

// Run starts all services and waits until ctx ends or one of them ends, then
// stops the others. It returns the first error of a service; a service that
// ends by itself without one is an error too.
func (g *Group) Run(ctx context.Context) error {
	if g.Logger == nil {
		g.Logger = slog.New(slog.DiscardHandler)
	}
	if len(g.services) == 0 {
		return trimtab.Invalidf("run group: it has no services")
	}
	ended := make(chan *running, len(g.services))
	// Services end when they are told, one by one, not when ctx ends.
	base := context.WithoutCancel(ctx)
	started := len(g.services)
	for started > 0 && ctx.Err() == nil && len(ended) == 0 {
		started--
		g.start(base, g.services[started], ended)
		g.await(ctx, g.services[started])
	}
	var first *running
	select {
	case <-ctx.Done():
	case first = <-ended:
	}
	var errs []error
	if first != nil && ctx.Err() == nil {
		err := first.err
		if err == nil {
			err = errors.New("ended by itself")
		}
		errs = append(errs, fmt.Errorf("run %s: %w", first.Name, err))
	}
	for _, r := range g.services[started:] {
		if err := g.stop(r); err != nil && r != first {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (g *Group) start(ctx context.Context, r *running, ended chan<- *running) {
	ctx, r.quit = context.WithCancel(ctx)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				r.err = fmt.Errorf("panic: %v\n%s", p, stack())
			}
			g.note(r, "stopped")
			close(r.done)
			ended <- r
		}()
		r.err = r.Run(ctx, func(reason string) { g.note(r, reason) })
	}()
}

// await waits for the first word of r.
func (g *Group) await(ctx context.Context, r *running) {
	wait := g.Start
	if wait <= 0 {
		wait = 2 * time.Second
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-r.spoke:
	case <-t.C:
		g.Logger.Warn("service says nothing, going on", "service", r.Name, "waited", wait)
	case <-ctx.Done():
	}
}

// starting is what a service says before it has anything to say; it does not
// count as its first word.
const starting = "starting"

func (g *Group) note(r *running, reason string) {
	if reason != starting {
		r.once.Do(func() { close(r.spoke) })
	}
	g.mu.Lock()
	changed := g.ready[r.Name] != reason
	g.ready[r.Name] = reason
	g.mu.Unlock()
	if !changed {
		return
	}
	if g.Metrics != nil {
		ready := 0.0
		if reason == "" {
			ready = 1
		}
		g.Metrics.Gauge("trimtab_stage_ready", r.Name).Set(ready)
	}
	if g.Logger != nil {
		g.Logger.Info("service", "service", r.Name, "ready", reason == "", "reason", reason)
	}
}

// stop ends r and waits for it, but not for ever.
func (g *Group) stop(r *running) error {
	wait := g.Stop
	if wait <= 0 {
		wait = 10 * time.Second
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	r.quit()
	select {
	case <-r.done:
	case <-t.C:
		return fmt.Errorf("stop %s: still running after %v", r.Name, wait)
	}
	if r.err != nil && !errors.Is(r.err, context.Canceled) {
		return fmt.Errorf("stop %s: %w", r.Name, r.err)
	}
	return nil
}
