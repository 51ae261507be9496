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
func summed(words map[string]*trimtab.Holding) map[string]map[HostResource]Given {
	out := map[string]map[HostResource]Given{}
	for _, h := range words {
		for i := range h.Targets {
			k := &h.Targets[i]
			if out[k.Workload] == nil {
				out[k.Workload] = map[HostResource]Given{}
			}
			g := out[k.Workload][HostResource{h.Host, k.Resource}]
			g.Add(Given{k.InForce().Value, k.InForce().Unlimited || k.Problem != "", 1})
			out[k.Workload][HostResource{h.Host, k.Resource}] = g
		}
	}
	return out
}

func TestWhatWorkloadsHaveIsTheSumOfTheLastWordsOfTheHosts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, now, words := Hosts{Max: 10}, time.Unix(1, 0), map[string]*trimtab.Holding{}
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
			_, changed := f.Observe(h, now)
			want := summed(words)
			for _, name := range []string{"v", "w"} {
				gone := 0
				for _, h := range words {
					for i := range h.Targets {
						if k := &h.Targets[i]; k.Workload == name && k.Problem != "" {
							gone++
						}
					}
				}
				if !maps.Equal(f.Given(name), want[name]) || !maps.Equal(before[name], want[name]) && !slices.Contains(changed, name) || f.Problems(name) != gone {
					t.Fatalf("%s has %v, want %v; changed %v; %d problems, want %d", name, f.Given(name), want[name], changed, f.Problems(name), gone)
				}
			}
		}
		for h := range f.All() {
			f.Drop(h)
		}
		if f.Len()+len(f.of)+f.Bytes() != 0 {
			t.Fatalf("%d hosts, %d workloads and %d bytes are left", f.Len(), len(f.of), f.Bytes())
		}
	})
}

// at is a holding of that time, of a host with one knob of w.
func at(host string, own time.Time) *trimtab.Holding {
	return &trimtab.Holding{Host: host, Time: own, Targets: []trimtab.KnobState{{KnobID: trimtab.KnobID{Workload: "w", Resource: "cpu"}, Now: trimtab.Units(1)}}}
}

