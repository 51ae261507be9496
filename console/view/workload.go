package view

import (
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/internal/newest"
)

// workloads has all workloads that are reported or configured.
type workloads struct {
	all map[string]*state
	// version counts the changes of the view. Each workload stores the version of its own last
	// change.
	version uint64
	hosts   *newest.Hosts
}

// state has all data of one workload.
type state struct {
	Workload
	declared      bool
	version       uint64 // of the view, at the last change
	estimate      newest.Cell[*trimtab.Estimate]
	contributions newest.Cell[*colocation.Contributions]
	fleet         *newest.Hosts
	decisionLog
	series series
	// alarms are the newest rounds that an alert on it started, oldest first; nil: none.
	alarms []Mark
	// budgetNow is the error budget at its last computation; nil: there was none.
	budgetNow *budgetAt
	kept      kept
	// missing are the inputs that are missing.
	missing map[string]MissingInput
	seen    map[string]time.Time // inputs, when last there
	since   since
}

// hosts returns the hosts that have knobs of the workload, in order of name.
func (s *state) hosts() []*newest.Host { return s.fleet.On(s.Name) }

// since has the times at which the estimate's hold, the missed SLO and the knob's problem began;
// zero: there is none now. shed is when requests began to be refused, and refused when one was last.
type since struct{ hold, miss, knob, shed, refused time.Time }

// state returns the workload's state, making it, or nil when there are too many.
func (w *workloads) state(name string) *state {
	s := w.all[name]
	if s == nil && len(w.all) < maxWorkloads {
		s = &state{Workload: Workload{Name: name, Mode: trimtab.Off}, fleet: w.hosts}
		w.all[name] = s
	}
	if s != nil {
		s.version = w.version
	}
	return s
}

// evictFor drops a workload that was only discovered, if a configured one needs
// the space.
func (w *workloads) evictFor(name string) {
	if w.all[name] != nil || len(w.all) < maxWorkloads {
		return
	}
	for other, s := range w.all {
		if !s.declared {
			delete(w.all, other)
			return
		}
	}
}

// observe takes an estimate; n is how many workloads there are.
func (s *state) observe(e *trimtab.Estimate, round time.Duration, n int) {
	e = s.shown(e)
	if !s.estimate.Update(e, e.Time, time.Now()) {
		return
	}
	s.since.hold = newest.Begun(s.since.hold, e.Hold != nil, e.Time)
	s.since.miss = newest.Begun(s.since.miss, s.Target > 0 && e.Performance != nil && *e.Performance < s.Target, e.Time)
	if e.Shed() > 0 {
		if e.Time.Sub(s.since.refused) > Patience(round) {
			s.since.shed = e.Time
		}
		s.since.refused = e.Time
	}
	s.observeMissing(e)
	p := s.report(e)
	s.series.add(p, n)
	s.series.observe(p, n)
	if e.Performance != nil {
		s.recordEffects(e.Time, *e.Performance, round)
	}
}

// notLearnt is the input that says that a report arrived and was not learnt from.
const notLearnt = "report"

// observeMissing records which inputs are missing, and since when.
func (s *state) observeMissing(e *trimtab.Estimate) {
	before := s.missing
	s.missing = nil
	for i := range e.Inputs {
		in := &e.Inputs[i]
		if in.Name == notLearnt {
			continue // the input exists
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
		if s.missing == nil {
			s.missing = map[string]MissingInput{}
		}
		s.missing[in.Name] = m
	}
}
