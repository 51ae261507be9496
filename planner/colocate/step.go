package colocate

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/planner/issue"
	"github.com/trimtab/trimtab/planner/ledger"
)

// StepConfig configures a [Step] for a host.
type StepConfig struct {
	// Pool is the name of the pool of the host's best-effort jobs.
	Pool, Host string
	// Policy names the co-location policy, such as rhythm; Config has the settings that
	// all policies share.
	Policy string
	Config
	// Mode limits what the step may do; "": Recommend. The host's limits for single jobs limit it
	// further.
	Mode trimtab.Mode
	// Lease is how long the host keeps the values of a plan; 0: 10 periods. Confirm is how long
	// raises wait for the outcomes of reductions; 0: 2 periods.
	Lease, Confirm time.Duration
	// Resources are those whose knobs may be set, each with the declared capacity for all jobs;
	// Capacity 0: as the host reports. Others are not set.
	Resources []issue.Resource
	// Services are the workloads that must have a Servpod here: one that has not reported counts as
	// missing. Others count from their first report.
	Services []string
	// Silent is how long a job may run without a report and still be predicted; 0: 1 min.
	Silent time.Duration
}

// The resources that jobs do not share: each has its own.
const (
	running = "running"
	alive   = "alive"
	weight  = "weight"
)

// own reports whether jobs do not share a resource.
func own(resource string) bool {
	switch resource {
	case running, alive, weight, frequency:
		return true
	}
	return false
}

// unshared is used as the capacity of a resource that is not shared.
const unshared = 1e15

// Step is the co-location controller of one host as a [trimtab.Step]. Contributions, holdings,
// outcomes, commands, [Progress] and [Surroundings] go in; each tick makes a decision, and plans
// come out. It is the only planner of its pool. Its leader terms follow the newest one that the
// host has accepted, unless a [trimtab.Leader] sets one. For a job whose knob another program sets
// it only recommends, and keeps that job's resources out of the capacity.
type Step struct {
	config    StepConfig
	policy    *policy
	ledger    *ledger.Ledger
	issue     *issue.Issuer
	resources []issue.Resource

	now, ticked, planned time.Time
	// holding is the host's last holding; services has the last report of each service; here has
	// the newest surroundings.
	holding  *trimtab.Holding
	services map[string]*colocation.Contributions
	here     *Surroundings
	courses  map[string]*measuredWork
	jobs     []*tenant
	observed Observation
	decided  Decision
	released map[string]bool
	// commands are the last commands, to recognise one that is delivered again.
	commands []trimtab.Command
	counts   Counts
}

// Counts are totals since the step was created.
type Counts struct {
	// Decisions are counted by verb, Changes by act.
	Decisions map[Verb]uint64
	Changes   map[Act]uint64
	// Ignored counts values that were for another host or pool, late, or invalid.
	Ignored uint64
}

// NewStep makes a step. Its errors are [trimtab.ErrInvalid].
func NewStep(c StepConfig) (*Step, error) {
	c.Config.Host = c.Host
	p, err := New(c.Policy, c.Config)
	if err != nil {
		return nil, err
	}
	if c.Mode == "" {
		c.Mode = trimtab.Recommend
	}
	made := p.(*policy)
	c.Config = made.Config
	c.Lease, c.Confirm, c.Silent = cmp.Or(c.Lease, 10*c.Period), cmp.Or(c.Confirm, 2*c.Period), cmp.Or(c.Silent, time.Minute)
	switch {
	case c.Pool == "" || c.Host == "":
		return nil, trimtab.Invalidf("co-location of pool %.40q on host %.40q: want both named", c.Pool, c.Host)
	case c.Lease < 0 || c.Confirm < 0 || c.Silent < 0:
		return nil, trimtab.Invalidf("co-location on %s: lease %v, confirm %v, silent %v: want none below 0", c.Host, c.Lease, c.Confirm, c.Silent)
	case c.Mode != trimtab.Recommend && c.Mode != trimtab.Act:
		return nil, trimtab.Invalidf("co-location on %s: mode %.20q", c.Host, c.Mode)
	case len(c.Resources) == 0 || len(c.Resources) > trimtab.MaxResources:
		return nil, trimtab.Invalidf("co-location on %s: %d resources, want 1 to %d", c.Host, len(c.Resources), trimtab.MaxResources)
	}
	s := &Step{config: c, policy: made, services: map[string]*colocation.Contributions{}, courses: map[string]*measuredWork{}, released: map[string]bool{}}
	s.counts = Counts{Decisions: map[Verb]uint64{}, Changes: map[Act]uint64{}}
	for _, r := range c.Resources {
		if r.Name == "" || r.Capacity < 0 || !finite(r.Capacity) || index(s.names(), r.Name) >= 0 {
			return nil, trimtab.Invalidf("co-location on %s: resource %.40q with capacity %v: want each once, and no capacity below 0", c.Host, r.Name, r.Capacity)
		}
		if r.Capacity == 0 {
			r.Capacity = unshared
		}
		if r.Unit <= 0 {
			if r.Unit = trimtab.ResourceOf(r.Name).Step; whole(r.Name) || own(r.Name) || r.Unit <= 0 {
				r.Unit = math.Max(r.Unit, 1)
			}
		}
		if r.Quantum <= 0 {
			r.Quantum = r.Unit
		}
		s.resources = append(s.resources, r)
	}
	s.ledger = ledger.New(ledger.Config{Pool: c.Pool, Lease: c.Lease, Most: s.most})
	s.issue = issue.New(issue.Config{Pool: c.Pool, Resources: slices.Clone(s.resources), Lease: c.Lease, Confirm: c.Confirm, Ledger: s.ledger,
		Writable:   func(string) bool { return true },
		Unreported: func(string, func(string) bool) float64 { return 0 }})
	return s, nil
}

