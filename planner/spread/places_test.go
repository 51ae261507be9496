package spread_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab/planner/spread"
)

// drawPlaces draws workloads on hosts.
func drawPlaces(t *rapid.T) (p spread.Problem, now [][]float64) {
	p.Hosts = rapid.SliceOfN(rapid.Float64Range(0, 4), 1, 5).Draw(t, "hosts")
	for range rapid.IntRange(1, 6).Draw(t, "workloads") {
		p.Needs = append(p.Needs, rapid.Float64Range(0.01, 5).Draw(t, "needs"))
		var on []int
		var at []float64
		first := rapid.IntRange(0, len(p.Hosts)-1).Draw(t, "first")
		for h := range p.Hosts {
			if h == first || rapid.Bool().Draw(t, "on") {
				on, at = append(on, h), append(at, rapid.Float64Range(0, 3).Draw(t, "now"))
			}
		}
		p.On, now = append(p.On, on), append(now, at)
	}
	return p, now
}

// The slow answer goes through all sets of workloads: the hosts of a set can do no more than
// they have.
func TestWorkIsPlacedAsFarAsTheTightestSetOfWorkloadsLets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, now := drawPlaces(t)
		x, times := p.Solve(now)
		want := math.Inf(1)
		for set := 1; set < 1<<len(p.Needs); set++ {
			hosts, need, can := map[int]bool{}, 0.0, 0.0
			for i := range p.Needs {
				if set>>i&1 == 0 {
					continue
				}
				need += p.Needs[i]
				for _, h := range p.On[i] {
					if !hosts[h] {
						hosts[h], can = true, can+p.Hosts[h]
					}
				}
			}
			want = math.Min(want, can/need)
		}
		if math.Abs(times-want) > 1e-6*want+1e-9 {
			t.Fatalf("%v times the needs, want %v", times, want)
		}
		used := make([]float64, len(p.Hosts))
		for i := range x {
			sum := 0.0
			for k, v := range x[i] {
				if v < 0 {
					t.Fatalf("workload %d has %v", i, x[i])
				}
				sum, used[p.On[i][k]] = sum+v, used[p.On[i][k]]+v
			}
			if math.Abs(sum-times*p.Needs[i]) > 1e-6*(1+sum) {
				t.Fatalf("workload %d has %v of %v", i, sum, times*p.Needs[i])
			}
		}
		for h, v := range used {
			if v > p.Hosts[h]*(1+1e-9)+1e-9 {
				t.Fatalf("host %d does %v of %v", h, v, p.Hosts[h])
			}
		}
	})
}

// The web server has instances on both hosts; the store fills most of the first one, which it
// shares. All that the store can have is there, so that the web server's work moves away.
func TestAServiceMakesRoomWhereAnotherHasNoOtherHost(t *testing.T) {
	p := spread.Problem{Needs: []float64{28, 40, 8}, Hosts: []float64{50, 50}, On: [][]int{{0, 1}, {0}, {1}}}
	x, times := p.Solve([][]float64{{14, 14}, {36}, {8}})
	if times != 1.25 || x[0][0] > 1e-6 || math.Abs(x[0][1]-35) > 1e-6 || math.Abs(x[1][0]-50) > 1e-6 || math.Abs(x[2][0]-10) > 1e-6 {
		t.Errorf("%v times the needs: %v", times, x)
	}
}

func TestWhereNothingNeedsToMoveTheWorkStaysWhereItIs(t *testing.T) {
	p := spread.Problem{Needs: []float64{2, 2}, Hosts: []float64{2, 2}, On: [][]int{{0, 1}, {0, 1}}}
	if x, times := p.Solve([][]float64{{1.5, 0.5}, {0.5, 1.5}}); times != 1 || x[0][0] != 1.5 || x[1][1] != 1.5 {
		t.Errorf("%v times the needs: %v", times, x)
	}
}
