package main

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/trimtab/trimtab/planner/colocate"
	"github.com/trimtab/trimtab/planner/reclaim"
)

// direct drives a policy of planner/colocate with the bench's own figures and hands:
// no analyzer, no bus, no actuator. It tells the policy apart from what is around it.
type direct struct {
	policy string
	b      *bench
	p      colocate.Policy
	states []colocate.State
	has    []float64
	verbs  map[string]int
	// attained is the CPU time that each job was given in the row, in core-seconds.
	attained []float64
	// used is the CPU time of everything but the jobs at the last tick.
	used time.Duration

	mu     sync.Mutex
	recent []outcome
	begin  time.Time
}

const (
	// lookBack is over how long the tail is taken, as of the analyzer's reports.
	lookBack = 4 * time.Second
	// leastQuota is what a job has that is not running.
	leastQuota = 0.01
)

func (d *direct) open(ctx context.Context, b *bench, _ string) error {
	d.b, d.verbs = b, map[string]int{}
	n := len(b.host.jobs)
	d.states, d.has, d.attained = make([]colocate.State, n), make([]float64, n), make([]float64, n)
	amount := func(v float64) colocate.Amounts { return colocate.Amounts{"cpu": v} }
	var err error
	if d.p, err = colocate.New(d.policy, colocate.Config{Period: window, Start: amount(b.Start), Step: amount(b.Step)}); err != nil {
		return err
	}
	for i, j := range b.host.jobs {
		d.states[i], d.has[i] = colocate.Waiting, leastQuota
		if err := j.group.Set(ctx, leastQuota); err != nil {
			return err
		}
	}
	d.used, err = d.b.host.others()
	if err != nil {
		return err
	}
	return b.host.begin(true)
}

func (d *direct) run(ctx context.Context) error {
	tick := time.NewTicker(window)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		o, err := d.observe()
		if err != nil {
			return err
		}
		decision := d.p.Decide(o)
		d.verbs[string(decision.Verb)]++
		if d.b.Keep {
			fmt.Fprintf(d.b.err, "%5.1f %s %s: %s %v\n", time.Since(d.begin).Seconds(), d.policy, decision.Verb, decision.Why, decision.Changes)
		}
		for _, c := range decision.Changes {
			if err := d.do(ctx, c); err != nil {
				return err
			}
		}
	}
}

// observe says how things stand.
func (d *direct) observe() (*colocate.Observation, error) {
	now := time.Now()
	o := &colocate.Observation{Time: now}
	s := colocate.Service{Workload: "shop", Share: 1, Window: lookBack}
	d.mu.Lock()
	since := now.Add(-lookBack).Sub(d.begin)
	for len(d.recent) > 0 && d.recent[0].At+d.recent[0].Took < since {
		d.recent = d.recent[1:]
	}
	n := len(d.recent)
	tail := quantile(d.recent, fraction)
	d.mu.Unlock()
	if n > 0 {
		slack, load := 1-tail/d.b.alone.SLO, float64(n)/lookBack.Seconds()/d.b.alone.Max
		s.Slack, s.Load = &slack, &load
	}
	if l := d.b.Limits; l != nil && l[0] > 0 {
		s.LoadLimit = &l[0]
	}
	if l := d.b.Limits; l != nil && l[1] > 0 {
		s.SlackLimit = &l[1]
	}
	o.Services = []colocate.Service{s}
	used, err := d.b.host.others()
	if err != nil {
		return nil, err
	}
	free := float64(runtime.NumCPU()) - (used-d.used).Seconds()/window.Seconds()
	d.used = used
	o.Capacity = colocate.Amounts{"cpu": max(0.01, free)}
	for i, j := range d.b.host.jobs {
		at := colocate.Job{State: d.states[i], Job: reclaim.Job{ID: j.Name}}
		if d.states[i] == colocate.Running {
			d.attained[i] += window.Seconds() * d.has[i]
		}
		at.Useless, at.Attained = j.atRisk(), d.attained[i]
		if d.states[i] != colocate.Waiting {
			at.Has = colocate.Amounts{"cpu": d.has[i]}
		}
		at.Most = colocate.Amounts{"cpu": 1}
		if j.there() {
			o.Jobs = append(o.Jobs, at)
		} else {
			d.states[i] = colocate.Waiting
		}
	}
	return o, nil
}

// do does one change.
func (d *direct) do(ctx context.Context, c colocate.Change) error {
	for i, j := range d.b.host.jobs {
		if j.Name != c.Job {
			continue
		}
		if to, ok := c.To["cpu"]; ok {
			if err := j.group.Set(ctx, max(leastQuota, to)); err != nil {
				return err
			}
			d.has[i] = to
		}
		switch c.Act {
		case colocate.Kill:
			j.group.Kill()
			d.states[i] = colocate.Waiting
			return j.group.Freeze(true)
		case colocate.Suspend:
			d.states[i] = colocate.Suspended
			return j.group.Freeze(true)
		case colocate.Start, colocate.Resume:
			d.states[i] = colocate.Running
			return j.group.Freeze(false)
		}
	}
	return nil
}

func (d *direct) tell(begin time.Time, o *outcome) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.begin = begin
	d.recent = append(d.recent, *o)
}

func (d *direct) close(_ context.Context, r *row) { r.Verbs = d.verbs }
