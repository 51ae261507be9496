package colocate

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/internal/num"
)

// Status is the state of a [Step]. It is a copy.
type Status struct {
	// Observed is the observation of the last decision, Decided the decision.
	Observed Observation
	Decided  Decision
	// Limits are the limits in force, by service.
	Limits map[string]Limits
	// Contested are the jobs that are not controlled, with the reason.
	Contested map[string]string
	// Ending are the jobs that were killed and have not ended.
	Ending []Job
	// Missing are the resources for which no job here has a knob.
	Missing []string
	Paused  bool
	Counts  Counts
}

// Limits has the limits of a service on this host, with their origin.
type Limits struct {
	LoadLimit, SlackLimit   float64
	LoadOrigin, SlackOrigin colocation.ThresholdOrigin
}

// Status returns the state of the step.
func (s *Step) Status() Status {
	out := Status{Observed: s.observed, Decided: s.decided, Limits: map[string]Limits{}, Contested: map[string]string{}, Paused: s.issue.Paused(),
		Counts: Counts{Decisions: maps.Clone(s.counts.Decisions), Changes: maps.Clone(s.counts.Changes), Ignored: s.counts.Ignored}}
	out.Observed.Services, out.Observed.Jobs = slices.Clone(s.observed.Services), slices.Clone(s.observed.Jobs)
	if s.holding != nil {
		out.Missing = s.Missing()
	}
	for _, t := range s.jobs {
		if t.contested != "" {
			out.Contested[t.id] = t.contested
		}
		if t.job.State == Ending {
			out.Ending = append(out.Ending, t.job)
		}
	}
	for i := range s.observed.Services {
		svc := &s.observed.Services[i]
		l := s.policy.inForce(svc)
		for _, p := range s.servpodsOf(svc.Workload) {
			if l.LoadOrigin == colocation.FromHistory && p.LoadLimit != nil && *p.LoadLimit == l.LoadLimit {
				l.LoadOrigin = p.Origin
			}
			if l.SlackOrigin == colocation.FromHistory && p.SlackLimit != nil && *p.SlackLimit == l.SlackLimit {
				l.SlackOrigin = p.SlackOrigin
			}
		}
		out.Limits[svc.Workload] = l
	}
	return out
}

func (s *Step) servpodsOf(workload string) []*colocation.Servpod {
	if c := s.services[workload]; c != nil {
		return servpods(c, s.config.Host)
	}
	return nil
}

// inForce returns the limits of a service without changing its state.
func (p *policy) inForce(s *Service) Limits {
	if p.rules.limits != nil {
		return Limits{p.rules.limits.load, p.rules.limits.slack, colocation.Declared, colocation.Declared}
	}
	l := Limits{known(s.LoadLimit), known(s.SlackLimit), colocation.FromHistory, colocation.FromHistory}
	if l.SlackLimit >= 1 {
		l.SlackLimit, l.SlackOrigin = leastSlack, colocation.FromSearch
	}
	search, st := NewSearch(1), p.Services[s.Workload]
	switch {
	case st != nil && st.Search != nil:
		search = st.Search
	case p.spares:
		found := limits{l.LoadLimit, l.SlackLimit}.orLeast()
		search.LoadLimit, search.SlackLimit = found.load, found.slack
	}
	if !(l.LoadLimit >= 0) {
		l.LoadLimit, l.LoadOrigin = search.LoadLimit, colocation.FromSearch
	}
	if !(l.SlackLimit >= 0) {
		l.SlackLimit, l.SlackOrigin = search.SlackLimit, colocation.FromSearch
	}
	return l
}

// SnapshotName is the name of the only state of a step.
const SnapshotName = "colocate"

// snapshotKind is the format name of that state.
const snapshotKind = "colocate/1"

// snapshot is the state that outlives the process.
type snapshot struct {
	Policy  string                   `json:"policy"`
	Memory  memory                   `json:"memory"`
	Courses map[string]*measuredWork `json:"courses,omitempty"`
}

