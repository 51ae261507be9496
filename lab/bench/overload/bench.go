package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/trimtab/trimtab/lab/bench/rig"
)

// lowLoad is the load before and after the step, over the capacity.
const lowLoad = 0.3

// bench runs services, loads and rows.
type bench struct {
	options
	out, err io.Writer
}

func (b *bench) run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "trimtab-overload-")
	if err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	// PostgreSQL and PgBouncer run as another user.
	if err := os.Chmod(dir, 0o755); err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	if b.Keep {
		fmt.Fprintln(b.err, "data and logs:", dir)
	} else {
		defer func() { _ = os.RemoveAll(dir) }()
	}
	if b.Trimtab == "" && (b.Proxy || slices.Contains(b.Rows, rowGate) || slices.Contains(b.Rows, rowManaged)) {
		b.Trimtab = filepath.Join(dir, "trimtab")
		if err := rig.BuildTrimtab(ctx, b.Trimtab, rig.Released(false)...); err != nil {
			return err
		}
	}
	if b.Proxy {
		return b.proxies(ctx, dir)
	}
	var all []*result
	for _, name := range b.Services {
		results, err := b.serve(ctx, dir, name)
		if err != nil {
			return fmt.Errorf("measure %s: %w", name, err)
		}
		all = append(all, results...)
	}
	if b.Output == "text" {
		for _, line := range append(verdict(all), asked(all)...) {
			fmt.Fprintln(b.out, line)
		}
	}
	return nil
}

// stage is a service with its capacity, ready for loads.
type stage struct {
	*scene
	fronts fronts
	about  about
	// taught: trimtab has learnt from the load of this service.
	taught bool
}

