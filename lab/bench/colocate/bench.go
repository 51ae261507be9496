package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/trimtab/trimtab/lab/bench/rig"
)

// bench is a run of the benchmark.
type bench struct {
	options
	host  *host
	load  replayed
	alone solo
	// learnt is the directory of what trimtab learnt before the first row.
	learnt   string
	out, err io.Writer
}

// replayed is the course of the load, and the recording that it comes from.
type replayed struct {
	course
	origin string
}

// controller is what decides over the best-effort jobs in a row.
type controller interface {
	// open gets ready, before the load begins. It starts the jobs, if they are to run.
	open(ctx context.Context, b *bench, dir string) error
	// run works until ctx ends.
	run(ctx context.Context) error
	// tell is told of every request when it has ended, from many goroutines.
	tell(begin time.Time, o *outcome)
	// close ends what open began, and adds to the row what it has to say.
	close(ctx context.Context, r *row)
}

// The least and the greatest load of the trace, as shares of the most.
const low, high = 0.20, 0.95

// run does everything, and leaves the machine as it was. Rows that were finished
// before ctx ended are printed.
func (b *bench) run(ctx context.Context) (err error) {
	load, err := openRecording(b.Data, b.Day)
	if err != nil {
		return err
	}
	b.load = replayed{load.fit(time.Duration(b.Seconds*float64(time.Second)), low, high), load.Origin}
	dir, err := os.MkdirTemp("", "trimtab-colocate-")
	if err != nil {
		return fmt.Errorf("make a data directory: %w", err)
	}
	defer func() {
		if b.Keep {
			fmt.Fprintln(b.err, "kept:", dir)
		} else {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	for _, p := range []struct{ program, debian string }{{"nginx", "nginx-light"}, {"redis-server", "redis-server"}, {"stress-ng", "stress-ng"}} {
		if _, err := rig.Lookup(p.program, p.debian); err != nil {
			return err
		}
	}
	if err := b.build(ctx, dir); err != nil {
		return err
	}
	if b.host, err = openHost(ctx, dir, b.Weight); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.host.close()) }()
	if err := b.calibrate(ctx); err != nil {
		return err
	}
	if err := b.learn(ctx); err != nil {
		return err
	}
	return b.rows(ctx)
}

// build builds trimtab where a row needs it and none was named.
func (b *bench) build(ctx context.Context, dir string) error {
	needed := false
	for _, p := range b.Policies {
		needed = needed || p != alone && p != theKernel && p != idle
	}
	if b.Trimtab != "" || b.Direct || !needed {
		return nil
	}
	b.Trimtab = filepath.Join(dir, "trimtab")
	fmt.Fprintln(b.err, "building trimtab")
	return rig.BuildTrimtab(ctx, b.Trimtab)
}

// rows runs all policies at each repetition, in an order that moves on by one, and
// prints the table, also when a row fails or ctx ends.
func (b *bench) rows(ctx context.Context) error {
	res := &result{About: b.about()}
	var failed error
	for n := range b.Repeat {
		for i := range b.Policies {
			p := b.Policies[(i+n)%len(b.Policies)]
			r, err := b.row(ctx, p, n)
			if err != nil {
				failed = fmt.Errorf("%s, repetition %d: %w", p, n+1, err)
				break
			}
			res.Rows = append(res.Rows, r)
			fmt.Fprintf(b.err, "[%d/%d] %s: EMU %.2f, BE %.2f, SLO held in %.1f%% of the periods, %d kills\n",
				len(res.Rows), b.Repeat*len(b.Policies), p, r.EMU, r.BE, 100*r.Held, r.Kills)
		}
		if failed != nil {
			break
		}
	}
	if len(res.Rows) == 0 {
		return failed
	}
	if b.Output == "json" {
		return errors.Join(failed, res.json(b.out))
	}
	return errors.Join(failed, res.text(b.out, b.Policies))
}

// controller makes the controller of a row.
func (b *bench) controller(name string) controller {
	switch name {
	case alone:
		return &nobody{}
	case theKernel:
		return &nobody{jobs: true}
	case idle:
		return &nobody{jobs: true, idle: true}
	}
	if b.Direct {
		return &direct{policy: name}
	}
	return &product{policy: name}
}

// row runs one policy once.
func (b *bench) row(ctx context.Context, name string, n int) (r *row, err error) {
	r = &row{Policy: name, Repeat: n + 1}
	dir := filepath.Join(b.host.dir, fmt.Sprintf("row-%d-%s", n+1, name))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make directory of a row: %w", err)
	}
	c := b.controller(name)
	// What was begun is ended, also after an error or Ctrl-C.
	defer func() {
		c.close(context.WithoutCancel(ctx), r)
		err = errors.Join(err, b.host.halt(context.WithoutCancel(ctx)))
	}()
	if err := c.open(ctx, b, dir); err != nil {
		return nil, err
	}
	if err := b.play(ctx, c, r, uint64(n)); err != nil {
		return nil, err
	}
	// What is under way must not count for the next row.
	return r, wait(ctx, time.Second)
}

// play lets the load run, and measures.
func (b *bench) play(ctx context.Context, c controller, r *row, n uint64) error {
	m, err := rig.NewMeter(b.host.total)
	if err != nil {
		return err
	}
	used, err := b.host.Control.Used()
	if err != nil {
		return err
	}
	before, err := b.host.work()
	if err != nil {
		return err
	}
	playing, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := c.run(playing); err != nil {
			stop(err)
		}
	}()
	out := generate(playing, b.host.shop, time.Now(), b.load.arrivals(b.alone.Max, b.Seed+n), c.tell)
	after, err := b.host.work()
	failed := context.Cause(playing)
	stop(nil)
	<-done
	if err := errors.Join(failed, err); err != nil {
		return err
	}
	r.score(out, b.slo(), b.alone.Max, b.load.whole)
	r.credit(b.host.jobs, before, after, b.alone.Rates, b.load.whole)
	r.EMU = r.Load + r.BE
	now, err := b.host.Control.Used()
	if err != nil {
		return err
	}
	r.Controller = (now - used).Seconds() / b.load.whole.Seconds()
	r.Others, r.Stolen, err = m.Others()
	return err
}

// nobody controls nothing: the jobs run as they like, their groups idle or not, or there are none.
type nobody struct{ jobs, idle bool }

func (n *nobody) open(_ context.Context, b *bench, _ string) error {
	if !n.jobs {
		return nil
	}
	if n.idle {
		if err := b.host.idle(true); err != nil {
			return err
		}
	}
	return b.host.begin(false)
}

func (*nobody) run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (*nobody) tell(time.Time, *outcome) {}

func (*nobody) close(context.Context, *row) {}
