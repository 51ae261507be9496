package contribution

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab/analyzer/path"
)

// shop is requests of web, which calls cart and db; slower says what is added.
type shop struct {
	n int
	// add is, by "component" or "caller>component" for waiting, the ms on top.
	add map[string]float64
	// every says how many requests in a row are spared between two with add.
	every int
	seed  uint64
}

// requests draws them: exponential times around 5 ms, waiting around 1 ms.
func (s shop) requests() *Requests {
	var out Requests
	r := rand.New(rand.NewPCG(s.seed, 1))
	for i := range s.n {
		slow := func(key string) float64 {
			if i%max(1, s.every) != 0 {
				return 0
			}
			return s.add[key] * (0.5 + r.Float64())
		}
		visit := func(caller, name string) path.Visit {
			return in(caller, name, 5*r.ExpFloat64()+slow(name), 1*r.ExpFloat64()+slow(caller+">"+name))
		}
		q := request(i, in("", "web", 5*r.ExpFloat64()+slow("web"), 0), visit("web", "cart"), visit("web", "db"), visit("cart", "db"))
		q.Trace[0], q.Trace[1] = byte(i>>8), byte(i)
		out.Add(q)
	}
	return &out
}

// first returns the names in order, with the starved ones marked.
func ranking(v Verdict) string {
	if !v.Changed {
		return "no change"
	}
	var names []string
	for _, c := range v.Components {
		if c.Share < 0.05 {
			continue
		}
		if c.Starved {
			c.Name += "*"
		}
		names = append(names, c.Name)
	}
	return strings.Join(names, " ")
}

func TestTheComponentThatTheTailGrewInIsBlamed(t *testing.T) {
	quiet := shop{n: 600, seed: 1}.requests()
	for name, c := range map[string]struct {
		incident shop
		want     string
	}{
		"nothing":                                {shop{n: 600, seed: 2}, "no change"},
		"its own time":                           {shop{n: 600, seed: 2, add: map[string]float64{"db": 40}}, "db"},
		"waiting for it, at all of its callers":  {shop{n: 600, seed: 2, add: map[string]float64{"web>db": 40, "cart>db": 40}}, "db"},
		"a caller that waits at all its callees": {shop{n: 600, seed: 2, add: map[string]float64{"web>db": 40, "web>cart": 40}}, "web*"},
		"a caller of one callee that answers others as before": {shop{n: 600, seed: 2, add: map[string]float64{"cart>db": 60}}, "cart*"},
		"all callees of web are slow themselves":               {shop{n: 600, seed: 2, add: map[string]float64{"web>db": 10, "web>cart": 10, "db": 60, "cart": 30}}, "db cart"},
		"two at once, the larger first":                        {shop{n: 600, seed: 2, add: map[string]float64{"db": 20, "web": 60}}, "web db"},
		"one request in twenty":                                {shop{n: 600, seed: 2, add: map[string]float64{"cart": 200}, every: 20}, "cart"},
	} {
		v := Blame(quiet, c.incident.requests())
		if got := ranking(v); got != c.want {
			t.Errorf("%s: %s, want %s\n%+v", name, got, c.want, v)
		}
	}
}

func TestWhatIsSlowInOneRequestOfTwentyHasMostOfTheTail(t *testing.T) {
	quiet := shop{n: 600, seed: 1}.requests()
	for _, every := range []int{20, 10, 5} {
		v := Blame(quiet, shop{n: 600, seed: 2, add: map[string]float64{"db": 200}, every: every}.requests())
		if ranking(v) != "db" || v.Components[0].Share < 0.6 {
			t.Errorf("one in %d: %s, %+v", every, ranking(v), v.Components)
		}
	}
}

func TestTheProofIsWhatARequestThroughTheComponentTookBeforeAndAfter(t *testing.T) {
	before, after := &Requests{}, &Requests{}
	for i := range 200 {
		before.Add(request(i, in("", "web", 10, 0), in("web", "db", 20, 2)))
		q := request(i, in("", "web", 10, 0))
		if i%2 == 0 {
			q = request(i, in("", "web", 10, 0), in("web", "db", 20, 52+float64(i)/1000))
		}
		q.Trace[3] = byte(i)
		after.Add(q)
	}
	v := Blame(before, after)
	if len(v.Components) != 1 {
		t.Fatalf("%+v", v)
	}
	c := v.Components[0]
	if c.Name != "db" || c.Requests != 100 || c.Slow != 100 || !near(round(c.Before), 0.022) || !near(round(c.After), 0.072) ||
		!near(round(c.BeforeWait), 0.002) || !near(round(c.AfterWait), 0.052) || c.Example[3] != 198 {
		t.Errorf("%+v", c)
	}
	if v.Chosen.Slower != 0.5 || v.Chosen.Before != 0.032 {
		t.Errorf("%+v", v.Chosen)
	}
}

