package prometheus

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab/colocation"
)

// jobsHost is what is exported of the best-effort jobs of one host.
type jobsHost struct {
	arrived   time.Time
	verb      string
	resources map[string]bool
}

// jobsBytes is about how many bytes the series of a host's jobs have: nine series, and two for
// each resource.
func jobsBytes(host string, resources int) int { return (9 + 2*resources) * (75 + len(host)) }

// maxJobResources bounds the resources of a host's jobs: there are eight.
const maxJobResources = 8

// jobsUpdate is the newest report of a host, exported at the next scrape.
type jobsUpdate struct {
	said    *colocation.Colocation
	arrived time.Time
}

// observeJobs keeps the newest report of a host.
func (e *Exporter) observeJobs(c *colocation.Colocation) {
	if _, known := e.changedJobs[c.Host]; known || len(e.changedJobs) < maxHosts {
		e.changedJobs[c.Host] = jobsUpdate{c, time.Now()}
	}
}

// evictFor reduces workloads to the brief series until bytes more fit, and reports whether they do.
func (e *Exporter) evictFor(bytes int) bool {
	e.usage.bytes += bytes
	e.fit()
	fits := e.usage.bytes <= maxBytes
	e.usage.bytes -= bytes
	return fits
}

// jobs exports a host's report of its best-effort jobs.
func (e *Exporter) jobs(c *colocation.Colocation, heard time.Time) {
	h := e.jobHosts[c.Host]
	if h == nil {
		if len(e.jobHosts) >= maxHosts || !e.evictFor(jobsBytes(c.Host, 2)) {
			return
		}
		h = &jobsHost{resources: map[string]bool{}}
		e.jobHosts[c.Host] = h
		e.usage.bytes += jobsBytes(c.Host, 0)
	}
	h.arrived = heard
	e.metrics.Gauge("trimtab_host_jobs", c.Host, "running").Set(float64(c.Running))
	e.metrics.Gauge("trimtab_host_jobs", c.Host, "suspended").Set(float64(c.Suspended))
	e.metrics.Gauge("trimtab_host_jobs_killed", c.Host).Set(float64(c.Kills))
	e.metrics.Gauge("trimtab_host_jobs_lost_core_seconds", c.Host).Set(digits(c.Lost))
	e.metrics.Gauge("trimtab_host_jobs_given_core_seconds", c.Host).Set(digits(c.Given))
	e.metrics.Gauge("trimtab_host_jobs_timestamp_seconds", c.Host).Set(math.Round(float64(c.Time.UnixMilli()) / 1000))
	e.set("trimtab_host_jobs_slack_ratio", leastSlack(c), c.Host)
	e.decided(h, c)
	for resource := range h.resources {
		if _, has := c.Used[resource]; !has {
			if _, may := c.Capacity[resource]; !may {
				e.forgetJobs(c.Host, h, resource)
			}
		}
	}
	for name, of := range map[string]map[string]float64{"trimtab_host_jobs_used": c.Used, "trimtab_host_jobs_capacity": c.Capacity} {
		for resource, v := range of {
			if e.names.resource(resource) != resource || !h.resources[resource] && len(h.resources) >= maxJobResources {
				continue
			}
			if !h.resources[resource] {
				h.resources[resource] = true
				e.usage.bytes += jobsBytes(c.Host, 1) - jobsBytes(c.Host, 0)
			}
			e.metrics.Gauge(name, c.Host, resource).Set(digits(v))
		}
	}
}

// leastSlack returns the slack of the service closest to its SLO; nil: unknown.
func leastSlack(c *colocation.Colocation) (least *float64) {
	for i := range c.Services {
		if s := c.Services[i].Slack; s != nil && (least == nil || *s < *least) {
			least = s
		}
	}
	return least
}

// decided exports the decision in force.
func (e *Exporter) decided(h *jobsHost, c *colocation.Colocation) {
	verb := ""
	switch {
	case c.Paused:
		verb = "paused"
	case c.Last != nil:
		verb = verbOf(c.Last.Verb)
	}
	if h.verb != "" && h.verb != verb {
		e.metrics.Forget("trimtab_host_jobs_decision", c.Host, h.verb)
	}
	if h.verb = verb; verb != "" {
		e.metrics.Gauge("trimtab_host_jobs_decision", c.Host, verb).Set(1)
	}
}

// verbOf is s if it is a known verb, else "other".
func verbOf(s string) string {
	switch s {
	case "StopBE", "SuspendBE", "CutBE", "DisallowBEGrowth", "AllowBEGrowth":
		return s
	}
	return other
}

// forgetJobs drops the series of one resource.
func (e *Exporter) forgetJobs(host string, h *jobsHost, resource string) {
	delete(h.resources, resource)
	e.metrics.Forget("trimtab_host_jobs_used", host, resource)
	e.metrics.Forget("trimtab_host_jobs_capacity", host, resource)
	e.usage.bytes -= jobsBytes(host, 1) - jobsBytes(host, 0)
}

// settleJobs reads the new reports of all hosts, and forgets hosts that were silent for long.
func (e *Exporter) settleJobs() {
	for _, name := range slices.Sorted(maps.Keys(e.changedJobs)) {
		e.jobs(e.changedJobs[name].said, e.changedJobs[name].arrived)
	}
	clear(e.changedJobs)
	for name, h := range e.jobHosts {
		if time.Since(h.arrived) <= forgotten {
			continue
		}
		for resource := range h.resources {
			e.forgetJobs(name, h, resource)
		}
		e.metrics.Forget("trimtab_host_jobs", name, "running")
		e.metrics.Forget("trimtab_host_jobs", name, "suspended")
		if h.verb != "" {
			e.metrics.Forget("trimtab_host_jobs_decision", name, h.verb)
		}
		for _, series := range []string{"killed", "lost_core_seconds", "given_core_seconds", "slack_ratio", "timestamp_seconds"} {
			e.metrics.Forget("trimtab_host_jobs_"+series, name)
		}
		e.usage.bytes -= jobsBytes(name, 0)
		delete(e.jobHosts, name)
	}
}
