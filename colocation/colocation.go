// Package colocation has the values of best-effort jobs beside latency-critical services: the
// state of the jobs of one host and its agent's decisions on them ([Colocation]), and what each
// part of a service adds to the latency of its slowest requests ([Contributions]), by which a
// host decides how much room its jobs get. Source: Rhythm (see docs/papers.md). Package
// analyzer/contribution computes contributions, and planner/colocate decides; nothing is decided
// here.
package colocation

import (
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/valid"
)

// The kinds of the values. Both are telemetry: no program acts on them.
const (
	KindColocation    trimtab.Kind = "colocation"
	KindContributions trimtab.Kind = "contributions"
)

// The bounds of the lists in one [Colocation].
const (
	MaxHostDecisions = 100
	MaxJobs          = 2000
	MaxServicesHere  = 512
)

// JobsPool returns the name of the pool of best-effort jobs beside a pool.
func JobsPool(pool string) string { return pool + "/best-effort" }

// Colocation is the state of the best-effort jobs on one host, and its agent's last decisions on
// them. It is for people and programs that watch: nothing in it is carried out.
type Colocation struct {
	Host   string       `json:"host"`
	Pool   string       `json:"pool"`
	Policy string       `json:"policy"`
	Mode   trimtab.Mode `json:"mode"`
	Time   time.Time    `json:"time"`
	// Paused: the controller decides and writes nothing until a resume.
	Paused bool `json:"paused,omitempty"`
	// Period is the time between two decisions.
	Period trimtab.Seconds `json:"period_s"`
	// Last is the decision in force; nil: there was none yet.
	Last *HostDecision `json:"last_decision,omitempty"`
	// Services are the latency-critical ones with a Servpod here, by name.
	Services []ServiceHere `json:"services"`
	// Jobs are by ID. Of many the first travel, Omitted counts the others.
	Jobs    []Job `json:"jobs"`
	Omitted int   `json:"jobs_omitted,omitempty"`
	// Running and Suspended count all jobs.
	Running   int `json:"running"`
	Suspended int `json:"suspended"`
	// Capacity is how much the jobs may have together now, Used how much they have, by resource.
	Capacity map[string]float64 `json:"capacity,omitempty"`
	Used     map[string]float64 `json:"used,omitempty"`
	// Power is the power that the processor packages draw and may draw, Link the traffic that
	// services send over the host's links, and their bandwidth: absent if not measured.
	Power *PowerHere `json:"power,omitempty"`
	Link  *LinkHere  `json:"link,omitempty"`
	// Missing are the resources that this host has no knob for, with the reason.
	Missing map[string]string `json:"missing,omitempty"`
	// Counts are totals since the process began: decisions by verb.
	Counts map[string]uint64 `json:"decisions_total,omitempty"`
	Kills  uint64            `json:"kills_total"`
	// Lost is the work that kills destroyed, and Given what jobs were given, in core-seconds;
	// Reclaimed is the cores that were taken back.
	Lost      float64 `json:"lost_core_s"`
	Given     float64 `json:"given_core_s"`
	Reclaimed float64 `json:"reclaimed_cores"`
	// Problem is why nothing is decided or done; "": it is.
	Problem string `json:"problem,omitempty"`
	// Unmet lists the parts of the control of jobs that are not in force.
	Unmet []trimtab.Unmet `json:"unmet,omitempty"`
	// Decisions are the last that differed from the one before, newest first.
	Decisions []HostDecision `json:"decisions"`
}

// PowerHere is power in watts.
type PowerHere struct {
	Draws float64 `json:"draws_w"`
	TDP   float64 `json:"tdp_w"`
}

// LinkHere is bandwidth in bytes per second.
type LinkHere struct {
	Bandwidth float64 `json:"bandwidth"`
	Used      float64 `json:"used_by_services"`
}

// HostDecision is one decision of a host on its best-effort jobs.
type HostDecision struct {
	Time time.Time `json:"time"`
	// Verb is StopBE, SuspendBE, CutBE, DisallowBEGrowth or AllowBEGrowth.
	Verb string `json:"verb"`
	// By is the service that decided; absent: none did.
	By  string `json:"by,omitempty"`
	Why string `json:"why"`
	// Periods counts the periods in a row that decided the same, and changed nothing.
	Periods int `json:"periods"`
	// Changes are the decision's changes to jobs. If there are many, only the first are sent;
	// Omitted counts the others.
	Changes []JobChange `json:"changes,omitempty"`
	Omitted int         `json:"changes_omitted,omitempty"`
}

