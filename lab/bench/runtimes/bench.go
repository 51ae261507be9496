package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/actuator/kinds"
	"github.com/trimtab/trimtab/actuator/runtimes"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/lab/bench/rig"
)

// trial is a service that runs in a group, with an actuator for its limit.
type trial struct {
	service
	dir, group, address string // group is the directory of the group
	limit               float64
	made                *cgroup.Group
	process             *rig.Process
	actuator            *actuator.Actuator
	sequence            uint64
	load                load
	stop                context.CancelFunc
	over                chan struct{}
	falls               []time.Duration
	refused             []string
}

// start starts the service at its untouched limit; told says whether its runtime is told.
func start(ctx context.Context, o *options, s service, told bool) (t *trial, err error) {
	t = &trial{service: s, limit: s.limit * (1 << 20), over: make(chan struct{})}
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	if t.dir, err = os.MkdirTemp("", "runtimes-"); err != nil {
		return t, fmt.Errorf("make directory: %w", err)
	}
	name := fmt.Sprintf("trimtab-bench-runtimes-%d-%d", os.Getpid(), o.groups.Add(1))
	if t.made, err = cgroup.Create(o.root, name, "memory"); err != nil {
		return t, err
	}
	memory := o.root
	if twin := hostfs.Sibling(o.root, "memory"); twin != "" {
		memory = twin
	}
	t.group = filepath.Join(memory, name)
	if err = t.act(o.root, name, told); err != nil {
		return t, err
	}
	if t.address, err = rig.FreeAddress(); err != nil {
		return t, err
	}
	args, err := t.args(t.address, t.dir)
	if err != nil {
		return t, err
	}
	args = append([]string{"/bin/sh", "-c", `echo $$ >"$1" && shift && exec "$@"`, "sh", filepath.Join(t.group, "cgroup.procs")}, args...)
	t.process, err = rig.StartAt(ctx, rig.Program{Args: args, Dir: t.dir, Log: filepath.Join(t.dir, "log"), Stop: syscall.SIGTERM}, nil, "http://"+t.address+"/")
	if err != nil {
		return t, err
	}
	t.load = load{url: "http://" + t.address + "/", low: o.Low, high: o.High, period: 3 * time.Second, seed: o.Seed}
	return t, nil
}

// act sets the untouched limit and opens an actuator.
func (t *trial) act(root, name string, told bool) error {
	kind, err := actuator.KindOf(kinds.All(), "cgroup")
	if err != nil {
		return err
	}
	at := actuator.Location{Root: root, Path: name}
	plain, err := kind.Open(at, trimtab.Memory)
	if err == nil {
		err = errors.Join(plain.Write(context.Background(), trimtab.Units(t.limit)), plain.Close())
	}
	if err != nil {
		return err
	}
	if told {
		at.Runtime = actuator.Runtime{Kind: t.name, Wait: 5 * time.Second}
		if t.name == runtimes.Go {
			at.Runtime.Address = filepath.Join(t.dir, "memlimit")
		}
	}
	knob, err := kind.Open(at, trimtab.Memory)
	if err != nil {
		return err
	}
	id := trimtab.KnobID{Workload: t.name, Resource: trimtab.Memory}
	t.actuator, err = actuator.Open(context.Background(), actuator.Config{Host: "h", Pool: "p", Dir: filepath.Join(t.dir, "journal"), Reopen: kinds.Reopen,
		Targets: []actuator.Target{{KnobID: id, Knob: knob, Min: 1 << 20, Max: 1 << 40, Mode: trimtab.Act}}})
	return err
}

// begin starts the load.
func (t *trial) begin(ctx context.Context) {
	ctx, t.stop = context.WithCancel(ctx)
	go func() { t.load.run(ctx); close(t.over) }()
}

// close ends the service. The actuator restores the limit.
func (t *trial) close() {
	if t.stop != nil {
		t.stop()
		<-t.over
	}
	if t.actuator != nil {
		if err := t.actuator.Close(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, "runtimes: restore:", err)
		}
	}
	if t.process != nil {
		t.process.Close()
	}
	if t.made != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = t.made.Remove(ctx)
	}
	_ = os.RemoveAll(t.dir)
}

