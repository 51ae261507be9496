package spread_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/spread"
)

func load(v float64) *float64 { return &v }

func amounts(t rapid.TB, p *spread.Pool) [][]int {
	t.Helper()
	a, err := p.Amounts()
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// counts is what an instance may hold now.
func counts(in *spread.Instance) int {
	if in.Unreadable {
		return max(in.Max, in.Current)
	}
	return in.Current
}

// held is what each host and the pool may hold, last, with amounts instead of
// what is there; nil: what is there.
func held(p *spread.Pool, amounts [][]int) []int {
	sums := make([]int, len(p.Hosts)+1)
	for j, w := range p.Workloads {
		for i := range w.Instances {
			in := &w.Instances[i]
			v := counts(in)
			if amounts != nil && !in.Unreadable {
				v = amounts[j][i]
			}
			sums[in.Host] += v
			sums[len(p.Hosts)] += v
		}
	}
	return sums
}

func capacities(p *spread.Pool) []int { return append(append([]int(nil), p.Hosts...), p.Quanta) }

// drawPool draws hosts that are nearly full, with instances of every kind.
func drawPool(t *rapid.T) *spread.Pool {
	p := &spread.Pool{}
	amount := rapid.IntRange(0, 20)
	for range rapid.IntRange(1, 4).Draw(t, "workloads") {
		w := spread.Workload{Target: rapid.IntRange(0, 60).Draw(t, "target")}
		for range rapid.IntRange(0, 5).Draw(t, "instances") {
			in := spread.Instance{Host: rapid.IntRange(0, 2).Draw(t, "host"), Current: amount.Draw(t, "current"),
				Min: rapid.IntRange(0, 3).Draw(t, "min"), New: rapid.IntRange(0, 4).Draw(t, "new") == 0,
				Unreadable: rapid.IntRange(0, 4).Draw(t, "unreadable") == 0}
			in.Max = in.Min + amount.Draw(t, "more")
			if rapid.Bool().Draw(t, "known") {
				in.Load = load(rapid.Float64Range(0, 10).Draw(t, "load"))
			}
			w.Instances = append(w.Instances, in)
		}
		p.Workloads = append(p.Workloads, w)
	}
	p.Hosts = make([]int, 3)
	now := held(p, nil)
	for h := range p.Hosts {
		p.Hosts[h] = max(0, now[h]+rapid.IntRange(-10, 10).Draw(t, "idle"))
	}
	p.Quanta = max(0, now[3]+rapid.IntRange(-10, 10).Draw(t, "idle"))
	return p
}

func TestNoHostAndNotThePoolIsGivenMoreThanItHas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPool(t)
		now, then := held(p, nil), held(p, amounts(t, p))
		unreadable := make([]bool, len(p.Hosts)+1)
		for _, w := range p.Workloads {
			for _, in := range w.Instances {
				if in.Unreadable {
					unreadable[in.Host], unreadable[len(p.Hosts)] = true, true
				}
			}
		}
		for r, c := range capacities(p) {
			if then[r] > c && !unreadable[r] {
				t.Fatalf("%d of %d quanta at %d", then[r], c, r)
			}
			if then[r] > max(c, now[r]) {
				t.Fatalf("%d of %d quanta at %d, where %d may be held now", then[r], c, r, now[r])
			}
		}
	})
}

func TestOneInstanceOnOneHostGetsExactlyTheTarget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		target := rapid.IntRange(0, 1<<50).Draw(t, "target")
		in := spread.Instance{Max: 1 << 50, Current: rapid.IntRange(0, 1<<50).Draw(t, "current"), New: rapid.Bool().Draw(t, "new")}
		if rapid.Bool().Draw(t, "known") {
			in.Load = load(rapid.Float64Range(0, 1e9).Draw(t, "load"))
		}
		p := &spread.Pool{Quanta: 1 << 50, Hosts: []int{1 << 50}, Workloads: []spread.Workload{{Target: target, Instances: []spread.Instance{in}}}}
		if got := amounts(t, p); got[0][0] != target {
			t.Fatalf("%d quanta, want %d", got[0][0], target)
		}
	})
}

func TestEveryInstanceStaysWithinItsBoundsWhereTheHostsHaveRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPool(t)
		p.Hosts, p.Quanta = []int{1000, 1000, 1000}, 3000
		for j, of := range amounts(t, p) {
			for i, a := range of {
				if in := p.Workloads[j].Instances[i]; !in.Unreadable && (a < in.Min || a > in.Max) {
					t.Fatalf("%d quanta, bounds %d to %d", a, in.Min, in.Max)
				}
			}
		}
	})
}

