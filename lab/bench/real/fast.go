package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/agent/fast"
	"github.com/trimtab/trimtab/internal/metric"
	"github.com/trimtab/trimtab/lab/baseline/quota"
	"github.com/trimtab/trimtab/lab/bench/rig"
	"github.com/trimtab/trimtab/lab/services/shape"
)

// The load of bench-fast: each service uses baseLoad of the pool, and stepTimes as much
// for stepFor, one service after the other, every stepEvery.
const (
	baseLoad  = 0.1
	stepTimes = 3
	stepFor   = 2 * time.Second
	stepEvery = 5 * time.Second
	// targetShare is what a plan gives a service, over its mean use: what a fixed quota
	// needs without steps.
	targetShare = 1.67
	// usualFast is the length of a policy's run.
	usualFast = 52 * time.Second
	// warm is the begin of a run that does not count: rules begin with all of the pool.
	warm = 10 * time.Second
)

// fastPolicy sets the quotas of one run.
type fastPolicy struct {
	// name is the row's; rule is what it is a setting of, if there are several.
	name, rule string
	// start begins, and returns what ends it. Quotas are off before it.
	start func(ctx context.Context, f *fastBench) (stop func() error, err error)
}

// fastBench is the services, and a look at them.
type fastBench struct {
	host  *host
	knobs [3]*cgroup.CPU
	above *cgroup.CPU
	dir   string
	pool  float64
	runs  int
}

// fastRow is what came of one policy, over all its runs.
type fastRow struct {
	name string
	// rule is what the row is a setting of, if it has several: the best counts.
	rule string
	// granted and used are core-seconds, over took seconds; peak is the most that all
	// services used in any second, over the pool, sum the most that was set.
	granted, used, took, peak, sum float64
	// late of sent requests were late.
	late, sent int
	all        []outcome
	// back is how long after each step the last request was late that the step made so.
	back []time.Duration
}

// holds says whether the SLO was held: no more than 1% late.
func (r *fastRow) holds() bool { return r.late*100 <= r.sent }

