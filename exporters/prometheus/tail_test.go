package prometheus

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/internal/metric"
)

func TestTheTailAndWhatAddsToItAreMetrics(t *testing.T) {
	set := metric.NewSet()
	e := New(set)
	v, limit := 0.15, 0.8
	c := &colocation.Contributions{Workload: "shop", Time: noon, Load: 50, MaxLoad: 100, SLO: 0.2, Quantile: 0.99, Tail: &v, Servpods: []colocation.Servpod{
		{Component: "db", Host: "b", Sojourn: 0.01, Contribution: 0.05, LoadLimit: &limit, Origin: colocation.FromHistory}, {Component: "web", Host: "a", Sojourn: 0.02}},
		Growth: &colocation.TailGrowth{Changed: true, Parts: []colocation.GrowthPart{{Component: "db", Host: "b", Share: 0.75}}}}
	e.Observe(c)
	text := exposition(t, set)
	for _, want := range []string{
		`trimtab_tail_seconds{workload="shop"} 0.15`, `trimtab_tail_slack_ratio{workload="shop"} 0.25`, `trimtab_tail_load_ratio{workload="shop"} 0.5`, `trimtab_tail_grew{workload="shop"} 1`,
		`trimtab_servpod_contribution{component="db",host="b",workload="shop"} 0.05`, `trimtab_servpod_loadlimit_ratio{component="db",host="b",workload="shop"} 0.8`,
		`trimtab_servpod_growth_ratio{component="db",host="b",workload="shop"} 0.75`, `trimtab_servpod_sojourn_seconds{component="web",host="a",workload="shop"} 0.02`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(text, `trimtab_servpod_slacklimit_ratio{`) {
		t.Error("a slacklimit that nobody knows is exported")
	}
	later := *c
	later.Servpods, later.Growth = c.Servpods[1:], nil
	e.Observe(&later)
	if text = exposition(t, set); strings.Contains(text, `component="db"`) || strings.Contains(text, "trimtab_tail_grew{") {
		t.Error("what is gone is still exported")
	}
}

func TestContributionsSetNoMetricsBeforeSomebodyLooks(t *testing.T) {
	e := New(metric.NewSet())
	for n := range 3000 {
		e.Observe(&colocation.Contributions{Workload: fmt.Sprint(n), Time: noon})
		e.Observe(&colocation.Contributions{Workload: "shop", Time: noon.Add(time.Duration(n) * time.Second)})
	}
	if len(e.tails) != 0 || len(e.changedTails) > maxTails {
		t.Errorf("series of %d workloads, and the news of %d wait", len(e.tails), len(e.changedTails))
	}
	e.catchUp()
	if len(e.tails) == 0 || len(e.changedTails) != 0 {
		t.Errorf("after a look: series of %d workloads, and the news of %d wait", len(e.tails), len(e.changedTails))
	}
}

func TestServpodsWithoutEndHaveNoSeriesWithoutEnd(t *testing.T) {
	set := metric.NewSet()
	e := New(set)
	for n := range 3000 {
		c := &colocation.Contributions{Workload: fmt.Sprintf("%0253d", n), Time: noon}
		for k := range 100 {
			c.Servpods = append(c.Servpods, colocation.Servpod{Component: fmt.Sprintf("%0253d", k), Host: fmt.Sprintf("%0253d", n)})
		}
		e.Observe(c)
	}
	if n := strings.Count(exposition(t, set), "trimtab_servpod_contribution{"); n > maxPods || n == 0 || e.tailBytes > maxTailBytes {
		t.Errorf("%d Servpods, %d bytes", n, e.tailBytes)
	}
}
