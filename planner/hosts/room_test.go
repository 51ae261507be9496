package hosts_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab/planner/hosts"
	"github.com/trimtab/trimtab/planner/policy"
)

func draw(t *rapid.T) *policy.Problem {
	p := &policy.Problem{Unit: 1, Units: rapid.IntRange(0, 60).Draw(t, "units")}
	n := rapid.IntRange(1, 3).Draw(t, "hosts")
	for h := range n {
		p.Hosts = append(p.Hosts, policy.Host{Name: fmt.Sprint("h", h), Units: rapid.Float64Range(0, 30).Draw(t, "host")})
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "workloads") {
		w := policy.Workload{Name: fmt.Sprint("w", i), Weight: 1, Max: rapid.IntRange(0, 40).Draw(t, "max")}
		sum := 0.0
		for h := range n {
			if f := rapid.SampledFrom([]float64{0, 0.25, 0.5, 1.0 / 3, 1}).Draw(t, "share"); f > 0 && sum+f <= 1 {
				w.Parts = append(w.Parts, policy.Part{Host: h, Share: f})
				sum += f
			}
		}
		p.Workloads = append(p.Workloads, w)
	}
	return p
}

// fits adds everything up.
func fits(p *policy.Problem, units []int) bool {
	used, total := make([]float64, len(p.Hosts)), 0
	for j, w := range p.Workloads {
		for _, part := range w.Parts {
			used[part.Host] += part.Share * float64(units[j])
		}
		total += units[j]
	}
	for h := range used {
		if used[h] > p.Hosts[h].Units+1e-8 {
			return false
		}
	}
	return total <= p.Units
}

func TestAWorkloadCanHaveAsMuchAsItsHostsAndThePoolHaveAndNoMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t)
		room, units := hosts.New(p), make([]int, len(p.Workloads))
		for range 10 * len(p.Workloads) {
			j := rapid.IntRange(0, len(units)-1).Draw(t, "workload")
			most := min(room.Most(j), p.Workloads[j].Max-units[j])
			n := rapid.IntRange(-units[j], most).Draw(t, "units")
			units[j] += n
			room.Subtract(j, n)
			if !fits(p, units) || !room.Holds() || room.Over(j) {
				t.Fatalf("%v does not fit %+v", units, p)
			}
			more := room.Most(j) + 1
			if units[j]+more > p.Workloads[j].Max {
				continue // a host that Max cannot fill is left out
			}
			units[j] += more
			if fits(p, units) {
				t.Fatalf("%v fits %+v, which is more than Most allows", units, p)
			}
			units[j] -= more
		}
	})
}

func TestAFoldedProblemHasTheSameAnswers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t)
		folded, ok := hosts.Fold(p)
		if !ok {
			if folded != p {
				t.Fatal("it was not folded, and is another one")
			}
			return
		}
		if len(folded.Hosts) > 0 {
			t.Fatal("it was folded and has hosts")
		}
		units := make([]int, len(p.Workloads))
		for j, w := range p.Workloads {
			units[j] = rapid.IntRange(0, w.Max).Draw(t, "units")
		}
		if fits(p, units) != fits(folded, units) {
			t.Fatalf("%v fits %v, and folded %v: %+v", units, fits(p, units), fits(folded, units), p)
		}
	})
}

func TestEverybodyOnOneHostIsAPoolOfThatHost(t *testing.T) {
	p := &policy.Problem{Unit: 1, Units: 10, Hosts: []policy.Host{{Name: "idle", Units: 5}, {Name: "h", Units: 7.5}},
		Workloads: []policy.Workload{{Name: "a", Max: 10, Parts: []policy.Part{{Host: 1, Share: 1}}}}}
	if folded, ok := hosts.Fold(p); !ok || folded.Units != 7 || folded.Workloads[0].Parts != nil {
		t.Errorf("%v %+v, want 7 units", ok, folded)
	}
	if p.Units != 10 || p.Workloads[0].Parts == nil {
		t.Errorf("the problem itself was changed: %+v", p)
	}
}

func TestTheHostThatHasLeastLeftBinds(t *testing.T) {
	p := &policy.Problem{Unit: 1, Units: 10, Hosts: []policy.Host{{Name: "a", Units: 1}, {Name: "b", Units: 3}},
		Workloads: []policy.Workload{{Name: "w", Max: 10, Parts: []policy.Part{{Host: 0, Share: 0.25}, {Host: 1, Share: 0.5}}}}}
	room := hosts.New(p)
	if got := room.Binding(0, 1).String(); got != "host: a" {
		t.Errorf("%q binds, want host a: it has 4 units, and b 6", got)
	}
	if got := room.Binding(0, 11).String(); got != "capacity" {
		t.Errorf("%q binds, want the pool", got)
	}
}