// set asks the actuator for a limit, and returns why it was not set.
func (t *trial) set(ctx context.Context, bytes float64) string {
	bytes = math.Floor(bytes/(1<<20)) * (1 << 20) // whole pages read back as they were written
	h := t.actuator.Holding()
	t.sequence++
	p := &trimtab.Plan{Pool: "p", Epoch: 1, Sequence: t.sequence, Step: 1, Last: true, Time: time.Now(), Capacity: 1 << 40, Lease: 60,
		Capacities: map[string]float64{trimtab.Memory: 1 << 40},
		Actions:    []trimtab.Action{{KnobID: h.Targets[0].KnobID, Expect: h.Targets[0].Now, Set: trimtab.Units(bytes), Mode: trimtab.Act}}}
	o := t.actuator.Handle(ctx, p)
	if o.Refused != "" {
		return o.Refused
	}
	if r := o.Results[0]; r.Status != trimtab.Written && r.Status != trimtab.Equal || !r.Found.Equal(trimtab.Units(bytes), 1e-4) {
		return fmt.Sprintf("%s: %s", r.Status, r.Reason)
	}
	return ""
}

// killed reports whether the kernel killed a process of the group, or the service ended.
func (t *trial) killed() bool {
	for _, file := range []string{"memory.oom_control", "memory.events"} {
		if rig.Number(filepath.Join(t.group, file), "oom_kill ") > 0 {
			return true
		}
	}
	select {
	case <-t.process.Done():
		return true
	default:
		return false
	}
}

// part is what was measured over some time.
type part struct {
	took               []time.Duration
	failed             int
	process, collector float64 // CPU seconds
	length             float64
}

func (p *part) add(q part) {
	p.took = append(p.took, q.took...)
	slices.Sort(p.took)
	p.failed, p.process, p.collector, p.length = p.failed+q.failed, p.process+q.process, p.collector+q.collector, p.length+q.length
}

// over measures while do runs.
func (t *trial) during(do func()) (p part, err error) {
	t.load.take()
	begun := time.Now()
	cpu, bad1 := rig.CPUSeconds(t.process.PID())
	gc, bad2 := t.collector(t.address, t.process.PID())
	do()
	cpu2, bad3 := rig.CPUSeconds(t.process.PID())
	gc2, bad4 := t.collector(t.address, t.process.PID())
	p.took, p.failed = t.load.take()
	p.process, p.collector, p.length = cpu2-cpu, gc2-gc, time.Since(begun).Seconds()
	return p, errors.Join(bad1, bad2, bad3, bad4)
}

// sleep waits, and reports whether the service still runs.
func (t *trial) sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
	case <-t.process.Done():
	case <-time.After(d):
	}
	return ctx.Err() == nil && !t.killed()
}

// cycle lowers and raises the limit.
func (t *trial) cycle(ctx context.Context, o *options) bool {
	begun := time.Now()
	why := t.set(ctx, (1-o.Cut)*t.limit)
	took := time.Since(begun)
	if why != "" {
		t.refused = append(t.refused, why)
	} else {
		t.falls = append(t.falls, took)
	}
	if !t.sleep(ctx, o.Cycle/2-min(took, o.Cycle/2)) {
		return false
	}
	if why := t.set(ctx, t.limit); why != "" {
		t.refused = append(t.refused, "rise: "+why)
	}
	return t.sleep(ctx, o.Cycle/2)
}

// result is what one service did.
type result struct {
	name             string
	limit            float64
	untouched, moved part
	falls            []time.Duration
	refused          []string
	asked, kills     int
	// anew is by whether the runtime was told.
	anew map[bool]starts
}

// starts are those of a service that was started anew: in how many the limit was lowered, and how many were
// killed; why is the reason of the last that was not.
type starts struct {
	of, made, kills int
	why             string
}

func (s starts) String() string {
	return strings.TrimSpace(fmt.Sprintf("limit lowered in %d of %d starts, killed in %d %s", s.made, s.of, s.kills, s.why))
}

