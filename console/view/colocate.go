package view

import (
	"maps"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/colocation"
)

// MaxHostDecisions bounds the decisions that one [Colocation] lists.
const MaxHostDecisions = colocation.MaxHostDecisions

// The state of best-effort jobs on a host, as its agent reports it.
type (
	Colocation   = colocation.Colocation
	HostDecision = colocation.HostDecision
	JobChange    = colocation.JobChange
	ServiceHere  = colocation.ServiceHere
	Job          = colocation.Job
)

// Limits on the stored state of a fleet's jobs: number of hosts, and bytes of all.
const (
	maxJobHosts = 2000
	maxJobBytes = 64 << 20
)

// jobsSilent is the time without a report after which a host is shown as silent (agents report
// every 5 s); jobsGone is the time after which it is forgotten.
const (
	jobsSilent = 20 * time.Second
	jobsGone   = 15 * time.Minute
)

// jobBook has the agents' reports of their best-effort jobs, by host.
type jobBook struct {
	hosts map[string]*jobsOn
	bytes int
}

// jobsOn has the last report of one host, and its earlier decisions.
type jobsOn struct {
	said       *Colocation
	reportedAt time.Time
	cost       int
}

// observe takes in a word. Decisions of earlier words are kept behind its own.
func (b *jobBook) observe(said *Colocation, now time.Time) {
	said = said.Brief() // a peer may say more
	if b.hosts == nil {
		b.hosts = map[string]*jobsOn{}
	}
	h := b.hosts[said.Host]
	if h == nil {
		h = &jobsOn{}
		b.hosts[said.Host] = h
	} else {
		said.Decisions = joined(said.Decisions, h.said.Decisions)
	}
	b.bytes -= h.cost
	h.said, h.reportedAt, h.cost = said, now, jobsCost(said)
	b.bytes += h.cost
	for len(b.hosts) > maxJobHosts || b.bytes > maxJobBytes && len(b.hosts) > 1 {
		b.drop(h)
	}
}

// drop forgets who was silent for longest, but for one.
func (b *jobBook) drop(but *jobsOn) {
	oldest := ""
	for name, h := range b.hosts {
		if o := b.hosts[oldest]; h != but && (o == nil || h.reportedAt.Before(o.reportedAt) || h.reportedAt.Equal(o.reportedAt) && name < oldest) {
			oldest = name
		}
	}
	b.bytes -= b.hosts[oldest].cost
	delete(b.hosts, oldest)
}

// joined are decisions, the newest first, with those before the first of them.
func joined(now, before []HostDecision) []HostDecision {
	if len(now) == 0 {
		return before
	}
	first := now[len(now)-1].Time
	i := slices.IndexFunc(before, func(d HostDecision) bool { return d.Time.Before(first) })
	if i < 0 {
		return now
	}
	all := slices.Concat(now, before[i:])
	return all[:min(len(all), MaxHostDecisions)]
}

// jobsCost is about how many bytes a word takes.
func jobsCost(c *Colocation) int {
	n := 1000 + 300*len(c.Services)
	for i := range c.Jobs {
		j := &c.Jobs[i]
		n += 400 + len(j.ID) + len(j.Location) + len(j.Problem) + len(j.Unmet) + 64*len(j.Has)
	}
	for i := range c.Decisions {
		d := &c.Decisions[i]
		n += 200 + len(d.Why)
		for k := range d.Changes {
			n += 150 + len(d.Changes[k].Job) + len(d.Changes[k].Result) + 64*len(d.Changes[k].To)
		}
	}
	return n
}

// JobFilter selects hosts by a job or a service on them; empty: all.
type JobFilter struct{ Job, Service string }

// fits reports whether a host matches the filter.
func (f JobFilter) fits(c *Colocation) bool {
	return (f.Job == "" || slices.ContainsFunc(c.Jobs, func(j Job) bool { return j.Named(f.Job) })) &&
		(f.Service == "" || slices.ContainsFunc(c.Services, func(s ServiceHere) bool { return s.Workload == f.Service }))
}

// FleetJobs has the state of the best-effort jobs of all hosts that reported: GET
// /api/v1/colocation.
type FleetJobs struct {
	Time time.Time `json:"time"`
	// Hosts are ordered by name; the sums are over them.
	Hosts     []HostJobs `json:"hosts"`
	Running   int        `json:"running"`
	Suspended int        `json:"suspended"`
	Kills     uint64     `json:"kills_total"`
	Lost      float64    `json:"lost_core_s"`
	Given     float64    `json:"given_core_s"`
	Reclaimed float64    `json:"reclaimed_cores"`
}

