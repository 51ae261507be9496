package prometheus

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/internal/metric"
)

// on is one knob of a host.
func on(host, workload, instance string, now float64) trimtab.KnobState {
	return trimtab.KnobState{KnobID: trimtab.KnobID{Pool: "p", Host: host, Workload: workload, Instance: instance, Resource: "cpu"}, Now: trimtab.Units(now), Max: 4}
}

func says(host string, knobs ...trimtab.KnobState) *trimtab.Holding {
	return &trimtab.Holding{Pool: "p", Host: host, Time: noon, Capacity: map[string]float64{"cpu": 8}, Targets: knobs}
}

// wants checks lines of an exposition: those that begin with "no " must not be there.
func wants(t *testing.T, s *metric.Set, lines ...string) {
	t.Helper()
	text := exposition(t, s)
	for _, line := range lines {
		if not, absent := strings.CutPrefix(line, "no "); absent == strings.Contains(text, strings.TrimPrefix(line, "no ")) {
			t.Errorf("%q, absent %v", not, absent)
		}
	}
}

func TestWhatInstancesHaveIsSummedOverEachHost(t *testing.T) {
	set := metric.NewSet()
	e := New(set)
	e.Observe(says("a", on("a", "shop", "1", .5), on("a", "shop", "2", .7)))
	e.Observe(says("b", on("b", "shop", "", .6)))
	wants(t, set, `trimtab_workload_allocation{host="a",resource="cpu",workload="shop"} 1.2`+"\n", `trimtab_workload_allocation{host="b",resource="cpu",workload="shop"} 0.6`,
		`trimtab_workload_instances{workload="shop"} 3`, `trimtab_host_given{host="a",pool="p",resource="cpu"} 1.2`, `trimtab_host_capacity{host="a",pool="p",resource="cpu"} 8`, `trimtab_host_knobs{host="a",pool="p"} 2`)
	e.Observe(says("b"))
	free := on("a", "shop", "2", 0)
	free.Now = trimtab.Unlimited()
	e.Observe(says("a", on("a", "shop", "1", .5), free))
	wants(t, set, `no trimtab_workload_allocation{`, `trimtab_workload_instances{workload="shop"} 2`, `trimtab_host_given{host="a",pool="p",resource="cpu"} 0.5`, `trimtab_host_given{host="b",pool="p",resource="cpu"} 0`)
}

func TestAWorkloadOnManyHostsHasOneSeriesOfItsAllocation(t *testing.T) {
	set := metric.NewSet()
	e := New(set)
	for n := range maxSpread + 1 {
		host := fmt.Sprint("h", n)
		e.Observe(says(host, on(host, "shop", "", 2)))
		if n == maxSpread-1 {
			if got, _ := testutil.GatherAndCount(set, "trimtab_workload_allocation"); got != maxSpread {
				t.Errorf("%d series on %d hosts", got, n+1)
			}
		}
	}
	wants(t, set, fmt.Sprintf(`trimtab_workload_allocation{host="",resource="cpu",workload="shop"} %d`, 2*(maxSpread+1)))
	if got, _ := testutil.GatherAndCount(set, "trimtab_workload_allocation"); got != 1 {
		t.Errorf("%d series on %d hosts", got, maxSpread+1)
	}
}

func TestAHostThatIsNoLongerHeardOfIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := metric.NewSet()
		e := New(set)
		e.Observe(says("a", on("a", "shop", "", 2)))
		wants(t, set, `trimtab_host_given{host="a"`, `trimtab_workload_allocation{host="a"`)
		empty := e.usage.bytes
		time.Sleep(forgotten + time.Second)
		wants(t, set, `no host="a"`)
		if len(e.hosts) != 0 || e.newest.Len() != 0 || e.usage.bytes >= empty {
			t.Errorf("%d hosts, %d known, %d bytes of %d are left", len(e.hosts), e.newest.Len(), e.usage.bytes, empty)
		}
	})
}