// JobChange is one decision's change to one job.
type JobChange struct {
	Job string `json:"job"`
	// Act is kill, suspend, cut, resume, grow or start.
	Act string `json:"act"`
	// To is what it has afterwards, by resource.
	To map[string]float64 `json:"to,omitempty"`
	// Result is the result of the change: written, recommended, equal, refused or failed, with
	// the reason; "": unknown.
	Result string `json:"result,omitempty"`
}

// ServiceHere is a latency-critical service with a Servpod on the host. A nil number
// is not known.
type ServiceHere struct {
	Workload string `json:"workload"`
	// Age is how long ago the numbers were true; absent: no report has arrived.
	Age *trimtab.Seconds `json:"age_s,omitempty"`
	// Stale: the numbers are too old to decide on.
	Stale bool `json:"stale,omitempty"`
	// Slack is (SLO - tail latency) / SLO, Load a share of the most that it carries.
	Slack *float64         `json:"slack,omitempty"`
	Tail  *trimtab.Seconds `json:"tail_s,omitempty"`
	SLO   trimtab.Seconds  `json:"slo_s,omitempty"`
	Load  *float64         `json:"load,omitempty"`
	// Share is the part of its Servpod here in its contributions.
	Share float64 `json:"contribution_share"`
	// Clock is the clock of its cores, LeastClock the least that they should run at, in MHz; 0:
	// unknown.
	Clock      float64 `json:"clock_mhz,omitempty"`
	LeastClock float64 `json:"least_clock_mhz,omitempty"`
	// LoadLimit and SlackLimit are in force here, with where they are from: history,
	// search, declared or default.
	LoadLimit   *float64 `json:"load_limit,omitempty"`
	LoadOrigin  string   `json:"load_limit_from,omitempty"`
	SlackLimit  *float64 `json:"slack_limit,omitempty"`
	SlackOrigin string   `json:"slack_limit_from,omitempty"`
}

// Job is one best-effort job on this host.
type Job struct {
	ID string `json:"id"`
	// Registered: the job registered itself.
	Registered bool         `json:"registered,omitempty"`
	Mode       trimtab.Mode `json:"mode"`
	// State is running or suspended; a job that waits for its turn is suspended. A job that was
	// killed and whose processes still exist "does not end".
	State string `json:"state"`
	// Has is what it has now, by resource.
	Has map[string]float64 `json:"has,omitempty"`
	// Location is its control group.
	Location string `json:"place,omitempty"`
	// Done is the part that is done; nil: not known.
	Done *float64 `json:"done,omitempty"`
	// Predict is the kind of prediction; Predictable: the loss is known.
	Predict     string `json:"predict,omitempty"`
	Predictable bool   `json:"predictable"`
	// All in core-seconds: Loss is what a preemption would cost the job, if predicted; Useless the
	// work that it would have to repeat; Attained the work that it has done so far; Lost the work
	// that kills destroyed.
	Loss     *float64 `json:"loss_core_s,omitempty"`
	Useless  float64  `json:"useless_core_s"`
	Attained float64  `json:"attained_core_s"`
	Lost     float64  `json:"lost_core_s"`
	// ReportAge is how long ago the job reported its progress; absent: never.
	ReportAge *trimtab.Seconds `json:"heard_s,omitempty"`
	// Problem is why a knob of it cannot be used, or what is wrong with its reports.
	Problem string `json:"problem,omitempty"`
	// Unmet says which decisions cannot be carried out on the job, and what is done instead; "":
	// all decisions are in force.
	Unmet string `json:"unmet,omitempty"`
}

// Named reports whether a job is called so: by its ID, or by the name that it
// registered with.
func (j *Job) Named(name string) bool { return j.ID == name || j.Registered && j.ID == "jobs/"+name }

// Kind returns KindColocation.
func (c *Colocation) Kind() trimtab.Kind { return KindColocation }

