package view

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
)

// maxWorkloads bounds what discovery may add to the view.
const maxWorkloads = MaxRows

// Config has the settings that the view starts with, before any message arrives.
type Config struct {
	Pool      string
	Resource  string
	Capacity  float64
	Objective string
	Round     time.Duration
	Workloads []Workload
	// Dir is the directory whose unnamed files hold the decisions that need not stay in
	// memory; "": all stay there. A later [Model.Configure] does not change it.
	Dir string
}

// Workload is the declared part of one workload.
type Workload struct {
	Name  string
	Mode  trimtab.Mode
	Class trimtab.Class
	// SLO is for people, as in "95% under 200ms"; Target is the performance
	// asked for.
	SLO    string
	Target float64
	// Share tells that performance is a share of requests, in [0, 1].
	Share bool
	// Utility maps performance to [0, 1]; nil shows none.
	Utility func(float64) float64
	// Doubt says why what is measured may mean the opposite; "": it does not.
	Doubt string
}

// Model is the read model: the newest value of everything, and the past within
// bounds. It is safe for concurrent use.
type Model struct {
	mu     sync.Mutex
	config Config
	// began is when the view was made.
	began     time.Time
	workloads map[string]*state
	hosts     map[hostKey]*host
	hostBytes int // that their knobs take, about
	jobs      jobBook
	batch     batchBook
	plan      *trimtab.Plan
	planHeard time.Time // when it came, by the clock of this process
	acting    *trimtab.Plan
	fair      *trimtab.Plan // the newest that was audited
	// applied is the newest answer to an apply command, all steps in one.
	applied *trimtab.Plan
	rounds  int
	// round and roundBefore name the newest plan and the one before it.
	// roundAt is when the newest round was.
	roundAt            time.Time
	round, roundBefore string
	// alarms are the alerts that fire by the newest plan, by workload.
	alarms map[string]trimtab.Alarm
	book   book
	// version counts changes; changed is closed at the next one.
	version uint64
	changed chan struct{}
	// awaited tells that somebody has changed, perhaps.
	awaited bool
}

// state is all that is known of one workload.
type state struct {
	Workload
	declared bool
	version  uint64 // of the view, at the last change
	estimate *trimtab.Estimate
	// contributions are the newest; nil: none.
	contributions *trimtab.Contributions
	// hosts are those that have knobs of it, in order of name.
	hosts []*host
	// problems counts its knobs that cannot be used, wherever they are.
	problems int
	// decisions are in the order of their plans; those before them are in
	// chunks on the shelf, shelved of them.
	decisions []*Decision
	chunks    []chunk
	shelved   int
	// newestOn has the newest decision on each resource.
	newestOn map[string]*Decision
	series   series
	// alarms are the newest rounds that an alert on it started, oldest first; nil: none.
	alarms *[]Mark
	// budgetNow is the error budget as it was last added up; nil: not yet.
	budgetNow *budgetAt
	// heldWhy is why the plan heldIn held it, and heldSince when the first of
	// an unbroken row of plans did.
	heldCode          trimtab.HeldCode
	heldWhy, heldIn   string
	heldAt, heldSince time.Time
	// stayWhy is why the plan stayIn, of stayAt, left it where it is.
	stayWhy, stayIn string
	stayAt          time.Time
	// lacks are the inputs that are missing; holdSince, missSince and
	// knobSince are when the estimate's hold, the missing of the SLO and the
	// knob's problem began; zero: not now.
	lacks                           map[string]MissingInput
	seen                            map[string]time.Time // inputs, when last there
	holdSince, missSince, knobSince time.Time
}

// New returns an empty view.
func New(c Config) *Model {
	v := &Model{began: time.Now(), workloads: map[string]*state{}, hosts: map[hostKey]*host{}, changed: make(chan struct{})}
	v.book.shelf.dir = c.Dir
	v.Configure(c)
	return v
}

// Configure replaces the declared part and keeps what was seen.
func (v *Model) Configure(c Config) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.config = c
	v.version++
	for key, h := range v.hosts {
		if c.Pool != "" && key.pool != c.Pool {
			v.dropHost(h)
		}
	}
	for _, s := range v.workloads {
		s.declared = false
		s.Workload = Workload{Name: s.Name, Mode: trimtab.Off}
		s.version = v.version
	}
	for _, w := range c.Workloads {
		v.makeRoom(w.Name)
		known := v.workloads[w.Name] != nil
		if s := v.state(w.Name); s != nil {
			s.Workload, s.declared = w, true
			if !known {
				v.settleIn(s)
			}
		}
	}
	v.tell()
}

