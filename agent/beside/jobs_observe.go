package beside

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/jobs"
)

// serviceConfig is a latency-critical service in the configuration.
type serviceConfig struct {
	name string
	slo  time.Duration
	// here says that the service has a knob on this host.
	here bool
	// places are the locations that its knobs would have on this host. They are used if the file
	// does not say on which hosts of a fleet it runs.
	places []string
}

// servicesOf lists the services whose slack is known. Of an application it lists only the entry,
// whose SLO is that of the whole. In a fleet, a service without a host in the file counts as here
// while its group exists here.
func servicesOf(cfg *config.Config, host string, fleet bool, kinds []actuator.Kind) (all []serviceConfig) {
	pooled := cfg.Pooled()
	entry := cfg.Application()
	for i := range pooled.Workloads {
		w := &pooled.Workloads[i]
		if w.Class == trimtab.BestEffort || w.SLO.Latency == 0 {
			continue
		}
		here := w.Knob.Declared() && w.OnHost(host)
		var places []string
		if here && fleet && w.Knob.Host == "" {
			if place, err := placeOf(cfg, w, kinds); err == nil { // on an error the service counts as here
				here, places = false, []string{place}
			}
		}
		if entry == nil {
			all = append(all, serviceConfig{w.Name, w.SLO.Latency, here, places})
			continue
		}
		if len(all) == 0 {
			all = append(all, serviceConfig{name: entry.Name, slo: entry.SLO.Latency})
		}
		all[0].here = all[0].here || here
		all[0].places = append(all[0].places, places...)
	}
	slices.SortFunc(all, func(a, b serviceConfig) int { return cmp.Compare(a.name, b.name) })
	return all
}

// placeOf returns the directory of the knob of a workload on this host, or a pattern if it has
// several.
func placeOf(cfg *config.Config, w *config.Workload, kinds []actuator.Kind) (string, error) {
	name, root, path := cfg.Location(&w.Knob)
	kind, err := actuator.KindOf(kinds, name)
	if err != nil {
		return "", err
	}
	at, err := kind.Probe(actuator.Location{Root: root, Path: path, Force: w.Knob.Force})
	if err != nil {
		return "", err
	}
	return filepath.Join(at.Root, at.Path), nil
}

// lookEvery is how often this host looks for the groups of services.
const lookEvery = 10 * time.Second

// serviceReports has the services beside the jobs, and the newest report of each.
type serviceReports struct {
	host string
	// maxAge is the age from which a report is stale.
	maxAge time.Duration

	mu       sync.Mutex
	services []serviceConfig
	// found is when this host last looked for the groups of services.
	found time.Time
	// sent has the time of each service's last report, by its sender's clock; newest has the report
	// itself, dated by this host's clock; unread has those that the step has not read yet.
	sent   map[string]time.Time
	newest map[string]*colocation.Contributions
	unread []*colocation.Contributions
}

func newServiceReports(host string, services []serviceConfig, maxAge time.Duration) *serviceReports {
	return &serviceReports{host: host, maxAge: maxAge, services: slices.Clone(services),
		sent: map[string]time.Time{}, newest: map[string]*colocation.Contributions{}}
}

// find finds out which services run here if the file does not say so, and whether that changed.
func (r *serviceReports) find(now time.Time) (here []string, changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.found.IsZero() && now.Sub(r.found) < lookEvery && !now.Before(r.found) {
		return nil, false
	}
	r.found = now
	for i := range r.services {
		s := &r.services[i]
		if len(s.places) == 0 {
			continue
		}
		here := slices.ContainsFunc(s.places, func(place string) bool {
			found, err := filepath.Glob(place)
			return err != nil || len(found) > 0
		})
		changed = changed || here != s.here
		s.here = here
	}
	return namesHere(r.services), changed
}

// namesHere returns the names of the services that run here.
func namesHere(services []serviceConfig) (names []string) {
	for _, s := range services {
		if s.here {
			names = append(names, s.name)
		}
	}
	return names
}

