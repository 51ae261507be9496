package otlp

import (
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

const (
	// maxOpen bounds the decisions that wait for answers.
	maxOpen = 64
	// maxWorkloads bounds the workloads that are followed.
	maxWorkloads = 10000
	// keptEstimates is how many estimates of a workload are kept: a plan that is read late may be
	// based on an older one.
	keptEstimates = 4
	// maxSteps and maxAnswers bound one decision.
	maxSteps, maxAnswers = 64, 4096
)

// key identifies a decision.
type key struct {
	pool            string
	epoch, sequence uint64
}

// decision is a plan with all its steps and answers.
type decision struct {
	key
	since     time.Time // when its first value came, by our clock
	weight    int64     // of steps and outcomes
	steps     []*trimtab.Plan
	outcomes  []*trimtab.Outcome
	estimates map[string]*trimtab.Estimate // by target
}

// assembler joins plans, outcomes and estimates to decisions. They arrive in any order: an
// outcome may come before its plan.
type assembler struct {
	open      []*decision // in order of since
	opened    int64       // the weight of open
	estimates map[string][]*trimtab.Estimate
	kept      int64 // the weight of estimates
}

func newAssembler() *assembler { return &assembler{estimates: map[string][]*trimtab.Estimate{}} }

// observe reads one value at time now and returns the decision that it completes, or nil.
func (a *assembler) observe(now time.Time, value trimtab.Value) *decision {
	switch v := value.(type) {
	case *trimtab.Estimate:
		a.estimate(v)
	case *trimtab.Plan:
		d := a.at(now, key{v.Pool, v.Epoch, v.Sequence})
		if len(d.steps) < maxSteps && !slices.ContainsFunc(d.steps, func(p *trimtab.Plan) bool { return p.Step == v.Step }) {
			d.steps = append(d.steps, v)
			slices.SortFunc(d.steps, func(x, y *trimtab.Plan) int { return x.Step - y.Step })
			a.grow(d, v)
		}
		a.attach(d)
		return a.finish(d)
	case *trimtab.Outcome:
		if len(v.Results) == 0 && v.Refused == "" {
			return nil // a renewed lease
		}
		d := a.at(now, key{v.Pool, v.Epoch, v.Sequence})
		if len(d.outcomes) < maxAnswers && !slices.ContainsFunc(d.outcomes, func(o *trimtab.Outcome) bool { return o.Step == v.Step && o.Host == v.Host }) {
			d.outcomes = append(d.outcomes, v)
			a.grow(d, v)
		}
		return a.finish(d)
	}
	return nil
}

// estimate keeps the newest estimates of each workload.
func (a *assembler) estimate(e *trimtab.Estimate) {
	list, known := a.estimates[e.Workload]
	if !known && len(a.estimates) >= maxWorkloads {
		return
	}
	if len(list) == keptEstimates {
		a.kept -= weigh(list[0])
		list = slices.Delete(list, 0, 1)
	}
	kept := *e
	kept.Curve, kept.Curves = nil, nil // traces do not contain them
	if a.kept += weigh(&kept); a.kept > maxKeptBytes {
		// All senders publish again within a round, so it can start empty.
		a.estimates, a.kept, list = map[string][]*trimtab.Estimate{}, weigh(&kept), nil
	}
	a.estimates[e.Workload] = append(list, &kept)
}

// grow counts the bytes that d got, and drops the oldest other decisions where all are too large.
func (a *assembler) grow(d *decision, v trimtab.Value) {
	n := weigh(v)
	d.weight += n
	a.opened += n
	for a.opened > maxOpenBytes && len(a.open) > 1 {
		oldest := a.open[0]
		if oldest == d {
			oldest = a.open[1]
		}
		a.remove(oldest)
	}
}

// remove removes an open decision.
func (a *assembler) remove(d *decision) {
	a.opened -= d.weight
	a.open = slices.DeleteFunc(a.open, func(x *decision) bool { return x == d })
}

// attach gives d the newest estimates that its plan can have been made on.
func (a *assembler) attach(d *decision) {
	for _, p := range d.steps {
		for i := range p.Actions {
			name := p.Actions[i].Workload
			for _, e := range a.estimates[name] {
				if old := d.estimates[name]; !e.Time.After(d.steps[0].Time) && (old == nil || e.Time.After(old.Time)) {
					d.estimates[name] = e
				}
			}
		}
	}
}

// at returns the open decision k, opening it when needed.
func (a *assembler) at(now time.Time, k key) *decision {
	for _, d := range a.open {
		if d.key == k {
			return d
		}
	}
	if len(a.open) >= 4*maxOpen { // more at once than expire has seen
		a.remove(a.open[0])
	}
	d := &decision{key: k, since: now, estimates: map[string]*trimtab.Estimate{}}
	a.open = append(a.open, d)
	return d
}

// finish closes d if nothing more can come.
func (a *assembler) finish(d *decision) *decision {
	if !d.complete() {
		return nil
	}
	a.remove(d)
	return a.closed(d)
}

// closed returns d, or nil if no change by it is known.
func (a *assembler) closed(d *decision) *decision {
	a.attach(d)
	if !slices.ContainsFunc(d.steps, func(p *trimtab.Plan) bool { return len(p.Actions) > 0 }) {
		return nil
	}
	return d
}

// expire returns the decisions that waited too long, or are too many.
func (a *assembler) expire(now time.Time) []*decision {
	var out []*decision
	for len(a.open) > 0 && (now.Sub(a.open[0].since) >= Wait || len(a.open) > maxOpen) {
		if d := a.closed(a.open[0]); d != nil {
			out = append(out, d)
		}
		a.remove(a.open[0])
	}
	return out
}

// complete reports whether the last step has arrived and every host with an action has answered
// each of its steps.
func (d *decision) complete() bool {
	if n := len(d.steps); n == 0 || !d.steps[n-1].Last || d.steps[n-1].Step != n {
		return false
	}
	for _, p := range d.steps {
		for i := range p.Actions {
			host := p.Actions[i].Host
			if !slices.ContainsFunc(d.outcomes, func(o *trimtab.Outcome) bool { return o.Step == p.Step && o.Host == host }) {
				return false
			}
		}
	}
	return true
}

// sampled returns when the newest input of an action was true: at the latest
// when the estimate was made.
func (d *decision) sampled(p *trimtab.Plan, a *trimtab.Action) time.Time {
	e := d.estimates[a.Workload]
	inputs, at := a.Why.Inputs, p.Time
	if e != nil {
		inputs, at = e.Inputs, e.Time
	}
	var newest time.Time
	for _, in := range inputs {
		if t := at.Add(-in.Age.Duration()); in.Missing == "" && t.After(newest) {
			newest = t
		}
	}
	if newest.IsZero() || newest.After(at) {
		return at
	}
	return newest
}

// began returns when the newest sample of the first workload was true, and
// ended when the last host had read back.
func (d *decision) began() time.Time {
	first := d.steps[0].Time
	for _, p := range d.steps {
		for i := range p.Actions {
			if t := d.sampled(p, &p.Actions[i]); t.Before(first) {
				first = t
			}
		}
	}
	return first
}

func (d *decision) ended() time.Time {
	last := d.steps[len(d.steps)-1].Time
	for _, o := range d.outcomes {
		if o.Time.After(last) {
			last = o.Time
		}
	}
	return last
}
