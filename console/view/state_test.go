package view

import (
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
)

// stateView has one workload per state.
func stateView() *Model {
	c := Config{Pool: "cpu", Resource: "cpu", Capacity: 8, Objective: "njc", Round: time.Second}
	for _, name := range []string{"fine", "misses", "misses-more", "held", "stale", "learning", "waiting", "broken"} {
		c.Workloads = append(c.Workloads, Workload{Name: name, Mode: trimtab.Act, SLO: "90% under 200ms", Target: .9, Share: true, Utility: func(p float64) float64 { return min(1, p/.9) }})
	}
	c.Workloads = append(c.Workloads, Workload{Name: "watched", Mode: trimtab.Off})
	v := New(c)
	curve := &trimtab.Curve{Level: .9, Knots: []trimtab.Knot{{Allocation: 1, Band: trimtab.Band{Upper: 1}}}}
	observe := func(name string, performance float64, at time.Time, curve *trimtab.Curve, hold string) {
		e := &trimtab.Estimate{Workload: name, Time: at, Performance: &performance, Curve: curve}
		if hold != "" {
			e.Hold = &trimtab.Held{Code: codes.HeldLate, Text: hold}
		}
		v.Observe(e)
	}
	observe("fine", .95, noon, curve, "")
	observe("misses", .5, noon, curve, "")
	observe("misses-more", .2, noon, nil, "")
	observe("held", .1, noon, curve, "no load from spans")
	observe("stale", .95, noon.Add(-time.Minute), curve, "")
	observe("learning", .95, noon, nil, "")
	observe("broken", .95, noon, curve, "")
	observe("watched", .1, noon, nil, "")
	observe("found", .1, noon, nil, "no performance")
	v.Observe(&trimtab.Holding{Host: "h", Time: noon, Targets: []trimtab.KnobState{{KnobID: trimtab.KnobID{Host: "h", Workload: "broken", Resource: "cpu"}, Knob: "cgroup v2 x", Problem: "gone"}}})
	return v
}

func TestEveryStateIsSaidInWords(t *testing.T) {
	want := map[string]string{
		"fine": "ok", "misses": "misses its SLO", "misses-more": "misses its SLO", "held": "held: no load from spans",
		"stale": "stale: nothing for 60 s", "learning": "learning", "waiting": "waiting for data", "broken": "knob: gone",
		"watched": "watched only", "found": "discovered, not configured",
	}
	for _, r := range stateView().Status(noon).Workloads {
		if r.State != want[r.Name] {
			t.Errorf("%s: %q, want %q", r.Name, r.State, want[r.Name])
		}
	}
}

