package pipeline

import (
	"context"
	"log/slog"

	"github.com/trimtab/trimtab/bus"
)

// Alone is what one process at a time does, of all that could: the others stand
// by, and one of them goes on when the lock is given up or was not renewed for a
// term. As with every lock of this kind two may overlap for a moment, so what
// runs must bear a second one.
type Alone struct {
	Bus bus.Bus
	// Bucket and Key are where the lock is, Holder is who this process is.
	Bucket, Key, Holder string
	// What names the lock to people: "learn of pool default".
	What   string
	Logger *slog.Logger
	// Sole is that of a [Leader].
	Sole bool
	// Ready is called with "" while this process stands by, and with the reason
	// when it cannot take part; while it runs, readiness is the matter of what
	// runs.
	Ready func(reason string)
}

// Run calls run whenever this process holds the lock, with a context that ends
// with the lock, until ctx ends. It returns the error of run, and waits for it.
func (a Alone) Run(ctx context.Context, run func(context.Context) error) error {
	return a.RunTerm(ctx, func(ctx context.Context, _ Term) error { return run(ctx) })
}

// Term is one term of who holds a lock.
type Term struct {
	// Epoch is higher than that of every term before.
	Epoch uint64
	// Saw notes an epoch that somebody acted under: when it is higher, this term ends,
	// and the next one has a higher epoch still.
	Saw func(epoch uint64)
}

// RunTerm is [Alone.Run] for what needs to know its term: run is called anew when the
// epoch changes.
func (a Alone) RunTerm(ctx context.Context, run func(context.Context, Term) error) error {
	lockCtx, unlock := context.WithCancel(context.WithoutCancel(ctx))
	defer unlock()
	states := make(chan state, 1)
	l := &lock{Leader: Leader{Pool: a.Key, Holder: a.Holder, Sole: a.Sole}, from: a.Bucket, what: a.What, bus: a.Bus, logger: a.Logger,
		report: func(epoch uint64, problem string) {
			select { // only the newest counts
			case <-states:
			default:
			}
			states <- state{epoch, problem}
		}}
	l.start(lockCtx)
	defer l.close()
	var stop context.CancelFunc // of run; nil: it does not run
	var ended chan error
	var epoch uint64
	for {
		select {
		case s := <-states:
			if stop != nil && s.epoch != epoch {
				a.Logger.Info("stands by", "work", a.What)
				stop()
				err := <-ended
				stop, ended = nil, nil
				if err != nil {
					return err
				}
			}
			switch {
			case s.epoch != 0 && stop == nil:
				a.Logger.Info("takes over", "work", a.What, "term", s.epoch)
				var c context.Context
				c, stop = context.WithCancel(ctx)
				ended, epoch = make(chan error, 1), s.epoch
				go func() { ended <- run(c, Term{s.epoch, l.sawEpoch}) }()
			case s.epoch == 0:
				a.Ready(s.problem)
			}
		case err := <-ended:
			stop()
			return err
		case <-ctx.Done():
			if stop == nil {
				return nil
			}
			stop()
			return <-ended
		}
	}
}

// state is what a lock reports.
type state struct {
	epoch   uint64
	problem string
}