// Snapshot returns the limits found by search, the hysteresis and the progress of jobs; see
// [trimtab.Snapshotter].
func (s *Step) Snapshot() map[string][]byte {
	b, err := num.Seal(snapshotKind, snapshot{s.policy.name, s.policy.memory, s.courses})
	if err != nil {
		return nil // numbers and times always marshal
	}
	return map[string][]byte{SnapshotName: b}
}

// Restore restores what Snapshot returned. It refuses the state of another policy.
func (s *Step) Restore(name string, state []byte) error {
	if name != SnapshotName {
		return trimtab.Invalidf("restore co-location: no state is named %.40q", name)
	}
	var in snapshot
	if err := num.Unseal(snapshotKind, state, &in); err != nil {
		return fmt.Errorf("restore co-location: %w: %w", trimtab.ErrInvalid, err)
	}
	if in.Policy != s.policy.name {
		return trimtab.Invalidf("restore co-location: of policy %.40q, this is %s", in.Policy, s.policy.name)
	}
	if err := in.validate(); err != nil {
		return fmt.Errorf("restore co-location: %w", err)
	}
	if in.Memory.Services == nil {
		in.Memory.Services = map[string]*standing{}
	}
	if in.Courses == nil {
		in.Courses = map[string]*measuredWork{}
	}
	s.policy.memory, s.courses = in.Memory, in.Courses
	return nil
}

// validate returns an error for a state that no step could have saved.
func (in *snapshot) validate() error {
	m := &in.Memory
	ok := m.Calm >= 0 && m.Wait >= leastWait && m.Wait <= maxWait && len(m.Services) <= maxServices*2 && len(in.Courses) <= maxJobs
	for name, t := range m.Tries {
		ok = ok && t != nil && back(name) > 0 && t.Wait >= leastWait && t.Wait <= maxTry && t.Count >= 0
	}
	for _, s := range m.Services {
		ok = ok && s != nil && s.valid()
	}
	for _, c := range in.Courses {
		ok = ok && c != nil && c.Attained >= 0 && c.Ran >= 0
	}
	if !ok {
		return trimtab.Invalidf("a state that no step keeps")
	}
	return nil
}

// valid reports whether all values of a standing are in range.
func (s *standing) valid() bool {
	for _, v := range []float64{s.Load, s.Spread, s.Ready, s.Noise, s.Missed} {
		if !(v >= 0 && v <= greatestAmount) {
			return false
		}
	}
	ok := s.Slack >= -1 && s.Slack <= 1 && s.Last >= -1 && s.Last <= 1 && s.Care >= leastCare-firstCare && s.Care <= mostCare-firstCare
	ok = ok && s.Strikes >= 0 && s.Seen >= 0 && s.Heard >= 0 && s.Blames >= 0 && s.Blames <= mostBlames && s.Above >= 0
	return ok && (s.Search == nil || s.Search.valid()) && validCeilings(s.Ceilings) && validCeilings(s.Proven)
}

func validCeilings(all map[string]ceiling) bool {
	for name, c := range all {
		if back(name) == 0 || len(c) != bins+1 || slices.ContainsFunc(c, func(v float64) bool { return !(v >= 0 && v <= greatestAmount) }) {
			return false
		}
	}
	return true
}

// valid reports whether all of a search makes sense.
func (s *Search) valid() bool {
	for _, v := range []float64{s.SlackLimit, s.LoadLimit, s.Good, s.Share} {
		if !(v >= 0 && v <= 1) {
			return false
		}
	}
	for _, t := range []Ticks{s.Window, s.Load, s.Total} {
		if t.All < 0 || t.Ran < 0 || t.Missed < 0 || t.Ran > t.All || t.Missed > t.Ran || t.All > math.MaxInt32 {
			return false
		}
	}
	return s.Restarts >= 0
}