// hear stores a service's report. It ignores services that are not declared, and those that run
// nothing here. The age of a report counts from its arrival, since its time is by another host's
// clock.
func (r *serviceReports) hear(now time.Time, c *colocation.Contributions) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.services, func(s serviceConfig) bool { return s.name == c.Workload })
	if i < 0 || !r.newer(now, c) || !r.services[i].here && !hasPod(c, r.host) && r.newest[c.Workload] == nil {
		return
	}
	r.sent[c.Workload] = c.Time
	own := *c
	own.Time = now
	if own.SLO <= 0 {
		own.SLO = trimtab.SecondsOf(r.services[i].slo)
	}
	if !r.services[i].here {
		own.Servpods = slices.DeleteFunc(slices.Clone(c.Servpods), func(p colocation.Servpod) bool { return p.Host == "" })
	}
	if len(r.unread) < 2*len(r.services) {
		r.unread = append(r.unread, &own)
	}
	r.newest[c.Workload] = &own
}

// newer reports whether a report of a service is newer than the last one. Once that is stale, an
// older one counts too: the sender's clock may have been set back.
func (r *serviceReports) newer(now time.Time, c *colocation.Contributions) bool {
	sent := r.sent[c.Workload]
	if c.Time.After(sent) {
		return true
	}
	last := r.newest[c.Workload]
	return !c.Time.Equal(sent) && last != nil && now.Sub(last.Time) > r.maxAge
}

// of returns the newest report of a service; nil: none came.
func (r *serviceReports) of(workload string) *colocation.Contributions {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.newest[workload]
}

// hasPod reports whether one of the Servpods is on the host.
func hasPod(c *colocation.Contributions, host string) bool {
	return slices.ContainsFunc(c.Servpods, func(p colocation.Servpod) bool { return p.Host == host })
}

// take removes and returns the reports since the last tick.
func (r *serviceReports) take() []*colocation.Contributions {
	r.mu.Lock()
	defer r.mu.Unlock()
	unread := r.unread
	r.unread = nil
	return unread
}

// jobsIn groups the knobs of a holding by job.
func jobsIn(holding *trimtab.Holding) map[string]map[string]*trimtab.KnobState {
	out := map[string]map[string]*trimtab.KnobState{}
	for i := range holding.Targets {
		t := &holding.Targets[i]
		if t.Workload == jobs.Workload && t.Instance == "" {
			continue // the state of a finder, not of a job
		}
		id := jobs.IDOf(t.Workload, t.Instance)
		if out[id] == nil {
			out[id] = map[string]*trimtab.KnobState{}
		}
		out[id][t.Resource] = t
	}
	return out
}

// amountOf returns the amount of a knob; an unlimited one counts as its maximum.
func amountOf(k *trimtab.KnobState) float64 {
	v := k.InForce()
	if v.Unlimited {
		return k.Max
	}
	return v.Value
}

// problemOf returns why a job cannot be controlled, the problem of its CPU time first.
func (h *jobHost) problemOf(knobs map[string]*trimtab.KnobState) string {
	for _, resource := range h.knobs.resources {
		k := knobs[resource]
		switch {
		case k != nil && k.Problem != "":
			return resource + ": " + k.Problem
		case k == nil && resource == trimtab.CPU:
			return "its CPU time cannot be limited"
		}
	}
	return ""
}

// predictOf returns the configured way to predict a job's loss.
func (h *jobHost) predictOf(id string) string {
	if w, ok := h.declaredOf(id); ok {
		return w.Predict.Kind
	}
	if name, ok := strings.CutPrefix(id, jobs.Workload+"/"); ok {
		s, _ := h.registry.Find(name)
		return s.Predict
	}
	return ""
}

// declaredOf returns the declared workload to which a job belongs.
func (h *jobHost) declaredOf(id string) (config.Workload, bool) {
	if w, ok := h.jobs[id]; ok {
		return w, true
	}
	for i := len(id) - 1; i > 0; i-- {
		if id[i] == '/' {
			if w, ok := h.jobs[id[:i]]; ok {
				return w, true
			}
		}
	}
	return config.Workload{}, false
}
