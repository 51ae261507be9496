package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/trimtab/trimtab/lab/bench/rig"
	"github.com/trimtab/trimtab/lab/services"
	"github.com/trimtab/trimtab/lab/services/shape"
)

// bench is a run of the benchmark.
type bench struct {
	options
	host     *host
	out, err io.Writer
	// override is the content of options.Override.
	override []byte
	// done and rows count rows, for what is told of progress.
	done, rows int
	left       time.Duration
	// results are those of the scenarios so far.
	results []*result
}

// run does everything, and leaves the machine as it was. Rows that were
// finished before ctx ended are printed.
func (b *bench) run(ctx context.Context) (err error) {
	chosen, err := shape.Find(b.Scenarios)
	if err != nil {
		return err
	}
	if chosen[0].Mixed {
		if err := missing(); err != nil {
			fmt.Fprintf(b.err, "skipped %s:\n%v\n", strings.Join(b.Scenarios, ", "), err)
			return nil
		}
	}
	dir, err := os.MkdirTemp("", "trimtab-real-")
	if err != nil {
		return fmt.Errorf("make a data directory: %w", err)
	}
	// PostgreSQL's user must get through to its own part.
	if err := os.Chmod(dir, 0o711); err != nil {
		return fmt.Errorf("make a data directory: %w", err)
	}
	defer func() {
		if b.Keep {
			fmt.Fprintln(b.err, "kept:", dir)
		} else {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	if err := b.program(ctx, dir); err != nil {
		return err
	}
	names, _ := team(chosen[0])
	fmt.Fprintln(b.err, "starting", strings.Join(names[:], ", "))
	if b.host, err = openHost(ctx, dir, b.Pool, chosen[0]); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.host.close()) }()
	if err := b.host.calibrate(ctx, b.Cost); err != nil {
		return err
	}
	fmt.Fprintln(b.err, "CPU time per request:", b.host.describe(b.Seed).Cost)
	for _, s := range chosen {
		b.rows += len(b.policies)
		b.left += time.Duration(len(b.policies)) * (b.length(s) + overhead)
	}
	for _, s := range chosen {
		if err := b.scenario(ctx, s); err != nil {
			return err
		}
	}
	to := b.out
	if b.Output == "json" {
		to = b.err // where no program reads it
	}
	for _, line := range verdict(b.results) {
		fmt.Fprintln(to, line)
	}
	return nil
}

// overhead is about what a row takes beside the load.
const overhead = 24 * time.Second

// program builds trimtab, once, where a policy needs it and none was named.
func (b *bench) program(ctx context.Context, dir string) error {
	if b.Trimtab != "" || !b.needsTrimtab() {
		return nil
	}
	b.Trimtab = filepath.Join(dir, "trimtab")
	fmt.Fprintln(b.err, "building trimtab")
	return rig.BuildTrimtab(ctx, b.Trimtab)
}

// length is how long a scenario lasts here.
func (b *bench) length(s shape.Scenario) time.Duration {
	if b.Minutes > 0 {
		return time.Duration(b.Minutes * float64(time.Minute))
	}
	return s.Length
}

// scenario runs all policies in one scenario and prints the table, also when a
// row fails or ctx ends.
func (b *bench) scenario(ctx context.Context, s shape.Scenario) error {
	t := &trial{host: b.host, scenario: s, whole: b.length(s)}
	for i, svc := range b.host.services {
		t.arrivals[i] = arrivals(&s, i, t.whole, b.Pool, svc.Cost, b.Seed)
	}
	t.entitled = services.Entitled(t.model())
	r := &result{about: b.host.describe(b.Seed), Scenario: s.Name, Over: s.Over, Length: t.whole.Seconds()}
	b.results = append(b.results, r)
	var base *row
	var failed error
	for _, p := range b.policies {
		b.done++
		line, err := b.row(ctx, t, p)
		b.left -= t.whole + overhead
		if err != nil {
			failed = fmt.Errorf("%s, %s: %w", s.Name, p, err)
			break
		}
		if p == "equal" {
			base = line
		}
		line.score(t, base)
		r.Rows = append(r.Rows, line)
		r.Others = max(r.Others, line.Others)
		fmt.Fprintf(b.err, "%s %s: %s in time, %d moves\n", s.Name, p, percent(line.InTime), line.Moves)
		if line.Highest > b.Pool+1e-6 {
			line.Unsafe = append(line.Unsafe, fmt.Sprintf("the quotas added up to %v cores, the pool has %v", line.Highest, b.Pool))
		}
	}
	return errors.Join(failed, b.print(r, t), unsafe(r))
}