// runFast plays all policies in an order of the seed, and prints the table.
func (b *bench) runFast(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "trimtab-fast-")
	if err != nil {
		return fmt.Errorf("make a data directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o711); err != nil {
		return fmt.Errorf("make a data directory: %w", err)
	}
	h, err := openHost(ctx, dir, b.Pool, shape.Scenario{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	if err := h.calibrate(ctx, b.Cost); err != nil {
		return err
	}
	f := &fastBench{host: h, dir: dir, pool: b.Pool}
	if err := f.open(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	whole := usualFast
	if b.Minutes > 0 {
		whole = time.Duration(b.Minutes * float64(time.Minute))
	}
	rows, err := b.repeatFast(ctx, f, whole)
	printFast(b.out, rows, b, whole)
	return err
}

// repeatFast plays all policies as often as wanted, each time in an order and under
// arrivals of its own. The rows of an error are those that were finished.
func (b *bench) repeatFast(ctx context.Context, f *fastBench, whole time.Duration) ([]*fastRow, error) {
	all := b.fastPolicies()
	rows := make([]*fastRow, len(all))
	for i, p := range all {
		rows[i] = &fastRow{name: p.name, rule: p.rule}
	}
	for n := range b.Repeat {
		seed := b.Seed + uint64(n)
		order := rand.New(rand.NewPCG(seed, 0)).Perm(len(all))
		for k, i := range order {
			left := time.Duration((b.Repeat-n)*len(all)-k) * (whole + time.Second)
			fmt.Fprintf(b.err, "[%d/%d] %s, about %v left in all\n", n*len(all)+k+1, b.Repeat*len(all), all[i].name, left)
			if err := f.play(ctx, all[i], rows[i], whole, seed); err != nil {
				return rows, fmt.Errorf("policy %s: %w", all[i].name, err)
			}
		}
	}
	return rows, nil
}

// open opens the knobs of the services and of the group above.
func (f *fastBench) open() (err error) {
	if f.above, err = cgroup.Open(cgroup.Config{Root: f.host.Root, Path: f.host.above.Name}); err != nil {
		return err
	}
	for i, s := range f.host.services {
		if f.knobs[i], err = cgroup.Open(cgroup.Config{Root: f.host.Root, Path: f.host.path(s)}); err != nil {
			return err
		}
	}
	return nil
}

func (f *fastBench) close() (err error) {
	for _, k := range append(f.knobs[:], f.above) {
		if k != nil {
			err = errors.Join(err, k.Close())
		}
	}
	return err
}

// stepAt returns which service has a step at a time, and since when; -1: none.
func stepAt(at time.Duration) (service int, since time.Duration) {
	n := int(at / stepEvery)
	if n < 1 || at-time.Duration(n)*stepEvery >= stepFor {
		return -1, 0
	}
	return (n - 1) % 3, time.Duration(n) * stepEvery
}

// fastArrivals draws the requests of a service.
func (f *fastBench) fastArrivals(i int, whole time.Duration, seed uint64) (out []arrival) {
	r := rand.New(rand.NewPCG(seed, uint64(i)+7))
	rate := baseLoad * f.pool / f.host.services[i].Cost.Seconds()
	for t := 0.0; ; {
		t += r.ExpFloat64() / (rate * stepTimes)
		at := time.Duration(t * float64(time.Second))
		if at >= whole {
			return out
		}
		if service, _ := stepAt(at); service == i || r.Float64()*stepTimes < 1 {
			out = append(out, arrival{At: at, Size: 1})
		}
	}
}

// play runs one policy under the load, and adds what came of it to its row.
func (f *fastBench) play(ctx context.Context, p fastPolicy, row *fastRow, whole time.Duration, seed uint64) error {
	if err := errors.Join(f.above.Write(ctx, trimtab.Unlimited()), f.host.drain(ctx)); err != nil {
		return err
	}
	f.runs++
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	stop, err := p.start(running, f)
	if err != nil {
		return err
	}
	var in [3][]arrival
	for i := range in {
		in[i] = f.fastArrivals(i, whole, seed)
	}
	watching, enough := context.WithCancel(running)
	var watcher sync.WaitGroup
	watcher.Go(func() { row.watch(watching, f) })
	out := f.host.generate(running, time.Now(), in, func(int, time.Time, time.Duration, bool) {})
	enough()
	watcher.Wait()
	cancel()
	if err := stop(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	row.score(f.host, out, whole)
	return nil
}

// watch samples quotas and use, from the end of the warm-up until ctx ends.
func (r *fastRow) watch(ctx context.Context, f *fastBench) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(warm):
	}
	t := time.NewTicker(100 * time.Millisecond)
	defer t.Stop()
	last := time.Now()
	var usedAt []float64
	for {
		used, sum := 0.0, 0.0
		for _, s := range f.host.services {
			u, err := s.group.Used()
			if err != nil {
				return
			}
			cores, err := s.group.Cores(ctx)
			if err != nil {
				return
			}
			used, sum = used+u.Seconds(), sum+min(cores, f.pool)
		}
		now := time.Now()
		r.granted += sum * now.Sub(last).Seconds()
		r.took += now.Sub(last).Seconds()
		r.sum = max(r.sum, sum/f.pool)
		usedAt = append(usedAt, used)
		if n := len(usedAt); n > 10 {
			r.peak = max(r.peak, (usedAt[n-1]-usedAt[n-11])/f.pool)
		}
		last = now
		select {
		case <-ctx.Done():
			r.used += usedAt[len(usedAt)-1] - usedAt[0]
			return
		case <-t.C:
		}
	}
}

// score counts what was late, and finds when each step was over for its service.
func (r *fastRow) score(h *host, out [3][]outcome, whole time.Duration) {
	for i, s := range h.services {
		for k := range out[i] {
			o := &out[i][k]
			if !o.Sent || o.At < warm {
				continue
			}
			r.sent++
			if !o.met(s.SLO) {
				r.late++
			}
			r.all = append(r.all, *o)
		}
	}
	for n := int(warm / stepEvery); time.Duration(n)*stepEvery+stepFor < whole; n++ {
		from := time.Duration(n) * stepEvery
		i := (n - 1) % 3
		back := time.Duration(0)
		for k := range out[i] {
			if o := &out[i][k]; o.At >= from && o.At < from+stepEvery && !o.met(h.services[i].SLO) {
				back = o.At - from
			}
		}
		r.back = append(r.back, back)
	}
}

// looked is a rule of package quota over the services' groups.
func looked(name string, of string, rule func(f *fastBench) quota.Rule) fastPolicy {
	return fastPolicy{name, of, func(ctx context.Context, f *fastBench) (func() error, error) {
		if err := f.above.Write(ctx, trimtab.Units(f.pool)); err != nil {
			return nil, err
		}
		done := make(chan error, 1)
		go func() { done <- f.follow(ctx, rule(f)) }()
		return func() error { return <-done }, nil
	}}
}

// follow steps a rule every 100 ms until ctx ends. No quota is over that of the group
// above, which the kernel would refuse.
func (f *fastBench) follow(ctx context.Context, rule quota.Rule) error {
	t := time.NewTicker(100 * time.Millisecond)
	defer t.Stop()
	looks, quotas := make([]quota.Look, 3), make([]float64, 3)
	var was [3]actuator.Counters
	var set [3]float64
	at := time.Now()
	for i, k := range f.knobs {
		var err error
		if was[i], err = k.Look(); err != nil {
			return err
		}
	}
	for tick := 0; ; tick++ {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		now := time.Now()
		for i, k := range f.knobs {
			c, err := k.Look()
			if err != nil {
				return err
			}
			looks[i] = quota.Look{Used: (c.Used - was[i].Used) / now.Sub(at).Seconds()}
			if c.Stalled > was[i].Stalled {
				looks[i].Throttled = 1
			}
			was[i] = c
		}
		at = now
		rule.Step(tick, looks, quotas)
		for i, k := range f.knobs {
			v := math.Min(math.Max(quotas[i], 0.01), f.pool)
			if math.Abs(v-set[i]) < 1e-5 {
				continue
			}
			if _, err := k.Move(trimtab.Units(v), 0); err != nil {
				return err
			}
			set[i] = v
		}
	}
}

// targets are what rounds give the services: a share of their mean use.
func (f *fastBench) targets(share float64) (out [3]float64) {
	for i := range out {
		// One service of three has a step for 2 s of 15.
		out[i] = share * baseLoad * f.pool * (1 + (stepTimes-1)*stepFor.Seconds()/(3*stepEvery.Seconds()))
	}
	return out
}

// fixed leaves quotas where they are set once: a share of the mean use.
func fixed(share float64) func(context.Context, *fastBench) (func() error, error) {
	return func(ctx context.Context, f *fastBench) (func() error, error) {
		err := f.above.Write(ctx, trimtab.Units(f.pool))
		for i, v := range f.targets(share) {
			err = errors.Join(err, f.knobs[i].Write(ctx, trimtab.Units(min(v, f.pool))))
		}
		return func() error { return nil }, err
	}
}

// weighed is the kernel alone: no quotas but that of the group above, equal weights.
func weighed(ctx context.Context, f *fastBench) (func() error, error) {
	return func() error { return nil }, f.above.Write(ctx, trimtab.Units(f.pool))
}

// moved is trimtab: the targets of rounds, and the agent's own loop between them.
func moved(ctx context.Context, f *fastBench) (func() error, error) {
	if _, err := fixed(targetShare)(ctx, f); err != nil {
		return nil, err
	}
	kind := cgroup.Kind()
	open := func(path string) (actuator.Knob, error) {
		return kind.Open(actuator.Location{Root: f.host.Root, Path: path}, trimtab.CPU)
	}
	above, err := open(f.host.above.Name)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(f.dir, fmt.Sprint("actuator-", f.runs))
	c := actuator.Config{Host: "bench", Pool: "fast", Dir: filepath.Join(dir, "journal"), LockDir: filepath.Join(dir, "locks"), Reopen: kind.Reopen, Fast: true, Parent: above}
	p := &trimtab.Plan{Pool: "fast", Epoch: 1, Sequence: 1, Step: 1, Last: true, Time: time.Now(), Capacity: f.pool, Lease: 3600}
	sum := 0.0
	for i := range f.targets(targetShare) {
		k, err := open(f.host.path(f.host.services[i]))
		if err != nil {
			return nil, err
		}
		id := trimtab.KnobID{Workload: f.host.services[i].Name, Resource: trimtab.CPU}
		c.Targets = append(c.Targets, actuator.Target{KnobID: id, Knob: k, Min: 0.01, Max: f.pool, Mode: trimtab.Act})
		id.Pool, id.Host = p.Pool, "bench"
		now, err := k.Read(ctx)
		if err != nil {
			return nil, err
		}
		v := now.Value
		p.Envelopes = append(p.Envelopes, trimtab.Enveloped{KnobID: id, At: now, Envelope: &trimtab.Envelope{
			Floor: 0.3 * v, Target: v, Ceiling: min(4*v, f.pool), Budget: 0.05, Late: 0.006, Lend: true, Borrow: true, Burst: v}})
		sum += v
	}
	p.Lendable = map[string]float64{"bench": f.pool - sum}
	a, err := actuator.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	if o := a.Handle(ctx, p); o.Refused != "" {
		return nil, errors.Join(fmt.Errorf("%s: %w", o.Refused, rig.ErrAnswer), a.Close(context.Background()))
	}
	done := make(chan error, 1)
	go func() {
		done <- fast.Run(ctx, a, "bench", metric.NewSet(), slog.New(slog.DiscardHandler))
	}()
	return func() error { return errors.Join(<-done, a.Close(context.Background())) }, nil
}

// The rules with several settings: of each the cheapest that holds the SLO is the bar.
const (
	ruleStatic    = "static"
	ruleThreshold = "k8s-cpu-fast"
	ruleCaptain   = "captain"
	ruleFast      = "trimtab, rounds and fast"
)

// fastPolicies are those of the table.
func (o *options) fastPolicies() []fastPolicy {
	out := []fastPolicy{
		{theKernel, "", weighed},
		{"rounds only", "", fixed(targetShare)},
		looked("escra", "", func(f *fastBench) quota.Rule { return &quota.Escra{Pool: f.pool} }),
		{ruleFast, "", moved},
	}
	for _, v := range o.statics {
		out = append(out, fastPolicy{fmt.Sprint(ruleStatic, " ", v, " x use"), ruleStatic, fixed(v)})
	}
	for _, v := range o.thresholds {
		out = append(out, looked(fmt.Sprint(ruleThreshold, " ", v), ruleThreshold, func(*fastBench) quota.Rule { return quota.K8sCPUFast(v) }))
	}
	for _, v := range o.captains {
		out = append(out, looked(fmt.Sprint(ruleCaptain, " ", v), ruleCaptain, func(*fastBench) quota.Rule { return &quota.Captain{Targets: []float64{v}} }))
	}
	return out
}
