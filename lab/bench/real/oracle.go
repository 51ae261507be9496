package main

import (
	"context"
	"slices"
	"time"

	"github.com/trimtab/trimtab/lab/services"
)

// model is the scenario as the queues of package services have it, with what arrives and what
// it costs.
func (t *trial) model() (*services.Scenario, [][]services.Request) {
	s := services.Of(t.scenario, t.Pool, t.whole)
	if t.scenario.Mixed { // the second has threads, as the third has processes
		s.Services[1].Servers, s.Services[1].Concurrency = s.Services[2].Servers, s.Services[2].Concurrency
	}
	coming := make([][]services.Request, len(t.services))
	for i, svc := range t.services {
		v := &s.Services[i]
		v.Cost, v.Latency, v.Fraction = svc.Cost.Seconds(), svc.SLO.Latency.Seconds(), svc.SLO.Fraction
		for _, a := range t.arrivals[i] {
			coming[i] = append(coming[i], services.Request{At: a.At.Seconds(), Work: a.Size * v.Cost})
		}
	}
	return &s, coming
}

// oracle is who knows every arrival and every cost beforehand: it sets the weights that serve an
// objective best by the model, and no quota.
type oracle struct {
	objective string
	weights   [][]float64 // of each second
}

func (o *oracle) open(ctx context.Context, t *trial) (err error) {
	s, coming := t.model()
	if o.weights, err = services.Oracle(s, coming, o.objective); err != nil {
		return err
	}
	return o.set(ctx, t, 0)
}

func (o *oracle) run(ctx context.Context, t *trial) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		if err := o.set(ctx, t, time.Since(t.begin)); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

func (*oracle) observe(int, time.Time, time.Duration, bool) {}
func (*oracle) close(context.Context, *trial, *row)         {}

// weigh sets the weights of the services' groups, over the kernel's default.
func (h *host) weigh(weights [3]float64) error {
	for i, s := range h.services {
		for _, g := range s.groups() {
			if err := g.Weigh(weights[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// highestWeight is the greatest weight that an oracle sets, over the kernel's default.
const highestWeight = 100

// set sets the weights of a time of the run, and a quota for whom is held back.
func (o *oracle) set(ctx context.Context, t *trial, at time.Duration) error {
	now := o.weights[min(max(0, int(at.Seconds())), len(o.weights)-1)]
	var weights [3]float64
	for i, s := range t.services {
		weights[i] = highestWeight * now[i] / slices.Max(now)
		err := s.free(ctx)
		if now[i] <= 0 {
			err = s.group.Set(ctx, max(leastQuota, services.HeldBack*t.Pool))
		}
		if err != nil {
			return err
		}
	}
	return t.weigh(weights)
}

// leastQuota is the least that the kernel takes, in cores.
const leastQuota = 0.01

// worth judges a run by each objective, beside the entitlements alone.
func (r *row) worth(t *trial) services.Welfare {
	utility := make([][]float64, len(t.services))
	for i, s := range t.services {
		for k := range t.entitled[i] {
			from := time.Duration(k) * fineWindow
			sent, met := count(r.seen.outcomes[i], s.SLO, from, from+fineWindow)
			u := share(met, sent) / s.SLO.Fraction
			if u > 1 { // not where it is NaN
				u = 1
			}
			utility[i] = append(utility[i], u)
		}
	}
	return services.Judge(utility, t.entitled)
}

// inTimeAgain is the share of all requests that is in time when an overload is overcome.
const inTimeAgain = 0.99

// recovered returns the seconds from the end of an overload to the first stretch of two windows
// in which nearly all requests of all services are in time, before until; nil: there is none.
func recovered(outcomes [3][]outcome, slos [3]slo, end, until time.Duration) *float64 {
	const whole = 2 * fineWindow
	for from := end; from+whole <= until; from += time.Second {
		sent, met := 0, 0
		for i := range outcomes {
			s, m := count(outcomes[i], slos[i], from, from+whole)
			sent, met = sent+s, met+m
		}
		if float64(met) >= inTimeAgain*float64(sent) {
			v := (from - end).Seconds()
			return &v
		}
	}
	return nil
}

// recover fills how long after each overload nearly all requests were in time again.
func (r *row) recover(t *trial) {
	var slos [3]slo
	for i, s := range t.services {
		slos[i] = s.SLO
	}
	spans := t.scenario.Overloads(t.whole)
	for k, span := range spans {
		until := t.whole
		if k+1 < len(spans) {
			until = spans[k+1].From
		}
		if span.To < t.whole {
			r.Recovered = append(r.Recovered, recovered(r.seen.outcomes, slos, span.To, until))
		}
	}
}
