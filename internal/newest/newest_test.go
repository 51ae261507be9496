package newest

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
)

// summed is what workloads have by the last words, told anew.
func summed(words map[string]*trimtab.Holding) map[string]map[Place]Given {
	out := map[string]map[Place]Given{}
	for _, h := range words {
		for i := range h.Targets {
			k := &h.Targets[i]
			if out[k.Workload] == nil {
				out[k.Workload] = map[Place]Given{}
			}
			g := out[k.Workload][Place{h.Host, k.Resource}]
			g.Add(Given{k.InForce().Value, k.InForce().Unlimited || k.Problem != "", 1})
			out[k.Workload][Place{h.Host, k.Resource}] = g
		}
	}
	return out
}

func TestWhatWorkloadsHaveIsTheSumOfTheLastWordsOfTheHosts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, now, words := Allocations{MaxHosts: 10, MaxKnobs: 1000}, time.Unix(1, 0), map[string]*trimtab.Holding{}
		pick := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
		for range rapid.IntRange(1, 20).Draw(t, "words") {
			h := &trimtab.Holding{Pool: "p", Host: pick("host", "a", "b", "c")}
			for i := range rapid.IntRange(0, 5).Draw(t, "knobs") {
				k := trimtab.KnobState{KnobID: trimtab.KnobID{Workload: pick("workload", "v", "w"), Resource: pick("resource", "cpu", "memory"), Instance: fmt.Sprint(i)}, Problem: pick("problem", "", "", "gone")}
				if k.Now = trimtab.Units(float64(rapid.IntRange(0, 3).Draw(t, "amount"))); k.Now.Value == 0 {
					k.Now = trimtab.Unlimited()
				}
				h.Targets = append(h.Targets, k)
			}
			before := summed(words)
			words[h.Host] = h
			changed, want := a.Hear(h, now, func(*trimtab.KnobState) bool { return true }), summed(words)
			knobs := 0
			for _, h := range words {
				knobs += len(h.Targets)
			}
			for _, name := range []string{"v", "w"} {
				if !maps.Equal(a.Of(name), want[name]) || changed[name] == maps.Equal(before[name], want[name]) || a.Knobs() != knobs {
					t.Fatalf("%s has %v, want %v; changed %v; %d knobs, want %d", name, a.Of(name), want[name], changed, a.Knobs(), knobs)
				}
			}
		}
		knobs := a.Knobs()
		if a.Forget(now); a.Knobs() != knobs {
			t.Fatalf("forgot %d knobs too early", knobs-a.Knobs())
		}
		if a.Forget(now.Add(1)); len(a.on)+len(a.of)+a.Knobs() != 0 {
			t.Fatalf("%d hosts, %d workloads and %d knobs are left", len(a.on), len(a.of), a.Knobs())
		}
	})
}

func TestHostsAndKnobsBeyondTheBoundsAreNotCounted(t *testing.T) {
	a := Allocations{MaxHosts: 2, MaxKnobs: 3}
	for _, host := range []string{"a", "b", "c", "a"} {
		h := &trimtab.Holding{Host: host}
		for i := range 2 {
			h.Targets = append(h.Targets, trimtab.KnobState{KnobID: trimtab.KnobID{Workload: "w", Resource: "cpu", Instance: fmt.Sprint(i)}, Now: trimtab.Units(1)})
		}
		a.Hear(h, time.Unix(1, 0), func(*trimtab.KnobState) bool { return true })
	}
	want := map[Place]Given{{"a", "cpu"}: {2, false, 2}, {"b", "cpu"}: {1, false, 1}}
	if got := a.Of("w"); !maps.Equal(got, want) || a.Knobs() != 3 {
		t.Errorf("%v of %d knobs, want %v", got, a.Knobs(), want)
	}
}

func TestPlansAreInTheOrderOfTermNumberAndStep(t *testing.T) {
	in := []Position{At(1, 9, 2), At(2, 1, 1), At(2, 1, 2), At(2, 3, 1)}
	if !slices.IsSortedFunc(in, Position.Compare) || in[2].String() != "2-1-2" {
		t.Error(in)
	}
}

// Names of pools and hosts may have slashes.
func TestHostsOfTwoPoolsAreTwo(t *testing.T) {
	a := Allocations{MaxHosts: 10, MaxKnobs: 10}
	for _, id := range []trimtab.KnobID{{Pool: "shop/eu", Host: "n1", Workload: "w", Resource: "cpu"}, {Pool: "shop", Host: "eu/n1", Workload: "w", Resource: "cpu"}} {
		a.Hear(&trimtab.Holding{Pool: id.Pool, Host: id.Host, Targets: []trimtab.KnobState{{KnobID: id, Now: trimtab.Units(1)}}}, time.Unix(1, 0), func(*trimtab.KnobState) bool { return true })
	}
	if got := a.Of("w"); len(got) != 2 {
		t.Errorf("%v, want both places", got)
	}
}
