package replicas_test

import (
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/replicas"
)

func TestAMinuteThatMissesTheSLOWidensTheMarginOfReplicasOnceAndALateReportDoesNot(t *testing.T) {
	var m replicas.Minute
	margin := replicas.Margin{Share: 0.1}
	now := time.Unix(1_000_000, 0)
	report := func(performance, requests float64) {
		m.Observe(now, &trimtab.Estimate{Time: now, Performance: &performance, Requests: requests}, 0.9, &margin)
		now = now.Add(10 * time.Second)
	}
	for range 7 { // one report of few requests misses, its minute does not
		report(0.95, 100)
	}
	report(0.2, 3)
	for range 6 {
		report(0.95, 100)
	}
	if !(margin.Share < 0.1) {
		t.Fatalf("share %v after minutes that were met", margin.Share)
	}
	before := margin.Share
	for range 13 { // two minutes of misses
		report(0.5, 100)
	}
	if by := margin.Share - before; !(by > 0.1 && by < 0.2) {
		t.Errorf("two missed minutes add %v", by)
	}
	before = margin.Share
	late := 0.1
	for range 20 { // the same report again and again, and one that knows nothing
		m.Observe(now, &trimtab.Estimate{Time: now.Add(-time.Hour), Performance: &late, Requests: 1e6}, 0.9, &margin)
		m.Observe(now, &trimtab.Estimate{Time: now}, 0.9, &margin)
		now = now.Add(10 * time.Second)
	}
	if margin.Share != before {
		t.Errorf("share %v after nothing new, was %v", margin.Share, before)
	}
}
