package colocate

import control "github.com/trimtab/trimtab/planner/colocate"

// Course is how a service and its hosts went, one value a minute.
type Course struct {
	Service string
	// Minutes, and the mean load, the worst p99 over the SLO in each.
	Minutes, Load, Tail []float64
	Hosts               []HostCourse
	count               int
}

// HostCourse is how the best-effort jobs beside a Servpod went: their throughput
// and the cores that they keep busy, means of a minute; jobs that run, their cores and
// ways, and the kills so far, at its end.
type HostCourse struct {
	Host                                string
	Work, CPU, Jobs, Cores, Ways, Kills []float64
}

func newCourses(w *world) []Course {
	var out []Course
	for _, s := range w.services {
		c := Course{Service: s.Name}
		for _, k := range s.of {
			c.Hosts = append(c.Hosts, HostCourse{Host: w.hosts[k].Name})
		}
		out = append(out, c)
	}
	return out
}

// minute is its length in periods.
const minute = 30

// note takes in a period.
func (c *Course) note(w *world, number, period int) {
	s := w.services[number]
	if period%minute == 0 {
		c.count = 0
		c.Minutes = append(c.Minutes, float64(period)*PeriodSeconds/60)
		c.Load, c.Tail = append(c.Load, 0), append(c.Tail, 0)
	}
	c.count++
	last := len(c.Minutes) - 1
	c.Load[last] += (s.load - c.Load[last]) / float64(c.count)
	c.Tail[last] = max(c.Tail[last], s.p99/s.slo)
	for i := range c.Hosts {
		c.Hosts[i].note(w.hosts[s.of[i]], c.count)
	}
}

func (c *HostCourse) note(h *host, count int) {
	jobs, cores, ways := 0.0, 0.0, 0.0
	for _, j := range h.jobs {
		if j.state == control.Running {
			jobs, cores, ways = jobs+1, cores+j.cores, ways+j.ways
		}
	}
	if count == 1 {
		for _, v := range []*[]float64{&c.Work, &c.CPU, &c.Jobs, &c.Cores, &c.Ways, &c.Kills} {
			*v = append(*v, 0)
		}
	}
	last := len(c.Work) - 1
	c.Work[last] += (h.speed - c.Work[last]) / float64(count)
	c.CPU[last] += (h.busy/h.Cores - c.CPU[last]) / float64(count)
	c.Jobs[last], c.Cores[last], c.Ways[last], c.Kills[last] = jobs, cores, ways, float64(h.tally.kills)
}
