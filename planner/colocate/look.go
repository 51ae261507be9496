package colocate

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/planner/issue"
	"github.com/trimtab/trimtab/planner/ledger"
)

// maxJobs is the largest number of known jobs.
const maxJobs = 2000

// tenant is one job with its knobs.
type tenant struct {
	id, workload string
	knobs        map[string]*ledger.Knob
	// contested is why trimtab does not control the job: another program does, or a person released
	// it.
	contested string
	job       Job
}

// turnedElsewhere is the actuator's message for a knob that another program changed.
const turnedElsewhere = "changed by somebody else"

// letGo is the start of the actuator's message for a knob that a person released.
const letGo = "released: "

// look builds the observation of this tick.
func (s *Step) look(now time.Time) {
	var since time.Duration
	if !s.ticked.IsZero() {
		since = min(now.Sub(s.ticked), 3*s.config.Period)
	}
	s.gather()
	o := Observation{Time: now, Capacity: s.capacity(now), Services: s.standings(now)}
	if h := s.here; h != nil && now.Sub(h.Time) <= s.config.MaxAge {
		o.Power, o.Link = h.Power, h.Link
	}
	for _, c := range s.courses {
		c.seen = false
	}
	for _, t := range s.jobs {
		c := s.courses[t.id]
		if c == nil {
			c = &measuredWork{}
			s.courses[t.id] = c
		}
		c.seen = true
		if t.job.State == Running {
			c.run(since, t.cores())
		}
		if c.last != nil && c.last.Finished {
			continue
		}
		if t.contested != "" || t.job.State == Ending {
			o.Capacity.without(&t.job)
			continue
		}
		if t.job.State == Waiting && t.unlimitable() {
			continue // the job is not started
		}
		c.predict(&t.job, 1, s.config.Silent)
		o.Jobs = append(o.Jobs, t.job)
	}
	for id, c := range s.courses {
		if !c.seen {
			delete(s.courses, id)
		}
	}
	s.observed = o
}

// without subtracts the amounts of a job that is not controlled from the capacity for jobs.
func (a Amounts) without(j *Job) {
	for name, v := range j.Has {
		if left, ok := a[name]; ok && name != frequency && (j.State != Suspended || name == ram) {
			a[name] = math.Max(0, left-v)
		}
	}
}

// cores returns how many cores a job has.
func (t *tenant) cores() float64 {
	if v, ok := t.job.Has[cores]; ok {
		return v
	}
	return t.job.Has[cpu]
}

// gather lists the jobs that the host has knobs of.
func (s *Step) gather() {
	byID := map[string]*tenant{}
	s.jobs = s.jobs[:0]
	for _, k := range s.ledger.Knobs() {
		if k.Gone() || k.Host != s.config.Host {
			continue
		}
		id := JobID(k.Workload, k.Instance)
		t := byID[id]
		if t == nil {
			if len(byID) >= maxJobs {
				continue
			}
			t = &tenant{id: id, workload: k.Workload, knobs: map[string]*ledger.Knob{}}
			byID[id] = t
			s.jobs = append(s.jobs, t)
		}
		t.knobs[k.Resource] = k
		if strings.Contains(k.Held.Problem, turnedElsewhere) || strings.HasPrefix(k.Held.Problem, letGo) {
			t.contested = k.Name() + ": " + k.Held.Problem
		}
	}
	s.jobs = slices.DeleteFunc(s.jobs, func(t *tenant) bool {
		k := t.known(alive)
		return k != nil && k.Now() == 0 && k.Held.Effective == nil
	})
	slices.SortFunc(s.jobs, func(a, b *tenant) int { return cmp.Compare(a.id, b.id) })
	for _, t := range s.jobs {
		if s.released[t.workload] {
			t.contested = "released: a resume takes it back"
		}
		t.read()
		if s.config.Mode == trimtab.Act && t.contested == "" && t.job.State != Ending && (t.unlimited() || t.unlimitable()) {
			t.job.State, t.job.Has = Waiting, nil
		}
	}
}

// unlimited reports whether no knob limits a job yet: it has got no resources, and waits.
func (t *tenant) unlimited() bool {
	k := t.usable(cpu)
	return k != nil && k.Held.Now.Unlimited && k.Held.ReadOnly == ""
}

// known returns the knob of a resource; nil: there is none, or it was never read.
func (t *tenant) known(resource string) *ledger.Knob {
	k := t.knobs[resource]
	if k == nil || k.Held.Problem != "" && k.Held.Since.IsZero() {
		return nil
	}
	return k
}

// unlimitable reports whether the CPU time of a job should be limited and cannot be: the job could
// use the whole host.
func (t *tenant) unlimitable() bool { return t.knobs[cpu] != nil && t.known(cpu) == nil }

// usable returns the knob of a resource; nil if there is none that can be set.
func (t *tenant) usable(resource string) *ledger.Knob {
	k := t.knobs[resource]
	if k == nil || k.Held.Problem != "" {
		return nil
	}
	return k
}

