package contribution

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/trimtab/trimtab/analyzer/path"
)

// keep returns the requests that a sampler keeps: each with the probability that of
// gives for it, and standing for 1/probability.
func keep(all []*path.Request, seed uint64, of func(r *path.Request) float64) *Requests {
	random := rand.New(rand.NewPCG(seed, 7))
	var out Requests
	for _, r := range all {
		if p := of(r); random.Float64() < p {
			kept := *r
			kept.Adjusted = 1 / p
			out.Add(&kept)
		}
	}
	return &out
}

// web is n requests of web and db, of which every eighth is slow in db.
func web(n int, seed uint64, slower float64) (out []*path.Request) {
	random := rand.New(rand.NewPCG(seed, 3))
	for i := range n {
		add := 0.0
		if i%8 == 0 {
			add = slower
		}
		out = append(out, request(i, in("", "web", 5+random.ExpFloat64(), 0), in("web", "db", 5+random.ExpFloat64()+add, 1+random.ExpFloat64())))
	}
	return out
}

func all(*path.Request) float64 { return 1 }

func TestEqualWeightsChangeNothing(t *testing.T) {
	before, after := web(300, 1, 0), web(300, 2, 30)
	want := Blame(keep(before, 0, all), keep(after, 0, all))
	scaled := func(rs []*path.Request, by float64) *Requests {
		var out Requests
		for _, r := range rs {
			r.Adjusted = by
			out.Add(r)
		}
		return &out
	}
	got := Blame(scaled(before, 10), scaled(after, 25))
	if !want.Changed || want.Components[0].Name != "db" {
		t.Fatalf("%+v", want)
	}
	for i := range got.Components { // these are the adjusted counts
		got.Components[i].Requests /= 25
		got.Components[i].Slow /= 25
	}
	if d := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); d != "" {
		t.Error(d)
	}
}

// A sampler that keeps what is slow, as tail samplers do, would show ten times as
// many slow requests as there are.
func TestBlameCountsEachRequestForThoseThatItStandsFor(t *testing.T) {
	isSlow := func(r *path.Request) bool { return r.Latency().Seconds() > 0.03 }
	before, after := web(20000, 1, 40), web(20000, 2, 80)
	want := Blame(keep(before, 0, all), keep(after, 0, all))
	tail := func(r *path.Request) float64 {
		if isSlow(r) {
			return 1
		}
		return 0.1
	}
	a, b := keep(before, 5, tail), keep(after, 6, tail)
	got := Blame(a, b)
	if math.Abs(a.Total()-20000) > 1000 || a.Count() > 5000 {
		t.Fatalf("%d requests stand for %v", a.Count(), a.Total())
	}
	if !want.Changed || !got.Changed || got.Components[0].Name != "db" {
		t.Fatalf("%+v\n%+v", want, got)
	}
	for i, w := range want.Tail {
		g := got.Tail[i]
		if math.Abs(g.Before/w.Before-1) > 0.05 || math.Abs(g.After/w.After-1) > 0.05 || math.Abs(g.Slower-w.Slower) > 0.02 {
			t.Errorf("quantile %v: %+v, all requests say %+v", w.Quantile, g, w)
		}
	}
	w, g := want.Components[0], got.Components[0]
	if math.Abs(g.Share-w.Share) > 0.05 || math.Abs(g.Before/w.Before-1) > 0.05 || math.Abs(g.After/w.After-1) > 0.05 ||
		math.Abs(g.Requests/w.Requests-1) > 0.05 || math.Abs(g.Slow/w.Slow-1) > 0.05 {
		t.Errorf("%+v, all requests say %+v", g, w)
	}
	// Had nothing but the sampler changed, nothing would have changed.
	if v := Blame(keep(before, 0, all), a); v.Changed {
		t.Errorf("a sampler is blamed on %+v", v)
	}
}

func TestFewSampledRequestsProveNoMoreThanTheyAre(t *testing.T) {
	few := func(_ *path.Request) float64 { return 0.002 }
	quiet, slow := keep(web(2000, 1, 0), 5, few), keep(web(2000, 2, 4), 6, few)
	if v := Blame(quiet, slow); v.Changed || quiet.Count() > 15 {
		t.Errorf("of %d and %d requests: %+v", quiet.Count(), slow.Count(), v)
	}
}

func TestWeightedQuantilesAreThoseOfTheRepeatedValues(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 4))
	for range 200 {
		var once, repeated weighted
		for range 1 + random.IntN(20) {
			value, weight := float64(random.IntN(8)), 1+random.IntN(4)
			once.add(value, float64(weight))
			for range weight {
				repeated.add(value, 1)
			}
		}
		once.sort()
		repeated.sort()
		for _, q := range []float64{0.11, 0.5, 0.87, 0.99} {
			if a, b := once.quantile(q), repeated.quantile(q); a != b && math.Abs(q*once.sum-math.Round(q*once.sum)) > 1e-9 {
				t.Fatalf("quantile %v: %v, repeated %v of %v", q, a, b, once.values)
			}
		}
		for x := range 9 {
			if a, b := once.over(float64(x)), repeated.over(float64(x)); math.Abs(a-b) > 1e-9 {
				t.Fatalf("over %d: %v, repeated %v", x, a, b)
			}
		}
		if a, b := once.mean(), repeated.mean(); math.Abs(a-b) > 1e-9 || once.effective() > float64(once.len())+1e-9 {
			t.Fatalf("mean %v, repeated %v; %v effective of %d", a, b, once.effective(), once.len())
		}
	}
}
