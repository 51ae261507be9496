package console

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codec"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/console/view"
)

// pages are all that reads the view over HTTP.
func pages(workload string) []string {
	segment, query := view.Path(workload)
	if query != "" {
		query = "&" + query
	}
	return []string{"/", "/pipeline", "/fairness", "/api/v1/status", "/api/v1/pipeline", "/api/v1/plan", "/api/v1/diff", "/api/v1/fairness",
		"/workloads/" + segment + "?" + query, "/api/v1/workloads/" + segment + "?history=500&observations=500" + query,
		"/api/v1/workloads/" + segment + "/history?" + query, "/api/v1/workloads/" + segment + "/decisions?" + query,
		"/api/v1/workloads/" + segment + "/patch?" + query}
}

// answers asks for every page; none may fail on the server's side.
func answers(t *testing.T, v *view.Model, workload string) {
	t.Helper()
	h := Handler(v, Options{})
	for _, page := range pages(workload) {
		func() {
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("%s: panic %v", page, p)
				}
			}()
			w := ask(h, page)
			if w.Code >= 500 || strings.HasPrefix(page, "/api") && !json.Valid(w.Body.Bytes()) {
				t.Errorf("%s: %d %.200s", page, w.Code, w.Body)
			}
		}()
	}
}

func ask(h http.Handler, address string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "http://localhost"+address, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// extremes are values that are valid, and as far from sense as that allows.
func extremes(when time.Time, number float64, age trimtab.Seconds) []trimtab.Value {
	inputs := []trimtab.Input{{Name: "load", Value: number, Age: age}, {Name: "performance", Value: number, Age: age}}
	missing := []trimtab.Input{{Name: "load", Age: age, Missing: "gone"}}
	load := &trimtab.LoadForecast{Now: number, Mean: number, Upper: number}
	curve := &trimtab.Curve{Load: number, Level: .9, Knots: []trimtab.Knot{{Allocation: number, Band: trimtab.Band{Lower: number, Mean: number, Upper: number}}}}
	estimate := func(after time.Duration, in []trimtab.Input) trimtab.Value {
		return &trimtab.Estimate{Workload: "shop", Time: when.Add(after), Performance: &number, Allocation: &number, Load: load, Curve: curve,
			Latency: map[string]trimtab.Seconds{"p95": trimtab.Seconds(number)}, Inputs: in}
	}
	action := func(resource string) trimtab.Action {
		return trimtab.Action{KnobID: trimtab.KnobID{Pool: "cpu", Host: "h", Workload: "shop", Resource: resource}, Expect: trimtab.Units(number), Set: trimtab.Units(number), Mode: trimtab.Act,
			Why: trimtab.Reason{Inputs: inputs, Target: &number, Demand: &number, Utility: &number, Bounds: &curve.Knots[0].Band,
				Alternatives: []trimtab.Alternative{{Set: number, Objective: number}}}}
	}
	knob := func(host, resource string) trimtab.KnobState {
		return trimtab.KnobState{KnobID: trimtab.KnobID{Host: host, Workload: "shop", Resource: resource}, Knob: "k", Now: trimtab.Units(number), Since: when, Min: number, Max: number}
	}
	return []trimtab.Value{
		estimate(0, inputs), estimate(time.Second, missing),
		&trimtab.Holding{Host: "a", Time: when, LeaseLeft: trimtab.Seconds(number), Targets: []trimtab.KnobState{knob("a", "cpu"), knob("a", "memory")}},
		&trimtab.Holding{Host: "b", Time: when, LeaseLeft: trimtab.Seconds(number), Targets: []trimtab.KnobState{knob("b", "cpu")}},
		&trimtab.Plan{Pool: "cpu", Epoch: math.MaxUint64, Sequence: math.MaxUint64, Step: math.MaxInt, Time: when, Lease: trimtab.Seconds(max(number, 1)),
			Capacity: number, Cause: trimtab.Cause{Kind: codes.CauseApply, Ref: "1-1", By: "x"}, Value: &number, Actions: []trimtab.Action{action("cpu"), action("memory")},
			Audit: &trimtab.Audit{Resources: []trimtab.AuditedResource{{Resource: "cpu", Capacity: number, Used: number, Demanded: number}},
				Workloads: []trimtab.AuditedWorkload{{Workload: "shop", Entitlement: number, Share: number}}}},
		&trimtab.Outcome{Pool: "cpu", Host: "h", Epoch: math.MaxUint64, Sequence: math.MaxUint64, Step: math.MaxInt, Time: when, Took: trimtab.Seconds(number),
			Results: []trimtab.Result{{KnobID: trimtab.KnobID{Pool: "cpu", Host: "h", Workload: "shop", Resource: "cpu"}, Before: trimtab.Units(number), Found: trimtab.Units(number)}}},
	}
}

func TestAnyValueThatIsValidCanBeShown(t *testing.T) {
	for _, when := range []time.Time{noon, time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 58, 0, time.UTC)} {
		for _, number := range []float64{0, 5e-324, 1e300, math.MaxFloat64} {
			for _, age := range []trimtab.Seconds{0, 1e300, -1e300} {
				v := testView()
				for _, x := range extremes(when, number, age) {
					if _, err := codec.Encode(x, trimtab.Origin{}); err != nil {
						t.Fatal(err)
					}
					v.Observe(x)
				}
				answers(t, v, "shop")
				if t.Failed() {
					t.Fatalf("time %v, number %v, age %v", when, number, age)
				}
			}
		}
	}
}

