package site

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/jobs"
	"github.com/trimtab/trimtab/planner/colocate"
	"github.com/trimtab/trimtab/planner/reclaim"
)

// plan is what a decision means for the knobs. One step is enough: the actuator of a
// single host makes shrinks first, and releases a grow only against what it read back.
func (h *jobHost) plan(now time.Time, d *colocate.Decision, all []*hostJob, capacity colocate.Amounts) *trimtab.Plan {
	p := &trimtab.Plan{
		Pool: h.pool, Epoch: h.epoch, Step: 1, Last: true, Time: now, Objective: h.name, Lease: trimtab.SecondsOf(h.lease),
		Cause: trimtab.Cause{Kind: trimtab.CauseTick}, Resource: trimtab.CPU, Capacities: map[string]float64{},
	}
	// Whether a job runs is no amount that is shared.
	p.Capacities[running], p.Capacities[alive] = float64(len(all)+1), float64(len(all)+1)
	maps.Copy(p.Capacities, capacity)
	p.Capacity = p.Capacities[trimtab.CPU]
	changed := map[string]colocate.Change{}
	for _, c := range d.Changes {
		changed[c.Job] = c
	}
	for _, j := range all {
		if !j.turned {
			continue
		}
		c, ok := changed[j.id]
		switch {
		case ok:
		case j.mode == trimtab.Act && j.State == colocate.Waiting && !dead(j):
			c = colocate.Change{Job: j.id, Act: colocate.Suspend} // until it is its turn
		default:
			continue
		}
		p.Actions = append(p.Actions, h.actions(d, c, j)...)
	}
	return p
}

// actions are those of one change of one job: none where it holds that already.
func (h *jobHost) actions(d *colocate.Decision, c colocate.Change, j *hostJob) (out []trimtab.Action) {
	why := trimtab.Reason{Summary: fmt.Sprintf("%s: %s", c.Act, d.Why), Binding: trimtab.Binding{Kind: bindingOf(d.Verb), Detail: d.By}}
	for _, resource := range slices.Sorted(maps.Keys(j.knobs)) {
		k := j.knobs[resource]
		to, ok := goal(c, j, resource)
		if set := trimtab.Units(min(max(to, k.Min), k.Max)); ok && k.Problem == "" && !set.Equal(k.Now, 1e-7) {
			out = append(out, trimtab.Action{KnobID: k.KnobID, Expect: k.Now, Set: set, Mode: j.mode, Why: why})
		}
	}
	// What freezes goes before what cuts, and what thaws after what gives.
	slices.SortStableFunc(out, func(a, b trimtab.Action) int { return cmp.Compare(orderOf(c.Act, a.Resource), orderOf(c.Act, b.Resource)) })
	return out
}

// orderOf is the place of a resource among the writes of one act.
func orderOf(act colocate.Act, resource string) int {
	switch {
	case resource != running && resource != alive:
		return 1
	case act == colocate.Start || act == colocate.Resume:
		return 2
	}
	return 0
}

// goal is what an act sets of one resource; false: it leaves it alone.
func goal(c colocate.Change, j *hostJob, resource string) (to float64, ok bool) {
	gives := c.Act == colocate.Start || c.Act == colocate.Resume
	takes := c.Act == colocate.Kill || c.Act == colocate.Suspend
	switch {
	case resource == alive:
		return 0, c.Act == colocate.Kill
	case resource == running && gives:
		return 1, true
	case resource == running: // one that cannot be killed is frozen
		return 0, c.Act == colocate.Suspend || c.Act == colocate.Kill && !j.usable(alive)
	case takes && resource == trimtab.Memory:
		return 0, false // it keeps its memory
	case takes:
		return j.knobs[resource].Min, true
	}
	to, ok = c.To[resource]
	return to, ok
}

// usable tells whether one of its knobs is there and can be turned.
func (j *hostJob) usable(resource string) bool {
	k := j.knobs[resource]
	return k != nil && k.Problem == ""
}

