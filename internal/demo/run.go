package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/demo/loadgen"
)

// Pipeline is trimtab, as the demo uses it: collector to actuator, on the
// setup's services.
type Pipeline interface {
	// SetMode gives all workloads a mode. The demo starts in
	// trimtab.Recommend, so that trimtab learns while shares are equal, and
	// sets trimtab.Act for the second phase.
	SetMode(ctx context.Context, m trimtab.Mode) error
	// Rounds returns how many rounds were planned.
	Rounds() int
	// Page is the address at which a person can look; empty: there is none.
	Page() string
	// Close stops it and restores every knob to its value at the start.
	Close() error
}

// Start starts a pipeline in mode trimtab.Recommend. It returns when the
// receiver at Setup.OTLP accepts spans.
type Start func(ctx context.Context, s *Setup) (Pipeline, error)

// Config configures the demo.
type Config struct {
	// For is how long all phases take together, >= 6 s; 0: 6 min.
	For time.Duration
	// Report is the file for the report; empty: none.
	Report string
	// Knob is KnobCgroup, KnobProcess, or "auto" or empty: cgroup where a
	// hierarchy is writable.
	Knob string
	// Screen draws the table; nil: prints nothing.
	Screen *Screen
	// Keep continues after all phases, under trimtab's control, until ctx ends.
	Keep bool
	// Next is printed at the end: what to try next.
	Next string
	// Seed of load and services; 0: picks one and prints it.
	Seed uint64
	// Self is the command that runs service.Run with the arguments that follow.
	Self []string
	// Start starts trimtab.
	Start Start
	// Stderr receives the error output of the services; nil: it is discarded.
	Stderr *os.File
}

// run is the state of a demo.
type run struct {
	Config
	setup     *Setup
	addresses addresses
	place     place
	watch     *watch
	report    *Report
	// phases are the names of those that are played, in order, each for day.
	phases []string
	length time.Duration
	// kept says that all phases were played and that it went on after them.
	kept bool
}

// ErrOutput says that the demo's output cannot be written any more.
var ErrOutput = errors.New("output is closed")

// output calls closed when a write fails, so that a demo whose reader is gone ends and cleans up.
type output struct {
	io.Writer
	closed func(error)
}

// Write writes, and reports success: what is printed is of no use to anybody then.
func (o *output) Write(b []byte) (int, error) {
	if _, err := o.Writer.Write(b); err != nil {
		o.closed(err)
	}
	return len(b), nil
}

// Run plays the demo and returns its report, also when ctx ends early: then
// with the phases that were played and the context's error. All processes and
// cgroups that it made are gone when it returns.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	cfg.For = cmp.Or(cfg.For, 6*time.Minute)
	if cfg.Seed == 0 {
		cfg.Seed = rand.Uint64N(1e6) + 1
	}
	if cfg.Screen == nil {
		cfg.Screen = &Screen{Out: io.Discard}
	}
	if cfg.For < 6*time.Second || len(cfg.Self) == 0 || cfg.Start == nil {
		return nil, trimtab.Invalidf("demo for %v: want at least 6s, a command and a pipeline", cfg.For)
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	screen := *cfg.Screen // a copy, whose output may be closed, for example by head
	screen.Out = &output{Writer: screen.Out, closed: func(err error) { fail(fmt.Errorf("%w: %w", ErrOutput, err)) }}
	cfg.Screen = &screen
	r := &run{Config: cfg, report: &Report{Seed: cfg.Seed}}
	err := r.prepare(fail)
	if err == nil {
		err = r.play(ctx, fail)
	}
	if r.place != nil {
		err = errors.Join(err, r.place.Close())
	}
	err = errors.Join(err, r.addresses.close())
	if cause := context.Cause(ctx); cause != nil && !r.kept {
		r.report.Interrupted = true
		if !errors.Is(err, cause) {
			err = errors.Join(err, cause)
		}
	}
	r.Screen.summary(r.report)
	if err == nil && cfg.Next != "" {
		r.Screen.printf("%s\n", cfg.Next)
	}
	if cfg.Report != "" && r.setup != nil {
		err = errors.Join(err, r.report.Write(cfg.Report))
	}
	return r.report, err
}

// prepare measures the machine, picks the knob and sizes the services.
func (r *run) prepare(fail func(error)) error {
	if err := reachable(); err != nil {
		return err
	}
	r.Screen.printf("Measuring this machine...\n")
	m := Calibrate(250 * time.Millisecond)
	r.report.Machine.CPUs, r.report.Machine.Free, r.report.Machine.Speed = m.CPUs, m.Free, m.Speed
	launcher := &Launcher{Self: r.Self, Stderr: r.Stderr, Failed: fail}
	place, err := r.open(launcher)
	if err != nil {
		return err
	}
	r.place = place
	r.phases = []string{Equal, Learned}
	if _, ok := place.(sharing); ok {
		r.phases = []string{Kernel, Equal, Learned}
	}
	r.length = r.For / time.Duration(len(r.phases))
	r.report.Day = trimtab.SecondsOf(r.length)
	setup, err := NewSetup(m, place.Knob(), r.Seed)
	if err != nil {
		return err
	}
	if setup.OTLP, err = r.addresses.free(); err != nil {
		return err
	}
	if err := setup.address(&r.addresses); err != nil {
		return err
	}
	setup.Root = place.Root()
	r.setup = setup
	r.watch = &watch{place: place, services: setup.Services}
	r.report.Knob, r.report.Resource, r.report.Capacity = setup.Knob, setup.Resource, setup.Capacity
	r.Screen.opening(r, m)
	return nil
}

