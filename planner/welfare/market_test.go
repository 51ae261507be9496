package welfare

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab/planner/hosts"
	"github.com/trimtab/trimtab/planner/policy"
)

func TestOverHostsTheBoundIsNoLessThanTheBestOfAllAllocations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := onHosts(t, drawProblem(t))
		if _, ok := hosts.Fold(p); ok {
			t.Skip("no host can be full")
		}
		for _, o := range []Objective{Social{}, Social{MoveCost: 0.05}, Own{}} {
			got, err := o.Solve(p)
			if err != nil {
				t.Fatal(err)
			}
			checkBounds(t, p, got)
			checkHosts(t, p, got.Units)
			cost := unitCost(0, p)
			if s, ok := o.(Social); ok {
				cost = unitCost(s.MoveCost, p)
			}
			s := newSolver(p, o.readingOf(p))
			net, best := total(s, cost), int64(math.MinInt64)
			everyOnHosts(s, func(units []int) { best = max(best, net(units)) })
			n := 1.0
			if _, mean := o.(Social); mean {
				n = float64(max(1, len(s.known)))
			}
			of, short := net(got.Units), (got.Bound-got.Value)*quantum*n
			if of > best {
				t.Fatalf("%s: worth %d, of all allocations at most %d", o.Name(), of, best)
			}
			if float64(of)+short < float64(best)-1e-6*quantum {
				t.Fatalf("%s: worth %d, proven to be at most %v below the best, which is %d", o.Name(), of, short, best)
			}
		}
	})
}

func TestOverHostsTheProductIsNoMoreThanItsBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := onHosts(t, drawProblem(t))
		got, err := Nash{}.Solve(p)
		if err != nil {
			t.Fatal(err)
		}
		checkHosts(t, p, got.Units)
		s, score, best := newSolver(p, utilities(0)), Nash{}.Traits().Scorer(p), 0.0
		everyOnHosts(s, func(units []int) { best = math.Max(best, score(units)) })
		// Moving costs next to nothing here, yet something.
		if got.Value > best+1e-6 || got.Bound < best-1e-6 {
			t.Fatalf("%v, proven to be at most %v: the best of all is %v", got.Value, got.Bound, best)
		}
	})
}

func TestWorkloadsThatShareNoHostAreSolvedByThemselves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		with := *p
		with.Workloads, with.Units = nil, 0
		var want []int
		bound := 0.0
		for h := range 2 {
			own := *p
			own.Workloads = slices.Clone(p.Workloads)
			with.Hosts = append(with.Hosts, policy.Host{Name: fmt.Sprint("h", h), Units: float64(p.Units) + 0.5})
			with.Units += p.Units + 1
			for j := range own.Workloads {
				w := own.Workloads[j]
				w.Name, w.Parts = fmt.Sprint("h", h, w.Name), []policy.Part{{Host: h, Share: 1}}
				with.Workloads = append(with.Workloads, w)
			}
			alone, err := Own{}.Solve(p)
			if err != nil {
				t.Fatal(err)
			}
			want, bound = append(want, alone.Units...), bound+alone.Bound
		}
		got, err := Own{}.Solve(&with)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Units, want) || math.Abs(got.Bound-bound) > 1e-9 {
			t.Fatalf("%v of at most %v, by themselves %v of at most %v", got.Units, got.Bound, want, bound)
		}
	})
}