func TestWorstComesFirst(t *testing.T) {
	var names []string
	for _, r := range stateView().Status(noon).Workloads {
		names = append(names, r.Name)
	}
	const want = "misses-more misses broken stale held learning waiting fine found watched"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestAHeldWorkloadIsExplainedByWhatIsKnownNow(t *testing.T) {
	v := testView()
	v.Observe(plan(1, 2))
	p := plan(2, 2)
	p.Actions, p.Held = nil, map[string]trimtab.Held{"shop": {Code: codes.HeldMissing, Text: "no spans"}}
	v.Observe(p)
	e, _ := v.Explain("shop", 0, noon.Add(5*time.Second))
	if !strings.HasPrefix(e.Decision, "hold: no spans (before that: ") || e.Inputs[0].Value != 4 || e.Inputs[0].Age != 7 {
		t.Errorf("%s, inputs %+v", e.Decision, e.Inputs)
	}
}

func TestARefusedApplyHoldsNobodyAndFreesNobody(t *testing.T) {
	v := testView()
	p := plan(1, 2)
	p.Actions, p.Held = nil, map[string]trimtab.Held{"shop": {Code: codes.HeldMissing, Text: "no spans"}}
	v.Observe(p)
	refused := plan(2, 2)
	refused.Cause = trimtab.Cause{Kind: codes.CauseRefused, Ref: "2-1", Text: "the state has changed"}
	refused.Actions, refused.Held = nil, map[string]trimtab.Held{"batch": {Code: codes.HeldChanged, Text: "found 3, the plan expected 2"}}
	v.Observe(refused)
	if e, _ := v.Explain("shop", 0, noon); e.Decision != "hold: no spans" {
		t.Errorf("shop: %s", e.Decision)
	}
	if e, _ := v.Explain("batch", 0, noon); strings.Contains(e.Decision, "expected") {
		t.Errorf("batch: %s", e.Decision)
	}
	if v.Rounds() != 1 || v.Applied("2-1") == nil || v.Status(noon).Cause != refused.Cause {
		t.Errorf("%d rounds, answered %v", v.Rounds(), v.Applied("2-1"))
	}
}

func TestSumsDoNotShowWhatAddingLeavesBehind(t *testing.T) {
	v := testView()
	v.Observe(&trimtab.Holding{Host: "h", Time: noon, Targets: []trimtab.KnobState{{KnobID: trimtab.KnobID{Host: "h", Workload: "a"}, Now: trimtab.Units(.1)}, {KnobID: trimtab.KnobID{Host: "h", Workload: "b"}, Now: trimtab.Units(.2)}}})
	if got := v.Status(noon).Allocated.Value; got != 0.3 {
		t.Error(got)
	}
}

func TestALimitAboveIsSaidBesideTheState(t *testing.T) {
	v := stateView()
	knob := func(workload, instance string, now trimtab.Amount, s *trimtab.KnobStatus) trimtab.KnobState {
		return trimtab.KnobState{KnobID: trimtab.KnobID{Host: "h", Workload: workload, Instance: instance, Resource: "cpu"}, Knob: "cgroup v2 x", Now: now, Status: s}
	}
	above := &trimtab.KnobStatus{Most: 1, By: "the limit of the group above, shop", Caps: true}
	v.Observe(&trimtab.Holding{Host: "h", Time: noon, Targets: []trimtab.KnobState{
		knob("fine", "", trimtab.Units(0.5), above), knob("misses", "1", trimtab.Unlimited(), above), knob("misses", "2", trimtab.Units(2), above), knob("held", "", trimtab.Units(3), nil),
	}})
	const want = "the limit of the group above, shop, gives 1 core"
	for _, r := range v.Status(noon).Workloads {
		notes := strings.Join(r.Notes, "; ")
		if r.Name == "misses" != (notes == want) || r.Name != "misses" && notes != "" {
			t.Errorf("%s: notes %q", r.Name, notes)
		}
		if r.Name == "misses" && (r.Allocation == nil || *r.Allocation != trimtab.Units(2)) {
			t.Errorf("two instances of 1 core in force each: %v", r.Allocation)
		}
		e, _ := v.Explain(r.Name, 0, noon)
		if strings.Join(e.Notes, "; ") != notes {
			t.Errorf("%s is explained with %q", r.Name, e.Notes)
		}
	}
}

func TestAnAlertThatFiresIsNamedWithItsEnd(t *testing.T) {
	v := stateView()
	p := plan(1, 2)
	p.Actions = nil
	p.Alarms = map[string]trimtab.Alarm{"fine": {Name: "Slow", More: 1, Since: noon.Add(-26 * time.Hour), Until: noon.Add(time.Hour)}, "held": {Name: "Old", Since: noon.Add(-time.Hour), Until: noon.Add(-time.Minute)}}
	v.Observe(p)
	want := "alert Slow and 1 more keeps it from being lowered, since " + noon.Add(-26*time.Hour).Local().Format("2006-01-02 15:04") + ", until " + clockOf(noon.Add(time.Hour), noon) + " unless it is repeated"
	for _, r := range v.Status(noon).Workloads {
		if notes := strings.Join(r.Notes, "; "); r.Name == "fine" != (notes == want) || r.Name != "fine" && notes != "" {
			t.Errorf("%s: notes %q", r.Name, notes)
		}
	}
	next := plan(2, 2)
	next.Actions = nil
	v.Observe(next)
	if e, _ := v.Explain("fine", 0, noon); len(e.Notes) > 0 {
		t.Errorf("once no alert fires: %q", e.Notes)
	}
}
