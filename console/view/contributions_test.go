package view

import (
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab/colocation"
)

func TestExplainNamesTheComponentThatTheTailGrewIn(t *testing.T) {
	at := time.Now().UTC()
	v, limit := 0.3, 0.8
	c := &colocation.Contributions{Workload: "shop", Time: at, Window: 4, Load: 50, MaxLoad: 100, SLO: 0.2, Quantile: 0.99, Tail: &v, Requests: 200, Levels: 5,
		Servpods: []colocation.Servpod{{Component: "cart", Host: "a", Sojourn: 0.02, Contribution: 0.03}, {Component: "db", Host: "b", Sojourn: 0.01, Contribution: 0.01, LoadLimit: &limit, Origin: colocation.FromHistory}},
		Growth:   &colocation.TailGrowth{Changed: true, Quantile: 0.99, Before: 0.1, After: 0.3, Since: at, Parts: []colocation.GrowthPart{{Component: "db", Host: "b", Share: 0.9, Before: 0.01, After: 0.2}}}}
	m := New(Config{})
	m.Observe(c)
	e, ok := m.Explain("shop", 0, at)
	if !ok || e.Contributions == nil {
		t.Fatalf("%v: %+v", ok, e)
	}
	if now := TailNow(e.Contributions); now != "p99 300 ms at 50 requests/s, 50% over the SLO" {
		t.Error(now)
	}
	if grew := TailGrew(e.Contributions); !strings.HasPrefix(grew, "p99 100 ms -> 300 ms since ") || !strings.HasSuffix(grew, ", in db on b (90% of it, 10 ms -> 200 ms)") {
		t.Error(grew)
	}
	parts := PartsOf(e.Contributions)
	if len(parts) != 2 || parts[0].Component != "db" || parts[0].Grew != "90%" || parts[0].LoadLimit != "80% (history)" || parts[1].Heat != 8 || parts[1].LoadLimit != "not known" {
		t.Errorf("%+v", parts)
	}
	if e, _ = m.Explain("shop", 0, at.Add(time.Hour)); e.Contributions != nil {
		t.Error("what was said an hour ago is told as if it were so now")
	}
	calm := *c
	calm.Growth = &colocation.TailGrowth{Quantile: 0.99, Before: 0.1, After: 0.1}
	if grew := TailGrew(&calm); grew != "no change: p99 100 ms, 100 ms before" {
		t.Error(grew)
	}
	if calm.Growth = nil; !strings.HasPrefix(TailGrew(&calm), "not known") {
		t.Error(TailGrew(&calm))
	}
}
