package supervise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
)

// Part is one stage or service of a configuration, not yet started.
type Part struct {
	Name string
	// Key is the digest of the values from which the part is built: over a reload, a part with the
	// same key continues undisturbed.
	Key string
	// Start returns when the part works, or takes too long to, which readiness then shows. stop
	// ends it; ctx bounds only the start.
	Start func(ctx context.Context) (stop func() error, err error)
	// Leaves, if not nil, is called before the part is stopped, with the values from which its
	// successor is built; nil: it has no successor.
	Leaves func(next any)
	Built  any
}

// Parts runs the parts of the newest valid configuration, in the order of the flow; they stop in
// the reverse order, so that inputs received are still handled.
type Parts struct {
	Logger *slog.Logger
	// Stops is called with the part that is being stopped.
	Stops func(part string)

	mu      sync.Mutex
	running []runningPart
}

type runningPart struct {
	Part
	stop func() error
}

// Apply makes next the running parts: it stops, in reverse, parts that are gone or changed, and
// starts the new ones. If one does not start, the former parts are started again and the error is
// returned.
func (p *Parts) Apply(ctx context.Context, next []Part) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.running
	if err := p.change(ctx, next); err != nil {
		var old []Part
		for _, r := range before {
			old = append(old, r.Part)
		}
		if len(old) == 0 {
			return errors.Join(err, p.change(ctx, nil))
		}
		p.Logger.Warn("bringing the parts of the old configuration back", "cause", err)
		return errors.Join(err, p.change(ctx, old))
	}
	return nil
}

func (p *Parts) change(ctx context.Context, next []Part) error {
	var err error
	kept := []runningPart{}
	for _, r := range slices.Backward(p.running) {
		if slices.ContainsFunc(next, func(n Part) bool { return n.Name == r.Name && n.Key == r.Key }) {
			kept = append(kept, r)
			continue
		}
		p.Logger.Debug("stopping", "part", r.Name)
		p.Stops(r.Name)
		if r.Leaves != nil {
			r.Leaves(builtOf(next, r.Name))
		}
		if e := r.stop(); e != nil {
			err = errors.Join(err, fmt.Errorf("stop %s: %w", r.Name, e))
		}
	}
	p.running = nil
	for _, n := range next {
		if i := slices.IndexFunc(kept, func(r runningPart) bool { return r.Name == n.Name }); i >= 0 {
			p.running = append(p.running, kept[i])
			continue
		}
		p.Logger.Debug("starting", "part", n.Name)
		stop, e := n.Start(ctx)
		if e != nil {
			// A kept part must not be lost, whatever its position.
			for _, r := range kept {
				if !slices.ContainsFunc(p.running, func(x runningPart) bool { return x.Name == r.Name }) {
					p.running = append(p.running, r)
				}
			}
			return errors.Join(err, e)
		}
		p.running = append(p.running, runningPart{n, stop})
	}
	return err
}

// builtOf returns the values from which the part with that name is built; nil: there is none.
func builtOf(all []Part, name string) any {
	for _, p := range all {
		if p.Name == name {
			return p.Built
		}
	}
	return nil
}

// Close stops everything.
func (p *Parts) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.change(context.Background(), nil)
}
