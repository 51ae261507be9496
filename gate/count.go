package gate

import (
	"math"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// counters are the metrics of a gate. Those that may differ by class have a label for it.
type counters struct {
	requests                                   [][outcomes]prometheus.Counter
	byLimit, byRate, brown                     []prometheus.Counter
	wait, took                                 []prometheus.Observer
	limit, rate, inFlight, queued, connections prometheus.Gauge
}

func newCounters(g *Gate) *counters {
	c := &counters{
		limit:       g.metrics.Gauge("trimtab_gate_limit", g.config.Workload),
		rate:        g.metrics.Gauge("trimtab_gate_rate", g.config.Workload),
		inFlight:    g.metrics.Gauge("trimtab_gate_in_flight", g.config.Workload),
		queued:      g.metrics.Gauge("trimtab_gate_queued", g.config.Workload),
		connections: g.metrics.Gauge("trimtab_gate_connections", g.config.Workload),
	}
	for _, name := range g.config.classes.names {
		var row [outcomes]prometheus.Counter
		for o := range outcomes {
			row[o] = g.metrics.Counter("trimtab_gate_requests_total", g.config.Workload, name, o.String())
		}
		c.requests = append(c.requests, row)
		c.byLimit = append(c.byLimit, g.metrics.Counter("trimtab_gate_refused_total", g.config.Workload, name, "limit"))
		c.byRate = append(c.byRate, g.metrics.Counter("trimtab_gate_refused_total", g.config.Workload, name, "rate"))
		c.brown = append(c.brown, g.metrics.Counter("trimtab_gate_brownout_total", g.config.Workload, name))
		c.wait = append(c.wait, g.metrics.Histogram("trimtab_gate_wait_seconds", g.config.Workload, name))
		c.took = append(c.took, g.metrics.Histogram("trimtab_gate_request_seconds", g.config.Workload, name))
	}
	g.metrics.Before(func() {
		g.mu.Lock()
		s := g.controller.State(g.now())
		g.mu.Unlock()
		c.limit.Set(float64(s.Limit))
		if c.rate.Set(math.Inf(1)); s.Rate > 0 {
			c.rate.Set(s.Rate)
		}
		c.inFlight.Set(float64(s.InService))
		c.queued.Set(float64(s.Queued))
		c.connections.Set(float64(g.park.connections()))
	})
	return c
}

// finish counts a request that has ended, and writes its span.
func (g *Gate) finish(r *http.Request, v *visit, o outcome) {
	g.counted.requests[v.Class][o].Inc()
	switch {
	case o == refused && v.ForRate():
		g.counted.byRate[v.Class].Inc()
	case o == refused:
		g.counted.byLimit[v.Class].Inc()
	case v.brown:
		g.counted.brown[v.Class].Inc()
	}
	g.mu.Lock()
	of := &g.classed[v.Class]
	switch o {
	case refused:
		of.shed++
	case inTime:
		of.inTime++
		of.answered++
	case late:
		of.answered++
	}
	g.mu.Unlock()
	if o == inTime || o == late || o == failed {
		g.counted.wait[v.Class].Observe(v.Wait().Seconds())
		g.counted.took[v.Class].Observe(time.Since(v.arrived).Seconds())
	}
	if g.tracer != nil {
		g.tracer.end(r, v, g.config.classes.names[v.Class], o)
	}
}