func TestWithRoomTheInstancesTogetherGetTheTargetToAQuantum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(t, "instances")
		w := spread.Workload{Target: rapid.IntRange(0, 1000).Draw(t, "target")}
		for range n {
			w.Instances = append(w.Instances, spread.Instance{Max: 1000, Load: load(rapid.Float64Range(0.1, 10).Draw(t, "load"))})
		}
		p := &spread.Pool{Quanta: 1000, Hosts: []int{1000}, Workloads: []spread.Workload{w}}
		sum := 0
		for i, a := range amounts(t, p)[0] {
			sum += a
			if exact := p.Workloads[0].Shares()[i] * float64(w.Target); math.Abs(float64(a)-exact) >= 1+1e-9 {
				t.Fatalf("%d quanta for a share of %v", a, exact)
			}
		}
		if sum != w.Target {
			t.Fatalf("%d quanta in all, want %d", sum, w.Target)
		}
	})
}

func TestAnInstanceThatCannotBeReadKeepsWhatItHas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPool(t)
		got := amounts(t, p)
		for j, w := range p.Workloads {
			for i, in := range w.Instances {
				if in.Unreadable && got[j][i] != in.Current {
					t.Fatalf("it has %d quanta and is to have %d", in.Current, got[j][i])
				}
			}
		}
	})
}

func TestNobodyIsLoweredForAnInstanceThatCannotBeRead(t *testing.T) {
	p := &spread.Pool{Quanta: 100, Hosts: []int{100}, Workloads: []spread.Workload{
		{Target: 50, Instances: []spread.Instance{{Max: 100, Current: 40}}},
		{Target: 50, Instances: []spread.Instance{{Max: 100, Current: 10, Unreadable: true}}},
	}}
	if got := amounts(t, p); got[0][0] != 40 {
		t.Errorf("%d quanta, want the 40 that it has", got[0][0])
	}
	p.Workloads[1].Instances[0].Unreadable = false
	if got := amounts(t, p); fmt.Sprint(got) != "[[50] [50]]" {
		t.Errorf("%v, want 50 for both", got)
	}
}

func TestANewInstanceStartsWithTheMedianOfItsSiblings(t *testing.T) {
	w := spread.Workload{Target: 100, Instances: []spread.Instance{{Max: 100, Load: load(1)}, {Max: 100, Load: load(2)}, {Max: 100, Load: load(5)}, {Max: 100, New: true}}}
	p := &spread.Pool{Quanta: 1000, Hosts: []int{1000}, Workloads: []spread.Workload{w}}
	// A quarter is the new one's; the others have 75 by 1 : 2 : 5.
	if got := amounts(t, p); fmt.Sprint(got) != "[[10 19 47 19]]" {
		t.Errorf("%v, want 19 for the new one", got)
	}
}

func TestWhereTheMinimumsFitOnlyWhatExceedsThemIsCut(t *testing.T) {
	p := &spread.Pool{Quanta: 100, Hosts: []int{60, 40}, Workloads: []spread.Workload{
		{Target: 60, Instances: []spread.Instance{{Min: 20, Max: 100}}},
		{Target: 40, Instances: []spread.Instance{{Max: 100}}},
		{Target: 30, Instances: []spread.Instance{{Host: 1, Max: 100}}},
	}}
	if got := amounts(t, p); fmt.Sprint(got) != "[[40] [20] [30]]" {
		t.Errorf("%v, want 40 and 20 of the first host's 60", got)
	}
	p.Quanta = 60
	if got := amounts(t, p); fmt.Sprint(got) != "[[32] [11] [17]]" {
		t.Errorf("%v, want 60 in all, 20 of them the minimum", got)
	}
}

func TestSharesAreThoseOfTheLoadAndEvenWhereItIsNotKnown(t *testing.T) {
	for _, c := range []struct {
		loads []*float64
		want  string
	}{
		{nil, "[]"},
		{[]*float64{nil}, "[1]"},
		{[]*float64{nil, nil}, "[0.5 0.5]"},
		{[]*float64{load(1), load(3)}, "[0.25 0.75]"},
		{[]*float64{load(1), load(3), nil, nil}, "[0.125 0.375 0.25 0.25]"},
		{[]*float64{load(0), load(3)}, "[0 1]"},
		{[]*float64{load(0), load(0)}, "[0.5 0.5]"},
		{[]*float64{load(math.NaN()), load(-1)}, "[0.5 0.5]"},
		{[]*float64{load(math.Inf(1)), load(5)}, "[0.5 0.5]"},
	} {
		if got := fmt.Sprint(spread.Shares(c.loads)); got != c.want {
			t.Errorf("shares %v, want %v", got, c.want)
		}
	}
}

func TestAMalformedPoolIsRefused(t *testing.T) {
	for _, p := range []spread.Pool{
		{Quanta: -1},
		{Hosts: []int{-1}},
		{Workloads: []spread.Workload{{Target: -1}}},
		{Hosts: []int{1}, Workloads: []spread.Workload{{Instances: []spread.Instance{{Host: 1}}}}},
		{Hosts: []int{1}, Workloads: []spread.Workload{{Instances: []spread.Instance{{Min: 2, Max: 1}}}}},
		{Hosts: []int{1}, Workloads: []spread.Workload{{Instances: []spread.Instance{{Current: -1}}}}},
	} {
		if _, err := p.Amounts(); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%+v: %v", p, err)
		}
	}
}
