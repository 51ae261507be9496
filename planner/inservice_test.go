package planner_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/fair"
)

// limited is a pool whose workload a has limits of requests before it.
type limited struct {
	*planner.Planner
	now      time.Time
	sequence uint64
	cores    float64
	limits   map[string]trimtab.Amount // by instance
	problem  string
	resource string
}

func newLimited(t *testing.T, mode trimtab.Mode, admit planner.Admit, instances ...string) *limited {
	t.Helper()
	return newLimitedOf(t, trimtab.Concurrency, mode, admit, instances...)
}

func newLimitedOf(t *testing.T, resource string, mode trimtab.Mode, admit planner.Admit, instances ...string) *limited {
	t.Helper()
	cfg := pool(fair.NJCPolicy{}, trimtab.Act)
	for i := range cfg.Workloads {
		if w := &cfg.Workloads[i]; w.Name == "a" {
			w.Admit, w.Mode = map[string]planner.Admit{resource: admit}, mode
		}
	}
	p, err := planner.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l := &limited{Planner: p, now: t0, cores: 2, resource: resource, limits: map[string]trimtab.Amount{}}
	for _, i := range instances {
		l.limits[i] = trimtab.Unlimited()
	}
	p.Step(l.now, &trimtab.Leader{Pool: "p", Epoch: 1})
	return l
}

// round plays one in which a needs so many cores, and its requests take a time; met is the share in
// time. It returns what was asked of the limits, and why.
func (l *limited) round(needs, met float64, p95 trimtab.Seconds) (asked map[string]float64, why string, mode trimtab.Mode) {
	l.now = l.now.Add(31 * time.Second)
	l.hold()
	e := asks(l.now, "a", needs, 0, met)
	e.Latency = map[string]trimtab.Seconds{"p95": p95}
	out := l.Step(l.now, e)
	asked = map[string]float64{}
	for queue := plansOf(append(out, l.Step(l.now, nil)...)); len(queue) > 0; queue = queue[1:] {
		plan := queue[0]
		l.sequence = plan.Sequence
		for _, a := range plan.Actions {
			switch {
			case a.Resource == l.resource:
				asked[a.Instance], why, mode = a.Set.Value, a.Why.Summary, a.Mode
				if a.Mode == trimtab.Act {
					l.limits[a.Instance] = a.Set
				}
			case a.Workload == "a" && a.Mode == trimtab.Act:
				l.cores = a.Set.Value
			}
		}
		queue = append(queue, plansOf(l.Step(l.now, done(plan, l.now)))...)
	}
	return asked, why, mode
}

func (l *limited) hold() {
	h := holding(l.now, 1, l.sequence, map[string]float64{"a": l.cores})
	for name, v := range l.limits {
		h.Targets = append(h.Targets, trimtab.KnobState{
			KnobID: trimtab.KnobID{Pool: "p", Host: h.Host, Workload: "a", Instance: name, Resource: l.resource},
			Knob:   "test", Now: v, Baseline: trimtab.Unlimited(), Since: l.now, Min: 1, Max: 1000, Problem: l.problem,
		})
	}
	l.Step(l.now, h)
}

func TestAWorkloadHasInServiceWhatItsAllocationServesInTime(t *testing.T) {
	l := newLimited(t, trimtab.Act, planner.Admit{Max: 1000}, "")
	asked, why, mode := l.round(2, 1, 0.1)
	if len(asked) != 1 || !(asked[""] >= 1 && asked[""] < 1000) || mode != trimtab.Act || !strings.Contains(why, "lowered from unlimited") || !strings.Contains(why, "each of which takes 100ms") {
		t.Fatalf("%v: %s", asked, why)
	}
	before := l.limits[""]
	if asked, why, _ := l.round(2, 1, 0.1); len(asked) != 0 {
		t.Errorf("again: %v: %s", asked, why)
	}
	// In an overload the time of a request is that of those that wait inside, and proves nothing.
	l.round(16, 0.01, 5)
	if now := l.limits[""]; now.Value > 4*before.Value {
		t.Errorf("an overload raised the limit from %v to %v", before, now)
	}
}

func TestAnUnknownWorkloadIsNotLimited(t *testing.T) {
	l := newLimited(t, trimtab.Act, planner.Admit{Max: 1000}, "")
	for range 5 {
		if asked, why, _ := l.round(2, 0.01, 5); len(asked) != 0 {
			t.Fatalf("%v: %s", asked, why)
		}
	}
}

