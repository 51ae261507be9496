//go:build integration

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/contribution"
	"github.com/trimtab/trimtab/analyzer/path"
	"github.com/trimtab/trimtab/collector/spanfile"
	"github.com/trimtab/trimtab/colocation"
)

// liveEvery is the interval in which recordings are told as live traffic would be.
const liveEvery = 10 * time.Second

// sketchesOf are the sketches of a recording, in order of time.
func sketchesOf(t *testing.T, file string) (out []*trimtab.Sketch) {
	t.Helper()
	services, last := map[string]bool{}, int64(0)
	if _, err := readTraces(t.Context(), []string{file}, func(q *path.Request) {
		last = max(last, q.End)
		for i := range q.Visits {
			services[q.Visits[i].Component] = true
		}
	}); err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range services {
		names = append(names, name)
	}
	r, err := spanfile.Open(file, spanfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := path.New(path.Config{Every: liveEvery, Timeout: time.Hour, Settle: time.Hour, Grace: time.Hour,
		Workloads: []path.Match{{Name: "shop", Attributes: map[string][]string{"service.name": names}, Threshold: time.Second}}})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(0, last).Add(time.Second)
	var all []trimtab.Value
	for _, f := range r.Frames {
		all = append(all, p.Step(now, f)...)
	}
	for _, v := range append(all, p.Flush(now)...) {
		out = append(out, v.(*trimtab.Sketch))
	}
	slices.SortFunc(out, func(a, b *trimtab.Sketch) int { return a.From.Compare(b.From) })
	return out
}

// The same recordings as in live traffic: no requests, but sums in sketches of 10 s,
// three minutes without a fault before each. Of Train Ticket, with one request a second
// of many kinds, it is only told.
func TestLiveTrafficNamesTheInjectedComponentOfOnlineBoutique(t *testing.T) {
	dir := os.Getenv("TRIMTAB_DATA")
	if dir == "" {
		t.Skip("TRIMTAB_DATA is not set: no recorded incidents to read")
	}
	for _, c := range recordedIncidents() {
		if c.want == "" || c.why != "" {
			continue
		}
		want := c.want
		if want == "checkoutservice" {
			want = "no change" // p95 and p99 alone are longer, of 80 requests in 10 s: they scatter as much without a fault
		}
		g := liveGrowth(t, dir, &c)
		first, parts := "no change", ""
		if g != nil && g.Changed {
			for i, p := range g.Parts[:min(3, len(g.Parts))] {
				if i == 0 {
					first = p.Component
				}
				parts += fmt.Sprintf("  %s %.0f%%", p.Component, 100*p.Share)
			}
		}
		t.Logf("%-50s want %-22s got %s%s", c.app+strings.Join(c.incident, "+"), want, first, parts)
		if first != want && c.app == boutique {
			t.Errorf("%s%v: %s, want %s", c.app, c.incident, first, want)
		}
	}
}

// liveGrowth is the last growth that is told while an incident goes on, nil: there is none.
func liveGrowth(t *testing.T, dir string, c *nezha) (growth *colocation.TailGrowth) {
	l := contribution.NewLive(contribution.Objective{Workload: "shop", SLO: 1, Quantile: 0.9})
	at := time.Unix(1_700_000_000, 0)
	for n, minute := range append([]string{c.baseline, c.baseline, c.baseline}, c.incident...) {
		for _, s := range sketchesOf(t, filepath.Join(dir, c.app+minute+".json.gz")) {
			l.Observe(contribution.Interval{From: at, To: at.Add(liveEvery), Requests: s.Requests, Latency: &s.Latency, Servpods: s.Servpods, Calls: s.Calls})
			at = at.Add(liveEvery)
			if g := l.Report(at).Growth; n >= 3 && g != nil && g.Changed {
				growth = g
			}
		}
	}
	return growth
}
