package main

import (
	"context"
	"fmt"
	"sort"
	"time"

	"github.com/trimtab/trimtab/lab/services/shape"
)

// trial is one run of one policy: what the policy may know.
type trial struct {
	*host
	scenario shape.Scenario
	whole    time.Duration
	arrivals [3][]arrival
	// entitled has the utility of each service in each fine window with its equal part of the
	// pool alone, by the model.
	entitled [][]float64
	// begin is when the load begins.
	begin time.Time
	// dir is for the policy's own files.
	dir string
}

// policy decides who gets how much. It finds one quota above, none below, equal weights and
// idle services.
type policy interface {
	// open gets the policy ready, before the load begins.
	open(ctx context.Context, t *trial) error
	// run does its work until ctx ends.
	run(ctx context.Context, t *trial) error
	// observe is told of every request.
	observe(service int, from time.Time, took time.Duration, failed bool)
	// close ends it; what it has to say about the run goes into the row.
	close(ctx context.Context, t *trial, r *row)
}

// still is a policy that sets fixed shares of the pool.
type still struct {
	shares func(t *trial) [3]float64
	// say: the row tells the shares.
	say  bool
	used [3]float64
}

func (p *still) open(ctx context.Context, t *trial) error {
	p.used = p.shares(t)
	return t.set(ctx, p.used)
}

func (*still) run(ctx context.Context, _ *trial) error     { <-ctx.Done(); return nil }
func (*still) observe(int, time.Time, time.Duration, bool) {}

func (p *still) close(_ context.Context, _ *trial, r *row) {
	if p.say {
		r.Notes = append(r.Notes, fmt.Sprintf("the best fixed split by the model is %.2f, %.2f, %.2f of the pool", p.used[0], p.used[1], p.used[2]))
	}
}

// kernel is what a user does without a controller: one quota of the pool's size on the group
// above, none on the services, equal weights.
type kernel struct {
	// fronts are the proxies before the services; nil: there are none.
	fronts *fronts
}

func (k kernel) open(ctx context.Context, t *trial) error {
	if k.fronts == nil {
		return nil
	}
	return k.fronts.open(ctx, t, "")
}
func (kernel) run(ctx context.Context, _ *trial) error     { <-ctx.Done(); return nil }
func (kernel) observe(int, time.Time, time.Duration, bool) {}
func (k kernel) close(context.Context, *trial, *row)       { k.fronts.close() }

// equal gives each service the same.
func equal(*trial) [3]float64 { return [3]float64{1. / 3, 1. / 3, 1. / 3} }

// static gives what was best in the model.
func static(t *trial) [3]float64 {
	var cost, limit [3]time.Duration
	for i, s := range t.services {
		cost[i], limit[i] = s.Cost, s.SLO.Latency
	}
	return split(t.arrivals, cost, limit, t.Pool)
}

// rule is a policy that decides anew at an interval.
type rule struct {
	still
	every time.Duration
	// decide returns shares of the pool, at time at of the run.
	decide func(t *trial, at time.Duration) ([3]float64, error)
}

func (p *rule) run(ctx context.Context, t *trial) error {
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		shares, err := p.decide(t, time.Since(t.begin))
		if err == nil {
			err = t.set(ctx, shares)
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// floor is the least share of the pool that the rules leave to a service.
const floor = 0.05

// newProportional is the reference: it knows every arrival and every cost, and
// each second gives shares in proportion to rate * cost over the last 5 s.
func newProportional() policy {
	return &rule{still: still{shares: equal}, every: time.Second, decide: func(t *trial, at time.Duration) ([3]float64, error) {
		var need [3]float64
		for i, s := range t.services {
			need[i] = work(t.arrivals[i], at-5*time.Second, at) * s.Cost.Seconds()
		}
		return proportions(need), nil
	}}
}

// work returns the sum of the sizes of what arrived in (from, to].
func work(in []arrival, from, to time.Duration) float64 {
	sum := 0.0
	for k := sort.Search(len(in), func(k int) bool { return in[k].At > from }); k < len(in) && in[k].At <= to; k++ {
		sum += in[k].Size
	}
	return sum
}

// proportions shares 1 out in proportion to need, but nobody gets less than
// floor; without any need, equally.
func proportions(need [3]float64) [3]float64 {
	out := [3]float64{1. / 3, 1. / 3, 1. / 3}
	if need[0]+need[1]+need[2] <= 0 {
		return out
	}
	var low [3]bool
	for range out {
		free, sum := 1.0, 0.0
		for i := range out {
			if low[i] {
				free -= floor
			} else {
				sum += need[i]
			}
		}
		again := false
		for i := range out {
			out[i] = floor
			if !low[i] {
				out[i] = free * need[i] / sum
				if out[i] < floor {
					low[i], again = true, true
				}
			}
		}
		if !again {
			break
		}
	}
	return out
}

// Figures of the threshold rule, as autoscalers have them.
const (
	thresholdTarget = 0.5
	thresholdWindow = 30 * time.Second
	thresholdEvery  = 15 * time.Second
	thresholdMean   = 5 * time.Second
)

// newThreshold is the rule of a usual autoscaler: every 15 s the quota becomes
// twice the highest use (means of 5 s) of the last 30 s, and all are scaled
// down together when the pool does not suffice.
func newThreshold() policy {
	var highest [3][]float64 // means of thresholdMean, the newest last
	var last [3]time.Duration
	turn := 0
	return &rule{still: still{shares: equal}, every: thresholdMean, decide: func(t *trial, _ time.Duration) ([3]float64, error) {
		used, err := t.usage()
		if err != nil {
			return [3]float64{}, err
		}
		for i := range used {
			if turn > 0 {
				highest[i] = append(highest[i], (used[i]-last[i]).Seconds()/thresholdMean.Seconds()/t.Pool)
			}
			if n := len(highest[i]) - int(thresholdWindow/thresholdMean); n > 0 {
				highest[i] = highest[i][n:]
			}
		}
		last = used
		turn++
		if turn%int(thresholdEvery/thresholdMean) != 0 {
			now, _, err := t.quotas(context.Background())
			for i := range now {
				now[i] /= t.Pool
			}
			return now, err
		}
		return threshold(highest), nil
	}}
}

// threshold returns the shares of the pool for the uses of a window, which are
// shares of the pool too.
func threshold(uses [3][]float64) (out [3]float64) {
	sum := 0.0
	for i := range uses {
		out[i] = floor
		for _, u := range uses[i] {
			out[i] = max(out[i], u/thresholdTarget)
		}
		sum += out[i]
	}
	if sum > 1 {
		for i := range out {
			out[i] /= sum
		}
	}
	return out
}