func TestOfTooManyHostsTheOneThatIsSilentForLongestGoes(t *testing.T) {
	f, now := Hosts{Max: 2}, time.Unix(1e6, 0)
	for i, host := range []string{"a", "b", "a", "c"} {
		f.Observe(at(host, now.Add(time.Duration(i))), now.Add(time.Duration(i)))
	}
	want := map[HostResource]Given{{"a", "cpu"}: {1, false, 1}, {"c", "cpu"}: {1, false, 1}}
	if got := f.Given("w"); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestTheAgeOfAValueCountsFromItsTimeOrItsArrival(t *testing.T) {
	arrived := time.Unix(1e6, 0)
	for _, c := range []struct{ before, behind, age time.Duration }{
		{0, 0, 0}, {time.Second, 0, time.Second}, {-time.Hour, 0, 0}, {Skew, Skew, 0}, {Skew + 1, Skew, Skew + 1},
	} {
		if got := arrived.Sub(ReportedAt(arrived.Add(-c.before), arrived, c.behind)); got != c.age {
			t.Errorf("%v before, %v is allowed: %v old on arrival, want %v", c.before, c.behind, got, c.age)
		}
	}
	f := Hosts{Max: 9}
	for own, silent := range map[time.Time]bool{arrived.Add(time.Hour): false, arrived.Add(-Skew): false, arrived.Add(-Skew - time.Second): true} {
		if h, _ := f.Observe(at("h", own), arrived); h.Silent(arrived) != silent || h.Silent(arrived.Add(SilentAfter)) != silent || !h.Silent(arrived.Add(SilentAfter+1)) {
			t.Errorf("a report of %v is silent from %v on", own, h.ReportedAt())
		}
	}
}

func TestALateEstimateReplacesNoneUnlessThatIsOfAClockFarAhead(t *testing.T) {
	now := time.Unix(1e6, 0)
	for ahead, want := range map[time.Duration]time.Duration{0: 0, Ahead: Ahead, Ahead + 1: -1} {
		m := Model{MaxWorkloads: 1}
		for _, own := range []time.Duration{ahead, -1} {
			m.Observe(&trimtab.Estimate{Workload: "w", Time: now.Add(own)}, now)
		}
		if e := m.Estimate("w", now.Add(time.Second), time.Second+1); e == nil || e.Time.Sub(now) != want {
			t.Errorf("%v ahead: %v", ahead, e)
		}
		if e := m.Estimate("w", now.Add(time.Second+2), time.Second); e != nil {
			t.Errorf("%v ahead: it counts for longer than asked", ahead)
		}
	}
	if m := (Model{MaxWorkloads: 1}); m.Estimate("w", now, time.Hour) != nil {
		t.Error("an estimate of nothing")
	}
}

func TestAPlanOfALostTermIsLateUntilTheNewestIsTooOld(t *testing.T) {
	began := time.Unix(1e6, 0)
	for _, c := range []struct {
		own, arrives time.Duration
		want         Order
	}{
		{time.Minute, time.Minute, Late}, {time.Minute + 1, time.Minute + 1, Refutes}, // whether it is read at once
		{time.Minute, time.Hour, Late}, {time.Minute + 1, time.Hour, Refutes}, // or later from what the bus kept
		{-1, time.Hour, Late}, {time.Hour, time.Minute, Late},
	} {
		var n Plan
		n.Observe(&trimtab.Plan{Epoch: 9, Sequence: 1, Time: began}, began, time.Minute)
		if got := n.Observe(&trimtab.Plan{Epoch: 1, Sequence: 1, Time: began.Add(c.own)}, began.Add(c.arrives), time.Minute); got != c.want || (n.Value.Epoch == 1) != (c.want == Refutes) {
			t.Errorf("%v after the newest, read %v after: %v, want %v", c.own, c.arrives, got, c.want)
		}
		if got := n.Observe(&trimtab.Plan{Epoch: 9, Sequence: 2, Time: began}, began, time.Minute); got != Next {
			t.Errorf("the next is %v", got)
		}
	}
}

func TestTheChoiceOfAWorkloadIsTheNewestPlansAndEndsWhereItIsHeld(t *testing.T) {
	now, target := time.Unix(1e6, 0), 3.0
	m := Model{Hosts: Hosts{Max: 2}, MaxWorkloads: 2, Followed: time.Minute, Admits: func(name string) bool { return name != "other" }}
	act := func(sequence uint64, set float64, held map[string]trimtab.Held, names ...string) {
		p := &trimtab.Plan{Pool: "p", Epoch: 1, Sequence: sequence, Time: now, Held: held}
		for _, name := range names {
			p.Actions = append(p.Actions, trimtab.Action{KnobID: trimtab.KnobID{Workload: name, Resource: "cpu"}, Set: trimtab.Units(set), Why: trimtab.Reason{Target: &target}})
		}
		m.Observe(p, now)
	}
	act(2, 2, nil, "w", "other")
	act(1, 1, nil, "w") // late
	if c := m.Choice("w", "cpu"); c == nil || c.Set != trimtab.Units(2) || *c.Target != 3 || c.Sequence != 2 || m.Choice("other", "cpu") != nil {
		t.Errorf("%+v", c)
	}
	act(3, 0, map[string]trimtab.Held{"w": {Text: "no spans"}})
	if c, w := m.Choice("w", "cpu"), m.Of("w"); c.Target != nil || c.Set != trimtab.Units(2) || w.Held != "no spans" || w.HeldIn != PositionOf(m.Plan("p").Value) {
		t.Errorf("%+v of %+v", c, w)
	}
	m.Observe(at("h", now), now)
	for _, c := range []struct {
		age         time.Duration
		known, host int
	}{{time.Minute, 1, 1}, {time.Minute + 1, 0, 0}} {
		if m.Forget(now.Add(c.age), time.Minute); len(m.of) != c.known || m.Len() != c.host || len(slices.Collect(m.Workloads())) != c.known {
			t.Errorf("after %v %d workloads and %d hosts are left", c.age, len(m.of), m.Len())
		}
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
	f := Hosts{Max: 10}
	for _, id := range []trimtab.KnobID{{Pool: "shop/eu", Host: "n1", Workload: "w", Resource: "cpu"}, {Pool: "shop", Host: "eu/n1", Workload: "w", Resource: "cpu"}} {
		f.Observe(&trimtab.Holding{Pool: id.Pool, Host: id.Host, Targets: []trimtab.KnobState{{KnobID: id, Now: trimtab.Units(1)}}}, time.Unix(1, 0))
	}
	if got := f.Given("w"); len(got) != 2 {
		t.Errorf("%v, want both places", got)
	}
}
