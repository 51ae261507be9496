package beside

import (
	"maps"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/jobs"
	"github.com/trimtab/trimtab/planner/colocate"
)

// blank returns the state to show before the first decision.
func (h *jobHost) blank() *view.Colocation {
	return &view.Colocation{
		Host: h.host, Pool: h.pool, Policy: h.policy, Mode: h.mode, Period: trimtab.SecondsOf(h.period), Missing: h.knobs.missing,
		Services: []view.ServiceHere{}, Jobs: []view.Job{}, Counts: map[string]uint64{}, Decisions: []view.HostDecision{},
	}
}

// show builds the state that people see of a tick, and updates the metrics.
func (h *jobHost) show(now time.Time, out *done) {
	status := &out.status
	shown, used := h.showJobs(now, status, out.all)
	unmet := map[string]string{}
	for i := range shown {
		unmet[shown[i].ID] = shown[i].Unmet
	}
	last := h.decision(now, status, out, unmet)
	h.mu.Lock()
	defer h.mu.Unlock()
	next := *h.shown // a copy: readers use the old one
	next.Time, next.Capacity = now, maps.Clone(map[string]float64(status.Observed.Capacity))
	next.Services = h.showServices(now, status)
	next.Power, next.Link = nil, nil
	if p := status.Observed.Power; p != nil {
		next.Power = &colocation.PowerHere{Draws: p.Draws, TDP: p.TDP}
	}
	if l := status.Observed.Link; l != nil {
		next.Link = &colocation.LinkHere{Bandwidth: l.Bandwidth, Used: l.Used}
	}
	next.Jobs, next.Used = shown, used
	next.Running, next.Suspended = statesOf(next.Jobs)
	next.Given, next.Reclaimed, next.Paused = h.given, h.reclaimed, status.Paused
	next.Counts = maps.Clone(next.Counts)
	next.Problem = out.refused
	next.Unmet = unmetJobs(&next)
	if last.Verb == "" || next.Paused { // nothing was observed or may be decided
		h.shown = &next
		h.count(&next, "")
		return
	}
	next.Counts[last.Verb]++
	repeated := next.Last != nil && next.Last.Verb == last.Verb && next.Last.By == last.By && repeats(next.Last.Changes, last.Changes)
	if repeated {
		last.Periods, last.Changes, last.Time = next.Last.Periods+1, next.Last.Changes, next.Last.Time
		next.Decisions = slices.Clone(next.Decisions)
		next.Decisions[0] = last
	} else {
		h.logger.Info("co-location", "decision", last.Verb, "by", last.By, "why", last.Why, "changes", len(last.Changes))
		next.Decisions = slices.Concat([]view.HostDecision{last}, next.Decisions[:min(len(next.Decisions), view.MaxHostDecisions-1)])
		for _, change := range last.Changes {
			h.metrics.Counter("trimtab_colocate_changes_total", h.host, change.Act).Inc()
		}
	}
	next.Last = &last
	next.Unmet = unmetJobs(&next)
	h.shown = &next
	h.count(&next, last.Verb)
}

// repeats reports whether a decision changes nothing, or repeats the last one that was not carried
// out because it was only recommended or was refused.
func repeats(before, now []view.JobChange) bool {
	return len(now) == 0 || slices.EqualFunc(before, now, func(a, b view.JobChange) bool {
		return a.Job == b.Job && a.Act == b.Act && a.Result == b.Result && maps.Equal(a.To, b.To)
	})
}

// decision describes the decision of one tick for people.
func (h *jobHost) decision(now time.Time, status *colocate.Status, out *done, unmet map[string]string) view.HostDecision {
	d := &status.Decided
	one := view.HostDecision{Time: now, Verb: string(d.Verb), By: d.By, Why: d.Why, Periods: 1}
	results := map[string]string{}
	for i := range out.results {
		r := &out.results[i]
		id := jobs.IDOf(r.Workload, r.Instance)
		switch {
		case r.Status == trimtab.Refused || r.Status == trimtab.Failed:
			results[id] = string(r.Status) + ": " + r.Resource + ": " + r.Reason
		case results[id] == "":
			results[id] = string(r.Status)
		}
	}
	for _, c := range d.Changes {
		if why := unmet[c.Job]; why != "" && (c.Act == colocate.Suspend || c.Act == colocate.Kill) {
			results[c.Job] = "not in force as said: " + why
		}
		one.Changes = append(one.Changes, view.JobChange{Job: c.Job, Act: string(c.Act), To: maps.Clone(map[string]float64(c.To)), Result: results[c.Job]})
	}
	return one
}