// HostJobs is one host in a list.
type HostJobs struct {
	Host string `json:"host"`
	// ReportAge is the age of the host's newest report. Silent says that it is too old to describe the
	// present.
	ReportAge trimtab.Seconds `json:"heard_s"`
	Silent    bool            `json:"silent,omitempty"`
	Policy    string          `json:"policy"`
	Mode      trimtab.Mode    `json:"mode"`
	Paused    bool            `json:"paused,omitempty"`
	// Verb is the decision in force since Since, By the service that decided.
	Verb      string             `json:"verb,omitempty"`
	By        string             `json:"by,omitempty"`
	Why       string             `json:"why,omitempty"`
	Since     time.Time          `json:"since,omitzero"`
	Running   int                `json:"running"`
	Suspended int                `json:"suspended"`
	Used      map[string]float64 `json:"used,omitempty"`
	Capacity  map[string]float64 `json:"capacity,omitempty"`
	Kills     uint64             `json:"kills_total"`
	Lost      float64            `json:"lost_core_s"`
	Given     float64            `json:"given_core_s"`
	Reclaimed float64            `json:"reclaimed_cores"`
	Problem   string             `json:"problem,omitempty"`
}

// State describes the state of a host in a few words.
func (h *HostJobs) State() string {
	switch {
	case h.Silent:
		return "silent for " + Age(h.ReportAge)
	case h.Paused:
		return "paused"
	case h.Problem != "":
		return "nothing is done: " + h.Problem
	case h.Verb == "":
		return "no decision yet"
	}
	return h.Verb
}

// HostColocation is all that is known of the jobs of one host: GET
// /api/v1/colocation/HOST.
type HostColocation struct {
	ReportAge trimtab.Seconds `json:"heard_s"`
	Silent    bool            `json:"silent,omitempty"`
	*Colocation
}

// reporting returns the names of the hosts that reported lately, in order.
func (b *jobBook) reporting(now time.Time) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(b.hosts)) {
		if now.Sub(b.hosts[name].reportedAt) <= jobsGone {
			names = append(names, name)
		}
	}
	return names
}

// Colocations returns the hosts with best-effort jobs that f selects, as they are at now.
func (v *Model) Colocations(now time.Time, f JobFilter) FleetJobs {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := FleetJobs{Time: now, Hosts: []HostJobs{}}
	for _, name := range v.jobs.reporting(now) {
		h := v.jobs.hosts[name]
		if !f.fits(h.said) {
			continue
		}
		c := h.said
		out.Hosts = append(out.Hosts, h.row(now))
		out.Running, out.Suspended, out.Kills = out.Running+c.Running, out.Suspended+c.Suspended, out.Kills+c.Kills
		out.Lost, out.Given, out.Reclaimed = out.Lost+c.Lost, out.Given+c.Given, out.Reclaimed+c.Reclaimed
	}
	return out
}

func (h *jobsOn) row(now time.Time) HostJobs {
	c := h.said
	r := HostJobs{Host: c.Host, ReportAge: trimtab.SecondsOf(max(0, now.Sub(h.reportedAt))), Silent: now.Sub(h.reportedAt) > jobsSilent, Policy: c.Policy, Mode: c.Mode, Paused: c.Paused,
		Running: c.Running, Suspended: c.Suspended, Used: c.Used, Capacity: c.Capacity, Kills: c.Kills, Lost: c.Lost, Given: c.Given, Reclaimed: c.Reclaimed, Problem: c.Problem}
	if c.Last != nil {
		r.Verb, r.By, r.Why, r.Since = c.Last.Verb, c.Last.By, c.Last.Why, c.Last.Time
	}
	return r
}

// Colocation returns the state of the jobs of a host; ok is false if there is no report of it.
func (v *Model) Colocation(host string, now time.Time) (out HostColocation, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	h := v.jobs.hosts[host]
	if h == nil || now.Sub(h.reportedAt) > jobsGone {
		return out, false
	}
	r := h.row(now)
	return HostColocation{ReportAge: r.ReportAge, Silent: r.Silent, Colocation: h.said}, true
}

// HasColocations reports whether any host has best-effort jobs.
func (v *Model) HasColocations(now time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.jobs.reporting(now)) > 0
}
