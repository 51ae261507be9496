package drf

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	solver "github.com/trimtab/trimtab/planner/drf"
)

// Options say what is measured.
type Options struct {
	Pool
	// Repeat is how often each is measured; the least time counts.
	Repeat int
	// Deadline, when > 0, is when a further solve is told to stop; when 0,
	// DeadlinePart of the solve's time is, in [0, 1).
	Deadline     time.Duration
	DeadlinePart float64
	// Rounds measures the textbook rounds, where the size allows it.
	Rounds bool
	// Progress is told what is being done; nil: nobody is.
	Progress func(doing string)
}

// Report is what was measured. Seconds are of wall time, the least of the
// repeats; those of one report were measured in turn, in one run. Quiet seconds
// are the sum of the least time of each batch of events: what other programs
// hardly lengthen, given enough repeats.
type Report struct {
	Tenants   int `json:"tenants"`
	Resources int `json:"resources"`
	Entries   int `json:"entries"`
	// BuildSeconds is adding all rows and indexing the columns.
	BuildSeconds float64 `json:"build_seconds"`
	SolveSeconds float64 `json:"solve_seconds"`
	// NsPerEntry is of the same seconds as OverFloor.
	NsPerEntry   float64 `json:"ns_per_entry"`
	FloorSeconds float64 `json:"floor_seconds"`
	// SolveCPUSeconds and FloorCPUSeconds are how long the calling thread was
	// on a processor: what a loaded machine leaves of use.
	SolveCPUSeconds float64 `json:"solve_cpu_seconds"`
	FloorCPUSeconds float64 `json:"floor_cpu_seconds"`
	// OverFloor is solve / floor, the floor over the solver's own array of
	// 16 bytes a resource, of CPU seconds; PairedOverFloor is the median of the ratios of a solve
	// and the floor right before it.
	OverFloor       float64 `json:"solve_over_floor"`
	PairedOverFloor float64 `json:"solve_over_floor_paired"`
	// NarrowFloorSeconds is the floor in an array of one number of 8 bytes a
	// resource, half as large as the solver's; OverNarrowFloor is to it what
	// OverFloor is to the floor.
	NarrowFloorSeconds float64 `json:"narrow_floor_seconds"`
	OverNarrowFloor    float64 `json:"solve_over_narrow_floor"`
	// QuietSeconds is of the solve.
	QuietSeconds float64 `json:"quiet_seconds"`
	// RoundsSeconds is the textbook's time; null where the size does not
	// allow it.
	RoundsSeconds *float64 `json:"rounds_seconds"`
	Rounds        *int     `json:"rounds"`
	// RoundsAway is the largest relative difference of a level to theirs.
	RoundsAway *float64 `json:"rounds_away"`
	// MaxOverCapacity is by how much of its capacity a resource is over it.
	MaxOverCapacity float64 `json:"max_over_capacity"`
	// Utilization is the mean over the resources that anybody demands.
	Utilization float64 `json:"utilization"`
	// Deadline is the answer with a deadline.
	Deadline *DeadlineReport `json:"deadline"`
	// ResidentBytes is the most that the process ever held.
	ResidentBytes int64        `json:"resident_bytes"`
	Work          solver.Stats `json:"work"`
}

// DeadlineReport is what came of a solve that was told to stop.
type DeadlineReport struct {
	Seconds       float64 `json:"seconds"`
	AnswerSeconds float64 `json:"answer_seconds"`
	// OverDeadline is answer / deadline.
	OverDeadline float64 `json:"answer_over_deadline"`
	Stopped      bool    `json:"stopped"`
	// Frozen is the part of the tenants that have their exact level.
	Frozen          float64 `json:"exact"`
	Reached         float64 `json:"reached_level"`
	Utilization     float64 `json:"utilization"`
	MaxOverCapacity float64 `json:"max_over_capacity"`
}

// trial holds one run together.
type trial struct {
	Options
	mem        pages
	size       solver.Size
	capacities []float64
	matrix     *solver.Matrix
	report     Report
}