// errUnsafe says that a promise was broken.
var errUnsafe = errors.New("a promise was broken")

func unsafe(r *result) error {
	for _, row := range r.Rows {
		if len(row.Unsafe) > 0 {
			return fmt.Errorf("%s, %s: %w: %s", r.Scenario, row.Policy, errUnsafe, row.Unsafe[0])
		}
	}
	return nil
}

func (b *bench) print(r *result, t *trial) error {
	if len(r.Rows) == 0 {
		return nil
	}
	var failed error
	if b.Plot != "" {
		failed = r.plot(b.Plot, t)
	}
	if b.Output == "json" {
		return errors.Join(failed, r.json(b.out))
	}
	return errors.Join(failed, r.text(b.out, t.scenario.Describe(t.whole)))
}

// row runs one policy in one scenario.
func (b *bench) row(ctx context.Context, t *trial, name string) (*row, error) {
	r := &row{Scenario: t.scenario.Name, Policy: name}
	t.dir = filepath.Join(b.host.dir, "rows", fmt.Sprintf("%02d-%s-%s", b.done, t.scenario.Name, name))
	if err := os.MkdirAll(t.dir, 0o755); err != nil {
		return nil, fmt.Errorf("make directory of a row: %w", err)
	}
	// What is left of the last row must not count for this one.
	if err := b.host.drain(ctx); err != nil {
		return nil, err
	}
	if err := b.host.again(ctx, t.arrivals); err != nil {
		return nil, err
	}
	if err := b.host.renew(ctx); err != nil {
		return nil, err
	}
	if err := b.host.drain(ctx); err != nil {
		return nil, err
	}
	if err := b.host.kernel(ctx); err != nil {
		return nil, err
	}
	p := b.policy(name)
	// What was begun is ended, also after an error or Ctrl-C.
	defer func() { p.close(context.WithoutCancel(ctx), t, r) }()
	if err := p.open(ctx, t); err != nil {
		return nil, err
	}
	return r, b.play(ctx, t, p, r)
}

// play lets the load run under the policy, and measures.
func (b *bench) play(ctx context.Context, t *trial, p policy, r *row) error {
	m, err := rig.NewMeter(b.host.total)
	if err != nil {
		return err
	}
	before, err := b.host.usage()
	if err != nil {
		return err
	}
	t.begin = time.Now().Add(200 * time.Millisecond)
	playing, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	policyDone, watchDone, priceDone := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(policyDone)
		if err := p.run(playing, t); err != nil {
			stop(err)
		}
	}()
	go func() {
		defer close(watchDone)
		var err error
		if r.seen.watched, err = b.host.watch(playing, t.begin); err != nil {
			stop(err)
		}
	}()
	go func() {
		defer close(priceDone)
		if err := b.host.hold(playing, coldFor); err != nil {
			stop(err)
		}
	}()
	told := b.progress(playing, t, r.Policy)
	r.seen.outcomes = b.host.generate(playing, t.begin, t.arrivals, p.observe)
	failed := context.Cause(playing)
	stop(nil)
	<-policyDone
	<-watchDone
	<-priceDone
	<-told
	if failed != nil {
		return failed
	}
	after, err := b.host.usage()
	if err != nil {
		return err
	}
	planned := 0.0
	var used time.Duration
	for i, s := range t.services {
		used += after[i] - before[i]
		planned += work(t.arrivals[i], -1, t.whole) * s.Cost.Seconds()
	}
	r.CoreHours, r.Cost = used.Hours(), used.Seconds()/max(planned, 1e-9)
	r.Others, r.Stolen, err = m.Others()
	return err
}

// progress tells now and then how far the run is, until ctx ends.
func (b *bench) progress(ctx context.Context, t *trial, name string) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(30 * time.Second)
		defer tick.Stop()
		for {
			gone := min(max(0, time.Since(t.begin)), t.whole)
			fmt.Fprintf(b.err, "[%d/%d] %s %s: %v of %v, about %v left in all\n", b.done, b.rows, t.scenario.Name, name,
				gone.Round(time.Second), t.whole, (b.left - gone).Round(time.Second))
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return done
}
