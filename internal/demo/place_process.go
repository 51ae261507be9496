package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/trimtab/trimtab/actuator/process"
	"github.com/trimtab/trimtab/internal/demo/service"
)

// processPlace runs the first component of each service as supervised
// workers, whose number is the allocation, and the others as single processes.
type processPlace struct {
	turned
	launcher *Launcher
	root     string

	running sync.WaitGroup
	stops   []context.CancelFunc
	lenders []*service.Lender
}

// openProcess makes the directory through which the supervisors get the number of workers.
func openProcess(launcher *Launcher) (*processPlace, error) {
	root, err := os.MkdirTemp("", "trimtab-demo-")
	if err != nil {
		return nil, fmt.Errorf("make directory for workers: %w", err)
	}
	return &processPlace{turned: turned{}, launcher: launcher, root: root}, nil
}

func (p *processPlace) Knob() string { return KnobProcess }

func (p *processPlace) Root() string { return p.root }

// Add starts the service with its equal share of workers. Handle is the
// supervisor's directory below Root.
func (p *processPlace) Add(ctx context.Context, s *Service) error {
	for i := range s.Components[1:] {
		if _, err := p.launcher.Start(s.Components[i+1].Args(), 1); err != nil {
			return err
		}
	}
	s.Handle = s.Name
	dir := filepath.Join(p.root, s.Handle)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("make directory for workers: %w", err)
	}
	front := &s.Components[0]
	front.Inherit = filepath.Join(p.root, s.Name+".sock")
	lender, err := service.Lend(front.Listen, front.Inherit)
	if err != nil {
		return err
	}
	p.lenders = append(p.lenders, lender)
	p.supervise(ctx, s, dir)
	knob, err := process.Open(process.Config{Root: p.root, Dir: s.Handle})
	if err != nil {
		return err
	}
	p.turned[s.Name] = knob
	for i := range s.Components {
		if err := awaitReady(ctx, s.Components[i].Listen); err != nil {
			return err
		}
	}
	return await(ctx, "workers of "+s.Name, func() bool {
		state, err := knob.State()
		return err == nil && state.Running() == int(s.Equal)
	})
}

// supervise runs the workers of s until Close, whatever becomes of ctx.
func (p *processPlace) supervise(ctx context.Context, s *Service, dir string) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	p.stops = append(p.stops, stop)
	output := io.Discard
	if p.launcher.Stderr != nil {
		output = p.launcher.Stderr
	}
	supervisor := process.Supervisor{
		Dir:     dir,
		Command: append(append([]string(nil), p.launcher.Self...), s.Components[0].Args()...),
		Env:     []string{"GOMAXPROCS=1"},
		Min:     1, Max: int(s.Max), Start: int(s.Equal),
		Grace: 3 * time.Second, Output: output,
	}
	p.running.Go(func() {
		if err := process.Supervise(ctx, supervisor); err != nil && p.launcher.Failed != nil {
			p.launcher.Failed(err)
		}
	})
}

// Close ends all processes and removes the directory.
func (p *processPlace) Close() error {
	for _, stop := range p.stops {
		stop()
	}
	p.running.Wait()
	p.launcher.Close()
	failed := []error{p.turned.close()}
	for _, l := range p.lenders {
		failed = append(failed, l.Close())
	}
	return errors.Join(append(failed, os.RemoveAll(p.root))...)
}
