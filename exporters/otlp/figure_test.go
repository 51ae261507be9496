package otlp

import (
	"maps"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
)

func TestWhatInstancesHaveIsSummedOverEachHost(t *testing.T) {
	f := &figures{workloads: map[string]*figure{}, on: map[string][]string{}}
	on := func(host, instance string, now trimtab.Amount) trimtab.KnobState {
		return trimtab.KnobState{KnobID: trimtab.KnobID{Pool: "p", Host: host, Workload: "w", Instance: instance, Resource: "cpu"}, Now: now}
	}
	hear := func(host string, knobs ...trimtab.KnobState) {
		f.hear(time.Unix(1, 0), &trimtab.Holding{Pool: "p", Host: host, Targets: knobs})
	}
	want := func(what string, held map[place]float64) {
		t.Helper()
		if got := f.workloads["w"].held; !maps.Equal(got, held) {
			t.Errorf("%s: %v, want %v", what, got, held)
		}
	}
	a, b := place{"a", "cpu"}, place{"b", "cpu"}
	for range 2 { // once more is no news
		hear("a", on("a", "1", trimtab.Units(1)), on("a", "2", trimtab.Units(2)))
		hear("b", on("b", "", trimtab.Units(4)))
		want("on two hosts", map[place]float64{a: 3, b: 4})
	}
	hear("a", on("a", "1", trimtab.Units(1)), on("a", "2", trimtab.Unlimited()), on("a", "3", trimtab.Units(1)))
	want("one without a limit", map[place]float64{b: 4})
	hear("b")
	want("one gone", map[place]float64{})
}