// tell wakes all who wait for a change.
func (v *Model) tell() {
	if !v.awaited {
		return
	}
	close(v.changed)
	v.changed, v.awaited = make(chan struct{}), false
}

// state returns the workload's state, making it, or nil when there are too many.
func (v *Model) state(name string) *state {
	s := v.workloads[name]
	if s == nil && len(v.workloads) < maxWorkloads {
		s = &state{Workload: Workload{Name: name, Mode: trimtab.Off}}
		v.workloads[name] = s
	}
	if s != nil {
		s.version = v.version
	}
	return s
}

// Follow subscribes to everything that is shown, the decisions that the bus
// still has among it. stop ends it.
func (v *Model) Follow(ctx context.Context, b bus.Bus) (stop func(), err error) {
	return bus.Follow(ctx, b, true, v.Observe,
		trimtab.KindEstimate, trimtab.KindContributions, trimtab.KindColocation, trimtab.KindHolding, trimtab.KindPlan, trimtab.KindOutcome,
		trimtab.KindMachine, trimtab.KindJobState)
}

// Observe takes one value into the view.
func (v *Model) Observe(value trimtab.Value) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.version++
	switch x := value.(type) {
	case *trimtab.Estimate:
		if s := v.state(x.Workload); s != nil {
			s.observe(x, v.config.Round, len(v.workloads))
		}
	case *trimtab.Contributions:
		if s := v.state(x.Workload); s != nil && (s.contributions == nil || !x.Time.Before(s.contributions.Time) || ahead(s.contributions.Time)) {
			s.contributions = x
		}
	case *trimtab.Colocation:
		if v.config.Pool != "" && x.Pool != trimtab.JobsPool(v.config.Pool) {
			return
		}
		v.jobs.hear(x, time.Now())
	case *trimtab.Machine:
		if v.config.Pool != "" && x.Pool != v.config.Pool {
			return
		}
		v.batch.hearMachine(x, time.Now())
	case *trimtab.JobState:
		if v.config.Pool != "" && x.Pool != v.config.Pool {
			return
		}
		v.batch.hearJob(x)
	case *trimtab.Holding:
		if !x.Of(v.config.Pool) && v.config.Pool != "" {
			return
		}
		v.hear(x)
	case *trimtab.Plan:
		v.observePlan(x)
	case *trimtab.Outcome:
		v.settle(x)
	default:
		return
	}
	v.tell()
}

// observe takes an estimate; n is how many workloads there are.
func (s *state) observe(e *trimtab.Estimate, round time.Duration, n int) {
	if s.estimate != nil && e.Time.Before(s.estimate.Time) && !ahead(s.estimate.Time) {
		return
	}
	e = s.shown(e)
	s.estimate = e
	s.holdSince = begun(s.holdSince, e.Hold != nil, e.Time)
	s.missSince = begun(s.missSince, s.Target > 0 && e.Performance != nil && *e.Performance < s.Target, e.Time)
	s.lack(e)
	p := s.report(e)
	s.series.add(p, n)
	s.series.observe(p, n)
	if e.Performance != nil {
		s.tellEffects(e.Time, *e.Performance, round)
	}
}

// begun returns since when something is: now when it was not before, zero
// when it is not.
func begun(since time.Time, is bool, now time.Time) time.Time {
	switch {
	case !is:
		return time.Time{}
	case since.IsZero():
		return now
	}
	return since
}

// notLearnt is the input that says that a report was there and not learnt from.
const notLearnt = "report"

// lack notes which inputs are missing, since the last time they were there.
func (s *state) lack(e *trimtab.Estimate) {
	before := s.lacks
	s.lacks = nil
	for i := range e.Inputs {
		in := &e.Inputs[i]
		if in.Name == notLearnt {
			continue // it is there
		}
		if in.Missing == "" {
			if s.seen == nil {
				s.seen = map[string]time.Time{}
			}
			if len(s.seen) < s.room() {
				s.seen[in.Name] = earlier(e.Time, in.Age)
			}
			continue
		}
		m := MissingInput{Workload: s.Name, Input: in.Name, Source: in.Source, Reason: in.Missing, Since: e.Time}
		if old, ok := before[in.Name]; ok {
			m.Since = old.Since
		} else if at, ok := s.seen[in.Name]; ok {
			m.Since = at
		}
		if s.lacks == nil {
			s.lacks = map[string]MissingInput{}
		}
		s.lacks[in.Name] = m
	}
}