func (s *Step) names() (names []string) {
	for i := range s.resources {
		names = append(names, s.resources[i].Name)
	}
	return names
}

// most returns the amount of a knob that nothing limits.
func (s *Step) most(_, resource string) (float64, bool) {
	for i := range s.resources {
		if s.resources[i].Name == resource {
			return s.resources[i].Capacity, true
		}
	}
	return 0, false
}

// Step reads one value, or decides; see [trimtab.Step].
func (s *Step) Step(now time.Time, in trimtab.Value) []trimtab.Value {
	if now.Before(s.now) {
		now = s.now
	}
	s.now = now
	switch v := in.(type) {
	case nil:
		return s.tick(now)
	case *trimtab.Leader:
		s.lead(now, v)
	case *trimtab.Holding:
		return s.hold(now, v)
	case *trimtab.Outcome:
		return s.answer(now, v)
	case *colocation.Contributions:
		s.hear(now, v)
	case *trimtab.Command:
		return s.command(now, v)
	case *Progress:
		s.progress(now, v)
	case *Surroundings:
		if s.here == nil || v.Time.After(s.here.Time) {
			s.here = v
		}
	default:
		s.counts.Ignored++
	}
	return nil
}

// lead begins the leader term that a [trimtab.Leader] announces.
func (s *Step) lead(now time.Time, l *trimtab.Leader) {
	if l.Pool != s.config.Pool || l.Epoch <= s.issue.Epoch() || !trimtab.PlausibleEpoch(l.Epoch, now) {
		s.counts.Ignored++
		return
	}
	s.begin(l.Epoch, now)
}

// begin begins a term: the next plan goes to the host at once.
func (s *Step) begin(epoch uint64, now time.Time) {
	s.issue.Begin(epoch, now)
	s.planned = time.Time{}
}

// hold reads the host's holding. It begins a new term if the host has accepted a later one than the
// present.
func (s *Step) hold(now time.Time, h *trimtab.Holding) []trimtab.Value {
	if h.Host != s.config.Host || !h.Of(s.config.Pool) || h.Time.Sub(now) > s.config.Lease {
		s.counts.Ignored++
		return nil
	}
	if next := h.Epoch + 1; (s.issue.Epoch() == 0 || h.Epoch > s.issue.Epoch()) && h.Epoch < next && trimtab.PlausibleEpoch(next, now) {
		s.begin(next, now)
	}
	if !s.ledger.Hold(now, h) {
		s.counts.Ignored++
		return nil
	}
	s.holding = h
	return s.release(now)
}

// answer reads the outcome of a plan.
func (s *Step) answer(now time.Time, o *trimtab.Outcome) []trimtab.Value {
	if o.Pool != s.config.Pool || o.Host != s.config.Host {
		s.counts.Ignored++
		return nil
	}
	if !s.issue.Answer(o) {
		return nil
	}
	return s.release(now)
}

// release sends the raises that waited for reductions, once they may be made.
func (s *Step) release(now time.Time) []trimtab.Value {
	if plan := s.issue.Release(now); plan != nil {
		s.planned = now
		return []trimtab.Value{plan}
	}
	return nil
}

// maxCommands bounds how many commands are remembered.
const maxCommands = 64

// maxServices bounds the services that are known.
const maxServices = 256

// hear stores the contributions of a service, if they are the newest.
func (s *Step) hear(now time.Time, c *colocation.Contributions) {
	old := s.services[c.Workload]
	switch {
	case c.Time.Sub(now) > s.config.MaxAge, old != nil && !c.Time.After(old.Time):
		s.counts.Ignored++
	case old == nil && !s.expected(c.Workload) && (len(servpods(c, s.config.Host)) == 0 || len(s.services) >= maxServices):
		s.counts.Ignored++
	case !s.expected(c.Workload) && len(servpods(c, s.config.Host)) == 0:
		delete(s.services, c.Workload) // the service moved to another host
	default:
		s.services[c.Workload] = c
	}
}

