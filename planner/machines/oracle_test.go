package machines

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// plain is a machine as the paper has it, for the oracle.
type plain struct {
	load, capacity []float64 // NaN: missing
	cpi, mpki      float64
	connected      bool
}

// oracle is Algorithm 4 word by word: sorts where the index selects. It rounds
// as the index does.
func oracle[F Number](dims []Dimension, all []plain, scores []int64, r Rule) (why []Reason, candidates []uint32) {
	n := len(all)
	largest := make([]float64, len(dims))
	for _, m := range all {
		for d := range dims {
			largest[d] = math.Max(largest[d], zero(m.capacity[d]))
		}
	}
	norm := func(m plain, d int) float64 {
		if largest[d] > 0 {
			return m.load[d] / largest[d]
		}
		return m.load[d]
	}
	why = make([]Reason, n)
	mark := func(k int, reason Reason, in func(int) bool, key func(int) float64) {
		for _, i := range sorted(n, k, in, key) {
			why[i] |= reason
		}
	}
	if r.Mode == RP {
		mark(r.WorstCPI, Interferes, func(i int) bool { return !math.IsNaN(all[i].cpi) }, func(i int) float64 { return -all[i].cpi })
		mark(r.WorstMPKI, Interferes, func(i int) bool { return !math.IsNaN(all[i].mpki) }, func(i int) float64 { return -all[i].mpki })
	}
	mark(r.WorstRated, WeakRated, func(i int) bool { return scores[i] < 0 || r.Strict }, func(i int) float64 { return float64(scores[i]) })
	l, q := make([]float64, n), make([]float64, n)
	for i, m := range all {
		if !m.connected {
			why[i] |= Disconnected
		}
		if r.Mode == RP && r.NeedCounters && (math.IsNaN(m.cpi) || math.IsNaN(m.mpki)) {
			why[i] |= Missing
		}
		for d, dim := range dims {
			if !dim.used() {
				continue
			}
			y := norm(m, d)
			if math.IsNaN(y) {
				why[i] |= Missing
			}
			if dim.Threshold != nil && (y > *dim.Threshold || r.Own && m.load[d] > *dim.Threshold*m.capacity[d]) {
				why[i] |= Overloaded
			}
			if dim.Load != nil {
				l[i] += float64(*dim.Load * y)
			}
			if dim.Queue != nil {
				q[i] += float64(*dim.Queue * y)
			}
		}
	}
	wide := int(math.Min(math.Ceil(r.Widen*float64(r.Limit)), float64(n)))
	byLoad := sorted(n, wide, func(i int) bool { return why[i] == 0 }, func(i int) float64 { return float64(F(l[i])) })
	byQueue := sorted(n, r.Limit, func(i int) bool { return slices.Contains(byLoad, i) }, func(i int) float64 { return float64(F(q[i])) })
	for _, i := range byQueue {
		candidates = append(candidates, uint32(i))
	}
	return why, candidates
}

func zero(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}

// sorted returns the k first of those in, by key, ties by position.
func sorted(n, k int, in func(int) bool, key func(int) float64) []int {
	var of []int
	for i := range n {
		if in(i) {
			of = append(of, i)
		}
	}
	sort.SliceStable(of, func(a, b int) bool { return key(of[a]) < key(of[b]) })
	return of[:min(k, len(of))]
}

// start is when the machines of the tests report first.
func start() time.Time { return time.Unix(1_700_000_000, 0) }

// draw makes random things of all sizes alike: rapid's own sizes are mostly
// small.
func draw(t *rapid.T) *rand.Rand {
	return rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
}

func drawDimensions(rng *rand.Rand) []Dimension {
	dims := make([]Dimension, rng.IntN(6))
	number := func() *float64 {
		if rng.IntN(2) == 0 {
			return nil
		}
		return value(float64(rng.IntN(9)) / 4)
	}
	for d := range dims {
		dims[d] = Dimension{Threshold: number(), Load: number(), Queue: number()}
	}
	return dims
}

// drawMachine makes numbers with few values, so that ties are common, or any.
func drawMachine[F Number](rng *rand.Rand, dimensions int, ties bool) plain {
	number := func() float64 {
		switch {
		case rng.IntN(50) == 0:
			return math.NaN()
		case ties:
			return float64(F(float64(rng.IntN(13)) / 3))
		}
		return float64(F(20 * rng.Float64()))
	}
	m := plain{cpi: number(), mpki: number(), connected: rng.IntN(6) > 0}
	for range dimensions {
		m.load, m.capacity = append(m.load, number()), append(m.capacity, number())
	}
	return m
}

