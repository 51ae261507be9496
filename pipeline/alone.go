package pipeline

import (
	"context"
	"log/slog"

	"github.com/trimtab/trimtab/bus"
)

// Alone is work that only one of several processes does at a time. The others stand by; one of
// them takes over if the lock is released, or not renewed for a term. As with every lease, two
// may overlap for a moment: the work must tolerate that.
type Alone struct {
	Bus bus.Bus
	// Bucket and Key say where the lock is stored. Holder is the name of this process in
	// it.
	Bucket, Key, Holder string
	// What names the work in logs: "learn of pool default".
	What   string
	Logger *slog.Logger
	// Sole: see [Leader].Sole.
	Sole bool
	// Ready is called with "" while this process stands by, and with the reason if it
	// cannot compete for the lock. It is not called while the work runs, which then reports
	// its own readiness.
	Ready func(reason string)
}

// Run calls run each time this process gets the lock, until ctx ends; the context of run
// ends when the lock is lost. It waits for run and returns its error.
func (a Alone) Run(ctx context.Context, run func(context.Context) error) error {
	return a.RunTerm(ctx, func(ctx context.Context, _ Term) error { return run(ctx) })
}

// Term is one uninterrupted time in which a process has the lock.
type Term struct {
	// Epoch is higher than that of every earlier term.
	Epoch uint64
	// Saw reports the epoch of the lock that was seen in a message. If it is higher than Epoch,
	// this term ends, and the next one gets a higher epoch than that.
	Saw func(epoch uint64)
}

// RunTerm is [Alone.Run] for work that needs its epoch: run ends and is called again if the
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
	var stop context.CancelFunc // cancels run; nil: it does not run
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

// state has the arguments of one call of lock.report.
type state struct {
	epoch   uint64
	problem string
}