// Key returns pool/host, as for a [trimtab.Holding].
func (c *Colocation) Key() string { return c.Pool + "/" + c.Host }

// The bounds of what is sent: if there is more, the message says how much was left out.
const (
	briefDecisions = 20
	briefChanges   = 20
	briefJobs      = 300
)

// Brief returns what is sent: a few decisions, jobs and words of each.
func (c *Colocation) Brief() *Colocation {
	out := *c
	out.Problem, out.Missing = valid.Brief(c.Problem), nil
	for name, why := range c.Missing {
		if out.Missing == nil {
			out.Missing = map[string]string{}
		}
		out.Missing[name] = valid.Brief(why)
	}
	out.Services = c.Services[:min(len(c.Services), MaxServicesHere)]
	out.Unmet = slices.Clone(c.Unmet[:min(len(c.Unmet), trimtab.MaxUnmet)])
	for i := range out.Unmet {
		u := &out.Unmet[i]
		u.What, u.Why, u.Do = valid.Brief(u.What), valid.Brief(u.Why), valid.Brief(u.Do)
	}
	out.Jobs = slices.Clone(c.Jobs[:min(len(c.Jobs), briefJobs)])
	out.Omitted = c.Omitted + len(c.Jobs) - len(out.Jobs)
	for i := range out.Jobs {
		j := &out.Jobs[i]
		j.Location, j.Problem, j.Unmet = valid.Brief(j.Location), valid.Brief(j.Problem), valid.Brief(j.Unmet)
	}
	out.Decisions = []HostDecision{}
	for i := range c.Decisions[:min(len(c.Decisions), briefDecisions)] {
		out.Decisions = append(out.Decisions, c.Decisions[i].brief())
	}
	if c.Last != nil {
		last := c.Last.brief()
		out.Last = &last
	}
	return &out
}

func (d *HostDecision) brief() HostDecision {
	out := *d
	out.Why, out.Changes = valid.Brief(d.Why), slices.Clone(d.Changes[:min(len(d.Changes), briefChanges)])
	out.Omitted = d.Omitted + len(d.Changes) - len(out.Changes)
	for i := range out.Changes {
		out.Changes[i].Result = valid.Brief(out.Changes[i].Result)
	}
	return out
}

// Validate checks names, bounds and every number.
func (c *Colocation) Validate() error {
	if err := valid.Named("co-location of pool", c.Pool); err != nil {
		return err
	}
	if err := valid.Named("co-location on host", c.Host); err != nil {
		return err
	}
	what := "co-location on " + c.Host
	switch {
	case c.Time.IsZero():
		return trimtab.Invalidf("%s: no time", what)
	case len(c.Jobs) > MaxJobs || len(c.Decisions) > MaxHostDecisions || len(c.Services) > MaxServicesHere:
		return trimtab.Invalidf("%s: %d jobs, %d decisions, %d services: limits %d, %d, %d", what, len(c.Jobs), len(c.Decisions), len(c.Services), MaxJobs, MaxHostDecisions, MaxServicesHere)
	case len(c.Missing) > trimtab.MaxResources || len(c.Counts) > trimtab.MaxResources || c.Omitted < 0 || c.Running < 0 || c.Suspended < 0:
		return trimtab.Invalidf("%s: %d resources missing, %d verbs, %d jobs omitted, %d running, %d suspended", what, len(c.Missing), len(c.Counts), c.Omitted, c.Running, c.Suspended)
	}
	if err := valid.Short(what, c.Policy, string(c.Mode)); err != nil {
		return err
	}
	if len(c.Unmet) > trimtab.MaxUnmet {
		return trimtab.Invalidf("%s: %d things that are not in force, limit %d", what, len(c.Unmet), trimtab.MaxUnmet)
	}
	for i := range c.Unmet {
		if err := c.Unmet[i].Validate(c.Host); err != nil {
			return err
		}
	}
	if err := valid.Texts(what, c.Problem); err != nil {
		return err
	}
	for name, why := range c.Missing {
		if err := valid.Texts(what, name, why); err != nil {
			return err
		}
	}
	for verb := range c.Counts {
		if err := valid.Short(what, verb); err != nil {
			return err
		}
	}
	if err := valid.NoneNegative(what, float64(c.Period), c.Lost, c.Given, c.Reclaimed); err != nil {
		return err
	}
	if p := c.Power; p != nil {
		if err := valid.NoneNegative(what+": power", p.Draws, p.TDP); err != nil {
			return err
		}
	}
	if l := c.Link; l != nil {
		if err := valid.NoneNegative(what+": link", l.Bandwidth, l.Used); err != nil {
			return err
		}
	}
	for _, of := range []map[string]float64{c.Capacity, c.Used} {
		if err := valid.Amounts(what, of, trimtab.MaxResources); err != nil {
			return err
		}
	}
	return c.validateLists(what)
}