func name(i int) string {
	return "m" + string(rune('a'+i/26/26)) + string(rune('a'+i/26%26)) + string(rune('a'+i%26))
}

// indexOf enters the machines in a random order of reports.
func indexOf[F Number](t *rapid.T, rng *rand.Rand, dims []Dimension, all []plain) *Index[F] {
	x, err := New[F](Config{Dimensions: dims, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]string, len(all))
	for i := range all {
		ids[i] = name(i)
	}
	if _, err := x.SetMachines(ids); err != nil {
		t.Fatal(err)
	}
	for _, i := range rng.Perm(len(all)) {
		enter(t, x, i, &all[i], start())
	}
	return x
}

func enter[F Number](t *rapid.T, x *Index[F], i int, m *plain, at time.Time) {
	r := Report{Machine: name(i), Time: at, Load: m.load, Capacity: m.capacity, CPI: m.cpi, MPKI: m.mpki}
	if bad, err := x.Update(start(), &r); err != nil || bad != 0 {
		t.Fatalf("%d bad, %v", bad, err)
	}
	if !m.connected {
		if err := x.Disconnect(name(i)); err != nil {
			t.Fatal(err)
		}
	}
}

func drawRule(rng *rand.Rand) Rule {
	return Rule{
		Mode: Mode(rng.IntN(2)), Limit: rng.IntN(60), Widen: float64(rng.IntN(11)) / 4,
		WorstRated: rng.IntN(10), WorstCPI: rng.IntN(10), WorstMPKI: rng.IntN(10),
		Strict: rng.IntN(2) == 0, Own: rng.IntN(2) == 0, NeedCounters: rng.IntN(2) == 0,
	}
}

func checkAgainstTheOracle[F Number](t *rapid.T) {
	rng := draw(t)
	dims, ties := drawDimensions(rng), rng.IntN(2) == 0
	all, scores := make([]plain, rng.IntN(700)), []int64{}
	for i := range all {
		all[i] = drawMachine[F](rng, len(dims), ties)
		scores = append(scores, -rng.Int64N(4))
	}
	x := indexOf[F](t, rng, dims, all)
	x.SetScores(scores)
	for round := range 3 {
		r := drawRule(rng)
		why, candidates := oracle[F](dims, all, scores, r)
		got, err := x.Filter(start(), r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Why, why) {
			t.Fatalf("rule %+v: reasons %v, want %v", r, got.Why, why)
		}
		if !slices.Equal(got.Candidates, candidates) {
			t.Fatalf("rule %+v: candidates %v, want %v", r, got.Candidates, candidates)
		}
		for range min(3, len(all)) { // some report again; the others stay as they are
			i := rng.IntN(len(all))
			all[i] = drawMachine[F](rng, len(dims), ties)
			_ = x.Disconnect(name(i)) // so that it may report the same time twice
			enter(t, x, i, &all[i], start().Add(time.Duration(round+1)*time.Millisecond))
		}
	}
}

func TestTheIndexSelectsWhatThePaperSortsFor(t *testing.T) {
	t.Run("float64", func(t *testing.T) { rapid.Check(t, checkAgainstTheOracle[float64]) })
	t.Run("float32", func(t *testing.T) { rapid.Check(t, checkAgainstTheOracle[float32]) })
}

func TestSelectionGivesTheLowestOfAnyLength(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := draw(t)
		keys, values := make([]int, rng.IntN(3000)), 1+rng.IntN(5000)
		for i := range keys {
			keys[i] = rng.IntN(values)
		}
		if rng.IntN(2) == 0 {
			slices.Sort(keys)
		}
		r := make([]ranked[float32], len(keys))
		for i, k := range keys {
			r[i] = ranked[float32]{float32(k), uint32(i)}
		}
		want := slices.Clone(r)
		slices.SortFunc(want, ranked[float32].compare)
		k := rng.IntN(len(keys) + 3)
		got := r[:min(k, len(r))]
		if rounds := rng.IntN(8); rounds < 4 {
			part(r, len(got), rounds) // the pivots are bad
		} else {
			got = lowest(r, k)
		}
		ordered(got)
		if !slices.Equal(got, want[:min(k, len(want))]) {
			t.Fatalf("%v, want %v", got, want[:min(k, len(want))])
		}
		slices.SortFunc(r, ranked[float32].compare)
		if !slices.Equal(r, want) {
			t.Fatal("the selection lost machines")
		}
	})
}