// open picks the knob.
func (r *run) open(launcher *Launcher) (place, error) {
	auto := r.Knob == "" || r.Knob == "auto"
	if auto || r.Knob == KnobCgroup {
		place, err := openCgroup(launcher)
		if err == nil {
			return place, nil
		}
		if !auto {
			return nil, fmt.Errorf("find a writable cgroup hierarchy: %w: %w", trimtab.ErrUnsupported, err)
		}
		r.Screen.printf("No cgroup hierarchy is writable here, so the knob is the number of worker processes.\n")
	}
	if r.Knob != KnobProcess && !auto {
		return nil, trimtab.Invalidf("knob %.40q: want auto, %s or %s", r.Knob, KnobCgroup, KnobProcess)
	}
	return openProcess(launcher)
}

// play starts everything, plays all phases, and stops trimtab.
func (r *run) play(ctx context.Context, fail func(error)) (err error) {
	for _, s := range r.setup.Services {
		if err := r.place.Add(ctx, s); err != nil {
			return fmt.Errorf("start %s: %w", s.Name, err)
		}
	}
	if err := r.alone(ctx); err != nil {
		return err
	}
	before, err := r.limits(ctx)
	if err != nil {
		return err
	}
	pipeline, err := r.Start(ctx, r.setup)
	if err != nil {
		return fmt.Errorf("start trimtab: %w", err)
	}
	r.Screen.page(pipeline.Page(), r.setup.Services[0].Name)
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	watched := make(chan struct{})
	go func() { defer close(watched); r.watch.run(watching, fail) }()
	defer func() {
		err = errors.Join(err, r.end(pipeline, before))
		stop()
		<-watched
		r.report.MaxAllocatedSum = r.watch.highestSum()
	}()
	if err := r.phase(ctx, Equal); err != nil {
		return err
	}
	if err := pipeline.SetMode(ctx, trimtab.Act); err != nil {
		return fmt.Errorf("give trimtab charge: %w", err)
	}
	if err := r.phase(ctx, Learned); err != nil || !r.Keep {
		return err
	}
	return r.keep(ctx)
}

// alone plays the day without trimtab, with the kernel's scheduler, if the place supports that.
func (r *run) alone(ctx context.Context) error {
	place, ok := r.place.(sharing)
	if !ok {
		return nil
	}
	if err := place.Release(ctx); err != nil {
		return fmt.Errorf("leave the pool to the kernel: %w", err)
	}
	err := r.phase(ctx, Kernel)
	// Limits are restored even after Ctrl-C.
	if bad := place.Bind(context.WithoutCancel(ctx)); bad != nil {
		return errors.Join(err, fmt.Errorf("set equal shares: %w", bad))
	}
	r.report.Restored = true
	return err
}

// limits reads the limit of each service.
func (r *run) limits(ctx context.Context) ([]float64, error) {
	out := make([]float64, len(r.setup.Services))
	for i, s := range r.setup.Services {
		var err error
		if out[i], err = r.place.Read(ctx, s); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// keep plays further days until ctx ends.
func (r *run) keep(ctx context.Context) error {
	r.kept = true
	for i := range r.report.Phases {
		r.Screen.printf("%s: %s\n", capital(called(r.report.Phases[i].Name)), verdict(&r.report.Phases[i]))
	}
	r.Screen.printf("It goes on, with trimtab in charge, until Ctrl-C; then all is restored.\n")
	for seed := r.Seed + 1; ctx.Err() == nil; seed++ {
		g := r.day(seed)
		g.Report = func(at time.Duration, results []loadgen.Result) {
			r.Screen.draw(&frame{at: at, day: g.For, setup: r.setup, results: results, allocations: r.watch.current()})
		}
		if _, err := g.Run(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		r.Screen.commit()
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause // a service that ended by itself is an error
	}
	return nil
}

// day is the load of one day.
func (r *run) day(seed uint64) loadgen.Generator {
	g := loadgen.Generator{For: r.length, Seed: seed, Reconnect: r.setup.Knob == KnobProcess}
	for _, s := range r.setup.Services {
		g.Targets = append(g.Targets, loadgen.Target{Name: s.Name, URL: s.URL(), Day: s.Day, Latency: s.SLO.Latency})
	}
	return g
}

// end stops the pipeline and looks whether everything is as it was before.
func (r *run) end(pipeline Pipeline, before []float64) error {
	r.report.Rounds = pipeline.Rounds()
	err := pipeline.Close()
	// The demo's own context may have ended: this look must happen anyway.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	after, readErr := r.limits(ctx)
	r.report.Restored = readErr == nil
	for i := range after {
		if math.Abs(after[i]-before[i]) > 1e-4 {
			r.report.Restored = false
		}
	}
	return errors.Join(err, readErr)
}

// phase plays the day once.
func (r *run) phase(ctx context.Context, name string) error {
	score := &score{services: r.setup.Services}
	g := r.day(r.Seed)
	g.Report = func(at time.Duration, results []loadgen.Result) {
		score.add(at, results)
		r.Screen.draw(&frame{phase: name, number: slices.Index(r.phases, name) + 1, of: len(r.phases), at: at, day: g.For, setup: r.setup, results: results, allocations: r.watch.current()})
	}
	r.watch.mark()
	totals, err := g.Run(ctx)
	if len(totals) > 0 {
		r.report.Phases = append(r.report.Phases, score.phase(name, totals, r.allocations(name)))
	}
	r.Screen.commit()
	return err
}

// allocations returns the means over a phase. With the kernel alone it is the guaranteed share of
// each service, which is constant.
func (r *run) allocations(phase string) []float64 {
	if phase != Kernel {
		return r.watch.means()
	}
	out := make([]float64, len(r.setup.Services))
	for i, s := range r.setup.Services {
		out[i] = s.Equal
	}
	return out
}