func (v *Model) observePlan(p *trimtab.Plan) {
	if v.plan != nil && (p.Epoch < v.plan.Epoch || p.Epoch == v.plan.Epoch && p.Sequence < v.plan.Sequence) {
		if !v.outlasts(p) {
			return
		}
		v.refute(p)
	}
	v.plan, v.planHeard = p, time.Now()
	asked := p.Cause.AnswersApply()
	if asked {
		v.answer(p)
	}
	if len(p.Actions) > 0 {
		v.acting = p
	}
	if p.Audit != nil {
		v.fair = p
	}
	v.book.tally.judged(p)
	v.alarm(p)
	if !asked {
		v.hold(p)
	}
	for _, its := range together(p.Actions) {
		s := v.state(its[0].Workload)
		if s == nil {
			continue
		}
		a, moves := mergeActions(its)
		if s.estimate == nil || p.Time.Before(s.estimate.Time) {
			s.series.recall(s.recalled(p, &a, len(moves) > 0), len(v.workloads))
		}
		v.decide(s, p, a, moves)
	}
	v.book.passed(p)
}

// hold notes whom a round holds. The answer to an apply command is none: what
// it names was not as the command expected.
func (v *Model) hold(p *trimtab.Plan) {
	if id := p.ID(); id != v.round {
		v.rounds++
		v.roundBefore, v.round = v.round, id
	}
	v.alarms = p.Alarms
	for name, why := range p.Held {
		if s := v.state(name); s != nil {
			s.holdBy(v.roundBefore, v.round, why, p.Time)
		}
	}
	for name, why := range p.Unmoved {
		if s := v.state(name); s != nil {
			s.stayWhy, s.stayIn, s.stayAt = brief(why.Text), v.round, p.Time
		}
	}
	v.roundAt = p.Time
}

// answer notes a step of a plan that answers an apply command.
func (v *Model) answer(p *trimtab.Plan) {
	all := *p
	if a := v.applied; a != nil && p.Step > 1 && a.Epoch == p.Epoch && a.Sequence == p.Sequence {
		if p.Step != a.Step+1 || len(a.Actions) > maxDecisions {
			return // a repeated one, or more than a plan has
		}
		all.Actions = slices.Concat(a.Actions, p.Actions)
	}
	v.applied = &all
}

// holdBy notes that a plan holds the workload.
func (s *state) holdBy(before, plan string, why trimtab.Held, at time.Time) {
	if s.heldIn != plan && s.heldIn != before || s.heldSince.IsZero() {
		s.heldSince = at
	}
	s.heldIn, s.heldCode, s.heldWhy, s.heldAt = plan, trimtab.HeldCode(brief(string(why.Code))), brief(why.Text), at
}

// heldNow is why the newest plan holds the workload; ok is false when it does
// not.
func (v *Model) heldNow(s *state) (why trimtab.Held, ok bool) {
	if s.heldIn != v.round || s.heldSince.IsZero() {
		return why, false
	}
	return trimtab.Held{Code: s.heldCode, Text: s.heldWhy}, true
}

// Applied returns the plan that answered the command to apply the named one,
// or nil while there is none.
func (v *Model) Applied(plan string) *trimtab.Plan {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.applied == nil || v.applied.Cause.Ref != plan {
		return nil
	}
	return v.applied
}

// Audited returns the newest audit; ok is false while there is none.
func (v *Model) Audited() (a Audited, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if p := v.fair; p != nil {
		return Audited{Plan: p.ID(), Time: p.Time, Objective: p.Objective, Audit: p.Audit}, true
	}
	return a, false
}

// Rounds returns how many plans were seen.
func (v *Model) Rounds() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.rounds
}

// LastPlan returns the newest plan that asked for something; while there was
// none, the newest plan, which says why; nil before the first.
func (v *Model) LastPlan() *trimtab.Plan {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.acting == nil {
		return v.plan
	}
	return v.acting
}

// Pool returns the name of the pool; empty: there is none.
func (v *Model) Pool() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.config.Pool
}
