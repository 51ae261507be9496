package console

import (
	"net/http"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/console/view"
)

// shownDecisions bounds the decisions that the page of jobs draws.
const shownDecisions = 20

// jobsPage is what jobs.html shows.
type jobsPage struct {
	Frame frame
	*view.Colocation
	Rooms []jobRoom
}

// jobRoom is what jobs have of one resource, of what they may have.
type jobRoom struct {
	Resource       string
	Used, Capacity float64
}

func (s *site) drawJobs(w http.ResponseWriter, _ *http.Request) {
	p := jobsPage{Frame: s.frame("jobs", "Best-effort jobs", "/api/v1/jobs")}
	j := s.jobsNow()
	if j == nil {
		s.render(w, http.StatusNotFound, "jobs.html", &p)
		return
	}
	c := *j.Colocation()
	c.Decisions = c.Decisions[:min(len(c.Decisions), shownDecisions)]
	p.Colocation = &c
	for _, resource := range []string{trimtab.CPU, trimtab.Cores, trimtab.Memory, "llc", "membw", "network"} {
		if capacity, ok := c.Capacity[resource]; ok {
			p.Rooms = append(p.Rooms, jobRoom{resource, c.Used[resource], capacity})
		}
	}
	s.render(w, http.StatusOK, "jobs.html", &p)
}

// jobAmounts prints what a job has: "0.5 cores, 2GiB memory".
func jobAmounts(of map[string]float64) string {
	var out []string
	for _, resource := range []string{trimtab.CPU, trimtab.Cores, trimtab.Memory, "llc", "membw", "network"} {
		if v, ok := of[resource]; ok {
			out = append(out, sized(v, resource))
		}
	}
	if len(out) == 0 {
		return view.Missing
	}
	return strings.Join(out, ", ")
}
