package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/cli"
	"github.com/trimtab/trimtab/internal/client"
)

// explainedHosts bounds the hosts that a service is explained on.
const explainedHosts = 5

// jobHosts returns the state of the jobs of this process's host, or those of the first
// hosts of its fleet that f selects.
func (c clientFlags) jobHosts(ctx context.Context, f view.JobFilter) (all []*view.Colocation) {
	if jobs := c.client().Jobs(ctx); jobs != nil {
		all = append(all, jobs)
	}
	fleet := c.client().Colocations(ctx, f)
	if fleet == nil {
		return all
	}
	for _, h := range fleet.Hosts {
		if len(all) >= explainedHosts {
			break
		}
		if len(all) > 0 && all[0].Host == h.Host {
			continue
		}
		if found := c.client().Colocation(ctx, h.Host); found != nil {
			all = append(all, found.Colocation)
		}
	}
	return all
}

// printFleet prints the hosts of a fleet that have best-effort jobs, in addition to this process's
// own host.
func printFleet(w io.Writer, fleet *view.FleetJobs, own *view.Colocation) {
	if fleet == nil || len(fleet.Hosts) == 0 || own != nil && len(fleet.Hosts) == 1 && fleet.Hosts[0].Host == own.Host {
		return
	}
	fmt.Fprintf(w, "\nbest-effort jobs on %s: %d running, %d suspended, %d killed; %s core-seconds given, %s lost\n",
		view.Count(len(fleet.Hosts), "host"), fleet.Running, fleet.Suspended, fleet.Kills, view.Number(fleet.Given), view.Number(fleet.Lost))
	rows := [][]string{{"HOST", "POLICY", "MODE", "DECISION", "RUNNING", "SUSPENDED", "GIVEN", "OF", "KILLED", "HEARD"}}
	for i := range fleet.Hosts {
		h := &fleet.Hosts[i]
		rows = append(rows, []string{h.Host, h.Policy, string(h.Mode), h.State(), fmt.Sprint(h.Running), fmt.Sprint(h.Suspended), amounts(h.Used), amounts(h.Capacity),
			fmt.Sprint(h.Kills), view.Age(h.ReportAge) + " ago"})
	}
	cli.Table(w, rows)
}

// printColocation prints the state of the best-effort jobs of a host.
func printColocation(w io.Writer, c *view.Colocation) {
	fmt.Fprintf(w, "best-effort jobs on %s: policy %s, mode %s\n", c.Host, c.Policy, c.Mode)
	if c.Paused {
		fmt.Fprintln(w, "paused: nothing is decided or written until `trimtab resume`")
	}
	if c.Problem != "" {
		fmt.Fprintf(w, "nothing is done: %s\n", c.Problem)
	}
	for i := range c.Unmet {
		fmt.Fprintf(w, "not in force: %s\n  do: %s\n", client.Printable(c.Unmet[i].Why), c.Unmet[i].Do)
	}
	if c.Last != nil {
		fmt.Fprintf(w, "%s since %s: %s\n", c.Last.Verb, view.Clock(c.Last.Time), orDash(c.Last.Why))
	}
	fmt.Fprintf(w, "given %s of %s; %d killed, %s core-seconds lost\n", amounts(c.Used), amounts(c.Capacity), c.Kills, view.Number(c.Lost))
	if p := c.Power; p != nil {
		fmt.Fprintf(w, "power %s of %s W\n", view.Number(p.Draws), view.Number(p.TDP))
	}
	for i := range c.Services {
		if s := &c.Services[i]; s.Clock > 0 && s.Clock < s.LeastClock {
			fmt.Fprintf(w, "the cores of %s run at %s MHz and should at %s: jobs are slowed down while the power is over 80%%\n", s.Workload, view.Number(s.Clock), view.Number(s.LeastClock))
		}
	}
	if l := c.Link; l != nil {
		fmt.Fprintf(w, "services send %s of %s\n", trimtab.AmountOf(trimtab.Network, trimtab.Units(l.Used)), trimtab.AmountOf(trimtab.Network, trimtab.Units(l.Bandwidth)))
	}
	for _, resource := range slices.Sorted(maps.Keys(c.Missing)) {
		fmt.Fprintf(w, "no knob for %s: %s\n", resource, c.Missing[resource])
	}
	rows := [][]string{{"SERVICE HERE", "SLACK", "LIMIT", "FROM", "LOAD", "LIMIT", "FROM", "OF THE TAIL", "HEARD"}}
	for i := range c.Services {
		s := &c.Services[i]
		rows = append(rows, []string{s.Workload, view.Optional(s.Slack), view.Optional(s.SlackLimit), orDash(s.SlackOrigin), view.Optional(s.Load),
			view.Optional(s.LoadLimit), orDash(s.LoadOrigin), view.Number(s.Share), reportAgeOf(s)})
	}
	if len(rows) > 1 {
		cli.Table(w, rows)
	}
	rows = [][]string{{"JOB", "MODE", "STATE", "HAS", "DONE", "WOULD LOSE", "PROBLEM"}}
	for i := range c.Jobs {
		j := &c.Jobs[i]
		problem := j.Problem
		if j.Unmet != "" {
			problem = j.Unmet // which has the reason
		}
		rows = append(rows, []string{j.ID, string(j.Mode), j.State, amounts(j.Has), view.Performance(j.Done, true), losses(j), orDash(problem)})
	}
	if len(rows) > 1 {
		cli.Table(w, rows)
	} else {
		fmt.Fprintln(w, "no job yet: name a cgroup pattern of class best-effort, or register one with POST /api/v1/jobs")
	}
}

