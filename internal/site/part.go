package site

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/metric"
)

// part is one stage or service of a configuration, not yet started.
type part struct {
	name string
	// key says what it was built from: over a reload, a part with the same
	// key goes on undisturbed.
	key string
	// start returns when the part works, or takes too long to: readiness
	// tells then. stop ends it; ctx bounds only the start.
	start func(ctx context.Context) (stop func() error, err error)
}

// parts runs the parts of the newest good configuration, in the order of the
// flow; they stop in the reverse order, so that what came in is still handled.
type parts struct {
	logger *slog.Logger

	mu      sync.Mutex
	running []runningPart
}

type runningPart struct {
	part
	stop func() error
}

// apply makes next the running parts: it stops, in reverse, what is gone or
// changed, and starts what is new. When one does not start, the parts before
// are brought back and the error is returned.
func (p *parts) apply(ctx context.Context, next []part) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.running
	if err := p.change(ctx, next); err != nil {
		var old []part
		for _, r := range before {
			old = append(old, r.part)
		}
		if len(old) == 0 {
			return errors.Join(err, p.change(ctx, nil))
		}
		p.logger.Warn("bringing the parts of the old configuration back", "cause", err)
		return errors.Join(err, p.change(ctx, old))
	}
	return nil
}

func (p *parts) change(ctx context.Context, next []part) error {
	var err error
	kept := []runningPart{}
	for _, r := range slices.Backward(p.running) {
		if slices.ContainsFunc(next, func(n part) bool { return n.name == r.name && n.key == r.key }) {
			kept = append(kept, r)
			continue
		}
		p.logger.Debug("stopping", "part", r.name)
		if e := r.stop(); e != nil {
			err = errors.Join(err, fmt.Errorf("stop %s: %w", r.name, e))
		}
	}
	p.running = nil
	for _, n := range next {
		if i := slices.IndexFunc(kept, func(r runningPart) bool { return r.name == n.name }); i >= 0 {
			p.running = append(p.running, kept[i])
			continue
		}
		p.logger.Debug("starting", "part", n.name)
		stop, e := n.start(ctx)
		if e != nil {
			// What is kept must not be lost, whatever its place.
			for _, r := range kept {
				if !slices.ContainsFunc(p.running, func(x runningPart) bool { return x.name == r.name }) {
					p.running = append(p.running, r)
				}
			}
			return errors.Join(err, e)
		}
		p.running = append(p.running, runningPart{n, stop})
	}
	return err
}

// close stops everything.
func (p *parts) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.change(context.Background(), nil)
}

// readiness holds why parts are not ready, and shows it as a metric.
type readiness struct {
	metrics *metric.Set
	logger  *slog.Logger

	mu    sync.Mutex
	why   map[string]string    // of every part, "" when it is ready
	since map[string]time.Time // when that changed
}

// set notes a part's reason; "" means ready.
func (r *readiness) set(name, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old, known := r.why[name]
	if known && old == why {
		return
	}
	if r.why == nil {
		r.why, r.since = map[string]string{}, map[string]time.Time{}
	}
	// Another reason of a part that is not ready is worth no line of the log
	// by default: reasons with an error in them may change at every attempt.
	level := slog.LevelDebug
	if !known || (old == "") != (why == "") {
		r.since[name] = time.Now()
		level = slog.LevelInfo
	}
	if old == "starting" {
		level = slog.LevelInfo
	}
	r.why[name] = why
	ready := 0.0
	if why == "" {
		ready = 1
	}
	r.metrics.Gauge("trimtab_stage_ready", name).Set(ready)
	r.logger.Log(context.Background(), level, "readiness", "part", name, "ready", why == "", "reason", why)
}

// forget drops a part that was stopped.
func (r *readiness) forget(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.why, name)
	delete(r.since, name)
	r.metrics.Forget("trimtab_stage_ready", name)
}

// get returns the reasons of the parts that are not ready.
func (r *readiness) get() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := maps.Clone(r.why)
	maps.DeleteFunc(out, func(_, why string) bool { return why == "" })
	return out
}

// stages returns all parts in order of name, with since when they are ready
// or not.
func (r *readiness) stages() []view.StageState {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := []view.StageState{}
	for _, name := range slices.Sorted(maps.Keys(r.why)) {
		out = append(out, view.StageState{Name: name, Ready: r.why[name] == "", Reason: r.why[name], Since: r.since[name]})
	}
	return out
}
