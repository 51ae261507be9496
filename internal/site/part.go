package site

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
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
	// leaves, where it is not nil, is told before the part is stopped what the part is built
	// from that takes its place; nil: none does.
	leaves func(next any)
	built  any
}

// parts runs the parts of the newest good configuration, in the order of the
// flow; they stop in the reverse order, so that what came in is still handled.
type parts struct {
	logger *slog.Logger
	// stops hears what is being stopped.
	stops func(part string)

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
		p.stops(r.name)
		if r.leaves != nil {
			r.leaves(builtOf(next, r.name))
		}
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

// builtOf is what the part of that name is built from; nil: there is none.
func builtOf(all []part, name string) any {
	for _, p := range all {
		if p.name == name {
			return p.built
		}
	}
	return nil
}

// close stops everything.
func (p *parts) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.change(context.Background(), nil)
}
