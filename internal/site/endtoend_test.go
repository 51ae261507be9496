package site

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/sim/cluster"
)

const application = `
pool: {cpu: 16, unit: 0.5, step: 2}
objective: end-to-end
planning: {entry: front}
round: 1s
analyzer: {report_interval: 1s}
workloads:
  - {name: front, mode: act, slo: {latency: 100ms, fraction: 0.9}, knob: {cgroup: front, cpu: {min: 0.5, max: 16}}}
  - {name: db, mode: act, knob: {cgroup: db, cpu: {min: 0.5, max: 16}}}
  - {name: cache, mode: act, knob: {cgroup: cache, cpu: {min: 0.5, max: 16}}}
  - {name: cron, mode: off}
`

// The steps are those of the file; a visit of a service takes
// 10 ms / (1 − need/has), and there are need/10ms of them a second.
func TestAnApplicationOfTheFileGivesWhatItHasToWhoMakesItWait(t *testing.T) {
	t.Parallel()
	cfg, err := config.Parse("f", []byte(application))
	if err != nil {
		t.Fatal(err)
	}
	start := time.Unix(1_000_000_000, 0).UTC()
	c := cluster.Config{Start: start, Held: map[string]float64{"front": 5, "db": 5, "cache": 5}}
	if c.Analyzer, err = AnalyzerConfig(cfg); err != nil {
		t.Fatal(err)
	}
	c.Analyzer.Forecaster = nil
	for i := range c.Analyzer.Workloads {
		c.Analyzer.Workloads[i].Forecaster = nil
	}
	if c.Planner, err = PlannerConfig(cfg); err != nil {
		t.Fatal(err)
	}
	l, err := cluster.New(c)
	if err != nil {
		t.Fatal(err)
	}
	needs := map[string]float64{"front": 1, "db": 4.5, "cache": 0.2}
	var first, last float64
	told := false
	for now, i := start, 0; i < 60; i++ {
		from := now
		now = now.Add(time.Second)
		latency, sketches := 0.0, map[string]*trimtab.Sketch{}
		for name, need := range needs {
			each := 0.01 / (1 - math.Min(0.98, need/l.Held(name)))
			latency += need * each
			part := &trimtab.Component{Spans: 100 * need}
			part.Sojourn.Add(each, 100*need)
			sketches[name] = &trimtab.Sketch{Workload: name, From: from, To: now, Requests: 100 * need, Spans: 100,
				Components: map[string]*trimtab.Component{name: part}}
		}
		sketches["front"].Latency.Add(latency, 100)
		for _, s := range sketches {
			l.Observe(now, s)
		}
		now = now.Add(600 * time.Millisecond) // what comes late has come
		l.Tick(now)
		l.Round(now)
		now = now.Add(-600 * time.Millisecond)
		if last = latency; i == 0 {
			first = latency
		}
		for _, a := range l.Plan().Actions {
			told = told || strings.Contains(a.Why.Summary, "end-to-end wants") && strings.HasPrefix(a.Why.Model, "kernel/") && a.Why.Bounds != nil
		}
	}
	if last > 0.4*first || l.Held("db") < 7 {
		t.Errorf("latency went from %.3f to %.3f s; db has %v, front %v, cache %v", first, last, l.Held("db"), l.Held("front"), l.Held("cache"))
	}
	if !told {
		t.Error("no action says why")
	}
	for _, row := range viewConfig(cfg).Workloads {
		want := "90% under 100ms at front"
		if row.Name == "cron" {
			want = ""
		}
		if row.SLO != want || row.Share || row.Name != "cron" && row.Target != 1 {
			t.Errorf("%s is shown with the SLO %q, target %v, share %v", row.Name, row.SLO, row.Target, row.Share)
		}
	}
}
