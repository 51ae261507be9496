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

// The rows, in the order in which they are played.
const (
	rowKernel    = "no limit"
	rowUntouched = "untouched"
	rowThumb     = "1.5 x peak"
	rowVPA       = "VPA"
	rowTrimtab   = "trimtab"
)

// weight is that of the groups of services, load and trimtab against all else on the machine, over 100.
const weight = 400

// bench runs services, rows, the sweep and trials.
type bench struct {
	options
	out, err io.Writer
	dir      string
	host     *rig.Host
	services []*service
	begun    time.Time
}

// say tells how far the run is.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.err, "%5.0f s  %s\n", time.Since(b.begun).Seconds(), fmt.Sprintf(format, args...))
}

func (b *bench) run(ctx context.Context) (err error) {
	b.begun = time.Now()
	if b.dir, err = os.MkdirTemp("", "trimtab-memory-"); err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	// PostgreSQL runs as another user.
	if err := os.Chmod(b.dir, 0o755); err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	if b.Keep {
		fmt.Fprintln(b.err, "data and logs:", b.dir)
	} else {
		defer func() { _ = os.RemoveAll(b.dir) }()
	}
	if b.Trimtab == "" {
		b.Trimtab = filepath.Join(b.dir, "trimtab")
		if err := rig.BuildTrimtab(ctx, b.Trimtab, rig.Released(false)...); err != nil {
			return err
		}
	}
	if b.host, err = rig.OpenHost("trimtab-memory-", weight); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.host.Close()) }()
	defer func() {
		for _, s := range b.services {
			s.close()
		}
	}()
	meter, err := rig.NewMeter(b.used)
	if err != nil {
		return err
	}
	if err := b.open(ctx); err != nil {
		return err
	}
	r, err := b.rows(ctx)
	if err != nil {
		return err
	}
	if slices.Contains(b.Parts, partSweep) {
		if err := b.sweep(ctx, r); err != nil {
			return err
		}
	}
	if slices.Contains(b.Parts, partTrials) {
		if err := b.trials(ctx, r); err != nil {
			return err
		}
	}
	if r.Others, _, err = meter.Others(); err != nil {
		return err
	}
	if b.Plot != "" {
		if err := r.plot(b.Plot); err != nil {
			return err
		}
	}
	return r.text(b.out)
}

// used is the CPU time of all that the bench started, and its own.
func (b *bench) used() (time.Duration, error) {
	all := []*rig.Group{b.host.Own, b.host.Control}
	for _, s := range b.services {
		all = append(all, s.group)
	}
	return rig.Used(all...)
}

// open starts the services, and lets them hold what they can.
func (b *bench) open(ctx context.Context) error {
	for _, k := range kinds() {
		if !slices.Contains(b.Services, k.name) {
			continue
		}
		s, err := openService(ctx, b.host, b.dir, k)
		if err != nil {
			return err
		}
		b.services = append(b.services, s)
		if err := s.warm(ctx); err != nil {
			return fmt.Errorf("warm %s: %w", k.name, err)
		}
		b.say("%s runs", k.name)
	}
	// The caches that drop what is old are as full as they stay at a low load.
	low := course{Length: kept + 2*time.Second, Day: kept, Low: 0.3, High: 0.3}
	_, err := b.play(ctx, all(low), b.Seed+1, nil)
	return err
}

// rows plays the same day under each row's limits.
func (b *bench) rows(ctx context.Context) (*result, error) {
	r := &result{options: b.options, Machine: rig.DescribeMachine(), Days: map[string][][]reading{}, services: b.services}
	for _, s := range b.services {
		r.Untouched = append(r.Untouched, s.untouched*(1<<20))
	}
	for _, name := range []string{rowKernel, rowUntouched, rowThumb, rowVPA, rowTrimtab} {
		if err := b.row(ctx, r, name); err != nil {
			return nil, fmt.Errorf("row %s: %w", name, err)
		}
		b.say("row %s: %s", name, r.Rows[len(r.Rows)-1].brief())
	}
	return r, nil
}

// row sets a row's limits and plays the day.
func (b *bench) row(ctx context.Context, r *result, name string) (err error) {
	for i, s := range b.services {
		limit := 0.0
		switch name {
		case rowUntouched:
			limit = r.Untouched[i]
		case rowThumb:
			limit = 1.5 * peak(r.Days[s.name])
		case rowVPA:
			limit = vpa(r.Days[s.name])
		case rowTrimtab:
			continue // it begins with VPA's
		}
		if err := s.Set(limit); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	var p *product
	switch name {
	case rowUntouched:
		p, err = b.manage(ctx, "recommend")
	case rowTrimtab:
		p, err = b.acts(ctx, r)
	}
	if err != nil {
		return err
	}
	defer func() { p.close() }()
	var tell hears
	if p != nil {
		tell = p.tell
	}
	seen, err := b.play(ctx, all(day(b.Day)), b.Seed, tell)
	if err != nil {
		return err
	}
	row := row{Name: name}
	for i, s := range b.services {
		row.Services = append(row.Services, score(seen[i], b.Within))
		if name != rowTrimtab {
			r.Days[s.name] = append(r.Days[s.name], seen[i].Readings)
		}
	}
	row.seen = seen
	r.Rows = append(r.Rows, row)
	return nil
}

const (
	// settles is how long trimtab may take to lower limits, at most, and stays how long none changes
	// once it has.
	settles, stays = 75 * time.Second, 15 * time.Second
	// piece is the length of the load between two looks at the limits.
	piece = 5 * time.Second
)

// acts starts a trimtab that has learnt, and waits under the lowest load of the day until its limits stay.
func (b *bench) acts(ctx context.Context, r *result) (*product, error) {
	if err := b.teach(ctx, r.Days); err != nil {
		return nil, err
	}
	p, err := b.manage(ctx, "act")
	if err != nil {
		return nil, err
	}
	var before []float64
	changed := time.Now()
	for begin := changed; time.Since(begin) < settles && time.Since(changed) < stays; {
		low := course{Length: piece, Day: piece, Low: 0.3, High: 0.3}
		if _, err := b.play(ctx, all(low), b.Seed+uint64(time.Since(begin)), p.tell); err != nil {
			p.close()
			return nil, err
		}
		now, err := b.limits()
		if err != nil {
			p.close()
			return nil, err
		}
		if !slices.Equal(now, before) {
			before, changed = now, time.Now()
		}
	}
	return p, nil
}

// limits returns the limit of each service, in bytes; 0: there is none.
func (b *bench) limits() (out []float64, err error) {
	for _, s := range b.services {
		v, err := s.Limit()
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}
