package analyzer_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer"
	"github.com/trimtab/trimtab/analyzer/contribution"
	"github.com/trimtab/trimtab/analyzer/path"
	"github.com/trimtab/trimtab/codec"
	"github.com/trimtab/trimtab/colocation"
)

// shopSpans are n requests a second of web on node-a, which calls db on node-b for
// so many ms.
func shopSpans(t *testing.T, second, n int, db func(i int) int) *trimtab.SpanFrame {
	var w codec.FrameWriter
	resource := func(name, host string) uint16 {
		r, ok := w.AddResource([]trimtab.Attr{{Key: "service.name", Value: name}, {Key: "k8s.node.name", Value: host}})
		if !ok {
			t.Fatal("no room")
		}
		return r
	}
	web, dbr := resource("web", "node-a"), resource("db", "node-b")
	for i := range n {
		start := sec(float64(second) + float64(i)/float64(n+1)).UnixNano()
		took := int64(db(i)) * 1e6
		var s trimtab.Span
		binary.BigEndian.PutUint64(s.TraceID[:], uint64(second)<<20+uint64(i)+1)
		s.Adjusted, s.Kind, s.Resource = 1, trimtab.SpanServer, web
		s.SpanID[7], s.Start, s.End = 1, start, start+took+5e6
		w.Add(&s)
		s.SpanID[7], s.Parent[7], s.Start, s.End, s.Resource = 2, 1, start+2e6, start+2e6+took, dbr
		w.Add(&s)
	}
	return w.Frame(0)
}

func TestSpansBecomeContributionsAndNameTheComponentThatGrew(t *testing.T) {
	match := path.Match{Name: "shop", Attributes: map[string][]string{"service.name": {"web"}}, Threshold: 100 * time.Millisecond}
	p, err := path.New(path.Config{Workloads: []path.Match{match}, Discover: true})
	if err != nil {
		t.Fatal(err)
	}
	limit := 0.7
	c := analyzer.Config{Workloads: []analyzer.Workload{{Name: "shop", SLO: analyzer.SLO{Latency: 100 * time.Millisecond, Fraction: 0.9},
		Servpods: map[string]contribution.Thresholds{"web": {LoadLimit: &limit}}}}}
	a, err := analyzer.New(c)
	if err != nil {
		t.Fatal(err)
	}
	var last *colocation.Contributions
	told := 0
	run := func(from, to int, db func(i int) int) {
		for second := from; second < to; second++ {
			p.Step(sec(float64(second)), shopSpans(t, second, 40, db))
			for _, s := range p.Step(sec(float64(second)+0.99), nil) {
				a.Step(sec(float64(second)+0.99), s)
			}
			for _, v := range a.Step(sec(float64(second)+0.99), nil) {
				if x, ok := v.(*colocation.Contributions); ok {
					if err := x.Validate(); err != nil {
						t.Fatal(err)
					}
					last = x
					told++
				}
			}
		}
	}
	run(0, 200, func(i int) int { return 10 + i%10 })
	if told < 190 || last.Growth == nil || last.Growth.Changed || last.Tail == nil || last.Load < 39 || last.Load > 41 || len(last.Servpods) != 2 {
		t.Fatalf("%d reports, the last %+v", told, last)
	}
	db, web := last.Servpods[0], last.Servpods[1]
	if db.Component != "db" || db.Host != "node-b" || web.Host != "node-a" || web.LoadLimit == nil || web.Origin != colocation.Declared {
		t.Errorf("%+v", last.Servpods)
	}
	again, err := analyzer.New(c)
	if err != nil {
		t.Fatal(err)
	}
	for name, state := range a.Snapshot() {
		if err := again.Restore(name, state); err != nil {
			t.Fatal(err)
		}
	}
	a = again
	run(200, 240, func(i int) int { return 30 + i%10 })
	if g := last.Growth; g == nil || !g.Changed || len(g.Parts) != 1 || g.Parts[0].Component != "db" || g.Parts[0].Host != "node-b" {
		t.Errorf("after the db became slow: %+v", last.Growth)
	}
}

// The db scatters at high load: alone that is its loadlimit, beside jobs their doing.
func TestWhileBestEffortJobsRunOnItsHostNoLoadlimitIsFound(t *testing.T) {
	for host, want := range map[string]bool{"node-a": false, "node-b": false, "node-c": true} {
		match := path.Match{Name: "shop", Attributes: map[string][]string{"service.name": {"web"}}, Threshold: 100 * time.Millisecond}
		p, err := path.New(path.Config{Workloads: []path.Match{match}, Discover: true})
		if err != nil {
			t.Fatal(err)
		}
		a, err := analyzer.New(analyzer.Config{Workloads: []analyzer.Workload{{Name: "shop", SLO: analyzer.SLO{Latency: 100 * time.Millisecond, Fraction: 0.9}}}})
		if err != nil {
			t.Fatal(err)
		}
		var last *colocation.Contributions
		for second := range 240 {
			load := 10 * (1 + second/10%6)
			now := sec(float64(second) + 0.99)
			a.Step(now, &colocation.Colocation{Host: host, Pool: "p/best-effort", Time: now, Running: 1})
			p.Step(sec(float64(second)), shopSpans(t, second, load, func(i int) int {
				if load > 40 && i%10 == 0 {
					return 80
				}
				return 10
			}))
			for _, s := range p.Step(now, nil) {
				a.Step(now, s)
			}
			for _, v := range a.Step(now, nil) {
				if c, ok := v.(*colocation.Contributions); ok {
					last = c
				}
			}
		}
		db := last.Servpods[0]
		if got := db.LoadLimit != nil; got != want || db.Sojourn == 0 {
			t.Errorf("jobs on %s: loadlimit %v, sojourn %v", host, db.LoadLimit, db.Sojourn)
		}
	}
}