// fleet exports a pool of so many workloads, each with two knobs, twenty to a host.
func fleet(workloads int, name string) (*metric.Set, *Exporter) {
	set := metric.NewSet()
	e := New(set)
	const each = 20
	names, declared := make([]string, workloads), make([]Workload, workloads)
	for w := range workloads {
		names[w] = fmt.Sprintf(name, w)
		declared[w] = Workload{Name: names[w], SLO: .95, Utility: func(p float64) float64 { return min(1, p/.95) }}
	}
	e.Configure(declared)
	for n := range workloads * 2 / each {
		host := fmt.Sprintf("host-%04d", n)
		h := says(host)
		for i := range each {
			h.Targets = append(h.Targets, on(host, names[(n*each+i)%workloads], fmt.Sprint(i), 1+float64(i)/7))
		}
		e.Observe(h)
	}
	p := &trimtab.Plan{Pool: "p", Time: noon, Capacity: 8}
	for w := range names {
		third := float64(w) / 3
		c := line()
		e.Observe(&trimtab.Estimate{Workload: names[w], Time: noon, Performance: &third, Allocation: &third, Curve: c, Reports: w,
			Load: &trimtab.LoadForecast{Now: third, Upper: third}, Latency: map[string]trimtab.Seconds{"p50": .1 / 3, "p95": .2 / 3, "p99": .4 / 3}})
		p.Actions = append(p.Actions, trimtab.Action{KnobID: trimtab.KnobID{Pool: "p", Host: "host-0001", Workload: names[w], Resource: "cpu"}, Mode: trimtab.Act, Set: trimtab.Units(1), Why: trimtab.Reason{Target: &third, Demand: &third}})
	}
	e.Observe(p)
	return set, e
}

func TestAFleetHasFiveMegabytesOfMetrics(t *testing.T) {
	for _, name := range []string{"service-%05d", "a-cluster-of-ours/some-namespace/service-%05d"} {
		set, e := fleet(10_000, name)
		text := exposition(t, set)
		t.Logf("%s: %d bytes, %d counted, %d workloads in full", name, len(text), e.usage.bytes, len(e.usage.full))
		if len(text) > 4_700_000 { // stages and process have 0.3 MB
			t.Errorf("%s: %d bytes of workloads and hosts", name, len(text))
		}
		for _, metric := range brief() {
			if n := strings.Count(text, "\n"+metric+"{"); n < 10_000 {
				t.Errorf("%s: %d series of %s", name, n, metric)
			}
		}
	}
}

func TestNamesWithoutEndHaveNoSeriesWithoutEnd(t *testing.T) {
	set := metric.NewSet()
	e := New(set)
	for n := range 10_000 {
		name := fmt.Sprintf("%0253d", n)
		e.Observe(says(name, on(name, name, "", 1)))
		e.Observe(&trimtab.Estimate{Workload: name, Time: noon, Hold: &trimtab.Held{Code: codes.HeldMissing}})
	}
	if got := len(exposition(t, set)); got > 5_000_000 || got < 2_000_000 {
		t.Errorf("%d bytes, %d counted", got, e.usage.bytes)
	}
}

func TestMetricsGrowWithTheKnobsUntilTheyAreInBrief(t *testing.T) {
	before := 0
	for _, workloads := range []int{500, 1000, 2000, 4000} {
		set, e := fleet(workloads, "service-%05d")
		got := len(exposition(t, set))
		t.Logf("%5d workloads, %5d knobs: %7d bytes, %d in brief", workloads, 2*workloads, got, e.usage.inBrief)
		if got < before || e.usage.inBrief == 0 && got > e.usage.bytes+200_000 {
			t.Errorf("%d bytes of %d workloads, %d counted, after %d", got, workloads, e.usage.bytes, before)
		}
		before = got
	}
}

func TestTheFirstWorkloadsOfTheConfigurationAreInFull(t *testing.T) {
	set, e := fleet(6000, "a-cluster-of-ours/service-%05d")
	e.catchUp()
	full := len(e.usage.full)
	if full < 100 || full == 6000 || full+e.usage.inBrief != 6000 {
		t.Fatalf("%d in full, %d in brief", full, e.usage.inBrief)
	}
	first, last := "a-cluster-of-ours/service-00000", "a-cluster-of-ours/service-05999"
	wants(t, set, `trimtab_workload_load{workload="`+first+`"}`, `no trimtab_workload_load{workload="`+last+`"}`, `no trimtab_workload_decisions_total{direction="raise",mode="act",workload="`+last+`"}`,
		`trimtab_workload_performance{workload="`+last+`"}`, `trimtab_workload_allocation{host="",resource="cpu",workload="`+last+`"}`, fmt.Sprintf("trimtab_exporter_brief_workloads %d", e.usage.inBrief))
	e.Configure([]Workload{{Name: last, SLO: .95}})
	third := 1.0 / 3
	e.Observe(&trimtab.Estimate{Workload: last, Time: noon, Load: &trimtab.LoadForecast{Now: third}})
	wants(t, set, `trimtab_workload_load{workload="`+last+`"} 0.333333`+"\n")
}