// Expect replaces the list of workloads that have a Servpod here. The reports of others are
// forgotten, except of those that named this host.
func (s *Step) Expect(services []string) {
	s.config.Services = slices.Clone(services)
	maps.DeleteFunc(s.services, func(name string, c *colocation.Contributions) bool {
		return !s.expected(name) && !slices.ContainsFunc(c.Servpods, func(p colocation.Servpod) bool { return p.Host == s.config.Host })
	})
}

func (s *Step) expected(workload string) bool { return slices.Contains(s.config.Services, workload) }

// progress stores a report of a job's progress. The report of a job without a knob here is kept
// until the next tick.
func (s *Step) progress(now time.Time, p *Progress) {
	c := s.courses[p.Job]
	if p.Time.Sub(now) > s.config.MaxAge || c == nil && len(s.courses) >= maxJobs {
		s.counts.Ignored++
		return
	}
	if c == nil {
		c = &measuredWork{}
		s.courses[p.Job] = c
	}
	c.take(p)
}

// same reports whether two commands are equal: a repeated request has another time.
func same(a, b trimtab.Command) bool {
	at := a.Time.Equal(b.Time)
	a.Time, b.Time = time.Time{}, time.Time{}
	return at && a == b
}

// command carries out a person's command.
func (s *Step) command(now time.Time, c *trimtab.Command) []trimtab.Value {
	if c.Pool != s.config.Pool || slices.ContainsFunc(s.commands, func(o trimtab.Command) bool { return same(o, *c) }) {
		s.counts.Ignored++
		return nil
	}
	s.commands = append(s.commands, *c)
	s.commands = s.commands[max(0, len(s.commands)-maxCommands):]
	switch c.Verb {
	case trimtab.Pause, trimtab.Resume:
		if heard, _ := s.issue.Pause(now, c.Time, c.Verb == trimtab.Pause); heard && c.Verb == trimtab.Resume {
			clear(s.released)
		}
	case trimtab.Release:
		if len(s.released) < maxJobs {
			s.released[c.Workload] = true
		}
	case trimtab.Apply:
		if s.issue.Waits() || s.issue.Epoch() == 0 {
			break
		}
		if d := s.issue.Apply(now, c); d.Applies != "" {
			return s.send(now, d)
		}
	}
	return nil
}

// tick decides, once a period.
func (s *Step) tick(now time.Time) []trimtab.Value {
	out := s.release(now)
	if s.issue.Epoch() == 0 || s.holding == nil || !s.ticked.IsZero() && now.Sub(s.ticked) < s.config.Period*9/10 {
		return out
	}
	s.look(now)
	s.ticked = now
	if s.issue.Paused() {
		return append(out, s.renew(now)...)
	}
	s.decided = s.policy.Decide(&s.observed)
	s.counts.Decisions[s.decided.Verb]++
	for _, c := range s.decided.Changes {
		s.counts.Changes[c.Act]++
	}
	d := s.carry(now)
	if now.Sub(s.holding.Time) > s.config.MaxAge {
		d.Grows = nil // the capacity is unknown
	}
	switch {
	case len(d.Shrinks)+len(d.Advice) == 0 && (s.issue.Waits() || len(d.Grows) == 0):
		return append(out, s.renew(now)...)
	case s.issue.Waits(): // reductions do not wait for raises
		s.issue.Drop()
	}
	return append(out, s.send(now, d)...)
}

// renew sends the present plan again, to renew its lease.
func (s *Step) renew(now time.Time) []trimtab.Value {
	if s.issue.Waits() || now.Sub(s.planned) < s.config.Lease/4 {
		return nil
	}
	return s.send(now, issue.Decision{Plan: trimtab.Plan{Held: s.held(), Cause: s.cause()}})
}

// send issues a decision.
func (s *Step) send(now time.Time, d issue.Decision) []trimtab.Value {
	d.Objective, d.Resource = s.policy.Name(), s.resources[0].Name
	d.Capacities = make(map[string]float64, len(s.resources))
	for i := range s.resources {
		d.Capacities[s.resources[i].Name] = s.issue.Resources[i].Capacity
	}
	d.Capacity = d.Capacities[d.Resource]
	s.planned = now
	return []trimtab.Value{s.issue.Issue(now, d)}
}

// cause returns the cause to state in a plan.
func (s *Step) cause() trimtab.Cause {
	if s.issue.Paused() {
		return trimtab.Cause{Kind: codes.CausePaused}
	}
	c := trimtab.Cause{Kind: codes.CauseTick, Text: string(s.decided.Verb)}
	if s.decided.Why != "" {
		c.Text += ": " + s.decided.Why
	}
	return c
}