func TestARecommendedLimitIsOnlySaid(t *testing.T) {
	l := newLimited(t, trimtab.Recommend, planner.Admit{Max: 1000}, "")
	if asked, why, mode := l.round(2, 1, 0.1); len(asked) != 1 || mode != trimtab.Recommend || !strings.Contains(why, "would be lowered") {
		t.Errorf("%v, %s: %s", asked, mode, why)
	}
}

func TestADeclaredLimitIsSetWhateverIsKnownAndDividedAmongServers(t *testing.T) {
	l := newLimited(t, trimtab.Act, planner.Admit{Max: 1000, Value: 41}, "web1", "web2")
	if asked, why, _ := l.round(2, 0.01, 5); len(asked) != 2 || asked["web1"] != 21 || asked["web2"] != 21 || !strings.Contains(why, "declared") {
		t.Fatalf("%v: %s", asked, why)
	}
	if asked, why, _ := l.round(2, 1, 0.1); len(asked) != 0 {
		t.Errorf("again: %v: %s", asked, why)
	}
	delete(l.limits, "web2")
	if asked, _, _ := l.round(2, 1, 0.1); asked["web1"] != 41 {
		t.Errorf("one server left: %v", asked)
	}
}

func TestALimitThatSomebodyElseSetIsNotPlannedFor(t *testing.T) {
	l := newLimited(t, trimtab.Act, planner.Admit{Max: 1000, Value: 41}, "")
	l.problem = "changed by somebody else"
	if asked, why, _ := l.round(2, 1, 0.1); len(asked) != 0 {
		t.Errorf("%v: %s", asked, why)
	}
}

func TestWhatALimitFollowsFromOutlivesThePlanner(t *testing.T) {
	l := newLimited(t, trimtab.Act, planner.Admit{Max: 1000}, "")
	l.round(2, 1, 0.1)
	limit := l.limits[""]
	next := newLimited(t, trimtab.Act, planner.Admit{Max: 1000}, "")
	for name, state := range l.Snapshot() {
		if err := next.Restore(name, state); err != nil {
			t.Fatal(err)
		}
	}
	if asked, why, _ := next.round(2, 0.5, 5); len(asked) != 1 || asked[""] > 2*limit.Value {
		t.Errorf("%v, before %v: %s", asked, limit, why)
	}
}

func TestAWorkloadIsAdmittedTheRateThatItsAllocationServesInTime(t *testing.T) {
	l := newLimitedOf(t, trimtab.Rate, trimtab.Act, planner.Admit{Max: 1e6}, "")
	asked, why, mode := l.round(2, 1, 0.1)
	rate := asked[""]
	if len(asked) != 1 || !(rate > 0 && rate < 1e6) || mode != trimtab.Act || !strings.Contains(why, "requests per second lowered from unlimited") || !strings.Contains(why, "serve "+strconv.FormatFloat(rate, 'g', 3, 64)+" requests/s in time") {
		t.Fatalf("%v: %s", asked, why)
	}
	if asked, why, _ := l.round(2, 1, 5); len(asked) != 0 {
		t.Errorf("requests take longer, and the rate changed: %v: %s", asked, why)
	}
	l.cores = 4
	if asked, why, _ := l.round(4, 1, 0.1); asked[""] < 1.4*rate {
		t.Errorf("with more cores the rate is %v, before %v: %s", asked, rate, why)
	}
}

func TestTheRateNeedsNoTimeOfARequest(t *testing.T) {
	l := newLimitedOf(t, trimtab.Rate, trimtab.Act, planner.Admit{Max: 1e6}, "")
	if asked, why, _ := l.round(2, 0.01, 5); len(asked) != 1 {
		t.Errorf("%v: %s", asked, why)
	}
}

func TestTheDeclaredRateOfAClassIsSetBesideThatOfAllRequests(t *testing.T) {
	l := newLimitedOf(t, trimtab.Rate, trimtab.Act, planner.Admit{Max: 1e6, Value: 300, Declared: map[string]float64{"class=low": 20}}, "", "class=low")
	if asked, why, _ := l.round(2, 0.01, 5); len(asked) != 2 || asked[""] != 300 || asked["class=low"] != 20 || !strings.Contains(why, "its declared value") {
		t.Errorf("%v: %s", asked, why)
	}
	if asked, why, _ := l.round(2, 1, 0.1); len(asked) != 0 {
		t.Errorf("again: %v: %s", asked, why)
	}
}
