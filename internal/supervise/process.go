package supervise

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/internal/metric"
	"github.com/trimtab/trimtab/pipeline"
)

// Process is shared by all parts of one process.
type Process struct {
	// Host is the name of this host.
	Host string
	// Bus is the bus of the stages; nil until it is open.
	Bus     bus.Bus
	Metrics *metric.Set
	Logger  *slog.Logger
	Ready   Readiness
	Ending  Ending
	// Failed gets the error of a part that ended by itself.
	Failed chan error
}

// Background runs a function until stop is called, which waits for its end; an error before that
// ends the process. The end of ctx does not stop it: parts stop one by one, in the reverse order
// of the flow.
func (p *Process) Background(ctx context.Context, name string, run func(context.Context) error) (stop func() error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := run(ctx); err != nil && ctx.Err() == nil {
			p.Fail(name, err)
		}
	}()
	return func() error {
		cancel()
		<-done
		p.Ready.Forget(name)
		return nil
	}
}

// Working runs a part that is not a stage, and reports by its health whether it works.
func (p *Process) Working(name string, h *pipeline.Health, run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		var telling sync.WaitGroup
		telling.Go(func() { h.Report(ctx, p.Bus, func(why string) { p.Ready.Set(name, why) }) })
		defer telling.Wait()
		defer cancel()
		return run(ctx)
	}
}

// Fail ends the process with the first error of a part that was running.
func (p *Process) Fail(name string, err error) {
	p.Ready.Set(name, err.Error())
	select {
	case p.Failed <- fmt.Errorf("run %s: %w", name, err):
	default:
		p.Logger.Error("part failed", "part", name, "err", err)
	}
}

// Command is otherwise, or where that is nil this program with these arguments.
func Command(otherwise []string, arguments ...string) ([]string, error) {
	if otherwise != nil {
		return otherwise, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	return append([]string{self}, arguments...), nil
}
