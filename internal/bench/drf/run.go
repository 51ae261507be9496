package drf

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab/trimtab/internal/parallel"
	solver "github.com/trimtab/trimtab/planner/drf"
)

// Options say what is measured.
type Options struct {
	Pool
	// Threads of the solve, >= 1.
	Threads int
	// Repeat is how often each is measured; the least time counts.
	Repeat int
	// Deadline, when > 0, is when a further solve is told to stop.
	Deadline time.Duration
	// Warm measures a warm layout as well; it needs as much memory again.
	Warm bool
	// Rounds measures the textbook rounds, where the size allows it.
	Rounds bool
	// Progress is told what is being done; nil: nobody is.
	Progress func(doing string)
}

// Report is what was measured. Seconds are of wall time, the least of the
// repeats; those of one report were measured in turn, in one run.
type Report struct {
	Tenants   int `json:"tenants"`
	Resources int `json:"resources"`
	Entries   int `json:"entries"`
	Threads   int `json:"threads"`
	// BuildSeconds is adding all rows and indexing the columns.
	BuildSeconds float64 `json:"build_seconds"`
	SolveSeconds float64 `json:"solve_seconds"`
	NsPerEntry   float64 `json:"ns_per_entry"`
	FloorSeconds float64 `json:"floor_seconds"`
	// OverFloor is solve / floor.
	OverFloor float64 `json:"solve_over_floor"`
	// OneThreadSeconds and SameBits compare with one thread, when there are
	// more.
	OneThreadSeconds *float64 `json:"one_thread_seconds"`
	SameBits         *bool    `json:"same_bits"`
	// RoundsSeconds is the textbook's time; null where the size does not
	// allow it.
	RoundsSeconds *float64 `json:"rounds_seconds"`
	Rounds        *int     `json:"rounds"`
	// RoundsAway is the largest relative difference of a level to theirs.
	RoundsAway *float64 `json:"rounds_away"`
	// WarmSeconds is the solve after 1% of the tenants changed, on a layout
	// made from the solve before; RelayoutSeconds and UpdateSeconds are spent
	// between intervals.
	WarmSeconds     *float64 `json:"warm_seconds"`
	RelayoutSeconds *float64 `json:"relayout_seconds"`
	UpdateSeconds   *float64 `json:"update_seconds"`
	// WarmOverCold is warm / solve with as many threads.
	WarmOverCold *float64 `json:"warm_over_cold"`
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
	threads    *parallel.Pool
	report     Report
}

// Run measures. It returns early with the context's error when that ends.
func Run(ctx context.Context, o Options) (Report, error) {
	if err := o.check(); err != nil {
		return Report{}, fmt.Errorf("bench drf: %w", err)
	}
	t := &trial{Options: o, threads: parallel.New(o.Threads)}
	defer t.threads.Close()
	defer t.mem.free()
	for _, step := range []func(context.Context) error{t.build, t.solve, t.warm, t.deadline, t.rounds} {
		if err := step(ctx); err != nil {
			return Report{}, fmt.Errorf("bench drf: %w", err)
		}
		if err := ctx.Err(); err != nil {
			return Report{}, err
		}
	}
	t.report.ResidentBytes = resident()
	return t.report, nil
}

