package site

import (
	"maps"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/jobs"
	"github.com/trimtab/trimtab/planner/colocate"
)

// blank is what is shown before the first decision.
func (h *jobHost) blank() *view.Colocation {
	return &view.Colocation{
		Host: h.host, Pool: h.pool, Policy: h.name, Mode: h.mode, Period: trimtab.SecondsOf(h.period), Missing: h.knobs.missing,
		Services: []view.ServiceHere{}, Jobs: []view.Job{}, Counts: map[string]uint64{}, Decisions: []view.HostDecision{},
	}
}

// show makes what people see of a tick, and counts it.
func (h *jobHost) show(now time.Time, d *colocate.Decision, all []*hostJob, o *colocate.Observation, services []view.ServiceHere, outcome *trimtab.Outcome) {
	last := h.decision(now, d, outcome)
	h.mu.Lock()
	defer h.mu.Unlock()
	next := *h.shown // readers have the old one
	next.Time, next.Services, next.Capacity = now, services, maps.Clone(map[string]float64(o.Capacity))
	if next.Services == nil {
		next.Services = []view.ServiceHere{}
	}
	next.Jobs, next.Used = h.showJobs(now, all, outcome)
	next.Counts = maps.Clone(next.Counts)
	next.Counts[last.Verb]++
	next.Problem = ""
	if outcome != nil && outcome.Refused != "" {
		next.Problem = outcome.Refused
	}
	if l := next.Last; l != nil && l.Verb == last.Verb && l.By == last.By && repeats(l.Changes, last.Changes) {
		last.Periods, last.Changes, last.Time = l.Periods+1, l.Changes, l.Time
	} else {
		h.logger.Info("co-location", "decision", last.Verb, "by", last.By, "why", last.Why, "changes", len(last.Changes))
	}
	if len(next.Decisions) > 0 && last.Periods > 1 {
		next.Decisions = slices.Clone(next.Decisions)
		next.Decisions[0] = last
	} else {
		next.Decisions = slices.Concat([]view.HostDecision{last}, next.Decisions[:min(len(next.Decisions), view.MaxHostDecisions-1)])
	}
	next.Last = &last
	h.shown = &next
	h.count(&next, &last)
}

// repeats reports whether a decision changes nothing, or says again what was not done:
// what is only recommended, or refused.
func repeats(before, now []view.JobChange) bool {
	return len(now) == 0 || slices.EqualFunc(before, now, func(a, b view.JobChange) bool {
		return a.Job == b.Job && a.Act == b.Act && a.Result == b.Result && maps.Equal(a.To, b.To)
	})
}

// decision is what one tick decided, as people see it.
func (h *jobHost) decision(now time.Time, d *colocate.Decision, o *trimtab.Outcome) view.HostDecision {
	out := view.HostDecision{Time: now, Verb: string(d.Verb), By: d.By, Why: d.Why, Periods: 1}
	done := resultsOf(o)
	for _, c := range d.Changes {
		change := view.JobChange{Job: c.Job, Act: string(c.Act), To: maps.Clone(map[string]float64(c.To))}
		if bad := failedOf(done[c.Job]); bad != "" {
			change.Result = "refused: " + bad
		} else if r := done[c.Job]; len(r) > 0 {
			change.Result = string(r[0].Status)
		}
		out.Changes = append(out.Changes, change)
	}
	return out
}

// showJobs makes the jobs, and what they have together.
func (h *jobHost) showJobs(now time.Time, all []*hostJob, o *trimtab.Outcome) (shown []view.Job, used map[string]float64) {
	shown, used = []view.Job{}, map[string]float64{}
	done := resultsOf(o)
	for _, j := range all {
		one := view.Job{
			ID: j.id, Mode: j.mode, State: string(j.State), Predict: j.predict, Predictable: j.Predictable,
			Useless: j.Useless, Attained: j.Attained, Lost: j.progress.Lost, Problem: j.problem, Has: map[string]float64{},
		}
		if j.mode == trimtab.Act {
			one.State = string(h.states[j.id])
		}
		if one.State == "" {
			one.State = string(colocate.Waiting)
		}
		for resource, k := range j.knobs {
			one.Registered = k.Workload == jobs.Workload
			one.Place = k.Knob
			if resource == running || resource == alive || k.Problem != "" {
				continue
			}
			one.Has[resource] = amountOf(k)
		}
		for _, r := range done[j.id] {
			if _, ok := one.Has[r.Resource]; ok && r.Known && !r.Found.Unlimited {
				one.Has[r.Resource] = r.Found.Value
			}
		}
		if one.State == string(colocate.Running) {
			for resource, v := range one.Has {
				used[resource] += v
			}
		}
		if f, ok := j.progress.Fraction(); ok {
			one.Done = &f
		}
		if j.Predictable {
			one.Loss = &j.Loss
		}
		if !j.progress.At.IsZero() {
			ago := trimtab.SecondsOf(max(0, now.Sub(j.progress.At)))
			one.Heard = &ago
		}
		shown = append(shown, one)
	}
	return shown, used
}

// count sets the metrics.
func (h *jobHost) count(c *view.Colocation, last *view.HostDecision) {
	h.metrics.Counter("trimtab_colocate_decisions_total", h.host, last.Verb).Inc()
	states := map[string]int{string(colocate.Waiting): 0, string(colocate.Running): 0, string(colocate.Suspended): 0}
	for i := range c.Jobs {
		states[c.Jobs[i].State]++
	}
	for state, n := range states {
		h.metrics.Gauge("trimtab_colocate_jobs", h.host, state).Set(float64(n))
	}
	for i := range c.Services {
		s := &c.Services[i]
		for name, v := range map[string]*float64{"trimtab_colocate_slack_ratio": s.Slack, "trimtab_colocate_load_ratio": s.Load} {
			if v == nil {
				h.metrics.Forget(name, h.host, s.Workload)
				continue
			}
			h.metrics.Gauge(name, h.host, s.Workload).Set(*v)
		}
	}
	for resource, v := range c.Used {
		h.metrics.Gauge("trimtab_colocate_used", h.host, resource).Set(v)
	}
	for resource, v := range c.Capacity {
		h.metrics.Gauge("trimtab_colocate_capacity", h.host, resource).Set(v)
	}
	if last.Periods > 1 {
		return
	}
	for _, change := range last.Changes {
		h.metrics.Counter("trimtab_colocate_changes_total", h.host, change.Act).Inc()
	}
}
