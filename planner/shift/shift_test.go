package shift

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
)

var t0 = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func id(workload, host int) trimtab.KnobID {
	return trimtab.KnobID{Host: fmt.Sprint("h", host), Workload: fmt.Sprint("w", workload)}
}

// twoHosts have 4 cores each: w0 has an instance on both, w1 on the first alone, w2 on the second.
// Each needs so many cores.
func twoHosts(needs [3]float64, late bool) Round {
	r := Round{Now: t0}
	for i, cost := range needs {
		r.Workloads = append(r.Workloads, Workload{Cost: cost, Instances: 1 + max(0, 1-i), Late: late && i == 1})
	}
	for h := range 2 {
		host := Host{Has: 4}
		for _, in := range []Instance{{Workload: 0, Load: 0.5}, {Workload: 1 + h, Load: 1}} {
			in.ID, in.Entitled, in.Least, in.Quantum = id(in.Workload, h), 2, 0.1, 0.01
			host.Instances = append(host.Instances, in)
		}
		r.Hosts = append(r.Hosts, host)
	}
	return r
}

// play decides every second, and returns the state and the verdict after the last.
func play(s State, seconds int, round func() Round) (State, Verdict) {
	var what Verdict
	for range seconds {
		r := round()
		s, what = Decide(s, r)
		for i := range s.Shares {
			if of := s.Shares[i]; of.Amount < 0 || math.IsNaN(of.Amount) {
				panic(of)
			}
		}
	}
	return s, what
}

// clock is what gives rounds their times.
func clock(from time.Time, r Round) func() Round {
	return func() Round {
		from = from.Add(time.Second)
		r.Now = from
		return r
	}
}

func TestWhereNobodyIsLateNothingIsDecided(t *testing.T) {
	s, what := play(State{}, 60, clock(t0, twoHosts([3]float64{3, 3, 0.5}, false)))
	if what != Fits || len(s.Shares) > 0 {
		t.Errorf("%v: %+v", what, s)
	}
}

// w0 needs 3 cores, half of them on the full host, w1 3, which are nowhere else: 4 cores have
// room for 1 of w0, and w0 goes on with less than half of its work only where it must.
func TestWhatHasInstancesElsewhereMakesRoomOnAFullHost(t *testing.T) {
	round := clock(t0, twoHosts([3]float64{3, 3, 0.5}, true))
	s, what := play(State{}, 2, round)
	if what != Late || len(s.Shares) > 0 {
		t.Errorf("after a second of late requests: %v, %+v", what, s)
	}
	s, what = play(s, 1, round)
	if what != Chosen {
		t.Fatalf("after two: %v", what)
	}
	w0, _, _ := s.Of(id(0, 0))
	w1, _, _ := s.Of(id(1, 0))
	if w1 < 3 || w0 < 0.1 || w0+w1 > 4+1e-9 || !s.Shares[id(0, 0)].Makes || s.Shares[id(1, 0)].Makes {
		t.Errorf("on the full host: %+v", s.Shares)
	}
	if s.Shares[id(0, 1)].Makes || s.Shares[id(2, 1)].Makes {
		t.Errorf("on the other: %+v", s.Shares)
	}
}

func TestWhatMakesRoomHasALimitTooOnceWeightsAloneDidNotHelp(t *testing.T) {
	round := clock(t0, twoHosts([3]float64{3, 3, 0.5}, true))
	s, _ := play(State{}, 7, round)
	if _, capped, _ := s.Of(id(0, 0)); capped {
		t.Error("capped at once")
	}
	s, _ = play(s, 2, round)
	if _, capped, _ := s.Of(id(0, 0)); !capped {
		t.Error("weights alone did not help for 5 s, and it has no limit")
	}
	if _, capped, _ := s.Of(id(1, 0)); capped {
		t.Error("who gets room is limited")
	}
}

func TestWhatDoesNotHelpIsTakenBackForTenMinutes(t *testing.T) {
	round := clock(t0, twoHosts([3]float64{3, 3, 0.5}, true))
	s, what := play(State{}, 123, round)
	if what != Late || len(s.Shares) > 0 {
		t.Errorf("requests are late for two minutes: %v, %+v", what, s.Shares)
	}
	if s, what = play(s, 590, round); what != Late {
		t.Errorf("within ten minutes: %v", what)
	}
	if _, what = play(s, 60, round); what != Chosen {
		t.Errorf("after ten minutes, for as long as the first time: %v", what)
	}
}

