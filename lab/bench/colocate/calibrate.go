package main

import (
	"context"
	"fmt"
	"time"

	"github.com/trimtab/trimtab/lab/bench/rig"
)

// solo is what the service and the jobs do alone.
type solo struct {
	// Cost is the CPU time of a request in each component, in ms.
	Nginx float64 `json:"nginx_ms"`
	Redis float64 `json:"redis_ms"`
	// P99 is at half of the saturated rate, in ms.
	P99 float64 `json:"p99_ms,omitempty"`
	// SLO is the latency of the SLO, in ms, Max the most load, in requests/s.
	SLO float64 `json:"slo_ms"`
	Max float64 `json:"max_rps"`
	// Rates are the work of each job in a second, all at a time without the service.
	Rates []float64 `json:"be_work_per_s"`
}

const (
	// probeFor is how long each rate is tried, beginWith the first one as a share of
	// the saturated rate, and probeStep how much it rises.
	probeFor  = 8 * time.Second
	beginWith = 0.55
	probeStep = 0.05
	// soloFor is how long the jobs run alone.
	soloFor = 10 * time.Second
	// fraction is the SLO's: so many requests must be answered within its latency.
	fraction = 0.99
)

// calibrate measures service and jobs alone.
func (b *bench) calibrate(ctx context.Context) error {
	cost, err := b.tune(ctx)
	if err != nil {
		return err
	}
	b.alone.Nginx, b.alone.Redis = cost[0].Seconds()*1000, cost[1].Seconds()*1000
	saturated := 1 / max(cost[0], cost[1]).Seconds()
	b.alone.SLO, b.alone.Max = b.SLO.Seconds()*1000, b.Max
	if b.Max == 0 {
		if err := b.findMax(ctx, saturated); err != nil {
			return err
		}
	}
	fmt.Fprintf(b.err, "a request costs nginx %.2f ms and redis %.2f ms; SLO %.1f ms, at most %.0f requests/s\n", b.alone.Nginx, b.alone.Redis, b.alone.SLO, b.alone.Max)
	return b.measureJobs(ctx)
}

// tune sets the work of a request to what takes the wanted CPU time in each
// component, and returns what it does take.
func (b *bench) tune(ctx context.Context) (cost [2]time.Duration, err error) {
	s := b.host.shop
	for range 4 {
		cost, err = b.costs(ctx)
		if err != nil {
			return cost, err
		}
		scale := func(d time.Duration) float64 { return b.Cost.Seconds() / max(d, time.Microsecond).Seconds() }
		s.text = rig.Prose(max(1<<10, min(1<<20, int(float64(len(s.text))*scale(cost[0])))))
		s.turns = max(1, min(1e8, int(float64(s.turns)*scale(cost[1]))))
	}
	return b.costs(ctx)
}

// costs returns the mean CPU time of a request in each component, under some load.
func (b *bench) costs(ctx context.Context) (out [2]time.Duration, err error) {
	groups := [2]*rig.Group{b.host.shop.front, b.host.shop.back}
	var before [2]time.Duration
	for i, g := range groups {
		if before[i], err = g.Used(); err != nil {
			return out, err
		}
	}
	const n = 150
	for range n {
		one, cancel := context.WithTimeout(ctx, patience)
		_, err := b.host.shop.do(one)
		cancel()
		if err != nil {
			return out, fmt.Errorf("calibrate: %w", err)
		}
	}
	for i, g := range groups {
		used, err := g.Used()
		if err != nil {
			return out, err
		}
		out[i] = (used - before[i]) / n
	}
	return out, nil
}

// findMax finds SLO and most load.
func (b *bench) findMax(ctx context.Context, saturated float64) error {
	half, err := b.probe(ctx, 0.5*saturated, probeFor+4*time.Second)
	if err != nil {
		return err
	}
	b.alone.P99 = quantile(half, 0.99)
	b.alone.SLO = b.alone.P99 * b.Factor
	failures := 0
	for share := beginWith; share < 1.3 && failures < 2; share += probeStep {
		out, err := b.probe(ctx, share*saturated, probeFor)
		if err != nil {
			return err
		}
		sent, met := count(out, b.slo(), 0, probeFor)
		fmt.Fprintf(b.err, "%3.0f requests/s: p99 %.1f ms\n", share*saturated, quantile(out, 0.99))
		if held(sent, met) {
			b.alone.Max, failures = share*saturated, 0
		} else {
			failures++
		}
	}
	if b.alone.Max == 0 {
		return fmt.Errorf("find the most load: the SLO of %.1f ms does not hold at %.0f requests/s: %w", b.alone.SLO, beginWith*saturated, rig.ErrAnswer)
	}
	return nil
}

// probe sends requests at a constant rate.
func (b *bench) probe(ctx context.Context, rate float64, length time.Duration) ([]outcome, error) {
	out := generate(ctx, b.host.shop, time.Now(), constant(1, length).arrivals(rate, b.Seed), func(time.Time, *outcome) {})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return out, wait(ctx, time.Second)
}

// slo is the latency of the SLO.
func (b *bench) slo() time.Duration {
	return time.Duration(b.alone.SLO * float64(time.Millisecond))
}

// measureJobs runs the jobs without the service.
func (b *bench) measureJobs(ctx context.Context) error {
	if err := b.host.begin(false); err != nil {
		return err
	}
	if err := wait(ctx, time.Second); err != nil {
		return err
	}
	before, err := b.host.work()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := wait(ctx, soloFor); err != nil {
		return err
	}
	after, err := b.host.work()
	if err != nil {
		return err
	}
	for i := range after {
		rate := (after[i] - before[i]) / time.Since(began).Seconds()
		if !(rate > 0) {
			return fmt.Errorf("measure %s alone: it does nothing: %w", b.host.jobs[i].Name, rig.ErrAnswer)
		}
		b.alone.Rates = append(b.alone.Rates, rate)
	}
	fmt.Fprintf(b.err, "alone, the jobs do %.4g a second\n", b.alone.Rates)
	return b.host.halt(ctx)
}
