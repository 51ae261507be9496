package welfare

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab/planner/hosts"
	"github.com/trimtab/trimtab/planner/policy"
)

// onHosts puts the workloads of a drawn problem on hosts, some of which are
// tight, so that nobody's minimum is in the way.
func onHosts(t *rapid.T, p *policy.Problem) *policy.Problem {
	n := rapid.IntRange(1, 3).Draw(t, "hosts")
	least := make([]float64, n)
	for j := range p.Workloads {
		w := &p.Workloads[j]
		sum := 0.0
		for h := range n {
			if f := rapid.SampledFrom([]float64{0, 0.25, 0.5, 1, 1.0 / 3}).Draw(t, "share"); f > 0 && sum+f <= 1 {
				w.Parts = append(w.Parts, policy.Part{Host: h, Share: f})
				least[h] += f * float64(w.Min)
				sum += f
			}
		}
	}
	for h := range n {
		p.Hosts = append(p.Hosts, policy.Host{Name: fmt.Sprint("h", h), Units: least[h] + float64(rapid.IntRange(0, 12).Draw(t, "host"))/3})
	}
	return p
}

// everyOnHosts is every, without the allocations that a host has no room for.
func everyOnHosts(s *solver, visit func(units []int)) {
	every(s, func(units []int) {
		room := hosts.New(s.problem)
		for j, k := range units {
			room.Subtract(j, k)
		}
		if room.Holds() {
			visit(units)
		}
	})
}

func checkHosts(t *rapid.T, p *policy.Problem, units []int) {
	used := make([]float64, len(p.Hosts))
	for j, w := range p.Workloads {
		for _, part := range w.Parts {
			used[part.Host] += part.Share * float64(units[j])
		}
	}
	for h, u := range used {
		if u > p.Hosts[h].Units+1e-6 {
			t.Fatalf("host %d has %v units, of which %v are given out", h, p.Hosts[h].Units, u)
		}
	}
}

func TestOverHostsTheLeastUtilityIsTheGreatestThatThereIsAndThenTheNext(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := onHosts(t, drawProblem(t))
		e := Egalitarian{}
		got, err := e.Solve(p)
		if err != nil {
			t.Fatal(err)
		}
		checkBounds(t, p, got)
		checkHosts(t, p, got.Units)
		s := newSolver(p, e.reading())
		var best []int64
		everyOnHosts(s, func(units []int) {
			if v := ascending(s)(units); best == nil || slices.Compare(v, best) > 0 {
				best = v
			}
		})
		of := ascending(s)(got.Units)
		if len(best) > 0 && of[0] != best[0] {
			t.Fatalf("least utility %v, want %v", of[0], best[0])
		}
		l := newLevels(s)
		l.raise()
		l.climb()
		if folded, _ := hosts.Fold(p); len(folded.Hosts) > 0 && !l.chose && slices.Compare(of, best) != 0 {
			t.Fatalf("utilities %v, want %v", of, best)
		}
	})
}

// stepwise is the same answer by the slow and obvious way: everybody from its
// minimum, step by step.
func stepwise(s *solver) []int {
	l := newLevels(s)
	all := make([]int, len(s.known))
	for i, j := range s.known {
		all[i], l.need[i] = i, s.problem.Workloads[j].Min
		l.headroom.Subtract(j, l.need[i])
	}
	l.steps(all, quantum+1)
	return l.need
}

func TestOverHostsAllAreRaisedAsStepByStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := onHosts(t, drawProblem(t))
		if rapid.Bool().Draw(t, "large") {
			for j := range p.Workloads {
				w := &p.Workloads[j]
				w.Max *= 50
			}
			for h := range p.Hosts {
				p.Hosts[h].Units *= 50
			}
			p.Units *= 50
			p.Unit /= 50
		}
		s := newSolver(p, Egalitarian{}.reading())
		l := newLevels(s)
		l.raise()
		l.climb()
		if want := stepwise(s); !slices.Equal(l.need, want) {
			t.Fatalf("units %v, want %v step by step", l.need, want)
		}
	})
}

func TestOverHostsNobodyLosesByWhatIsSecured(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := onHosts(t, drawProblem(t))
		o := rapid.SampledFrom(objectives()).Draw(t, "objective")
		before, err := o.Solve(p)
		if err != nil {
			t.Fatal(err)
		}
		after, err := TieBreak{o}.Solve(p)
		if err != nil {
			t.Fatal(err)
		}
		checkBounds(t, p, after)
		checkHosts(t, p, after.Units)
		s := newSolver(p, o.readingOf(p))
		for _, j := range s.known {
			if u := &s.of[j]; u.value(after.Units[j]) < u.value(before.Units[j]) {
				t.Fatalf("%s: %v is worth less to %d than %v", o.Name(), after.Units, j, before.Units)
			}
		}
	})
}