func measure(ctx context.Context, o *options, s service) (r result, err error) {
	r = result{name: s.name, limit: s.limit, anew: map[bool]starts{}}
	t, err := start(ctx, o, s, true)
	if err != nil {
		return r, err
	}
	t.begin(ctx)
	ok := t.sleep(ctx, 6*time.Second) // until the heap is as large as it becomes
	still := func() { ok = ok && t.sleep(ctx, o.Untouched) }
	for _, step := range []struct {
		into *part
		do   func()
	}{{&r.untouched, still}, {&r.moved, func() {
		for ok && r.asked < o.Cycles {
			r.asked++
			if ok = t.cycle(ctx, o); r.asked%10 == 0 {
				o.say("%s: %d of %d cycles, %d falls made", s.name, r.asked, o.Cycles, len(t.falls))
			}
		}
	}}, {&r.untouched, still}} {
		p, bad := t.during(step.do)
		if err == nil {
			err = bad
		}
		step.into.add(p)
	}
	r.falls, r.refused = t.falls, t.refused
	if t.killed() {
		r.kills++
	}
	t.close()
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	for _, told := range []bool{true, false} {
		all := starts{of: o.Trials}
		for range o.Trials {
			killed, said, err := anew(ctx, o, s, told)
			if err != nil {
				return r, err
			}
			if said == "" {
				all.made++
			} else {
				all.why = said
			}
			if killed {
				all.kills++
			}
		}
		r.anew[told] = all
		o.say("%s started anew, runtime told %v: %v", s.name, told, all)
	}
	return r, err
}

// anew starts the service, lowers its limit while it has little load, and lets the load rise. said is
// why the limit was not lowered.
func anew(ctx context.Context, o *options, s service, told bool) (killed bool, said string, err error) {
	quiet := *o
	quiet.Low, quiet.High = 3*o.High, 3*o.High
	t, err := start(ctx, &quiet, s, told)
	if err != nil {
		return false, "", err
	}
	defer t.close()
	t.sleep(ctx, 1200*time.Millisecond) // until the actuator looks for the runtime again
	said = t.set(ctx, (1-o.Cut)*t.limit)
	t.begin(ctx)
	t.sleep(ctx, 4*time.Second)
	return t.killed(), said, ctx.Err()
}

func (r *result) print(w io.Writer) {
	line := func(name string, p *part) {
		fmt.Fprintf(w, "  %-10s %6d requests, %d failed; p50 %5.2f ms, p99 %6.2f ms; collector %.3f cores, %.2f%% of %.3f cores\n", name, len(p.took), p.failed,
			ms(quantile(p.took, 0.5)), ms(quantile(p.took, 0.99)), p.collector/p.length, 100*p.collector/p.process, p.process/p.length)
	}
	slices.Sort(r.falls)
	fmt.Fprintf(w, "%s: limit %.0f MiB; %d falls asked, %d made (%.0f ms at the median, %.0f at most), %d not; %d killed\n", r.name, r.limit, r.asked, len(r.falls),
		ms(quantile(r.falls, 0.5)), ms(quantile(r.falls, 1)), len(r.refused), r.kills)
	line("untouched", &r.untouched)
	line("moved", &r.moved)
	for _, why := range slices.Compact(slices.Sorted(slices.Values(r.refused))) {
		fmt.Fprintln(w, "  not made:", why)
	}
	fmt.Fprintf(w, "  started anew, runtime told: %s\n  started anew, runtime not told: %s\n", r.anew[true], r.anew[false])
	r.verdict(w)
}

// What is asked: how much longer the p99 may be, and how many points more of the CPU time of the process
// the collector may take.
const slower, collects = 10, 5

// verdict says for each figure that is asked whether this run has it.
func (r *result) verdict(w io.Writer) {
	say := func(good bool, format string, args ...any) {
		mark := map[bool]string{true: "reached", false: "NOT reached"}[good]
		fmt.Fprintf(w, "  %-12s %s\n", mark, fmt.Sprintf(format, args...))
	}
	longer := 100 * (float64(quantile(r.moved.took, 0.99))/float64(quantile(r.untouched.took, 0.99)) - 1)
	more := 100 * (r.moved.collector/r.moved.process - r.untouched.collector/r.untouched.process)
	told, silent := r.anew[true], r.anew[false]
	say(r.kills == 0 && len(r.falls) > 0, "%d killed in %d cycles, of which %d lowered the limit, asked 0 in 100", r.kills, r.asked, len(r.falls))
	say(longer <= slower, "p99 %+.1f%%, asked at most %+d%%", longer, slower)
	say(more <= collects, "share of the collector %+.2f points, asked at most %+d", more, collects)
	say(told.kills == 0 && silent.kills > 0, "the same cut kills %d of %d starts whose runtime is not told, asked some, and %d of %d that are, asked 0", silent.kills, silent.of, told.kills, told.of)
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
