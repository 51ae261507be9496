package site

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/hint"
	planned "github.com/trimtab/trimtab/planner/whatif"
	"github.com/trimtab/trimtab/whatif"
)

// solveWithin is the time limit for each of the two solutions of a what-if question. At the limit
// the best solution so far is the answer, marked as incomplete.
const solveWithin = 2 * time.Second

// WhatIf answers a what-if question on a configuration with the planner's solver, from the data
// of a console.
func WhatIf(cfg *config.Config, v *view.Model, change whatif.Change, now time.Time) (*whatif.Answer, error) {
	cfg = cfg.Pooled()
	if cfg.Pool.Capacity() == 0 {
		return nil, hint.Add(trimtab.Invalidf("answer what-if: no pool is configured"), "name a pool and workloads in the configuration")
	}
	after, latency, err := withChange(cfg, change)
	if err != nil {
		return nil, err
	}
	q := planned.Question{Now: now, Latency: latency}
	if q.Before, err = PlannerConfig(cfg); err != nil {
		return nil, err
	}
	if q.After, err = PlannerConfig(after); err != nil {
		return nil, err
	}
	q.Estimates, q.Holdings = v.Newest(now)
	// The site passes the deadlines in, since the planner reads no clock.
	q.Before.Stop, q.After.Stop = late(time.Now().Add(solveWithin)), late(time.Now().Add(2*solveWithin))
	out, err := planned.Answer(q)
	if err != nil {
		return nil, err
	}
	out.Change = change
	for i := range out.Workloads {
		w := &out.Workloads[i]
		w.Share = workloadOf(cfg, w.Workload).SLO.Shares()
	}
	return out, nil
}

func late(deadline time.Time) func() bool { return func() bool { return time.Now().After(deadline) } }

// withChange returns the configuration with a change, and the workloads whose latency differs.
// The error is trimtab.ErrInvalid and names the mistake.
func withChange(cfg *config.Config, change whatif.Change) (*config.Config, map[string]planned.Threshold, error) {
	out := *cfg
	out.Workloads, out.Groups, out.Pool.Resources = slices.Clone(cfg.Workloads), slices.Clone(cfg.Groups), maps.Clone(cfg.Pool.Resources)
	for resource, v := range change.Capacity {
		if !(v > 0) || math.IsInf(v, 0) {
			return nil, nil, trimtab.Invalidf("change capacity of %.40q to %v: want a number > 0", resource, v)
		}
		switch own := cfg.Pool.Resource(); {
		case resource != own:
			return nil, nil, trimtab.Invalidf("change capacity of %.40q: the pool shares %s", resource, own)
		case cfg.Pool.CPU > 0:
			out.Pool.CPU = v
		case cfg.Pool.Workers > 0:
			out.Pool.Workers = v
		default:
			out.Pool.Resources[resource] = v
		}
	}
	for name, v := range change.Weight {
		if !(v > 0) || math.IsInf(v, 0) {
			return nil, nil, trimtab.Invalidf("change weight of %.253q to %v: want a number > 0", name, v)
		}
		if !reweigh(&out, name, v) {
			return nil, nil, hint.Add(trimtab.Invalidf("change weight of %.253q: no workload and no group has that name", name), "trimtab status lists the workloads")
		}
	}
	latency := map[string]planned.Threshold{}
	for name, text := range change.SLO {
		w := workloadOf(&out, name)
		if w == nil {
			return nil, nil, hint.Add(trimtab.Invalidf("change slo of %.253q: no workload has that name", name), "trimtab status lists the workloads")
		}
		before := w.SLO.Latency
		if err := ask(&w.SLO, name, text); err != nil {
			return nil, nil, err
		}
		if w.SLO.Latency != before {
			latency[name] = planned.Threshold{Before: before, After: w.SLO.Latency}
		}
	}
	return &out, latency, nil
}

func workloadOf(cfg *config.Config, name string) *config.Workload {
	if i := slices.IndexFunc(cfg.Workloads, func(w config.Workload) bool { return w.Name == name }); i >= 0 {
		return &cfg.Workloads[i]
	}
	return nil
}

// reweigh changes the weight of a workload, or of a group with members. It returns false if there
// is neither.
func reweigh(cfg *config.Config, name string, weight float64) bool {
	if w := workloadOf(cfg, name); w != nil {
		w.Weight = weight
		return true
	}
	if i := slices.IndexFunc(cfg.Groups, func(g config.Group) bool { return g.Path == name }); i >= 0 {
		cfg.Groups[i].Weight = weight
		return true
	}
	member := func(w config.Workload) bool { return w.Group == name || strings.HasPrefix(w.Group, name+"/") }
	if name == "" || !slices.ContainsFunc(cfg.Workloads, member) {
		return false
	}
	cfg.Groups = append(cfg.Groups, config.Group{Path: name, Weight: weight})
	return true
}

// ask sets an SLO from text as a person writes it: 200ms, 99% or 0.95.
func ask(slo *config.SLO, name, text string) error {
	const want = "want a latency such as 200ms, a share such as 99%, or a performance such as 0.95"
	if slo.Entry != "" {
		return trimtab.Invalidf("change slo of %.253q: under objective end-to-end it is not answered", name)
	}
	if d, err := time.ParseDuration(text); err == nil && d != 0 {
		if d < 0 || slo.Latency == 0 {
			return trimtab.Invalidf("change slo of %.253q to %v: its SLO is a performance of %v, no latency", name, d, slo.Target())
		}
		slo.Latency = d
		return nil
	}
	number, share := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(number, 64)
	if share {
		v /= 100
	}
	switch {
	case err != nil || !(v > 0) || math.IsInf(v, 0):
		return trimtab.Invalidf("change slo of %.253q to %.40q: %s", name, text, want)
	case slo.Performance > 0 && !share:
		slo.Performance = v
	case slo.Performance > 0:
		return trimtab.Invalidf("change slo of %.253q to %.40q: its SLO is a performance of %v, no share", name, text, slo.Performance)
	case v >= 1:
		return trimtab.Invalidf("change slo of %.253q to %.40q: want a share in (0, 1)", name, text)
	default:
		slo.Fraction = v
	}
	return nil
}