// serve plays all loads on one service.
func (b *bench) serve(ctx context.Context, dir, name string) (out []*result, err error) {
	s, err := openScene(ctx, dir, name, b.Cores)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	t := &stage{scene: s, fronts: fronts{group: s.proxies, dir: s.dir, trimtab: b.Trimtab, within: b.Within}}
	cost, err := s.calibrate(ctx, b.Cost)
	if err != nil {
		return nil, err
	}
	t.about = about{
		Machine: rig.DescribeMachine(), Service: name, Seed: b.Seed, Cores: b.Cores, Cost: ms(cost), Within: ms(b.Within), Patience: ms(b.Patience),
		Retries: b.Retries, Capacity: b.Capacity, Given: b.Capacity > 0,
	}
	if !t.about.Given {
		if t.about.Capacity, err = b.measure(ctx, t, b.Cores/cost.Seconds()); err != nil {
			return nil, err
		}
	}
	if b.Output == "text" {
		fmt.Fprintf(b.out, "\n%s\n", t.about.line())
	}
	for _, load := range b.Loads {
		r, err := b.play(ctx, t, load)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
		if b.Output == "json" {
			err = r.json(b.out)
		} else {
			err = r.text(b.out)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func ms(d time.Duration) float64 { return d.Seconds() * 1000 }

// measureFor is the length of a load by which the capacity is found.
const measureFor = 5 * time.Second

// measure finds the capacity behind the quota, of which bound is what the CPU allows.
func (b *bench) measure(ctx context.Context, t *stage, bound float64) (float64, error) {
	// A hiccup of the machine is no sign of too high a rate: a rate is tried twice.
	try := func(rate float64) (float64, error) {
		free, err := t.bound(ctx, rowNothing)
		if err != nil {
			return 0, err
		}
		c := b.newClient("http://"+t.address+t.path, 0)
		defer c.close()
		out := c.send(ctx, course{Step: measureFor, Low: rate, High: rate}.arrivals(b.Seed))
		if err := errors.Join(ctx.Err(), free(), t.drain(ctx)); err != nil {
			return 0, err
		}
		return share(out, b.Within), nil
	}
	return capacity(bound/2, bound*1.1, func(rate float64) (float64, error) {
		v, err := try(rate)
		if err != nil || v >= enough {
			return v, err
		}
		return try(rate)
	})
}

// play plays a load with all rows.
func (b *bench) play(ctx context.Context, t *stage, load float64) (*result, error) {
	r := &result{about: t.about, Load: load, Seconds: b.Step.Seconds()}
	full := course{Before: b.Before, Step: b.Step, After: b.After, Low: lowLoad * t.about.Capacity, High: load * t.about.Capacity}
	if slices.Contains(b.Rows, rowHAProxy) {
		short := full
		short.Before, short.Step, short.After = time.Second, b.Sweep, 0
		if r.Maxconn = b.Maxconns[0]; len(b.Maxconns) > 1 {
			var err error
			r.Sweep, r.Maxconn, err = sweep(b.Maxconns, func(limit int) (float64, error) {
				x, err := b.trial(ctx, t, rowHAProxy, limit, short)
				return x.Goodput, err
			})
			if err != nil {
				return nil, err
			}
		}
	}
	for _, name := range b.Rows {
		x := row{Name: name}
		var err error
		switch {
		case name == rowGate && !has(ctx, b.Trimtab, "gate"):
			x.Missing = "this trimtab has no gate"
		case name == rowManaged:
			x, err = b.trial(ctx, t, name, 0, full)
		default:
			x, err = b.trial(ctx, t, name, r.Maxconn, full)
		}
		if err != nil {
			return nil, fmt.Errorf("row %s: %w", name, err)
		}
		r.Rows = append(r.Rows, x)
	}
	return r, nil
}

// trial plays a course behind one proxy.
func (b *bench) trial(ctx context.Context, t *stage, name string, maxconn int, c course) (x row, err error) {
	f, err := t.fronts.start(ctx, name, t.address, t.path, maxconn)
	if err != nil {
		return row{}, err
	}
	defer f.close()
	cost, err := t.batch(ctx)
	if err != nil {
		return row{}, err
	}
	free, err := t.bound(ctx, name)
	if err != nil {
		return row{}, err
	}
	x, err = b.runs(ctx, t, name, f, c)
	x.Cost = ms(cost) / t.about.Cost
	if err := errors.Join(ctx.Err(), err, free(), t.drain(ctx)); err != nil || f == nil || x.Missing != "" {
		return x, err
	}
	resident := float64(f.resident()) / (1 << 20)
	added, err := t.added(ctx, f)
	x.Resident, x.Added = &resident, &added
	return x, err
}

// runs sends the load of a course through a proxy, once a trimtab that sets its limit has learnt.
func (b *bench) runs(ctx context.Context, t *stage, name string, f *front, c course) (x row, err error) {
	address := t.address
	if f != nil {
		address = f.address
	}
	clients := b.newClient("http://"+address+t.path, b.Retries)
	defer clients.close()
	x.Name = name
	if name == rowManaged {
		m, err := t.manage(ctx, filepath.Join(t.dir, "trimtab"), &t.fronts)
		if err != nil {
			return x, err
		}
		defer m.close()
		clients.observe = m.observe
		switch limit, err := b.teach(ctx, t, m, clients); {
		case errors.Is(err, errUntaught):
			x.Missing = err.Error()
			return x, nil
		case err != nil:
			return x, err
		default:
			x.Limit = &limit
		}
	}
	meter, err := rig.NewMeter(t.used)
	if err != nil {
		return x, err
	}
	before, err := t.proxies.Used()
	if err != nil {
		return x, err
	}
	busy := t.busy(c)
	x.figures = score(clients.send(ctx, c.arrivals(b.Seed)), c, b.Within, t.about.Capacity)
	if x.Busy = busy(); x.Busy != nil && x.prompt != nil {
		useful := *x.Busy * *x.prompt
		x.Useful = &useful
	}
	after, err := t.proxies.Used()
	if err != nil {
		return x, err
	}
	if f != nil {
		cpu := (after - before).Seconds() * 1e6 / float64(max(1, x.Tries))
		x.CPU = &cpu
	}
	x.Others, _, err = meter.Others()
	return x, err
}
