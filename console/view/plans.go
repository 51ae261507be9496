package view

import (
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/internal/newest"
)

// plans are the newest plans, each the newest of its kind.
type plans struct {
	newest newest.Plan
	acting *trimtab.Plan // the newest that changes something
	fair   *trimtab.Plan // the newest that was audited
	// applied is the newest answer to an apply command, all steps in one.
	applied *trimtab.Plan
	rounds  int
	// round and roundBefore name the newest plan and the one before it.
	// roundAt is when the newest round was.
	roundAt            time.Time
	round, roundBefore string
	// alarms are the alerts that fire by the newest plan, by workload.
	alarms map[string]trimtab.Alarm
}

// kept says why the newest plans did not change a workload.
type kept struct {
	// heldWhy is why the plan heldIn held it; heldSince is the time of the first of an unbroken
	// series of such plans.
	heldCode          codes.HeldCode
	heldWhy, heldIn   string
	heldAt, heldSince time.Time
	// stayWhy is why the plan stayIn, of the time stayAt, did not change it.
	stayWhy, stayIn string
	stayAt          time.Time
}

// refute drops what plans newer than p said.
func (r *plans) refute(p *trimtab.Plan) {
	for _, q := range []**trimtab.Plan{&r.acting, &r.fair, &r.applied} {
		if *q != nil && newest.PositionOf(*q).Compare(newest.PositionOf(p)) > 0 {
			*q = nil
		}
	}
}

// observe stores a plan, and marks the workloads that it holds.
func (r *plans) observe(p *trimtab.Plan, all *workloads) {
	if len(p.Actions) > 0 {
		r.acting = p
	}
	if p.Audit != nil {
		r.fair = p
	}
	if s := all.all[p.Cause.Workload]; s != nil {
		s.alarm(p)
	}
	if p.Cause.AnswersApply() {
		r.answer(p)
	} else {
		r.hold(p, all)
	}
}

// hold records the workloads that a round holds. It ignores the answer to an apply command, which
// names workloads that changed since the command.
func (r *plans) hold(p *trimtab.Plan, all *workloads) {
	if id := p.ID(); id != r.round {
		r.rounds++
		r.roundBefore, r.round = r.round, id
	}
	r.alarms = p.Alarms
	for name, why := range p.Held {
		if s := all.state(name); s != nil {
			s.kept.by(r.roundBefore, r.round, why, p.Time)
		}
	}
	for name, why := range p.Unmoved {
		if s := all.state(name); s != nil {
			s.kept.stayWhy, s.kept.stayIn, s.kept.stayAt = brief(why.Text), r.round, p.Time
		}
	}
	r.roundAt = p.Time
}

// answer records a step of a plan that answers an apply command.
func (r *plans) answer(p *trimtab.Plan) {
	all := *p
	if a := r.applied; a != nil && p.Step > 1 && a.Epoch == p.Epoch && a.Sequence == p.Sequence {
		if p.Step != a.Step+1 || len(a.Actions) > maxDecisions {
			return // a repeated plan, or one with too many workloads
		}
		all.Actions = slices.Concat(a.Actions, p.Actions)
	}
	r.applied = &all
}

// by records that a plan holds the workload.
func (s *kept) by(before, plan string, why trimtab.Held, at time.Time) {
	if s.heldIn != plan && s.heldIn != before || s.heldSince.IsZero() {
		s.heldSince = at
	}
	s.heldIn, s.heldCode, s.heldWhy, s.heldAt = plan, codes.HeldCode(brief(string(why.Code))), brief(why.Text), at
}

// heldNow returns why the newest plan holds the workload; ok is false if it does not.
func (r *plans) heldNow(s *state) (why trimtab.Held, ok bool) {
	if s.kept.heldIn != r.round || s.kept.heldSince.IsZero() {
		return why, false
	}
	return trimtab.Held{Code: s.kept.heldCode, Text: s.kept.heldWhy}, true
}

// Applied returns the plan that answered the command to apply the named one,
// or nil while there is none.
func (v *Model) Applied(plan string) *trimtab.Plan {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.plans.applied == nil || v.plans.applied.Cause.Ref != plan {
		return nil
	}
	return v.plans.applied
}

// Audited returns the newest audit; ok is false while there is none.
func (v *Model) Audited() (a Audited, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if p := v.plans.fair; p != nil {
		return Audited{Plan: p.ID(), Time: p.Time, Objective: p.Objective, Audit: p.Audit}, true
	}
	return a, false
}

// Rounds returns how many plans were seen.
func (v *Model) Rounds() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.plans.rounds
}

// LastPlan returns the newest plan that asked for something; while there was
// none, the newest plan, which says why; nil before the first.
func (v *Model) LastPlan() *trimtab.Plan {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.plans.acting == nil {
		return v.plans.newest.Value
	}
	return v.plans.acting
}
