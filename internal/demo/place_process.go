package demo

import (
	"context"
	"fmt"
)

// Workers keeps a number of identical processes running: the knob that needs
// no privilege.
type Workers interface {
	// Count returns how many run.
	Count() int
	// Handle is what an actuator finds the workers by.
	Handle() string
	// Close ends all of them and returns when they are gone.
	Close() error
}

// Supervise starts n workers of one command, with extra environment.
type Supervise func(ctx context.Context, name string, n int, command, env []string) (Workers, error)

// ProcessPlace runs the first component of each service as workers, whose
// number is the allocation, and the others as single processes.
type ProcessPlace struct {
	Launcher  *Launcher
	Supervise Supervise
	workers   map[string]Workers
}

// Knob returns KnobProcess.
func (p *ProcessPlace) Knob() string { return KnobProcess }

// Add starts the service with its equal share of workers.
func (p *ProcessPlace) Add(ctx context.Context, s *Service) error {
	for i := range s.Components[1:] {
		if _, err := p.Launcher.Start(s.Components[i+1].Args(), 1); err != nil {
			return err
		}
	}
	command := append(append([]string(nil), p.Launcher.Self...), s.Components[0].Args()...)
	w, err := p.Supervise(ctx, s.Name, int(s.Equal), command, []string{"GOMAXPROCS=1"})
	if err != nil {
		return fmt.Errorf("start workers of %s: %w", s.Name, err)
	}
	if p.workers == nil {
		p.workers = make(map[string]Workers)
	}
	p.workers[s.Name] = w
	s.Handle = w.Handle()
	for i := range s.Components {
		if err := awaitReady(ctx, s.Components[i].Listen); err != nil {
			return err
		}
	}
	return nil
}

// Read returns the number of workers.
func (p *ProcessPlace) Read(_ context.Context, s *Service) (float64, error) {
	w, ok := p.workers[s.Name]
	if !ok {
		return 0, fmt.Errorf("count workers of %s: never started", s.Name)
	}
	return float64(w.Count()), nil
}

// Close ends all processes.
func (p *ProcessPlace) Close() error {
	var first error
	for _, w := range p.workers {
		if err := w.Close(); err != nil && first == nil {
			first = err
		}
	}
	p.workers = nil
	p.Launcher.Close()
	return first
}
