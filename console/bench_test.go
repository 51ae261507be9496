package console

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/console/view"
)

// crowd is a view of a pool with a past: decisions in all, spread over the
// workloads, each as rich as those of a real planner.
func crowd(workloads, decisions int, now time.Time) *view.Model {
	c := view.Config{Pool: "cpu", Resource: "cpu", Capacity: 4 * float64(workloads), Objective: "njc", Round: 10 * time.Second}
	for w := range workloads {
		c.Workloads = append(c.Workloads, view.Workload{Name: fmt.Sprintf("team-%d/service-%04d", w%20, w), Mode: trimtab.Act, Class: trimtab.LatencyCritical,
			SLO: "95% under 200ms", Target: .95, Share: true, Utility: func(p float64) float64 { return min(1, p/.95) }})
	}
	v := view.New(c)
	var curve trimtab.Curve
	for k := range 32 {
		y := float64(k) / 32
		curve.Knots = append(curve.Knots, trimtab.Knot{Allocation: float64(k + 1), Band: trimtab.Band{Lower: y * .9, Mean: y, Upper: min(1, y*1.1)}})
	}
	const moved = 25
	plans := max(1, decisions/moved)
	for n := range plans {
		when := now.Add(time.Duration(n-plans) * c.Round)
		p := &trimtab.Plan{Pool: "cpu", Epoch: 3, Sequence: uint64(n + 1), Step: 1, Last: true, Time: when, Lease: 60, Cause: trimtab.Cause{Kind: codes.CauseTick}, Capacity: c.Capacity}
		o := &trimtab.Outcome{Pool: "cpu", Host: "host-a", Epoch: 3, Sequence: p.Sequence, Step: 1, Time: when}
		for a := range moved {
			w := &c.Workloads[(n*moved+a)%workloads]
			x := float64(a%10) / 10
			lower, target, demand := x, x+2, x+1
			p.Actions = append(p.Actions, trimtab.Action{KnobID: trimtab.KnobID{Pool: p.Pool, Host: "host-a", Workload: w.Name, Resource: "cpu"}, Expect: trimtab.Units(1 + x), Set: trimtab.Units(1.5 + x), Mode: trimtab.Act,
				Why: trimtab.Reason{Summary: fmt.Sprintf("%s: raise from %.1f to %.1f cores: its SLO needs %.2f", w.Name, 1+x, 1.5+x, demand+float64(n%100)/100), Model: "bintree/1", Binding: trimtab.Binding{Kind: "step"},
					Bounds: &trimtab.Band{Lower: lower, Mean: lower, Upper: 1}, Utility: &lower, Target: &target, Demand: &demand,
					Inputs: []trimtab.Input{{Name: "load", Value: 100, Age: 1, Source: "spans"}, {Name: "performance", Value: x, Age: 1, Source: "spans"},
						{Name: "allocation", Value: 1 + x, Age: .5, Source: "actuator"}, {Name: "usage", Value: x, Age: .5, Source: "cgroup"}, {Name: "throttled", Value: .1, Age: .5, Source: "cgroup"}},
					Alternatives: []trimtab.Alternative{{Set: 1, Objective: .5, Why: "stay"}, {Set: 2, Objective: .6, Why: "beyond the step"}}, NextCheck: when.Add(c.Round)}})
			o.Results = append(o.Results, trimtab.Result{KnobID: trimtab.KnobID{Pool: o.Pool, Host: o.Host, Workload: w.Name, Resource: "cpu"}, Status: trimtab.Written, Before: trimtab.Units(1 + x), Asked: trimtab.Units(1.5 + x), Found: trimtab.Units(1.5 + x), Known: true})
		}
		v.Observe(p)
		v.Observe(o)
	}
	h := &trimtab.Holding{Host: "host-a", Time: now, LeaseLeft: 60}
	for w := range c.Workloads {
		name := c.Workloads[w].Name
		for n := range 60 {
			a, y := 1+float64(n%5), float64(w%100)/100
			v.Observe(&trimtab.Estimate{Workload: name, Time: now.Add(time.Duration(n-60) * time.Second), Curve: &curve, Performance: &y, Allocation: &a, Model: "bintree/1", Reports: n,
				Load: &trimtab.LoadForecast{Now: 100, Mean: 100, Upper: 120, Level: .9, Model: "arma"}, Latency: map[string]trimtab.Seconds{"p50": .1, "p95": .2, "p99": .3},
				Inputs: []trimtab.Input{{Name: "load", Value: 100, Age: 1, Source: "spans"}, {Name: "performance", Value: y, Age: 1, Source: "spans"}}})
		}
		h.Targets = append(h.Targets, trimtab.KnobState{KnobID: trimtab.KnobID{Pool: h.Pool, Host: h.Host, Workload: name, Resource: "cpu"}, Knob: "cgroup v2 shop.slice/" + name, Now: trimtab.Units(2), Since: now, Baseline: trimtab.Units(2), Max: 8})
	}
	v.Observe(h)
	return v
}