// Run measures. When the context ends it returns its error, beside what was measured
// until then: nothing, before the solve.
func Run(ctx context.Context, o Options) (Report, error) {
	if err := o.check(); err != nil {
		return Report{}, fmt.Errorf("bench drf: %w", err)
	}
	t := &trial{Options: o}
	defer t.mem.free()
	for _, step := range []func(context.Context) error{t.build, t.solve, t.deadline, t.rounds} {
		done := t.report // by the steps before
		err := step(ctx)
		if stopped := ctx.Err(); stopped != nil {
			if err == nil {
				done = t.report
			}
			return done, stopped
		}
		if err != nil {
			return Report{}, fmt.Errorf("bench drf: %w", err)
		}
	}
	t.report.ResidentBytes = resident()
	return t.report, nil
}

func (o *Options) check() error {
	if o.Repeat < 1 {
		return fmt.Errorf("%d repeats: want at least 1", o.Repeat)
	}
	if !(o.DeadlinePart >= 0 && o.DeadlinePart < 1) {
		return fmt.Errorf("deadline at %v of the solve: want a part in [0, 1)", o.DeadlinePart)
	}
	return o.Pool.check()
}

func (t *trial) say(format string, args ...any) {
	if t.Progress != nil {
		t.Progress(fmt.Sprintf(format, args...))
	}
}