// round takes ms from seconds.
func round(s float64) float64 { return float64(int(s*1000+0.5)) / 1000 }

func TestAFasterServiceIsNoIncident(t *testing.T) {
	if v := Blame(shop{n: 300, seed: 1, add: map[string]float64{"db": 50}}.requests(), shop{n: 300, seed: 2}.requests()); v.Changed {
		t.Errorf("%+v", v)
	}
}

func TestAComponentThatWasNotThereBeforeCanBeBlamed(t *testing.T) {
	before, after := &Requests{}, &Requests{}
	for i := range 100 {
		before.Add(request(i, in("", "web", 10, 0)))
		after.Add(request(i, in("", "web", 10, 0), in("web", "fraud", 30, 1)))
	}
	v := Blame(before, after)
	if got := ranking(v); got != "fraud" || v.Components[0].Before != 0 {
		t.Errorf("%s: %+v", got, v)
	}
}

func TestTooFewRequestsProveNothing(t *testing.T) {
	slow := shop{n: 3, seed: 2, add: map[string]float64{"db": 1000}}
	for _, n := range []int{0, 1, 2} {
		if v := Blame(shop{n: n, seed: 1}.requests(), slow.requests()); v.Changed {
			t.Errorf("%d requests before: %+v", n, v)
		}
	}
	if v := Blame(shop{n: 300, seed: 1}.requests(), &Requests{}); v.Changed || len(v.Tail) != 0 {
		t.Errorf("no request after: %+v", v)
	}
}

// Of 1,000 pairs of samples from one distribution at most 5% may be told apart;
// the growth by a tenth that is asked for besides makes it fewer.
func TestATailThatDidNotChangeIsSeldomTakenForOneThatDid(t *testing.T) {
	wrong := 0
	for i := range uint64(300) {
		if Blame(shop{n: 120, seed: 2*i + 10}.requests(), shop{n: 120, seed: 2*i + 11}.requests()).Changed {
			wrong++
		}
	}
	if wrong > 15 {
		t.Errorf("%d of 300", wrong)
	}
}

func TestPrecedenceIsTheShareOfAllOrdersOfTheValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, m := rapid.IntRange(1, 5).Draw(t, "n"), rapid.IntRange(1, 5).Draw(t, "m")
		above := rapid.IntRange(0, n-1).Draw(t, "above")
		k := rapid.IntRange(0, m).Draw(t, "k")
		// Each set of places that the n values may have among all n+m, as bits.
		all, hits := 0, 0
		for set := range 1 << (n + m) {
			over, earlier := 0, 0
			ones := 0
			for i := n + m - 1; i >= 0; i-- { // from the greatest down
				switch {
				case set>>i&1 == 1:
					ones++
					earlier++
				case earlier <= above:
					over++
				}
			}
			if ones != n {
				continue
			}
			all++
			if over >= k {
				hits++
			}
		}
		if got, want := precedence(k, above, n, m), float64(hits)/float64(all); !near(got, want) {
			t.Fatalf("precedence(%d, %d, %d, %d) = %v, want %v", k, above, n, m, got, want)
		}
	})
}

func TestTheOrderOfRequestsDoesNotMatter(t *testing.T) {
	a, b := shop{n: 300, seed: 1}.requests(), shop{n: 300, seed: 2, add: map[string]float64{"db": 20, "web": 15}}.requests()
	want := Blame(a, b)
	slices.Reverse(a.requests)
	slices.Reverse(b.requests)
	got := Blame(a, b)
	if ranking(got) != ranking(want) || !near(got.Components[0].Share, want.Components[0].Share) || got.Components[0].Example != want.Components[0].Example {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestSharesArePartsOfTheGrowth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.Float64Range(0, 100)
		add := map[string]float64{}
		for _, k := range []string{"web", "cart", "db", "web>cart", "web>db", "cart>db"} {
			add[k] = ms.Draw(t, k)
		}
		v := Blame(shop{n: 100, seed: 1}.requests(), shop{n: rapid.IntRange(1, 150).Draw(t, "n"), seed: 3, add: add, every: rapid.IntRange(1, 5).Draw(t, "every")}.requests())
		sum := 0.0
		for i, c := range v.Components {
			sum += c.Share
			if c.Share <= 0 || i > 0 && c.Share > v.Components[i-1].Share || c.Slow > c.Requests {
				t.Fatalf("%+v", v)
			}
		}
		if sum > 1+1e-9 || !v.Changed && len(v.Components) > 0 {
			t.Fatalf("shares add up to %v: %+v", sum, v)
		}
	})
}
