package drf

import (
	"math"
	"math/rand/v2"
	"testing"
)

// medium draws a pool large enough for batches, long columns and the heap.
func medium(rng *rand.Rand, tenants, resources int, ties bool) Problem {
	p := Problem{Capacities: make([]float64, resources)}
	for r := range p.Capacities {
		if p.Capacities[r] = 0.5 + rng.Float64(); ties {
			p.Capacities[r] = float64(1 + rng.IntN(2))
		}
	}
	for range tenants {
		p.Tenants = append(p.Tenants, mediumTenant(rng, resources, ties))
	}
	return p
}

func mediumTenant(rng *rand.Rand, resources int, ties bool) Tenant {
	t := Tenant{Weight: 1}
	seen := map[int]bool{}
	for range 1 + rng.IntN(12) {
		r := rng.IntN(resources)
		if rng.IntN(4) == 0 {
			r = rng.IntN(1 + resources/50) // popular ones
		}
		d := Demand{Resource: r, Amount: 1 - rng.Float64()}
		if ties {
			d.Amount = 1
		}
		if !seen[r] {
			seen[r] = true
			t.Demands = append(t.Demands, d)
		}
	}
	if !ties {
		t.Weight = 0.5 + rng.Float64()
	}
	if rng.IntN(3) == 0 {
		l := rng.Float64() * 0.05
		t.Limit = &l
	}
	return t
}

func solved(t *testing.T, m *Matrix, o Options) (Result, []float64) {
	t.Helper()
	r, err := m.Solve(o)
	if err != nil {
		t.Fatal(err)
	}
	levels := make([]float64, m.Tenants())
	for i := range levels {
		levels[i] = r.Level(i)
	}
	return r, levels
}

func matrixOf(t *testing.T, p Problem) *Matrix {
	t.Helper()
	m, err := p.matrix()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func worstRelative(t *testing.T, got, want []float64) float64 {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d levels, want %d", len(got), len(want))
	}
	worst := 0.0
	for i := range got {
		if got[i] != want[i] {
			worst = max(worst, math.Abs(got[i]-want[i])/max(got[i], want[i]))
		}
	}
	return worst
}

func mostOver(r Result) float64 {
	worst := 0.0
	for _, left := range r.Room() {
		worst = max(worst, -left)
	}
	return worst
}

func TestEventsAndRoundsAgreeOnLargerPools(t *testing.T) {
	rng := rand.New(rand.NewPCG(testSeed(t), 2))
	for k, c := range [][2]int{{3000, 700}, {3000, 7}, {500, 3000}, {4000, 60}, {2500, 1}} {
		for _, ties := range []bool{false, true} {
			m := matrixOf(t, medium(rng, c[0], c[1], ties))
			r, levels := solved(t, m, Options{})
			want := m.Rounds(0, nil)
			if e := worstRelative(t, levels, want.Level); e > 1e-9 {
				t.Errorf("pool %d, ties %v: %g away from the rounds", k, ties, e)
			}
			if o := mostOver(r); o > 1e-12 {
				t.Errorf("pool %d, ties %v: over capacity by %g", k, ties, o)
			}
			if r.Stopped || r.Active != 0 {
				t.Errorf("pool %d: stopped by nothing", k)
			}
		}
	}
}

func TestTheOrderOfTenantsAndEntriesMovesNothingBeyondRounding(t *testing.T) {
	rng := rand.New(rand.NewPCG(testSeed(t), 4))
	for range 4 {
		p := medium(rng, 3000, 400, false)
		_, want := solved(t, matrixOf(t, p), Options{})
		order := rng.Perm(len(p.Tenants))
		q := Problem{Capacities: p.Capacities}
		for _, i := range order {
			q.Tenants = append(q.Tenants, p.Tenants[i])
		}
		_, shuffled := solved(t, matrixOf(t, q), Options{})
		got := make([]float64, len(want))
		for k, i := range order {
			got[i] = shuffled[k]
		}
		if e := worstRelative(t, got, want); e > 1e-12 {
			t.Errorf("%g away in another order", e)
		}
	}
}

func TestAStoppedSolveIsFeasibleAndExactUpToTheLevelReached(t *testing.T) {
	rng := rand.New(rand.NewPCG(testSeed(t), 5))
	p := medium(rng, 5000, 900, false)
	m := matrixOf(t, p)
	whole, want := solved(t, m, Options{})
	for _, passes := range []int{0, 1, 3, whole.Stats.Passes / 2, whole.Stats.Passes - 1} {
		asked := 0
		r, levels := solved(t, m, Options{Stop: func() bool { asked++; return asked > passes }})
		if !r.Stopped || r.Stats.Passes != passes {
			t.Fatalf("stopped %v after %d of %d passes", r.Stopped, r.Stats.Passes, passes)
		}
		active := 0
		for i, by := range r.Bounds() {
			switch {
			case by == ByStop:
				active++
				if levels[i] != r.Reached || levels[i] > want[i]*(1+1e-12) {
					t.Fatalf("tenant %d is active at %v of %v, reached %v", i, levels[i], want[i], r.Reached)
				}
			case math.Abs(levels[i]-want[i]) > 1e-12*want[i]:
				t.Fatalf("tenant %d froze at %v, want %v", i, levels[i], want[i])
			}
		}
		if active != r.Active || active == 0 {
			t.Fatalf("%d active, said %d", active, r.Active)
		}
		if o := mostOver(r); o > 1e-12 {
			t.Fatalf("over capacity by %g", o)
		}
	}
}

func TestEpsilonLosesUtilizationAndSavesRounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(testSeed(t), 8))
	m := matrixOf(t, medium(rng, 3000, 300, false))
	exact, coarse := m.Rounds(0, nil), m.Rounds(0.05, nil)
	if coarse.Rounds >= exact.Rounds {
		t.Errorf("%d rounds with epsilon, %d without", coarse.Rounds, exact.Rounds)
	}
	if r := m.Rounds(0.01, func() bool { return true }); !r.Stopped {
		t.Error("it goes on after a time-out")
	}
}
