package console

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/console/view"
)

// shownDecisions bounds the decisions that the page of jobs draws.
const shownDecisions = 20

// jobsPage is the data of jobs.html.
type jobsPage struct {
	Frame frame
	// Fleet has all hosts that reported; Colocation is the state of the selected one; nil: none is
	// selected.
	Fleet view.FleetJobs
	*view.Colocation
	// Silent says that the host has not reported for long.
	Silent    string
	Resources []jobResource
}

// Several reports whether there is a choice of hosts.
func (p *jobsPage) Several() bool {
	return len(p.Fleet.Hosts) > 1 || len(p.Fleet.Hosts) == 1 && p.Colocation == nil
}

// jobResource is the amount of a resource that jobs use, and their limit.
type jobResource struct {
	Resource       string
	Used, Capacity float64
}

func (s *site) drawJobs(w http.ResponseWriter, r *http.Request) {
	now, host := time.Now(), r.URL.Query().Get("host")
	p := jobsPage{Frame: s.frame(r, "jobs", "Best-effort jobs", "/api/v1/colocation"), Fleet: s.view.Colocations(now, view.JobFilter{})}
	j := s.jobsNow()
	if host == "" && j == nil && len(p.Fleet.Hosts) == 1 {
		host = p.Fleet.Hosts[0].Host
	}
	var found *view.Colocation
	switch {
	case j != nil && (host == "" || host == j.Colocation().Host):
		found, p.Frame.JSON = j.Colocation(), "/api/v1/jobs"
	case host != "":
		if h, ok := s.view.Colocation(host, now); ok {
			found, p.Frame.JSON = h.Colocation, address("/api/v1/colocation/", host)
			if h.Silent {
				p.Silent = view.Age(h.ReportAge)
			}
		}
	}
	if found == nil {
		code := http.StatusOK
		if host != "" || len(p.Fleet.Hosts) == 0 {
			code = http.StatusNotFound
		}
		s.render(w, code, "jobs.html", &p)
		return
	}
	c := *found
	c.Decisions = c.Decisions[:min(len(c.Decisions), shownDecisions)]
	p.Colocation = &c
	for _, resource := range []string{trimtab.CPU, trimtab.Cores, trimtab.Memory, "llc", "membw", "network"} {
		if capacity, ok := c.Capacity[resource]; ok {
			p.Resources = append(p.Resources, jobResource{resource, c.Used[resource], capacity})
		}
	}
	s.render(w, http.StatusOK, "jobs.html", &p)
}

// jobsAt is the page of the jobs of one host.
func jobsAt(host string) string { return "/jobs?host=" + url.QueryEscape(host) }

// jobAmounts formats the amounts of a job: "0.5 cores, 2GiB memory".
func jobAmounts(of map[string]float64) string {
	var out []string
	for _, resource := range []string{trimtab.CPU, trimtab.Cores, trimtab.Memory, "llc", "membw", "network", trimtab.Frequency} {
		if v, ok := of[resource]; ok {
			out = append(out, sized(v, resource))
		}
	}
	if len(out) == 0 {
		return view.Missing
	}
	return strings.Join(out, ", ")
}
