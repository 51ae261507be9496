package grow

import (
	"context"
	"log/slog"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/agent"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/internal/shortage"
	"github.com/trimtab/trimtab/planner/probe"
	"github.com/trimtab/trimtab/quantity"
)

// Probe says how the instances of a workload are probed: every so often, one instance of the host at a time, and
// not while it misses its SLO. Target is the performance that the SLO asks for; 0: it has none.
type Probe struct {
	Every  time.Duration
	Target float64
}

const (
	// settled is how long an instance must have been there before it is probed.
	settled = 10 * time.Minute
	// budget is the part of the seconds of a probe in which the SLO may be missed.
	budget = 0.02
	// fresh is how old the performance of a workload may be.
	fresh = 30 * time.Second
	// silent ends a probe of an instance of which there are no readings.
	silent = 5 * time.Second
	// chunk is how many bytes are taken away at once, so that a step can be stopped.
	chunk = 8 << 20
)

// prober probes the instances of a host in turn.
type prober struct {
	of     map[string]Probe // by workload
	knobs  knobs
	bus    bus.Bus
	logger *slog.Logger

	// next is when an instance is probed next.
	next map[shortage.Name]due
	// now is the probe that is under way; nil: none is.
	now *running
	// busy says that memory is taken away, which the kernel may still do when a probe has ended.
	taking sync.WaitGroup
	busy   atomic.Bool
	// performances are the newest ones of workloads, which the bus tells.
	mu           sync.Mutex
	performances map[string]performance
}

type performance struct {
	value float64
	at    time.Time
}

type due struct{ seen, at time.Duration }

// running is one probe.
type running struct {
	of    shortage.Name
	first shortage.Reading
	began time.Duration
	last  time.Duration
	step  probe.Probe
	// stopped ends that memory is taken away; failed is why it failed.
	stopped atomic.Bool
	failed  atomic.Pointer[error]
}

// listen keeps the newest performance of the workloads that are probed and have an SLO.
func (p *prober) listen(ctx context.Context) (stop func()) {
	var all []bus.Subscription
	for workload, c := range p.of {
		if c.Target > 0 {
			all = append(all, bus.Subscription{Kind: trimtab.KindEstimate, Key: workload, For: "probe memory", Handle: func(_ context.Context, d bus.Delivery) error {
				if e, ok := d.Value.(*trimtab.Estimate); ok && e.Performance != nil {
					p.mu.Lock()
					p.performances[e.Workload] = performance{*e.Performance, e.Time}
					p.mu.Unlock()
				}
				return nil
			}})
		}
	}
	return agent.Listen(ctx, p.bus, time.Second, p.logger, all...)
}

// performance returns the newest performance of a workload, and what its SLO asks for; NaN: it is not known.
func (p *prober) performance(workload string, now time.Time) (value, target float64) {
	if target = p.of[workload].Target; target == 0 {
		return math.NaN(), math.NaN()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if last, ok := p.performances[workload]; ok && now.Sub(last.at) <= fresh {
		return last.value, target
	}
	return math.NaN(), target
}

// round begins a probe that is due, or goes on with the one under way, given the readings of a second.
func (p *prober) round(ctx context.Context, now time.Time, l look) {
	for i := range l.all {
		r := &l.all[i]
		every := p.of[r.Workload].Every
		if every == 0 {
			continue
		}
		d, known := p.next[r.Name]
		if !known {
			d.at = l.at + settled
		}
		d.seen = l.at
		p.next[r.Name] = d
		if p.now == nil && l.at >= d.at && !p.busy.Load() {
			p.next[r.Name] = due{l.at, l.at + every}
			p.now = &running{of: r.Name, first: *r, began: l.at, last: l.at, step: probe.Probe{Budget: budget}}
		}
		if p.now != nil && p.now.of == r.Name {
			p.now.last = l.at
			p.goOn(ctx, now, l, r)
		}
	}
	if p.now != nil && l.at-p.now.last > silent {
		p.end(ctx, now, l, nil, &probe.Result{Why: "there are no readings of it"})
	}
	for n, d := range p.next {
		if l.at-d.seen > settled {
			delete(p.next, n)
		}
	}
}

// goOn takes the next step of the probe under way.
func (p *prober) goOn(ctx context.Context, now time.Time, l look, r *shortage.Reading) {
	x := p.now
	why := ""
	failed := x.failed.Load()
	switch {
	case failed != nil:
		why = (*failed).Error()
	case r.ID != x.first.ID:
		why = "it was started again"
	case r.Limit != x.first.Limit && !(math.IsNaN(r.Limit) && math.IsNaN(x.first.Limit)): // NaN: it has none
		why = "its limit changed"
	case r.Kills > 0:
		why = "the kernel killed a process of it"
	}
	if why != "" {
		p.end(ctx, now, l, r, &probe.Result{Why: why})
		return
	}
	v := probe.Reading{Usage: r.Usage, Anonymous: r.Anonymous, Refaults: r.Refaults * float64(os.Getpagesize()), Pressure: r.Pressure}
	v.Performance, v.Target = p.performance(r.Workload, now)
	bytes, done := x.step.Next(l.at-x.began, v)
	if done != nil {
		p.end(ctx, now, l, r, done)
		return
	}
	if bytes == 0 {
		return
	}
	take, refused := p.knobs.Reclaim(ctx, trimtab.KnobID{Workload: r.Workload, Instance: r.Instance, Resource: trimtab.Memory})
	if refused == "" && p.busy.Load() {
		refused = "the kernel has not finished the step before"
	}
	if refused != "" {
		p.end(ctx, now, l, r, &probe.Result{Why: refused})
		return
	}
	p.take(x, bytes, take)
}

// take begins to take bytes away, in parts, until it is stopped.
func (p *prober) take(x *running, bytes float64, take func(bytes float64) error) {
	p.busy.Store(true)
	p.taking.Go(func() {
		defer p.busy.Store(false)
		for ; bytes >= 1 && !x.stopped.Load(); bytes -= chunk {
			if err := take(math.Min(bytes, chunk)); err != nil {
				x.failed.Store(&err)
				return
			}
		}
	})
}

// end ends the probe under way, and tells the analyzer what it found.
func (p *prober) end(ctx context.Context, now time.Time, l look, r *shortage.Reading, done *probe.Result) {
	x := p.now
	x.stopped.Store(true)
	p.now = nil
	p.logger.Info("memory probed", "workload", x.of.Workload, "instance", x.of.Instance, "found", done.Found, "low", trimtab.AmountOf(trimtab.Memory, trimtab.Units(done.Low)),
		"high", trimtab.AmountOf(trimtab.Memory, trimtab.Units(done.High)), "steps", done.Steps, "why", done.Why)
	if !done.Found || r == nil {
		return
	}
	s := &trimtab.Sample{Workload: r.Workload, Host: r.Host, Instance: r.Instance, Quantity: quantity.MemoryNeeded, Source: "probe", Time: now.Round(0).UTC(), Value: done.High, Window: trimtab.SecondsOf(l.at - x.began)}
	if err := p.bus.Publish(ctx, s); err != nil {
		p.logger.Warn("publish what a probe found", "workload", r.Workload, "err", err)
	}
}

// stop ends the probe under way, and waits until nothing is taken away any more.
func (p *prober) stop() {
	if p.now != nil {
		p.now.stopped.Store(true)
	}
	p.taking.Wait()
}
