package beside

import (
	"context"
	"errors"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/config"
)

// orders wraps the bus of a host's actuator, so that a person's commands for its pool also reach
// the best-effort jobs. An agent has one consumer of commands, which actuator and jobs share.
type orders struct {
	bus.Bus
	take func(ctx context.Context, c *trimtab.Command) error
}

// Subscribe passes commands to both handlers, which must tolerate repeated commands.
func (o orders) Subscribe(ctx context.Context, s bus.Subscription) (stop func(), err error) {
	if handle := s.Handle; s.Kind == trimtab.KindCommand {
		s.Handle = func(ctx context.Context, d bus.Delivery) error {
			err := handle(ctx, d)
			if c, ok := d.Value.(*trimtab.Command); ok && !errors.Is(err, trimtab.ErrInvalid) {
				err = errors.Join(err, o.take(ctx, c))
			}
			return err
		}
	}
	return o.Bus.Subscribe(ctx, s)
}

// Orders is the bus of a host's actuator that hands commands on to its jobs, too.
func (s *Host) Orders(b bus.Bus) bus.Bus { return orders{b, s.order} }

// order passes a command to the jobs of this host, or keeps it until they have started.
func (s *Host) order(ctx context.Context, c *trimtab.Command) error {
	if c.Verb == trimtab.Pause || c.Verb == trimtab.Resume {
		s.ordered.Store(c)
	}
	if h := s.jobs.Load(); h != nil {
		return h.order(ctx, c)
	}
	return nil
}

// catchUp carries out the command that came before the jobs had started.
func (s *Host) catchUp(ctx context.Context, h *jobHost) error {
	c := s.ordered.Load()
	if c == nil || (c.Verb == trimtab.Pause) == h.actuator.Holding().Paused {
		return nil
	}
	return h.order(ctx, c)
}

// hearOrders subscribes to commands if this process has no actuator of services, whose bus would
// pass them on.
func (s *Host) hearOrders(ctx context.Context, cfg *config.Config, b bus.Bus) {
	if cfg.Pool.Capacity() > 0 {
		return
	}
	stop, err := b.Subscribe(ctx, bus.Subscription{Kind: trimtab.KindCommand, Key: cfg.Pool.Name, Consumer: "actuator-" + s.Process.Host, For: "colocate",
		Handle: func(ctx context.Context, d bus.Delivery) error {
			if c, ok := d.Value.(*trimtab.Command); ok {
				return s.order(ctx, c)
			}
			return nil
		}})
	if err != nil {
		s.Process.Logger.Warn("pause and resume do not reach the best-effort jobs", "err", err)
		return
	}
	<-ctx.Done()
	stop()
}

// order carries out a person's command: pause and resume apply to all jobs, release to one that
// is declared. The actuator keeps the state over restarts, and the step follows the actuator's
// holding.
func (h *jobHost) order(ctx context.Context, c *trimtab.Command) error {
	switch c.Verb {
	case trimtab.Pause, trimtab.Resume:
	case trimtab.Release:
		if _, ok := h.jobs[c.Workload]; !ok {
			return nil
		}
	default:
		return nil
	}
	own := *c
	own.Pool = h.pool
	return h.actuator.Command(ctx, &own)
}