// discard takes an answer and counts its bytes.
type discard struct {
	header http.Header
	code   int
	bytes  int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(code int)        { d.code = code }
func (d *discard) Write(b []byte) (int, error) { d.bytes += len(b); return len(b), nil }

// BenchmarkAnswers prints, for 1,000 workloads with 10^5 stored decisions, how
// long the server takes for each answer (p95 in ms) and how many bytes it has
// as gzip. The bars: 200 ms for the API and explain, 100 ms for the first page.
func BenchmarkAnswers(b *testing.B) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	v := crowd(1000, 100_000, time.Now())
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.Run("memory", func(b *testing.B) {
		for b.Loop() {
		}
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB-kept")
	})
	h := Handler(v, Options{})
	const one = "team-7%2Fservice-0007"
	for _, c := range []struct{ name, path string }{
		{"page of 1000 workloads", "/"}, {"page of one workload", "/workloads/" + one},
		{"status", "/api/v1/status"}, {"status with filter", "/api/v1/status?q=service-09"}, {"status of all", "/api/v1/status?limit=10000"},
		{"explain", "/api/v1/workloads/" + one + "?history=5"}, {"explain with observations", "/api/v1/workloads/" + one + "?observations=500"},
		{"history", "/api/v1/workloads/" + one + "/history"}, {"decisions", "/api/v1/workloads/" + one + "/decisions"},
		{"decisions further back", "/api/v1/workloads/" + one + "/decisions?before=3-2000-1"},
		{"hosts", "/hosts"}, {"plan", "/plan"}, {"report", "/report"}, {"pipeline page", "/pipeline"},
		{"patch", "/api/v1/workloads/" + one + "/patch"}, {"pipeline", "/api/v1/pipeline"}, {"diff", "/api/v1/diff"},
	} {
		b.Run(c.name, func(b *testing.B) { answer(b, h, c.path) })
	}
}

// answer asks for a path again and again.
func answer(b *testing.B, h http.Handler, path string) {
	var took []time.Duration
	bytes := 0
	for b.Loop() {
		r := httptest.NewRequest("GET", path, nil)
		r.Host = "localhost"
		r.Header.Set("Accept-Encoding", "gzip")
		w := &discard{header: http.Header{}, code: 200}
		began := time.Now()
		h.ServeHTTP(w, r)
		took = append(took, time.Since(began))
		if bytes = w.bytes; w.code != 200 {
			b.Fatal(path, w.code)
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
	b.ReportMetric(float64(bytes)/1024, "KiB-gzip")
}

// BenchmarkFleet prints the same for 10,000 workloads with two knobs each on 1,000
// hosts. The bar: 1 s for the first page.
func BenchmarkFleet(b *testing.B) {
	now := time.Now()
	const each = 20
	v := crowd(10_000, 100_000, now)
	rows := v.Page(now, view.Filter{Limit: view.MaxRows}).Workloads
	v.Observe(&trimtab.Holding{Host: "host-a", Time: now})
	for n := range 2 * len(rows) / each {
		h := &trimtab.Holding{Pool: "cpu", Host: fmt.Sprintf("host-%04d", n), Time: now, LeaseLeft: 60, Capacity: map[string]float64{"cpu": 48}}
		for i := range each {
			name := rows[(n*each+i)%len(rows)].Name
			h.Targets = append(h.Targets, trimtab.KnobState{KnobID: trimtab.KnobID{Pool: "cpu", Host: h.Host, Workload: name, Resource: "cpu"}, Knob: "cgroup v2 shop.slice/" + name, Now: trimtab.Units(2), Since: now, Baseline: trimtab.Units(2), Max: 8})
		}
		v.Observe(h)
	}
	h := Handler(v, Options{})
	one := "team-7%2Fservice-0007"
	for _, path := range []string{"/", "/hosts", "/hosts/host-0500", "/workloads/" + one, "/api/v1/status", client, "/api/v1/hosts", "/api/v1/diff"} {
		b.Run(path, func(b *testing.B) { answer(b, h, path) })
	}
}

// client is what the command line asks.
const client = "/api/v1/status?limit=10000&hosts=10000"
