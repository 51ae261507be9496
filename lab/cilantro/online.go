package cilantro

import (
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer"
	"github.com/trimtab/trimtab/analyzer/forecast"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/guard"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/quantity"
	"github.com/trimtab/trimtab/sim/cluster"
)

// Online is what a policy that learns is made of, besides the steps.
type Online struct {
	// Learner and Forecaster make those of each job; nil: the truth, to see
	// what learning and forecasting cost. The profile is for a learner that
	// must be told of it beforehand, such as [PublishedTree].
	Learner    func(*Profile) learn.Learner
	Forecaster func() forecast.Forecaster
	// Level is the confidence of bounds. Default 0.9.
	Level float64
	// Step is B in units. Default 10, as in the paper; with the guard a third of
	// the capacity, as in production.
	Step int
	// Beta is the weight of the certain demand. Default of package planner: 3/4.
	Beta float64
	// Guard lets the guard of production bound the steps, with its defaults; off
	// by default, as in the paper. Rounds stay those of the paper: what an
	// allocation serves is fixed for a round, so no need starts one earlier.
	Guard bool
	// Worths has, by the name of a policy whose objective is the operator's
	// own, what performance is worth to it, in order of the jobs' names.
	Worths map[string][]func(performance float64) float64
}

// steps is a controller: the closed loop with one policy.
type steps struct {
	world *world
	loop  *cluster.Loop
	start time.Time
	units []int
	// look tells that the planner decides after the reports of this window.
	look bool
}

// start is the time at which runs start: the beginning of a round and of a
// report, far from 0.
func startOfRuns() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

func newSteps(w *world, o Online, policy policy.Policy) (*steps, error) {
	s := &steps{world: w, start: startOfRuns(), units: shares(w)}
	capacity := float64(w.env.Capacity)
	c := cluster.Config{Start: s.start, Held: map[string]float64{},
		Analyzer: analyzer.Config{Report: WindowSeconds * time.Second, Round: Windows * WindowSeconds * time.Second, Level: o.Level},
		Planner: planner.Config{Pool: "sim", Resource: "cpu", Capacity: capacity, Unit: 1, Step: o.step(w.env.Capacity), Beta: o.Beta,
			Round: Windows * WindowSeconds * time.Second, Policy: policy, Guard: guard.Config{Disabled: !o.Guard}},
	}
	for i := range w.jobs {
		j := &w.jobs[i]
		a := analyzer.Workload{Name: j.Name, Target: j.SLO, Resource: "cpu", Min: 1, Max: capacity,
			LoadFrom: analyzer.FromPrometheus, PerformanceFrom: analyzer.FromPrometheus,
			Forecaster: o.Forecaster}
		if a.Learner = func() learn.Learner { return o.Learner(j.profile) }; o.Learner == nil {
			a.Learner = func() learn.Learner { return &known{world: w, job: i} }
		}
		if o.Forecaster == nil {
			a.Forecaster = func() forecast.Forecaster { return &clairvoyant{world: w, job: i} }
		}
		if factor, ok := w.opt.Demands[j.Name]; ok {
			d := wanted{demand: factor * w.demandAtMedian(i), slo: j.SLO}
			a.Learner = func() learn.Learner { return d }
		}
		inner := a.Learner
		a.Learner = func() learn.Learner { return drowsy{inner(), &s.look} }
		c.Analyzer.Workloads = append(c.Analyzer.Workloads, a)
		p := planner.WorkloadConfig{Name: j.Name, Mode: trimtab.Act,
			Weight: j.Weight, Min: 1, Max: capacity, SLO: j.SLO, Utility: j.utility}
		if worths := o.Worths[policy.Name()]; worths != nil {
			p.Worth = worths[i]
		}
		c.Planner.Workloads = append(c.Planner.Workloads, p)
		c.Held[j.Name] = float64(s.units[i])
	}
	var err error
	s.loop, err = cluster.New(c)
	return s, err
}

// step returns B for a capacity; 0 is the default of package planner.
func (o *Online) step(capacity int) int {
	if o.Step == 0 && o.Guard {
		return max(1, (capacity+1)/3)
	}
	return o.Step
}

// Decide runs a round of the planner.
func (s *steps) Decide(r int) ([]int, error) {
	now := s.at(r * Windows)
	for i := range s.world.jobs {
		if j := &s.world.jobs[i]; !j.there(r*Windows) && !j.there((r+1)*Windows-1) {
			s.loop.Set(now, j.Name, 1) // its owner took the rest away
		}
	}
	s.loop.Round(now)
	for i := range s.units {
		s.units[i] = int(math.Round(s.loop.Held(s.world.jobs[i].Name)))
	}
	return s.units, nil
}

func (s *steps) at(k int) time.Time { return s.start.Add(time.Duration(k*WindowSeconds) * time.Second) }

// Tell turns reports into the samples that a Prometheus would give.
func (s *steps) Tell(k int, reports []Report) {
	now := s.at(k + 1)
	s.look = (k+1)%Windows == 0
	for i := range reports {
		r, name := &reports[i], s.world.jobs[i].Name
		if r.Silent {
			continue
		}
		for _, v := range []*trimtab.Sample{
			{Workload: name, Quantity: quantity.Load, Source: "sim", Time: now, Value: r.Load},
			{Workload: name, Quantity: quantity.Performance, Source: "sim", Time: now, Value: r.Performance, Requests: r.Requests},
		} {
			v.Window = WindowSeconds
			s.loop.Sample(now, v)
		}
	}
	s.loop.Tick(now)
}

// Coverage returns the share of the points of each true curve, as it is at the
// end of the run and at the load that was planned for, that the band holds; NaN
// where there is no such curve or point.
func (s *steps) Coverage(w *world) []float64 {
	out := make([]float64, len(w.jobs))
	for i := range w.jobs {
		j := &w.jobs[i]
		e := s.loop.Estimate(j.Name)
		if out[i] = math.NaN(); e == nil || e.Curve == nil {
			continue
		}
		n, inside := 0, 0
		for _, x := range j.profile.X {
			a := x * e.Curve.Load
			if a < 1 || a > float64(w.env.Capacity) {
				continue
			}
			b, p := e.Curve.Eval(a), j.profile.At(x)*w.factor(i, w.env.Rounds*Windows-1)
			n++
			if b.Lower <= p+1e-9 && p <= b.Upper+1e-9 {
				inside++
			}
		}
		if n > 0 {
			out[i] = float64(inside) / float64(n)
		}
	}
	return out
}
