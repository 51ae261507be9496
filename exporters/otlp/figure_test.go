package otlp

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/newest"
)

func TestWhatInstancesHaveIsSummedOverEachHost(t *testing.T) {
	f := &figures{newest: newest.Model{Hosts: newest.Hosts{Max: maxHosts}, MaxWorkloads: maxWorkloads}}
	on := func(host, instance string, now trimtab.Amount) trimtab.KnobState {
		return trimtab.KnobState{KnobID: trimtab.KnobID{Pool: "p", Host: host, Workload: "w", Instance: instance, Resource: "cpu"}, Now: now}
	}
	hear := func(host string, knobs ...trimtab.KnobState) {
		f.observe(time.Unix(1, 0), &trimtab.Holding{Pool: "p", Host: host, Targets: knobs})
	}
	want := func(what string, held map[newest.HostResource]float64) {
		t.Helper()
		if got := f.allocations("w"); !maps.Equal(got, held) {
			t.Errorf("%s: %v, want %v", what, got, held)
		}
	}
	a, b := newest.HostResource{Host: "a", Resource: "cpu"}, newest.HostResource{Host: "b", Resource: "cpu"}
	for range 2 { // once more is no news
		hear("a", on("a", "1", trimtab.Units(1)), on("a", "2", trimtab.Units(2)))
		hear("b", on("b", "", trimtab.Units(4)))
		want("on two hosts", map[newest.HostResource]float64{a: 3, b: 4})
	}
	hear("a", on("a", "1", trimtab.Units(1)), on("a", "2", trimtab.Unlimited()), on("a", "3", trimtab.Units(1)))
	want("one without a limit", map[newest.HostResource]float64{b: 4})
	hear("b")
	want("one gone", map[newest.HostResource]float64{})
}

func TestAHostThatIsGoneHoldsNothingWhileItsWorkloadsGoOn(t *testing.T) {
	f := &figures{newest: newest.Model{Hosts: newest.Hosts{Max: maxHosts}, MaxWorkloads: maxWorkloads}}
	began := time.Unix(1, 0)
	f.observe(began, &trimtab.Holding{Pool: "p", Host: "gone", Targets: []trimtab.KnobState{
		{KnobID: trimtab.KnobID{Pool: "p", Host: "gone", Workload: "w", Resource: "cpu"}, Now: trimtab.Units(1)}}})
	later := began.Add(forgotten + time.Second)
	f.observe(later, &trimtab.Estimate{Workload: "w", Time: later})
	if f.expire(later); f.newest.Of("w") == nil || len(f.allocations("w")) != 0 {
		t.Errorf("%v after %v", f.allocations("w"), forgotten)
	}
}

func TestOfManyPlacesTheSameArePushedEachTime(t *testing.T) {
	f := &figures{newest: newest.Model{Hosts: newest.Hosts{Max: maxHosts}, MaxWorkloads: maxWorkloads}}
	for i := range 2 * maxHeld {
		host := fmt.Sprintf("h%03d", i)
		now := trimtab.Units(1)
		if i == 0 {
			now = trimtab.Unlimited()
		}
		f.observe(time.Unix(1, 0), &trimtab.Holding{Pool: "p", Host: host, Targets: []trimtab.KnobState{{KnobID: trimtab.KnobID{Pool: "p", Host: host, Workload: "w", Resource: "cpu"}, Now: now}}})
	}
	for range 5 {
		got := f.allocations("w")
		if _, last := got[newest.HostResource{Host: fmt.Sprintf("h%03d", maxHeld-1), Resource: "cpu"}]; len(got) != maxHeld-1 || !last {
			t.Fatalf("%d places, want the first %d but the one without a limit", len(got), maxHeld)
		}
	}
}

func TestAWorkloadThatIsHeldHasNoTarget(t *testing.T) {
	f := &figures{newest: newest.Model{MaxWorkloads: maxWorkloads}}
	began, want := time.Unix(1, 0), 2.0
	f.observe(began, &trimtab.Plan{Pool: "p", Sequence: 1, Time: began, Actions: []trimtab.Action{
		{KnobID: trimtab.KnobID{Workload: "w", Resource: "cpu"}, Why: trimtab.Reason{Target: &want, Demand: &want}}}})
	if v := f.values("w"); v[target] == nil || *v[target] != 2 || v[demand] == nil {
		t.Errorf("%v", v)
	}
	f.observe(began, &trimtab.Plan{Pool: "p", Sequence: 2, Time: began, Held: map[string]trimtab.Held{"w": {Text: "no spans"}}})
	if v := f.values("w"); v[target] != nil || v[demand] != nil {
		t.Errorf("%v", v)
	}
}
