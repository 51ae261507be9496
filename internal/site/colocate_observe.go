package site

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/jobs"
	"github.com/trimtab/trimtab/planner/colocate"
	"github.com/trimtab/trimtab/planner/reclaim"
)

// serviceConfig is a latency-critical service as the file says it.
type serviceConfig struct {
	name string
	slo  time.Duration
	// here tells that the file gives it a knob on this host.
	here bool
}

// servicesOf lists the services that a slack can be told of. Of one application it is
// the entry alone: its SLO is that of all.
func servicesOf(cfg *config.Config, host string) (all []serviceConfig) {
	pooled := cfg.Pooled()
	entry := cfg.Application()
	for i := range pooled.Workloads {
		w := &pooled.Workloads[i]
		if w.Class == trimtab.BestEffort || w.SLO.Latency == 0 {
			continue
		}
		here := w.Knob.Declared() && onHost(w, host)
		if entry == nil {
			all = append(all, serviceConfig{w.Name, w.SLO.Latency, here})
			continue
		}
		if len(all) == 0 {
			all = append(all, serviceConfig{name: entry.Name, slo: entry.SLO.Latency})
		}
		all[0].here = all[0].here || here
	}
	slices.SortFunc(all, func(a, b serviceConfig) int { return compareText(a.name, b.name) })
	return all
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// heard is the newest of what a service contributes, by this host's clock.
type heard struct {
	*trimtab.Contributions
	at time.Time
}

// hear takes in contributions. What is older than what is there says nothing.
func (h *jobHost) hear(now time.Time, c *trimtab.Contributions) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.ContainsFunc(h.services, func(s serviceConfig) bool { return s.name == c.Workload }) {
		return
	}
	if old, ok := h.contributions[c.Workload]; ok && !c.Time.After(old.Time) {
		return
	}
	h.contributions[c.Workload] = heard{c, now}
}

// observe says how the services stand that have a Servpod here.
func (h *jobHost) observe(now time.Time) (all []colocate.Service, shown []view.ServiceHere) {
	for _, s := range h.services {
		c, known := h.contributions[s.name]
		pods := 0
		if known {
			pods = len(podsHere(c.Contributions, h.host, s.here))
		}
		if !s.here && pods == 0 {
			continue
		}
		one, show := serviceHere(now, h.host, s, c)
		if show.Stale = show.Age == nil || one.Age > h.policy.MaxAge; show.Stale {
			show.Slack, show.Load = nil, nil
		}
		all, shown = append(all, one), append(shown, show)
	}
	return all, shown
}

// never is the age of what was never heard of.
const never = time.Duration(math.MaxInt64)

// serviceHere is how one service stands, by what was heard of it last.
func serviceHere(now time.Time, host string, s serviceConfig, c heard) (colocate.Service, view.ServiceHere) {
	one, show := colocate.Service{Workload: s.name, Age: never, Share: 1}, view.ServiceHere{Workload: s.name, SLO: trimtab.SecondsOf(s.slo), Share: 1}
	if c.Contributions == nil {
		return one, show
	}
	one.Age, one.Window = max(0, now.Sub(c.at)), c.Window.Duration()
	age := trimtab.SecondsOf(one.Age)
	show.Age = &age
	slo := c.SLO
	if slo <= 0 {
		slo = trimtab.SecondsOf(s.slo)
	}
	show.SLO = slo
	if c.Tail != nil {
		slack, tail := max(-1e6, 1-*c.Tail/float64(slo)), trimtab.Seconds(*c.Tail)
		one.Slack, show.Slack, show.Tail = &slack, &slack, &tail
	}
	if c.MaxLoad > 0 {
		load := c.Load / c.MaxLoad
		one.Load, show.Load = &load, &load
	}
	pods := podsHere(c.Contributions, host, s.here)
	one.Share = shareOf(c.Servpods, pods)
	for _, p := range pods {
		// Of several components of a service here, the strictest limit holds for all.
		if p.LoadLimit != nil && (one.LoadLimit == nil || *p.LoadLimit < *one.LoadLimit) {
			one.LoadLimit, show.LoadOrigin = p.LoadLimit, p.Origin
		}
		if p.SlackLimit != nil && (one.SlackLimit == nil || *p.SlackLimit > *one.SlackLimit) {
			one.SlackLimit, show.SlackOrigin = p.SlackLimit, p.SlackOrigin
		}
	}
	show.Share, show.LoadLimit, show.SlackLimit = one.Share, one.LoadLimit, one.SlackLimit
	return one, show
}

// podsHere are the Servpods on this host: those that say so, and those that do not say
// where they are, of a service that has a knob here.
func podsHere(c *trimtab.Contributions, host string, knob bool) (here []trimtab.Servpod) {
	for _, p := range c.Servpods {
		if p.Host == host || p.Host == "" && knob {
			here = append(here, p)
		}
	}
	return here
}

// shareOf is what the Servpods here contribute, as a share of all. While nobody knows
// what each contributes, all count the same, and one that is nowhere counts as all.
func shareOf(all, here []trimtab.Servpod) float64 {
	sum := func(pods []trimtab.Servpod) (s float64) {
		for _, p := range pods {
			s += max(0, p.Contribution)
		}
		return s
	}
	switch whole := sum(all); {
	case len(all) == 0:
		return 1
	case whole > 0:
		return min(1, sum(here)/whole)
	}
	return float64(len(here)) / float64(len(all))
}