func TestNobodyMakesRoomAnyMoreOnceThereHasBeenRoomForAMinute(t *testing.T) {
	s, _ := play(State{}, 5, clock(t0, twoHosts([3]float64{3, 3, 0.5}, true)))
	calm := clock(t0.Add(5*time.Second), twoHosts([3]float64{1, 1, 0.5}, false))
	s, what := play(s, 59, calm)
	if what != Chosen {
		t.Errorf("within a minute: %v", what)
	}
	if s, what = play(s, 3, calm); what != Fits || len(s.Shares) > 0 {
		t.Errorf("after a minute: %v, %+v", what, s.Shares)
	}
}

func TestWhereTheNeedsDoNotFitTheHostsNobodyMakesRoom(t *testing.T) {
	s, what := play(State{}, 10, clock(t0, twoHosts([3]float64{5, 3, 3}, true)))
	if what != Overloaded || len(s.Shares) > 0 {
		t.Errorf("%v: %+v", what, s.Shares)
	}
}

func TestWhereTheCostOfRequestsIsNotKnownNobodyMakesRoom(t *testing.T) {
	r := twoHosts([3]float64{3, 3, 0.5}, true)
	r.Workloads[0].Unknown = true
	if s, what := play(State{}, 10, clock(t0, r)); what != Fits || len(s.Shares) > 0 {
		t.Errorf("%v: %+v", what, s.Shares)
	}
}

func TestAnInstanceThatComesTakesAllBackToTheEntitlements(t *testing.T) {
	r := twoHosts([3]float64{3, 3, 0.5}, true)
	s, _ := play(State{}, 5, clock(t0, r))
	r.Hosts[1].Instances = append(r.Hosts[1].Instances, Instance{ID: id(1, 1), Workload: 1, Load: 0.1, Entitled: 1, Quantum: 0.01})
	r.Now = t0.Add(6 * time.Second)
	if s, what := Decide(s, r); what != Late || len(s.Shares) > 0 {
		t.Errorf("%v: %+v", what, s.Shares)
	}
}

// Whatever comes: no host gives more than it has while the least amounts fit, everybody has its
// least, and the state that a round is given stays as it was.
func TestWhateverComesSharesFitTheirHosts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.Float64Range(0, 1)
		var s State
		now, workloads := t0, rapid.IntRange(1, 4).Draw(t, "workloads")
		for range rapid.IntRange(1, 40).Draw(t, "rounds") {
			now = now.Add(time.Duration(rapid.IntRange(1, 90).Draw(t, "seconds")) * time.Second)
			r := Round{Now: now}
			for range workloads {
				r.Workloads = append(r.Workloads, Workload{Cost: 0.01 + 5*part.Draw(t, "cost"), Late: rapid.Bool().Draw(t, "late"), Instances: 2})
			}
			for h := range 2 {
				host := Host{Has: 4 * part.Draw(t, "has")}
				for i := range workloads {
					host.Instances = append(host.Instances, Instance{ID: id(i, h), Workload: i, Load: 0.5, Entitled: host.Has / float64(workloads), Least: 0.01, Quantum: 0.001})
				}
				r.Hosts = append(r.Hosts, host)
			}
			before := fmt.Sprint(s)
			next, what := Decide(s, r)
			if fmt.Sprint(s) != before {
				t.Fatal("the state that was given changed")
			}
			if s = next; what != Chosen {
				continue
			}
			for _, h := range r.Hosts {
				sum := 0.0
				for _, in := range h.Instances {
					share, _, ok := s.Of(in.ID)
					if !ok || share < in.Least-in.Quantum {
						t.Fatalf("%v has %v of %v, want %v at least", in.ID, share, h.Has, in.Least)
					}
					sum += share
				}
				if sum > h.Has*(1+1e-9)+1e-9 && sum > 0.01*float64(workloads) {
					t.Fatalf("a host of %v gives %v", h.Has, sum)
				}
			}
		}
	})
}