func TestALongFilterIsRefused(t *testing.T) {
	h := Handler(testView(), Options{})
	for _, page := range []string{"/?q=", "/api/v1/status?q="} {
		if w := ask(h, page+url.QueryEscape(strings.Repeat("s ", 30000))); w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d", page, w.Code)
		}
		if w := ask(h, page+url.QueryEscape(strings.Repeat("shop ", 50))); w.Code != http.StatusOK {
			t.Errorf("%s: %d", page, w.Code)
		}
	}
}

func TestAPageElsewhereCannotHoldStreamsOrAskTheAPI(t *testing.T) {
	done := make(chan struct{})
	close(done)
	h := Handler(testView(), Options{Done: done})
	for _, c := range []struct {
		address, site, mode string
		code                int
	}{
		{"/api/v1/events", "cross-site", "no-cors", 403},
		{"/api/v1/status", "same-site", "cors", 403},
		{"/api/v1/status", "same-origin", "cors", 200},
		{"/api/v1/status", "none", "navigate", 200},
		{"/api/v1/status", "cross-site", "navigate", 200},
		{"/", "cross-site", "navigate", 200},
	} {
		if w := ask(h, c.address, "Sec-Fetch-Site", c.site, "Sec-Fetch-Mode", c.mode); w.Code != c.code {
			t.Errorf("%+v: %d", c, w.Code)
		}
	}
}

// stuck is a client that reads nothing until it is let go.
type stuck struct {
	*httptest.ResponseRecorder
	began chan<- struct{}
	free  <-chan struct{}
}

func (s stuck) Write(b []byte) (int, error) {
	s.began <- struct{}{}
	<-s.free
	return len(b), nil
}

func TestClientsThatDoNotReadHoldBoundedMemoryAndKeepNobodyFromSmallAnswers(t *testing.T) {
	var f flight
	large := make([]byte, 8<<20)
	h := f.bounded(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/large" {
			_, _ = w.Write(large)
			return
		}
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprint(w, "small")
	}))
	began, free, left := make(chan struct{}), make(chan struct{}), make(chan struct{})
	const fit = maxFlight / (8 << 20)
	for range fit {
		go func() {
			h.ServeHTTP(stuck{httptest.NewRecorder(), began, free}, httptest.NewRequest(http.MethodGet, "/large", nil))
			left <- struct{}{}
		}()
		<-began
	}
	for address, want := range map[string]int{"/large": http.StatusServiceUnavailable, "/small": http.StatusTeapot} {
		if w := ask(h, address); w.Code != want {
			t.Errorf("%s beside clients that do not read: %d, want %d", address, w.Code, want)
		}
	}
	close(free)
	for range fit {
		<-left
	}
	if w := ask(h, "/large"); w.Code != http.StatusOK || w.Body.Len() != len(large) {
		t.Errorf("afterwards: %d", w.Code)
	}
}