// hostJob is one job of this host, as it was found at a tick.
type hostJob struct {
	colocate.Job
	id    string
	mode  trimtab.Mode
	knobs map[string]*trimtab.KnobState // by resource
	// progress is what it says of itself; problem why it cannot be used.
	progress jobs.Progress
	predict  string
	problem  string
	// turned tells that each of its knobs that it must have can be used.
	turned bool
}

// jobsIn sorts the knobs of a holding by job.
func jobsIn(holding *trimtab.Holding) map[string]map[string]*trimtab.KnobState {
	out := map[string]map[string]*trimtab.KnobState{}
	for i := range holding.Targets {
		t := &holding.Targets[i]
		if t.Workload == jobs.Workload && t.Instance == "" {
			continue // what stops a finder
		}
		id := jobs.IDOf(t.Workload, t.Instance)
		if out[id] == nil {
			out[id] = map[string]*trimtab.KnobState{}
		}
		out[id][t.Resource] = t
	}
	return out
}

// amountOf is what a knob gives, unlimited as its most.
func amountOf(k *trimtab.KnobState) float64 {
	v := k.InForce()
	if v.Unlimited {
		return k.Max
	}
	return v.Value
}

// found makes the jobs of a holding, in order of ID. One that finished, and one that
// does not live, is none.
func (h *jobHost) found(now time.Time, holding *trimtab.Holding) (all []*hostJob) {
	sorted := jobsIn(holding)
	ids := make([]string, 0, len(sorted))
	for id := range sorted {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		j := h.job(id, sorted[id])
		if !j.progress.Last.Finished {
			all = append(all, j)
		}
	}
	return all
}

// job says how one job stands.
func (h *jobHost) job(id string, knobs map[string]*trimtab.KnobState) *hostJob {
	j := &hostJob{id: id, knobs: knobs, progress: h.registry.Progress(id), turned: true}
	j.ID, j.State = id, colocate.Running
	j.mode, j.predict = h.declared(knobs)
	cpu := knobs[trimtab.CPU]
	if cpu == nil {
		j.turned, j.problem = false, "its CPU quota cannot be turned"
	}
	for _, resource := range h.knobs.resources {
		if k := knobs[resource]; k != nil && k.Problem != "" {
			if j.problem == "" || resource == trimtab.CPU {
				j.problem = resource + ": " + k.Problem
			}
			if resource == trimtab.CPU {
				j.turned = false
			}
		}
	}
	if j.problem == "" {
		j.problem = j.progress.Problem
	}
	j.Has, j.Least, j.Most = colocate.Amounts{}, colocate.Amounts{}, colocate.Amounts{}
	for resource, k := range knobs {
		if resource == running || resource == alive {
			continue
		}
		j.Has[resource], j.Most[resource] = amountOf(k), k.Max
		j.Least[resource] = k.Min
		if resource == trimtab.Memory {
			j.Least[resource] = max(k.Floor, k.Min)
		}
	}
	if j.mode == trimtab.Act {
		j.State = h.stateOf(id, knobs)
	} else if k := knobs[running]; k != nil && k.Problem == "" && k.Now.Value == 0 {
		j.State = colocate.Suspended
	}
	if j.State == colocate.Waiting {
		j.Has = nil
	}
	h.price(j)
	return j
}

// price says what a job would lose.
func (h *jobHost) price(j *hostJob) {
	p := &j.progress
	cores := 0.0
	if k := j.knobs[trimtab.CPU]; k != nil && j.State == colocate.Running {
		cores = amountOf(k)
	}
	j.Attained = p.Attained
	j.Useless = p.SinceCheckpoint.Seconds() * cores
	j.Job.Job = reclaim.Job{ID: j.id, Useless: j.Useless, Attained: j.Attained}
	if loss, ok := lossOf(j.predict, p, cores, cmp.Or(h.step[trimtab.CPU], 1)); ok {
		j.Loss, j.Predictable = loss, true
		j.Job.Job.Loss = loss
	}
}

// stateOf is what a job does by what was done to it: one that was not started waits,
// whatever it does.
func (h *jobHost) stateOf(id string, knobs map[string]*trimtab.KnobState) colocate.State {
	switch state := h.states[id]; {
	case state == "":
		return colocate.Waiting
	case state != colocate.Running:
		return state
	default:
		if k := knobs[running]; k != nil && k.Problem == "" && k.Now.Value == 0 {
			return colocate.Suspended // by somebody else
		}
		return state
	}
}

// declared is the mode of a job, and how what it would lose is predicted.
func (h *jobHost) declared(knobs map[string]*trimtab.KnobState) (mode trimtab.Mode, predict string) {
	for _, k := range knobs {
		if k.Workload != jobs.Workload {
			w := h.jobs[k.Workload]
			return w.Mode, w.Predict.Kind
		}
		for _, s := range h.registry.Registered() {
			if s.Name == k.Instance {
				return h.mode, s.Predict
			}
		}
	}
	return h.mode, ""
}