func (o *Options) check() error {
	if o.Threads < 1 || o.Threads > 64 || o.Repeat < 1 {
		return fmt.Errorf("%d threads, %d repeats: want 1 to 64 and at least 1", o.Threads, o.Repeat)
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
	t.report = Report{Tenants: t.Tenants, Resources: t.Resources, Entries: t.matrix.Entries(), Threads: t.Threads,
		BuildSeconds: (spent + time.Since(start)).Seconds()}
	return nil
}

// seconds runs f and lowers *least to its time.
func seconds(least *float64, f func()) {
	start := time.Now()
	f()
	*least = min(*least, time.Since(start).Seconds())
}

// solve measures floor, one thread and all threads in turn.
func (t *trial) solve(ctx context.Context) error {
	sums, err := of[float64](&t.mem, t.Resources)
	if err != nil {
		return err
	}
	runtime.GC()
	floor, one, all := math.Inf(1), math.Inf(1), math.Inf(1)
	var r solver.Result
	same, bits := true, []float64(nil)
	for k := range t.Repeat {
		t.say("solving, %d of %d", k+1, t.Repeat)
		seconds(&floor, func() { t.matrix.Sweep(sums) })
		if t.Threads > 1 {
			seconds(&one, func() { r, err = t.matrix.Solve(solver.Options{}) })
			bits = levels(r, t.Tenants, bits)
		}
		seconds(&all, func() { r, err = t.matrix.Solve(solver.Options{Run: t.threads}) })
		if err != nil {
			return err
		}
		for i := range bits {
			same = same && math.Float64bits(bits[i]) == math.Float64bits(r.Level(i))
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	p := &t.report
	p.FloorSeconds, p.SolveSeconds = floor, all
	p.OverFloor, p.NsPerEntry = all/floor, all*1e9/float64(p.Entries)
	if t.Threads > 1 {
		p.OneThreadSeconds, p.SameBits = &one, &same
	}
	p.Work = r.Stats
	p.MaxOverCapacity, p.Utilization = t.used(r)
	return nil
}

func levels(r solver.Result, n int, into []float64) []float64 {
	into = into[:0]
	for i := range n {
		into = append(into, r.Level(i))
	}
	return into
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

// warm lays the matrix out anew, changes 1% of the tenants, and solves both
// layouts in turn.
func (t *trial) warm(ctx context.Context) error {
	size := t.size
	size.Entries += size.Entries/50 + 1000
	if !t.Warm || size.Need().Bytes() > available() {
		return nil
	}
	t.say("laying out anew")
	arena, err := t.mem.arena(size)
	if err != nil {
		return err
	}
	start := time.Now()
	warm, err := t.matrix.Relayout(size, arena)
	if err != nil {
		return err
	}
	relayout := time.Since(start).Seconds()
	g := t.Pool
	g.Seed += 1000
	changes := g.rows(t.size.Entries)
	spent := 0.0
	for k := range t.Tenants/100 + 1 {
		tenant := changes.next(t.capacities)
		start := time.Now()
		// Spread over all tenants; a prime stride meets each once.
		if err := warm.Update(int(uint64(k)*7368787%uint64(t.Tenants)), tenant); err != nil {
			return err
		}
		spent += time.Since(start).Seconds()
	}
	least, cold := math.Inf(1), math.Inf(1)
	for k := range t.Repeat {
		t.say("solving the warm layout, %d of %d", k+1, t.Repeat)
		seconds(&cold, func() { _, err = t.matrix.Solve(solver.Options{Run: t.threads}) })
		seconds(&least, func() { _, err = warm.Solve(solver.Options{Run: t.threads}) })
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	ratio := least / cold
	p := &t.report
	p.WarmSeconds, p.RelayoutSeconds, p.UpdateSeconds, p.WarmOverCold = &least, &relayout, &spent, &ratio
	return nil
}

// deadline solves once more and says stop when the time is up.
func (t *trial) deadline(context.Context) error {
	if t.Deadline <= 0 {
		return nil
	}
	t.say("solving with a deadline of %v", t.Deadline)
	runtime.GC()
	start := time.Now()
	end := start.Add(t.Deadline)
	r, err := t.matrix.Solve(solver.Options{Run: t.threads, Stop: func() bool { return time.Now().After(end) }})
	took := time.Since(start)
	if err != nil {
		return err
	}
	d := &DeadlineReport{Seconds: t.Deadline.Seconds(), AnswerSeconds: took.Seconds(), OverDeadline: took.Seconds() / t.Deadline.Seconds(),
		Stopped: r.Stopped, Frozen: 1 - float64(r.Active)/float64(t.Tenants), Reached: r.Reached}
	d.MaxOverCapacity, d.Utilization = t.used(r)
	t.report.Deadline = d
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
