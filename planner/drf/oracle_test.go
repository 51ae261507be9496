package drf

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// oracle is the definition in rational arithmetic: raise all active tenants
// to the least level at which a resource is full or a limit is met; freeze;
// again.
func oracle(p *Problem) (level []*big.Rat, bound []int, used []*big.Rat) {
	n, m := len(p.Tenants), len(p.Capacities)
	rat := func(x float64) *big.Rat { return new(big.Rat).SetFloat64(x) }
	rate := make([]map[int]*big.Rat, n)
	limit := make([]*big.Rat, n)
	level, bound = make([]*big.Rat, n), make([]int, n)
	active := map[int]bool{}
	for i, t := range p.Tenants {
		level[i], bound[i] = new(big.Rat), ByNothing
		rate[i] = map[int]*big.Rat{}
		key, blocked := new(big.Rat), false
		for _, d := range t.Demands {
			if d.Amount == 0 {
				continue
			}
			if p.Capacities[d.Resource] == 0 {
				blocked, bound[i] = true, d.Resource
				continue
			}
			w := d.Weight
			if w == 0 {
				w = t.Weight
			}
			f := new(big.Rat).Quo(rat(d.Amount), rat(p.Capacities[d.Resource]))
			rate[i][d.Resource] = f
			if k := new(big.Rat).Quo(f, rat(w)); k.Cmp(key) > 0 {
				key = k
			}
		}
		if blocked || len(rate[i]) == 0 {
			rate[i] = nil
			continue
		}
		active[i] = true
		for r := range rate[i] {
			rate[i][r].Quo(rate[i][r], key)
		}
		if t.Limit != nil {
			limit[i] = new(big.Rat).Mul(rat(*t.Limit), key)
		}
	}
	room := func(r int) *big.Rat {
		if p.Room != nil && p.Capacities[r] > 0 {
			return new(big.Rat).Quo(rat(p.Room[r]), rat(p.Capacities[r]))
		}
		return big.NewRat(1, 1)
	}
	for {
		used = make([]*big.Rat, m)
		rates := make([]*big.Rat, m)
		for r := range used {
			used[r], rates[r] = new(big.Rat), new(big.Rat)
		}
		for i := range n {
			for r, a := range rate[i] {
				if active[i] {
					rates[r].Add(rates[r], a)
				} else {
					used[r].Add(used[r], new(big.Rat).Mul(a, level[i]))
				}
			}
		}
		if len(active) == 0 {
			return level, bound, used
		}
		var least *big.Rat
		fullAt := make([]*big.Rat, m)
		for r := range used {
			if rates[r].Sign() > 0 {
				t := new(big.Rat).Sub(room(r), used[r])
				fullAt[r] = t.Quo(t, rates[r])
				if least == nil || fullAt[r].Cmp(least) < 0 {
					least = fullAt[r]
				}
			}
		}
		for i := range active {
			if limit[i] != nil && limit[i].Cmp(least) < 0 {
				least = limit[i]
			}
		}
		for i := range n {
			if !active[i] {
				continue
			}
			by := ByNothing
			for r := range rate[i] {
				if fullAt[r].Cmp(least) == 0 {
					by = max(by, r)
				}
			}
			if limit[i] != nil && limit[i].Cmp(least) <= 0 {
				by = ByLimit
			}
			if by != ByNothing {
				level[i], bound[i] = least, by
				delete(active, i)
			}
		}
	}
}

