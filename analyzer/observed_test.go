package analyzer_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer"
)

// discovering returns an analyzer that knows no workload and takes up those that it sees.
func discovering(t *testing.T) *analyzer.Analyzer {
	c := config()
	c.Discover = true
	return make1(t, c)
}

func TestAnEstimateOfADiscoveredServiceTellsAllRequestsAndBoundsTheirTailOnceThereAreEnough(t *testing.T) {
	a := discovering(t)
	var e *trimtab.Estimate
	for n, requests := range []float64{10, 20, 20, 0, 20, 40} { // the fourth second has none
		if requests > 0 {
			a.Step(sec(float64(n)+1.6), sketch("found", n, requests, requests-requests/10))
		}
		if got := estimates(t, a.Step(sec(float64(n)+1.7), nil))["found"]; got != nil {
			e = got
		}
		if n == 2 && (e.Observed == nil || e.Observed.Requests != 50 || e.Observed.P95Upper != nil) {
			t.Errorf("50 requests: %+v", e.Observed)
		}
	}
	o := e.Observed
	if o == nil || !o.From.Equal(sec(0)) || !o.To.Equal(sec(6)) || o.Requests != 110 || math.Abs(o.Load-110./6) > 1e-9 || !(o.LoadMost > 20 && o.LoadMost <= 40) {
		t.Fatalf("%+v", o)
	}
	if o.P95 < 0.19 || o.P95 > 0.21 || o.P95Upper == nil || *o.P95Upper < o.P95 || *o.P95Upper > 0.21 {
		t.Errorf("p95 %v, bound %v: want 0.2", o.P95, o.P95Upper)
	}
}

func TestAConfiguredWorkloadTellsNothingToDraftAnSLOFrom(t *testing.T) {
	a := make1(t, config("w"))
	a.Step(sec(1.6), sketch("w", 0, 100, 90))
	if e := estimates(t, a.Step(sec(1.7), nil))["w"]; e == nil || e.Observed != nil {
		t.Errorf("%+v", e)
	}
}

func TestWhatWasSeenOfADiscoveredServiceOutlivesARestart(t *testing.T) {
	a, r := discovering(t), rand.New(rand.NewPCG(3, 4))
	feed := func(n int, to ...*analyzer.Analyzer) (said []string) {
		s := &trimtab.Sketch{Workload: "found", From: sec(float64(n)), To: sec(float64(n + 1)), Spans: 20, Sampled: true}
		for range 20 {
			weight := 1 + 3*r.Float64()
			s.Latency.Add(r.ExpFloat64()/10, weight)
			s.Requests += weight
		}
		for _, a := range to {
			a.Step(sec(float64(n)+1.6), s)
			b, err := json.Marshal(estimates(t, a.Step(sec(float64(n)+1.7), nil))["found"].Observed)
			if err != nil {
				t.Fatal(err)
			}
			said = append(said, string(b))
		}
		return said
	}
	for n := range 20 {
		feed(n, a)
	}
	b := discovering(t)
	for name, state := range a.Snapshot() {
		if err := b.Restore(name, state); err != nil {
			t.Fatal(err)
		}
	}
	for n := 20; n < 30; n++ {
		if said := feed(n, a, b); said[0] != said[1] || said[0] == "null" {
			t.Fatalf("second %d: %s", n, cmp.Diff(said[0], said[1]))
		}
	}
}

func TestAWildSketchOfADiscoveredServiceNeitherBreaksTheCountNorTheSnapshot(t *testing.T) {
	a := discovering(t)
	a.Step(sec(1.6), sketch("found", 0, 100, 90))
	wild := sketch("found", 1, 1e300, 9e299)
	wild.Spans = 1
	a.Step(sec(2.6), wild)
	e := estimates(t, a.Step(sec(2.7), nil))["found"]
	if e.Observed == nil || e.Observed.Requests != 100 {
		t.Errorf("%+v", e.Observed)
	}
	b := discovering(t)
	for name, state := range a.Snapshot() {
		if err := b.Restore(name, state); err != nil {
			t.Error(err)
		}
	}
}

func TestRequestsOfAWorkloadWhoseSLOIsOnlyProposedAreSummedUpAlsoAfterARestart(t *testing.T) {
	for _, observe := range []bool{false, true} {
		c := config()
		c.Workloads = []analyzer.Workload{{Name: "shop/cart", SLO: analyzer.SLO{Latency: 150 * time.Millisecond, Fraction: 0.95}, Target: 0.95, Observe: observe}}
		a := make1(t, c)
		for n := range 3 {
			a.Step(sec(float64(n)+1.6), sketch("shop/cart", n, 20, 18))
			a.Step(sec(float64(n)+1.7), nil)
		}
		state, ok := a.State("shop/cart")
		again := make1(t, c)
		if err := again.Restore("shop/cart", state); err != nil || !ok {
			t.Fatal(err)
		}
		again.Step(sec(4.6), sketch("shop/cart", 3, 20, 18))
		e := estimates(t, again.Step(sec(4.7), nil))["shop/cart"]
		if (e.Observed != nil) != observe || observe && e.Observed.Requests != 80 {
			t.Errorf("observe %v: %+v", observe, e.Observed)
		}
	}
}