// build draws the pool and lays it out. Only the layout is timed.
func (t *trial) build(ctx context.Context) error {
	t.say("counting the entries of %d tenants", t.Tenants)
	t.size = solver.Size{Tenants: t.Tenants, Resources: t.Resources, Entries: t.entries()}
	if need, have := t.size.Need().Bytes(), available(); have > 0 && need > have {
		return fmt.Errorf("%d entries need %d MiB, %d MiB of memory are free", t.size.Entries, need>>20, have>>20)
	}
	arena, err := t.mem.arena(t.size)
	if err != nil {
		return err
	}
	t.capacities = t.Pool.capacities()
	if t.matrix, err = solver.NewMatrix(t.capacities, nil, t.size, arena); err != nil {
		return err
	}
	g := t.Pool.rows(t.size.Entries)
	spent := time.Duration(0)
	batch := make([]solver.Tenant, 0, 1024)
	for done := 0; done < t.Tenants; done += len(batch) {
		t.say("laying out %d of %d tenants", done, t.Tenants)
		batch = batch[:0]
		for range min(cap(batch), t.Tenants-done) {
			tenant := g.next(t.capacities)
			tenant.Demands = append([]solver.Demand(nil), tenant.Demands...)
			batch = append(batch, tenant)
		}
		start := time.Now()
		for _, tenant := range batch {
			if err := t.matrix.Add(tenant); err != nil {
				return err
			}
		}
		spent += time.Since(start)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	start := time.Now()
	t.matrix.Seal()
	t.report = Report{Tenants: t.Tenants, Resources: t.Resources, Entries: t.matrix.Entries(),
		BuildSeconds: (spent + time.Since(start)).Seconds()}
	return nil
}

// solve measures the floors and the solve in turn.
func (t *trial) solve(ctx context.Context) error {
	cells, err := of[solver.Cell](&t.mem, t.Resources)
	if err != nil {
		return err
	}
	sums, err := of[float64](&t.mem, t.Resources)
	if err != nil {
		return err
	}
	runtime.GC()
	runtime.LockOSThread() // the thread's CPU time is measured
	defer runtime.UnlockOSThread()
	var narrow, floor, all times
	var undisturbed quiet
	var r solver.Result
	for k := range t.Repeat {
		t.say("solving, %d of %d", k+1, t.Repeat)
		narrow.time(func() { t.matrix.SweepNarrow(sums) })
		floor.time(func() { t.matrix.Sweep(cells) })
		all.time(func() { r, err = undisturbed.solve(t.matrix) })
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	p := &t.report
	p.FloorSeconds, p.SolveSeconds = slices.Min(floor.wall), slices.Min(all.wall)
	p.FloorCPUSeconds, p.SolveCPUSeconds = slices.Min(floor.cpu), slices.Min(all.cpu)
	p.OverFloor, p.PairedOverFloor = over(all.cpu, floor.cpu)
	p.QuietSeconds = undisturbed.seconds()
	p.NarrowFloorSeconds = slices.Min(narrow.wall)
	p.OverNarrowFloor, _ = over(all.cpu, narrow.cpu)
	p.NsPerEntry = p.SolveCPUSeconds * 1e9 / float64(p.Entries)
	p.Work = r.Stats
	p.MaxOverCapacity, p.Utilization = t.used(r)
	return nil
}

// used says how full the resources are.
func (t *trial) used(r solver.Result) (over, utilization float64) {
	demanded := 0
	for c, left := range r.Room() {
		over = max(over, -left)
		if r.Demanded(c) {
			utilization += 1 - left
			demanded++
		}
	}
	return over, utilization / float64(max(1, demanded))
}

// deadline solves again and says stop when the time is up; the quickest answer
// counts, as everywhere.
func (t *trial) deadline(ctx context.Context) error {
	limit := t.Deadline
	if limit <= 0 {
		limit = time.Duration(t.DeadlinePart * t.report.SolveSeconds * 1e9)
	}
	if limit <= 0 {
		return nil
	}
	runtime.GC()
	for k := range t.Repeat {
		t.say("solving with a deadline of %v, %d of %d", limit, k+1, t.Repeat)
		start := time.Now()
		end := start.Add(limit)
		r, err := t.matrix.Solve(solver.Options{Stop: func() bool { return time.Now().After(end) }})
		took := time.Since(start).Seconds()
		if err != nil {
			return err
		}
		if t.report.Deadline == nil || took < t.report.Deadline.AnswerSeconds {
			d := &DeadlineReport{Seconds: limit.Seconds(), AnswerSeconds: took, OverDeadline: took / limit.Seconds(),
				Stopped: r.Stopped, Frozen: 1 - float64(r.Active)/float64(t.Tenants), Reached: r.Reached}
			d.MaxOverCapacity, d.Utilization = t.used(r)
			t.report.Deadline = d
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// mostRounds is how many entries times resources the textbook is asked to do.
const mostRounds = 2e10

// rounds measures the textbook, once: it takes long enough.
func (t *trial) rounds(ctx context.Context) error {
	if !t.Rounds || float64(t.report.Entries)*float64(t.Resources) > mostRounds {
		return nil
	}
	exact, err := t.matrix.Solve(solver.Options{})
	if err != nil {
		return err
	}
	n := 0
	start := time.Now()
	r := t.matrix.Rounds(0, func() bool {
		if n++; n%100 == 0 {
			t.say("the textbook's rounds: %d", n)
		}
		return ctx.Err() != nil
	})
	took := time.Since(start).Seconds()
	away := 0.0
	for i, x := range r.Level {
		if y := exact.Level(i); x != y {
			away = max(away, math.Abs(x-y)/max(x, y))
		}
	}
	t.report.RoundsSeconds, t.report.Rounds, t.report.RoundsAway = &took, &r.Rounds, &away
	return nil
}

// proc reads a line "name: value kB" of a file of /proc; 0 when there is none.
func proc(file, name string) int64 {
	f, err := os.Open(file)
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		rest, ok := strings.CutPrefix(lines.Text(), name+":")
		if fields := strings.Fields(rest); ok && len(fields) > 0 {
			n, err := strconv.ParseInt(fields[0], 10, 64)
			if err != nil {
				return 0
			}
			return n << 10
		}
	}
	return 0
}

func available() int64 { return proc("/proc/meminfo", "MemAvailable") }

func resident() int64 { return proc("/proc/self/status", "VmHWM") }