// read builds the job from its knobs.
func (t *tenant) read() {
	t.job = Job{State: Running, Has: Amounts{}, Least: Amounts{}, Most: Amounts{}}
	t.job.ID = t.id
	if k := t.known(running); k != nil && k.Now() == 0 {
		t.job.State = Suspended
	}
	if k := t.known(alive); k != nil && k.Now() == 0 {
		t.job.State = Ending
	}
	for name, k := range t.knobs {
		if name == running || name == alive || name == weight || k.Held.Problem != "" && t.contested == "" {
			continue
		}
		t.job.Has[name], t.job.Most[name] = k.Now(), k.Most()
		least := math.Max(k.Held.Min, k.Held.Floor)
		if name != ram || k.Held.Floor > 0 {
			t.job.Least[name] = least
		}
		if name == ram && k.Held.Floor > 0 && t.job.State == Suspended && k.Held.Now.Unlimited {
			t.job.Has[name] = least // more than it needs, since it does not run
		}
	}
}

// capacity returns the capacity for all jobs, for each resource that has a knob and a known amount.
func (s *Step) capacity(now time.Time) Amounts {
	out := Amounts{}
	for i := range s.resources {
		r := &s.resources[i]
		v := s.bound(now, r)
		s.issue.Resources[i].Capacity = v
		switch {
		case r.Name == running || r.Name == alive || r.Name == weight || !s.has(r.Name):
			continue
		case r.Name == frequency:
			v = math.Min(v, s.fastest())
		}
		if v < unshared {
			out[r.Name] = v
		}
	}
	return out
}

// bound returns the least of the declared, the reported and the measured capacity of a resource.
func (s *Step) bound(now time.Time, r *issue.Resource) float64 {
	v := r.Capacity
	if own(r.Name) {
		return v
	}
	if has, ok := s.holding.Capacity[r.Name]; ok {
		v = math.Min(v, has)
	}
	if h := s.here; h != nil && now.Sub(h.Time) <= s.config.MaxAge {
		if has, ok := h.Capacity[r.Name]; ok && has >= 0 {
			v = math.Min(v, has)
		}
	}
	return v
}

func (s *Step) has(resource string) bool {
	return slices.ContainsFunc(s.jobs, func(t *tenant) bool { return t.usable(resource) != nil })
}

// fastest returns the highest clock that any job may have.
func (s *Step) fastest() (most float64) {
	for _, t := range s.jobs {
		if k := t.usable(frequency); k != nil {
			most = math.Max(most, k.Held.Max)
		}
	}
	return most
}

// Missing returns the resources that cannot be controlled for any job on this host, in order.
func (s *Step) Missing() (names []string) {
	for _, name := range []string{alive, cores, cpu, frequency, llc, ram, membw, network, running} {
		if !s.has(name) {
			names = append(names, name)
		}
	}
	return names
}

// standings returns the state of the services, by name.
func (s *Step) standings(now time.Time) (all []Service) {
	names := slices.Concat(s.config.Services, slices.Collect(maps.Keys(s.services)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		svc := Service{Workload: name, Share: 1}
		if c := s.services[name]; c != nil {
			svc = serviceOf(c, s.config.Host)
			svc.Age, svc.Window = max(0, now.Sub(c.Time)), c.Window.Duration()
		}
		if h := s.here; h != nil && now.Sub(h.Time) <= s.config.MaxAge {
			f := h.Frequencies[name]
			svc.Frequency, svc.LeastFrequency = f.Now, f.Least
			svc.Idle = h.Idle[name]
		}
		all = append(all, svc)
	}
	return all
}

// servpods returns the components of a workload that run on a host, and those whose host is
// unknown. Peers are left out, since jobs here cannot affect them.
func servpods(c *colocation.Contributions, host string) (here []*colocation.Servpod) {
	for i := range c.Servpods {
		if p := &c.Servpods[i]; !p.Peer && (p.Host == host || p.Host == "") {
			here = append(here, p)
		}
	}
	return here
}

// serviceOf builds a service with its Servpod on a host: the sum of the contributions of the
// components there, and the strictest of their limits.
func serviceOf(c *colocation.Contributions, host string) Service {
	s := Service{Workload: c.Workload, Share: 1}
	if slack, ok := c.Slack(); ok {
		s.Slack = &slack
	}
	if c.MaxLoad > 0 {
		load := c.Load / c.MaxLoad
		s.Load = &load
	}
	all, part, n := 0.0, 0.0, 0
	for i := range c.Servpods {
		if p := &c.Servpods[i]; !p.Peer {
			all += math.Max(0, p.Contribution)
			n++
		}
	}
	here := servpods(c, host)
	for _, p := range here {
		part += math.Max(0, p.Contribution)
		if p.LoadLimit != nil && (s.LoadLimit == nil || *p.LoadLimit < *s.LoadLimit) {
			s.LoadLimit = p.LoadLimit
		}
		if p.SlackLimit != nil && (s.SlackLimit == nil || *p.SlackLimit > *s.SlackLimit) {
			s.SlackLimit = p.SlackLimit
		}
	}
	switch {
	case len(here) == 0:
	case all > 0 && finite(all):
		s.Share = math.Min(1, part/all)
	default:
		s.Share = float64(len(here)) / float64(n)
	}
	return s
}

// held returns, for each job that is not controlled, the reason.
func (s *Step) held() map[string]trimtab.Held {
	var out map[string]trimtab.Held
	for _, t := range s.jobs {
		if t.contested != "" {
			if out == nil {
				out = map[string]trimtab.Held{}
			}
			out[t.workload] = trimtab.Held{Code: codes.HeldKnob, Text: fmt.Sprintf("%.200s", t.contested)}
		}
	}
	return out
}