// showServices describes the state of the services, with the limits in force.
func (h *jobHost) showServices(now time.Time, status *colocate.Status) []view.ServiceHere {
	shown := []view.ServiceHere{}
	for i := range status.Observed.Services {
		s := &status.Observed.Services[i]
		one := view.ServiceHere{Workload: s.Workload, Share: s.Share, Slack: s.Slack, Load: s.Load, Clock: s.Frequency, LeastClock: s.LeastFrequency, Stale: true}
		if l, ok := status.Limits[s.Workload]; ok {
			one.LoadLimit, one.LoadOrigin, one.SlackLimit, one.SlackOrigin = &l.LoadLimit, l.LoadOrigin, &l.SlackLimit, l.SlackOrigin
		}
		if c := h.reports.of(s.Workload); c != nil {
			age := trimtab.SecondsOf(max(0, now.Sub(c.Time)))
			one.Age, one.SLO, one.Stale = &age, c.SLO, age.Duration() > h.reports.maxAge
			if c.Tail != nil {
				tail := trimtab.Seconds(*c.Tail)
				one.Tail = &tail
			}
		}
		if one.Stale {
			one.Slack, one.Load, one.Tail = nil, nil, nil
		}
		shown = append(shown, one)
	}
	return shown
}

// showJobs builds the state of the jobs, and the sum of what they use.
func (h *jobHost) showJobs(now time.Time, status *colocate.Status, all map[string]map[string]*trimtab.KnobState) (shown []view.Job, used map[string]float64) {
	shown, used = []view.Job{}, map[string]float64{}
	observed := map[string]*colocate.Job{}
	for i := range status.Observed.Jobs {
		observed[status.Observed.Jobs[i].ID] = &status.Observed.Jobs[i]
	}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		progress := h.registry.Progress(id)
		if !lives(all[id]) || progress.Last.Finished {
			continue
		}
		one := h.showJob(now, id, all[id], &progress)
		if j := observed[id]; j != nil {
			one.Predictable, one.Useless = j.Predictable, j.Useless
			if j.Predictable {
				one.Loss = &j.Loss
			}
		}
		if why := status.Contested[id]; why != "" && one.Problem == "" {
			one.Problem = why
		}
		if one.State == string(colocate.Running) { // a killed job that still runs does not count
			for resource, v := range one.Has {
				if resource != trimtab.Frequency { // a sum of clocks has no meaning
					used[resource] += v
				}
			}
		}
		shown = append(shown, one)
	}
	return shown, used
}

// statesOf counts running and suspended jobs.
func statesOf(all []view.Job) (running, suspended int) {
	for i := range all {
		switch all[i].State {
		case string(colocate.Running):
			running++
		case string(colocate.Suspended):
			suspended++
		}
	}
	return running, suspended
}

// showJob builds the state of one job.
func (h *jobHost) showJob(now time.Time, id string, knobs map[string]*trimtab.KnobState, progress *jobs.Progress) view.Job {
	one := view.Job{ID: id, Mode: h.mode, State: string(colocate.Running), Predict: h.predictOf(id), Attained: progress.Attained, Lost: progress.Lost, Has: map[string]float64{}}
	w, declared := h.declaredOf(id)
	if one.Registered = !declared; declared {
		one.Mode = w.Mode
	}
	switch {
	case ends(knobs):
		one.State = string(colocate.Ending)
	case !runs(knobs):
		one.State = string(colocate.Suspended)
	}
	for resource, k := range knobs {
		if resource == trimtab.CPU {
			one.Location = k.Knob
		}
		if resource != running && resource != alive && k.Problem == "" {
			one.Has[resource] = amountOf(k)
		}
	}
	if f, ok := progress.Fraction(); ok {
		one.Done = &f
	}
	if !progress.At.IsZero() {
		ago := trimtab.SecondsOf(max(0, now.Sub(progress.At)))
		one.ReportAge = &ago
	}
	if one.Problem = h.problemOf(knobs); one.Problem == "" {
		one.Problem = progress.Problem
	}
	one.Unmet = unmetOf(one.Mode, knobs)
	return one
}

// count sets the metrics.
func (h *jobHost) count(c *view.Colocation, verb string) {
	if verb != "" {
		h.metrics.Counter("trimtab_colocate_decisions_total", h.host, verb).Inc()
	}
	h.metrics.Gauge("trimtab_host_unmet", h.host, codes.UnmetJobs).Set(float64(len(c.Unmet)))
	h.metrics.Gauge("trimtab_colocate_jobs", h.host, string(colocate.Running)).Set(float64(c.Running))
	h.metrics.Gauge("trimtab_colocate_jobs", h.host, string(colocate.Suspended)).Set(float64(c.Suspended))
	h.metrics.Gauge("trimtab_colocate_jobs", h.host, string(colocate.Ending)).Set(float64(len(c.Jobs) - c.Running - c.Suspended))
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
}