// testSeed prints the seed and takes one from TEST_SEED.
func testSeed(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(0x5eed)
	if s := os.Getenv("TEST_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 0, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	t.Logf("TEST_SEED=%d", seed)
	return seed
}

// shape says what a random instance is made of.
type shape struct{ ties, wide, limits, rooms bool }

func randomProblem(rng *rand.Rand, s shape) Problem {
	number := func() float64 {
		switch {
		case s.ties:
			return float64(1 + rng.IntN(3))
		case s.wide:
			return math.Exp(rng.NormFloat64() * 4)
		}
		return 0.01 + rng.Float64()
	}
	m, n := 1+rng.IntN(6), rng.IntN(13)
	p := Problem{Capacities: make([]float64, m)}
	for r := range p.Capacities {
		if p.Capacities[r] = number() * 4; rng.IntN(20) == 0 {
			p.Capacities[r] = 0
		}
	}
	if s.rooms {
		p.Room = make([]float64, m)
		for r := range p.Room {
			p.Room[r] = p.Capacities[r] * float64(rng.IntN(5)) / 4
		}
	}
	for range n {
		t := Tenant{Weight: 1}
		if rng.IntN(2) == 0 {
			t.Weight = number()
		}
		for r := range m {
			switch rng.IntN(5) {
			case 0, 1:
				t.Demands = append(t.Demands, Demand{Resource: r, Amount: number()})
			case 2:
				t.Demands = append(t.Demands, Demand{Resource: r, Amount: number(), Weight: number()})
			case 3:
				t.Demands = append(t.Demands, Demand{Resource: r})
			}
		}
		if s.limits && rng.IntN(2) == 0 {
			l := number() * float64(rng.IntN(4)) / 4
			t.Limit = &l
		}
		rng.Shuffle(len(t.Demands), func(a, b int) { t.Demands[a], t.Demands[b] = t.Demands[b], t.Demands[a] })
		p.Tenants = append(p.Tenants, t)
	}
	return p
}

// relative is |got - want| / want; 0 for 0 and 0.
func relative(got float64, want *big.Rat) float64 {
	w, _ := want.Float64()
	if got == w {
		return 0
	}
	return math.Abs(got-w) / math.Max(math.Abs(w), 1e-300)
}

func TestLevelsAreThoseOfTheDefinitionInRationalArithmetic(t *testing.T) {
	rng := rand.New(rand.NewPCG(testSeed(t), 1))
	worst, over := 0.0, 0.0
	for k := range 4000 {
		p := randomProblem(rng, shape{ties: k%3 == 1, wide: k%3 == 2, limits: k%2 == 0, rooms: k%5 == 0})
		s, err := Solve(p)
		if err != nil {
			t.Fatalf("instance %d: %v", k, err)
		}
		level, bound, used := oracle(&p)
		for i := range p.Tenants {
			e := relative(s.Level[i], level[i])
			if worst = max(worst, e); e > 1e-12 {
				t.Fatalf("instance %d, tenant %d: level %v, want %v\n%+v", k, i, s.Level[i], level[i].FloatString(20), p)
			}
			// Ties may name either, and rounding decides between near ones.
			if (s.Bound[i] == ByNothing) != (bound[i] == ByNothing) {
				t.Fatalf("instance %d, tenant %d: bound by %d, want %d\n%+v", k, i, s.Bound[i], bound[i], p)
			}
		}
		o, err := overCapacity(&p, s)
		if err != nil {
			t.Fatalf("instance %d: %v", k, err)
		}
		over = max(over, o)
		want := []int{}
		for r, u := range used {
			left := new(big.Rat).SetInt64(1)
			if p.Room != nil && p.Capacities[r] > 0 {
				left.SetFloat64(p.Room[r])
				left.Quo(left, new(big.Rat).SetFloat64(p.Capacities[r]))
			}
			if d, _ := left.Sub(left, u).Float64(); p.Capacities[r] > 0 && d <= 1e-12 {
				want = append(want, r)
			}
		}
		if fmt.Sprint(want) != fmt.Sprint(append([]int{}, s.Saturated...)) {
			t.Fatalf("instance %d: saturated %v, want %v\n%+v", k, s.Saturated, want, p)
		}
	}
	t.Logf("worst level %.2g relative, worst over capacity %.2g", worst, over)
	if over > 1e-12 {
		t.Errorf("over capacity by %g", over)
	}
}

// overCapacity sums the allocations up exactly.
func overCapacity(p *Problem, s Solution) (worst float64, err error) {
	used := make([]*big.Rat, len(p.Capacities))
	for r := range used {
		used[r] = new(big.Rat)
	}
	for i, t := range p.Tenants {
		for k, d := range t.Demands {
			a := s.Allocation[i][k]
			if !finite(a) {
				return 0, fmt.Errorf("tenant %d gets %v", i, a)
			}
			used[d.Resource].Add(used[d.Resource], new(big.Rat).SetFloat64(a))
		}
	}
	for r, c := range p.Capacities {
		room := c
		if p.Room != nil {
			room = p.Room[r]
		}
		d, _ := used[r].Sub(used[r], new(big.Rat).SetFloat64(room)).Float64()
		if c > 0 {
			d /= c
		}
		worst = max(worst, d)
	}
	return worst, nil
}