func (c *Colocation) validateLists(what string) error {
	for i := range c.Services {
		if err := c.Services[i].validate(what); err != nil {
			return err
		}
	}
	for i := range c.Jobs {
		if err := c.Jobs[i].validate(what); err != nil {
			return err
		}
	}
	for i := range c.Decisions {
		if err := c.Decisions[i].validate(what); err != nil {
			return err
		}
	}
	if c.Last != nil {
		return c.Last.validate(what)
	}
	return nil
}

func (d *HostDecision) validate(what string) error {
	if d.Time.IsZero() || d.Periods < 0 || d.Omitted < 0 || len(d.Changes) > MaxJobs {
		return trimtab.Invalidf("%s: decision at %v, for %d periods, of %d changes", what, d.Time, d.Periods, len(d.Changes))
	}
	if err := valid.Short(what, d.Verb, d.By); err != nil {
		return err
	}
	if err := valid.Texts(what, d.Why); err != nil {
		return err
	}
	for i := range d.Changes {
		x := &d.Changes[i]
		if len(x.Job) > maxJobID {
			return trimtab.Invalidf("%s: change of job %.40q: want at most %d bytes", what, x.Job, maxJobID)
		}
		if err := valid.Short(what, x.Act); err != nil {
			return err
		}
		if err := valid.Texts(what, x.Result); err != nil {
			return err
		}
		if err := valid.Amounts(what, x.To, trimtab.MaxResources); err != nil {
			return err
		}
	}
	return nil
}

func (s *ServiceHere) validate(what string) error {
	if err := valid.Named(what+": service", s.Workload); err != nil {
		return err
	}
	if err := valid.Short(what, s.LoadOrigin, s.SlackOrigin); err != nil {
		return err
	}
	if s.Slack != nil && !valid.IsFinite(*s.Slack) {
		return valid.Finite(what+": slack", *s.Slack)
	}
	v := []float64{float64(s.SLO), s.Share, s.Clock, s.LeastClock}
	for _, p := range []*float64{s.Load, s.LoadLimit, s.SlackLimit} {
		if p != nil {
			v = append(v, *p)
		}
	}
	for _, p := range []*trimtab.Seconds{s.Age, s.Tail} {
		if p != nil {
			v = append(v, float64(*p))
		}
	}
	return valid.NoneNegative(what+": service "+s.Workload, v...)
}

func (j *Job) validate(what string) error {
	if j.ID == "" || len(j.ID) > maxJobID {
		return trimtab.Invalidf("%s: job %.40q: want 1 to %d bytes", what, j.ID, maxJobID)
	}
	if err := valid.Short(what, string(j.Mode), j.State, j.Predict); err != nil {
		return err
	}
	if err := valid.Texts(what, j.Location, j.Problem, j.Unmet); err != nil {
		return err
	}
	if err := valid.Amounts(what, j.Has, trimtab.MaxResources); err != nil {
		return err
	}
	if j.Loss != nil && !valid.IsFinite(*j.Loss) {
		return valid.Finite(what+": loss of "+j.ID, *j.Loss)
	}
	v := []float64{j.Useless, j.Attained, j.Lost}
	if j.Done != nil {
		v = append(v, *j.Done)
	}
	if j.ReportAge != nil {
		v = append(v, float64(*j.ReportAge))
	}
	return valid.NoneNegative(what+": job "+j.ID, v...)
}

// maxJobID is the length of a workload's name, a slash and an instance's.
const maxJobID = 2*253 + 1
