package microservices

import (
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer"
	"github.com/trimtab/trimtab/lab/evolve"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/endtoend"
	"github.com/trimtab/trimtab/planner/guard"
	"github.com/trimtab/trimtab/quantity"
	"github.com/trimtab/trimtab/sim/cluster"
)

// learning is the end-to-end policy: the analyzer and planner steps of
// production, which see the P99 as the performance of the frontend and, with
// spans, sketches of all services.
type learning struct {
	loop   *cluster.Loop
	names  []string
	start  time.Time
	window int
	rate   float64
	spans  bool
	units  []int
}

const (
	// entry is the service whose requests count.
	entry = "frontend"
	// sloMS is its SLO in ms: the P99 that the recorded Cilantro run comes to
	// without overload.
	sloMS = 200.0
)

func newLearning(units int, s Settings, spans, guarded bool) (*learning, error) {
	g, step := guard.Config{Disabled: true}, stepUnits
	if guarded { // as in production
		g, step = guard.Config{}, (units+1)/3
	}
	l := &learning{names: Names(), rate: s.Rate, spans: spans, units: evolve.Equal(units, Count),
		start: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	window := time.Duration(WindowSeconds * float64(time.Second))
	c := cluster.Config{Start: l.start, Held: map[string]float64{},
		Analyzer: analyzer.Config{Report: window, Round: window, Settle: -1, Entry: entry},
		Planner: planner.Config{Pool: "sim", Resource: "cpu", Capacity: float64(units), Unit: 1, Step: step, Round: window,
			Policy: endtoend.Policy{MoveCost: endtoend.DefaultMoveCost}, Guard: g},
	}
	most := float64(units - (Count-1)*leastUnits)
	for i, name := range l.names {
		w := analyzer.Workload{Name: name, Target: 1, Resource: "cpu", Min: leastUnits, Max: most}
		if name == entry {
			w.LoadFrom, w.PerformanceFrom = analyzer.FromPrometheus, analyzer.FromPrometheus
		}
		c.Analyzer.Workloads = append(c.Analyzer.Workloads, w)
		c.Planner.Workloads = append(c.Planner.Workloads, planner.WorkloadConfig{Name: name, Mode: trimtab.Act, Min: leastUnits, Max: most, SLO: 1})
		c.Held[name] = float64(l.units[i])
	}
	var err error
	l.loop, err = cluster.New(c)
	return l, err
}

func (l *learning) at(window int) time.Time {
	return l.start.Add(time.Duration(float64(window) * WindowSeconds * float64(time.Second)))
}

func (l *learning) next() []int {
	l.loop.Round(l.at(l.window))
	for i, name := range l.names {
		l.units[i] = int(math.Round(l.loop.Held(name)))
	}
	return l.units
}

// tell turns a report into the samples of a Prometheus and the sketches of the
// spans.
func (l *learning) tell(r *Report) error {
	from, to := l.at(l.window), l.at(l.window+1)
	l.window++
	for _, v := range []*trimtab.Sample{
		{Workload: entry, Quantity: quantity.Load, Source: "sim", Time: to, Window: WindowSeconds, Value: l.rate},
		{Workload: entry, Quantity: quantity.Performance, Source: "sim", Time: to, Window: WindowSeconds, Value: sloMS / r.P99},
	} {
		if err := v.Validate(); err != nil {
			return err
		}
		l.loop.Observe(to, v)
	}
	for i := range r.Spans {
		if s := &r.Spans[i]; l.spans && s.Called > 0 {
			visits := s.Rate * WindowSeconds
			c := &trimtab.Component{Spans: visits}
			c.Sojourn.Add(s.Mean/1000, visits)
			l.loop.Observe(to, &trimtab.Sketch{Workload: l.names[i], From: from, To: to, Requests: visits, Spans: uint64(visits),
				Components: map[string]*trimtab.Component{l.names[i]: c}})
		}
	}
	l.loop.Tick(to)
	return nil
}
