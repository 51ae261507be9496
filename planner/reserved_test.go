package planner_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/fair"
)

// reserving is a fleet whose shares are room on their nodes, too, as the site set them.
func reserving(now map[trimtab.KnobID]trimtab.Amount, capacity map[string]float64) *fleet {
	f := newFleet(maps.Clone(now), capacity)
	f.baseline = now
	return f
}

// The pool is a third of what its nodes have: 2.7 of 8 cores would be the part of one of them.
func TestOnSeveralNodesRequestsStayWhileTheNeedsFitTheNodes(t *testing.T) {
	for name, elsewhere := range map[string]map[trimtab.KnobID]trimtab.Amount{
		"a has instances elsewhere": {at("h2", "a", "2"): trimtab.Units(0.5), at("h3", "a", "3"): trimtab.Units(0.5)},
		"nobody has":                {},
	} {
		now := map[trimtab.KnobID]trimtab.Amount{at("h1", "a", "1"): trimtab.Units(1.34), at("h1", "b", ""): trimtab.Units(1.34)}
		maps.Copy(now, elsewhere)
		c := "h1"
		if len(elsewhere) == 0 {
			c = "h2"
			now[at("h1", "b", "")] = trimtab.Units(4)
		}
		now[at(c, "c", "")] = trimtab.Units(1.34)
		f := reserving(now, map[string]float64{"h1": 16, "h2": 16, "h3": 16})
		cfg := guarded(fair.NJCPolicy{})
		cfg.Capacity = 8
		f.settle(leads(t, cfg), t0, 40, map[string]float64{"a": 3, "b": 3, "c": 3})
		for id, found := range now {
			if f.now[id] != found {
				t.Errorf("%s: %s/%s on %s has %v, want the %v that the site set", name, id.Workload, id.Instance, id.Host, f.now[id], found)
			}
		}
	}
}

func TestARequestBesideALimitKeepsWhatTheSiteSetAndGoesBackToIt(t *testing.T) {
	for _, now := range []float64{1, 0.5, 1.7} {
		a, b := at("h", "a", ""), at("h", "b", "")
		f := reserving(map[trimtab.KnobID]trimtab.Amount{a: trimtab.Units(1)}, nil)
		f.now[a], f.now[b] = trimtab.Units(now), trimtab.Units(1)
		p := leads(t, guarded(fair.NJCPolicy{}))
		f.settle(p, t0, 40, map[string]float64{"a": 4, "b": 6})
		if f.now[a] != trimtab.Units(1) || f.now[b].Value < 4.5 {
			t.Errorf("from %v: a has %v and b %v, want the 1 that the site set, and more", now, f.now[a], f.now[b])
		}
		last := f.settle(p, t0.Add(40*time.Second), 1, map[string]float64{"a": 4, "b": 6})
		if why := last.Unmoved["a"].Text; !strings.Contains(why, "it keeps what the site set, since b has no share by weight") {
			t.Errorf("it says %q", why)
		}
	}
}

func TestWhereTheNumberIsPlannedRequestsKeepWhatTheSiteSet(t *testing.T) {
	p, d := counted(t, 16, nil), deployed(2, 0.5)
	d.reserves = true
	d.pods[0].limit = 1.3
	all := d.play(p, t0, 180, steady(3))
	if d.replicas < 4 {
		t.Errorf("%d pods for 3 cores:\n%s", d.replicas, saysOf(all))
	}
	for _, pod := range d.pods {
		if pod.limit != 0.5 {
			t.Errorf("%s has %v, want the 0.5 that the site set", pod.name, pod.limit)
		}
	}
	if !strings.Contains(saysOf(all), "it keeps what the site set, since the number of instances of a is planned") {
		t.Errorf("nothing says so:\n%s", saysOf(all))
	}
}

func TestARolloutThatLowersRequestsIsNotUndone(t *testing.T) {
	p, d := counted(t, 16, func(w *planner.WorkloadConfig) { w.Count = nil }), deployed(2, 1)
	d.reserves = true
	d.play(p, t0, 60, steady(1))
	d.template, d.replicas = 0.2, 3
	all := d.play(p, t0.Add(60*time.Second), 120, steady(1))
	for _, plan := range all {
		for _, a := range plan.Actions {
			t.Errorf("%s is set to %v, want that all pods keep what their template said: %s", a.Instance, a.Set, a.Why.Summary)
		}
	}
}

func TestWhereThePoolHasSeveralResourcesRequestsKeepWhatTheSiteSet(t *testing.T) {
	s := newSite2(map[string]two{"h1": {8, 16 * gib}})
	s.put("h1", "a", "", two{1, gib})
	s.put("h1", "b", "", two{1, gib})
	a := at("h1", "a", "")
	s.baseline = map[trimtab.KnobID]trimtab.Amount{a: trimtab.Units(1)}
	s.now[a] = trimtab.Units(2)
	s.settle(t, leads(t, overHosts(two{8, 16 * gib}, "a", "b")), 40, map[string]two{"a": {4, 4 * gib}, "b": {4, 2 * gib}})
	if has := s.now[a]; has != trimtab.Units(1) || s.effective("a", "memory") < 3*gib || s.effective("b", "cpu") < 3 {
		t.Errorf("a has a request of %v and %v of memory, b %v cores", has, s.effective("a", "memory"), s.effective("b", "cpu"))
	}
}
