package supervise

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/pipeline"
)

// startWait is how long the start waits for a stage to work before it starts the parts that send to
// the stage anyway.
const startWait = 2 * time.Second

// Stage makes a part from a pure step that is built from the given values.
func (p *Process) Stage(st pipeline.Stage, step trimtab.Step, built ...any) Part {
	return p.StageIn(nil, st, func() (trimtab.Step, error) { return step, nil }, built...)
}

// StageIn is Stage for a step that only one process at a time may run, under the lock of alone;
// nil: no lock. Each time the process gets the lock it begins with a new step, and the stored
// state of the old one.
func (p *Process) StageIn(alone *pipeline.Alone, st pipeline.Stage, step func() (trimtab.Step, error), built ...any) Part {
	key := KeyOf(st, built)
	st.Bus, st.Metrics, st.Logger = p.Bus, p.Metrics, p.Logger
	return Part{Name: st.Name, Key: key, Start: func(ctx context.Context) (func() error, error) {
		works := make(chan struct{})
		var once sync.Once
		st.Ready = func(why string) {
			p.Ready.Set(st.Name, why)
			if why == "" {
				once.Do(func() { close(works) })
			}
		}
		stop := p.Background(ctx, st.Name, p.Under(alone, st.Ready, func(ctx context.Context) (err error) {
			st := st
			if st.Step, err = step(); err != nil {
				return fmt.Errorf("set up %s: %w", st.Name, err)
			}
			return pipeline.Run(ctx, st)
		}))
		late := time.NewTimer(startWait)
		defer late.Stop()
		select {
		case <-works:
		case <-late.C:
		case <-ctx.Done():
		}
		return stop, nil
	}}
}

// Under returns a function that runs run while the lock is held; with a nil lock it is run
// itself.
func (p *Process) Under(alone *pipeline.Alone, ready func(string), run func(context.Context) error) func(context.Context) error {
	if alone == nil {
		return run
	}
	a := *alone
	a.Ready = ready
	return func(ctx context.Context) error { return a.Run(ctx, run) }
}

// Reader is a collector that asks: it runs until its context ends.
type Reader interface {
	Run(context.Context) error
	Close() error
}

// Reading makes a part from a reader. The reader is opened when the part starts, or, with a lock,
// when this process gets it.
func (p *Process) Reading(alone *pipeline.Alone, name string, built any, work pipeline.Work, open func(bus.Bus) (Reader, error)) Part {
	start := func() (func(context.Context) error, error) {
		h := pipeline.NewHealth(work)
		r, err := open(h.Bus(p.Bus))
		if err != nil {
			return nil, fmt.Errorf("set up %s collector: %w", name, err)
		}
		p.Ready.Set(name, "")
		reads := p.Working(name, h, r.Run)
		return func(ctx context.Context) error { return errors.Join(reads(ctx), r.Close()) }, nil
	}
	return Part{Name: name, Key: KeyOf(built, work), Start: func(ctx context.Context) (func() error, error) {
		if alone != nil {
			return p.Background(ctx, name, p.Under(alone, func(why string) { p.Ready.Set(name, why) }, func(ctx context.Context) error {
				run, err := start()
				if err != nil {
					return err
				}
				return run(ctx)
			})), nil
		}
		run, err := start()
		if err != nil {
			return nil, err
		}
		return p.Background(ctx, name, run), nil
	}}
}