// reportAgeOf formats the time since a service reported.
func reportAgeOf(s *view.ServiceHere) string {
	switch {
	case s.Age == nil:
		return "never: nothing grows"
	case s.Stale:
		return view.Age(*s.Age) + " ago: too old"
	}
	return view.Age(*s.Age) + " ago"
}

// losses is the work that a job would lose.
func losses(j *view.Job) string {
	if j.Loss != nil {
		return fmt.Sprintf("%s core-s, of which %s would have to be repeated", view.Number(*j.Loss), view.Number(j.Useless))
	}
	return view.Number(j.Useless) + " core-s done again"
}

// amounts prints amounts by resource: "0.5 cores, frequency 2400 MHz, memory 2 GiB".
func amounts(of map[string]float64) string {
	var out []string
	for _, resource := range slices.Sorted(maps.Keys(of)) {
		text := view.Sized(of[resource], resource)
		switch resource {
		case trimtab.CPU, trimtab.Cores, trimtab.Weight: // the unit says of what
		default:
			text = resource + " " + text
		}
		out = append(out, text)
	}
	if len(out) == 0 {
		return view.Missing
	}
	return strings.Join(out, ", ")
}

// jobNamed finds a job by its ID, or by the name that it registered with.
func jobNamed(c *view.Colocation, name string) *view.Job {
	if c == nil {
		return nil
	}
	for i := range c.Jobs {
		if j := &c.Jobs[i]; j.Named(name) {
			return j
		}
	}
	return nil
}

// explainJob prints the resources of a job and the reasons.
func explainJob(w io.Writer, c *view.Colocation, j *view.Job, history int) {
	fmt.Fprintf(w, "%s: %s, a best-effort job on %s\n", j.ID, j.State, c.Host)
	if c.Last != nil {
		fmt.Fprintf(w, "%s: %s\n", c.Last.Verb, c.Last.Why)
	}
	rows := [][]string{
		{"  mode", string(j.Mode)}, {"  has", amounts(j.Has) + prefixed(", by ", j.Location)}, {"  was given", view.Number(j.Attained) + " core-s"},
		{"  would lose", losses(j)}, {"  done", view.Performance(j.Done, true)},
	}
	if j.ReportAge != nil {
		rows = append(rows, []string{"  told its progress", view.Age(*j.ReportAge) + " ago"})
	}
	if j.Lost > 0 {
		rows = append(rows, []string{"  lost by kills", view.Number(j.Lost) + " core-s"})
	}
	if j.Unmet != "" {
		rows = append(rows, []string{"  not in force", j.Unmet})
	}
	if j.Problem != "" {
		rows = append(rows, []string{"  problem", j.Problem})
	}
	for _, d := range c.Decisions {
		for _, change := range d.Changes {
			if change.Job == j.ID && history > 0 {
				history--
				rows = append(rows, []string{"  " + view.Clock(d.Time), fmt.Sprintf("%s, %s%s%s: %s", d.Verb, change.Act, prefixed(" to ", strings.TrimPrefix(amounts(change.To), view.Missing)), prefixed(", ", change.Result), d.Why)})
			}
		}
	}
	cli.Table(w, rows)
}

// explainHere compares slack and load of a service with its limits, on a host with best-effort
// jobs.
func explainHere(w io.Writer, c *view.Colocation, workload string) {
	if c == nil {
		return
	}
	for i := range c.Services {
		s := &c.Services[i]
		if s.Workload != workload {
			continue
		}
		fmt.Fprintf(w, "  on %s, beside best-effort jobs: slack %s (limit %s, from %s), load %s of the highest (limit %s, from %s), last report %s\n", c.Host,
			view.Optional(s.Slack), view.Optional(s.SlackLimit), orDash(s.SlackOrigin), view.Optional(s.Load), view.Optional(s.LoadLimit), orDash(s.LoadOrigin), reportAgeOf(s))
		if c.Last != nil && c.Last.By == workload {
			fmt.Fprintf(w, "  decision there: %s: %s\n", c.Last.Verb, c.Last.Why)
		}
	}
}