// bindingOf is the constraint that a verb comes of.
func bindingOf(v colocate.Verb) trimtab.BindingKind {
	if v == colocate.AllowBEGrowth {
		return trimtab.BindingCapacity
	}
	return trimtab.BindingGuard
}

// settle notes what the jobs do now, by what became of the decision.
func (h *jobHost) settle(d *colocate.Decision, all []*hostJob, o *trimtab.Outcome) {
	if o == nil || o.Refused != "" {
		return
	}
	done := resultsOf(o)
	changes := map[string]colocate.Change{}
	for _, c := range d.Changes {
		changes[c.Job] = c
	}
	for _, j := range all {
		c, ok := changes[j.id]
		if !ok || j.mode != trimtab.Act || !j.turned {
			continue
		}
		if failedOf(done[j.id]) != "" && (c.Act == colocate.Start || c.Act == colocate.Resume) {
			continue // it is tried again
		}
		h.reclaimed(c.Act, done[j.id])
		switch c.Act {
		case colocate.Start, colocate.Resume:
			h.states[j.id] = colocate.Running
		case colocate.Suspend:
			h.states[j.id] = colocate.Suspended
		case colocate.Kill:
			h.kill(j)
		}
	}
}

// reclaimed counts the cores that an act took back.
func (h *jobHost) reclaimed(act colocate.Act, results []*trimtab.Result) {
	for _, r := range results {
		if r.Resource == trimtab.CPU && r.Status == trimtab.Written && !r.Before.Unlimited && r.Found.Less(r.Before) {
			h.metrics.Counter("trimtab_colocate_reclaimed_cores_total", h.host, string(act)).Add(r.Before.Value - r.Found.Value)
		}
	}
}

// kill notes that a job was killed. Where the host cannot kill, it was suspended.
func (h *jobHost) kill(j *hostJob) {
	if !j.usable(alive) {
		h.states[j.id] = colocate.Suspended
		return
	}
	delete(h.states, j.id)
	cores := 0.0
	if k := j.knobs[trimtab.CPU]; k != nil {
		cores = amountOf(k)
	}
	lost := 0.0
	h.registry.Change(j.id, func(p *jobs.Progress) {
		before := p.Lost
		p.Kill(cores)
		lost = p.Lost - before
	})
	h.metrics.Counter("trimtab_colocate_lost_core_seconds_total").Add(lost)
	h.mu.Lock()
	h.shown.Kills++
	h.shown.Lost += lost
	h.mu.Unlock()
}

// resultsOf sorts the results of an outcome by job.
func resultsOf(o *trimtab.Outcome) map[string][]*trimtab.Result {
	out := map[string][]*trimtab.Result{}
	if o == nil {
		return out
	}
	for i := range o.Results {
		r := &o.Results[i]
		id := jobs.IDOf(r.Workload, r.Instance)
		out[id] = append(out[id], r)
	}
	return out
}

// failedOf is why something was not done, or "".
func failedOf(results []*trimtab.Result) string {
	for _, r := range results {
		if r.Status == trimtab.Refused || r.Status == trimtab.Failed {
			return r.Resource + ": " + r.Reason
		}
	}
	return ""
}

// lossOf is what a job would lose by a step less (1), where that can be predicted.
func lossOf(kind string, p *jobs.Progress, cores, step float64) (float64, bool) {
	if !(cores > 0) {
		return 0, false
	}
	t, part := p.Elapsed.Seconds(), max(0.1, (cores-step)/cores)
	var slowed, whole float64
	var ok, also bool
	switch kind {
	case config.DataParallel:
		done, known := p.Fraction()
		slowed, ok = reclaim.DataParallel(t, done, part)
		whole, also = reclaim.DataParallel(t, done, 1)
		ok = ok && known
	case config.Training:
		left, rate, known := p.Steps()
		slowed, ok = reclaim.Training(t, left, rate*part)
		whole, also = reclaim.Training(t, left, rate)
		ok = ok && known
	}
	if !ok || !also {
		return 0, false
	}
	return reclaim.Loss(slowed, part*cores, whole, cores)
}
