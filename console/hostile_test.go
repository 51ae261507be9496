package console

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codec"
)

// pages are all that reads the view over HTTP.
func pages(workload string) []string {
	segment, query := Path(workload)
	if query != "" {
		query = "&" + query
	}
	return []string{"/", "/pipeline", "/fairness", "/api/v1/status", "/api/v1/pipeline", "/api/v1/plan", "/api/v1/diff", "/api/v1/fairness",
		"/workloads/" + segment + "?" + query, "/api/v1/workloads/" + segment + "?history=500&observations=500" + query,
		"/api/v1/workloads/" + segment + "/history?" + query, "/api/v1/workloads/" + segment + "/decisions?" + query,
		"/api/v1/workloads/" + segment + "/patch?" + query}
}

// answers asks for every page; none may fail on the server's side.
func answers(t *testing.T, v *View, workload string) {
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
		return trimtab.Action{Target: "shop", Host: "h", Resource: resource, Expect: trimtab.Units(number), Set: trimtab.Units(number), Mode: trimtab.Act,
			Why: trimtab.Reason{Inputs: inputs, Target: &number, Demand: &number, Utility: &number, Bounds: &curve.Knots[0].Band,
				Alternatives: []trimtab.Alternative{{Set: number, Objective: number}}}}
	}
	knob := func(resource string) trimtab.Held {
		return trimtab.Held{Target: "shop", Resource: resource, Knob: "k", Now: trimtab.Units(number), Since: when, Min: number, Max: number}
	}
	return []trimtab.Value{
		estimate(0, inputs), estimate(time.Second, missing),
		&trimtab.Holding{Host: "a", Time: when, LeaseLeft: trimtab.Seconds(number), Targets: []trimtab.Held{knob("cpu"), knob("memory")}},
		&trimtab.Holding{Host: "b", Time: when, LeaseLeft: trimtab.Seconds(number), Targets: []trimtab.Held{knob("cpu")}},
		&trimtab.Plan{Pool: "cpu", Epoch: math.MaxUint64, Sequence: math.MaxUint64, Step: math.MaxInt, Time: when, Lease: trimtab.Seconds(max(number, 1)),
			Capacity: number, Cause: "apply 1-1 by x", Value: &number, Actions: []trimtab.Action{action("cpu"), action("memory")},
			Audit: &trimtab.Audit{Resources: []trimtab.AuditedResource{{Resource: "cpu", Capacity: number, Used: number, Demanded: number}},
				Workloads: []trimtab.AuditedWorkload{{Workload: "shop", Entitlement: number, Share: number}}}},
		&trimtab.Outcome{Pool: "cpu", Host: "h", Epoch: math.MaxUint64, Sequence: math.MaxUint64, Step: math.MaxInt, Time: when, Took: trimtab.Seconds(number),
			Results: []trimtab.Result{{Target: "shop", Resource: "cpu", Before: trimtab.Units(number), Found: trimtab.Units(number)}}},
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

func TestALongFilterIsRefusedAndARepeatedWordIsReadOnce(t *testing.T) {
	h := Handler(testView(), Options{})
	for _, page := range []string{"/?q=", "/api/v1/status?q="} {
		if w := ask(h, page+url.QueryEscape(strings.Repeat("s ", 30000))); w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d", page, w.Code)
		}
		if w := ask(h, page+url.QueryEscape(strings.Repeat("shop ", 50))); w.Code != http.StatusOK {
			t.Errorf("%s: %d", page, w.Code)
		}
	}
	if n := len(wordsOf("a b A b a")); n != 2 {
		t.Errorf("%d words", n)
	}
}

func TestANameOfAKnobIsReadInOnePass(t *testing.T) {
	knob := strings.Repeat("a/", 1<<20) + "x"
	done := make(chan string, 1)
	go func() { done <- unitOf(knob) }()
	select {
	case unit := <-done:
		if unit != "" {
			t.Errorf("%q", unit)
		}
	case <-time.After(10 * time.Second): // tens of minutes where each part is read again
		t.Fatal("still reading")
	}
}

func TestRepeatedStepsOfAnAnswerAddNothing(t *testing.T) {
	v := testView()
	for _, step := range []int{1, 2, 2, 2, 7, 2, 1, 2} {
		p := plan(1, 2)
		p.Step, p.Cause = step, "apply 2-1 by x"
		v.Observe(p)
	}
	if a := v.Applied("2-1"); a == nil || len(a.Actions) != 2 {
		t.Errorf("%+v", a)
	}
}

// heap is what is in use.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestAPeerThatInventsWithoutEndCostsTheViewBoundedMemory(t *testing.T) {
	before := heap()
	v := testView()
	text := strings.Repeat("y", 4<<10)
	for i := range maxWorkloads + 1000 {
		name := fmt.Sprint("invented ", i)
		v.Observe(&trimtab.Estimate{Workload: name, Time: noon, Hold: strings.Clone(text), Inputs: []trimtab.Input{{Name: name, Missing: strings.Clone(text)}}})
		v.Observe(&trimtab.Holding{Host: name, Time: noon, Targets: []trimtab.Held{
			{Target: "shop", Resource: name, Knob: strings.Clone(text)}, {Target: name, Resource: "cpu", Knob: strings.Clone(text)}}})
		v.Observe(&trimtab.Outcome{Pool: "cpu", Host: name, Epoch: math.MaxUint64, Sequence: uint64(i), Time: noon,
			Results: []trimtab.Result{{Target: name, Resource: name, Reason: strings.Clone(text)}}})
		p := plan(uint64(i+1), 2)
		p.Actions[0].Why.Summary, p.Held = strings.Repeat("z", 24<<10)+name, map[string]string{name: strings.Clone(text)}
		p.Actions[0].Why.Alternatives[0].Why = name + text[:2048]
		v.Observe(p)
	}
	if grown := int64(heap()) - int64(before); grown > 256<<20 {
		t.Errorf("%d MiB", grown>>20)
	}
	if n := len(v.workloads["shop"].held); n > trimtab.MaxResources {
		t.Errorf("%d resources of one workload", n)
	}
	runtime.KeepAlive(v)
}

func TestAWorkloadThatIsConfiguredLaterIsShownHoweverManyWereInvented(t *testing.T) {
	v := testView()
	for i := range maxWorkloads + 10 {
		v.Observe(&trimtab.Estimate{Workload: fmt.Sprint("invented ", i), Time: noon})
	}
	v.Configure(Config{Pool: "cpu", Resource: "cpu", Workloads: []Workload{{Name: "late", Mode: trimtab.Act}}})
	if _, ok := v.Explain("late", 0, noon); !ok || len(v.workloads) > maxWorkloads {
		t.Errorf("%v, %d workloads", ok, len(v.workloads))
	}
}

func TestAClockThatWasAheadDoesNotFreezeWhatIsShown(t *testing.T) {
	v := testView()
	now := time.Now()
	ahead, after := .1, .9
	v.Observe(&trimtab.Estimate{Workload: "shop", Time: now.AddDate(10, 0, 0), Performance: &ahead, Allocation: &ahead})
	v.Observe(&trimtab.Estimate{Workload: "shop", Time: now, Performance: &after, Allocation: &after})
	e, _ := v.ExplainWith("shop", 0, 10, now)
	if e.Performance == nil || *e.Performance != after {
		t.Errorf("performance %v", e.Performance)
	}
	h, _ := v.History("shop", time.Time{}, now)
	if n := len(h.Time); n == 0 || h.Time[n-1] > float64(now.Unix()+60) {
		t.Errorf("history %v", h.Time)
	}
	v.Observe(plan(1, 2))
	p := plan(2, 3)
	p.Time = now.AddDate(10, 0, 0)
	v.Observe(p)
	if d, _, _ := v.Decisions("shop", "", 10, now); d.Total != 2 && now.Sub(noon) < maxAge {
		t.Errorf("%d decisions", d.Total)
	}
}

func TestAnInventedEpochIsBelievedOnlyUntilTheTrueOneOutlastsIt(t *testing.T) {
	for name, invented := range map[string]trimtab.Plan{
		"epoch": {Epoch: math.MaxUint64, Sequence: math.MaxUint64}, "sequence": {Epoch: 2, Sequence: math.MaxUint64},
		"time": {Epoch: 9, Sequence: 1, Time: noon.AddDate(100, 0, 0)},
	} {
		synctest.Test(t, func(t *testing.T) {
			v, n := testView(), 1
			next := func(sequence int) *trimtab.Plan {
				p := plan(uint64(sequence), 2)
				p.Time, p.Audit = time.Now(), &trimtab.Audit{}
				return p
			}
			for ; n <= 3; n++ {
				v.Observe(next(n))
				time.Sleep(time.Second)
			}
			lie := next(1)
			lie.Epoch, lie.Sequence = invented.Epoch, invented.Sequence
			if !invented.Time.IsZero() {
				lie.Time = invented.Time
			}
			v.Observe(lie)
			for range 3 { // rounds, in which the later term may be the true one
				time.Sleep(time.Second)
				v.Observe(next(n))
				n++
			}
			if got := v.LastPlan().ID(); got != lie.ID() {
				t.Errorf("%s: %s replaced the plan of a later term at once", name, got)
			}
			for range 70 {
				time.Sleep(time.Second)
				v.Observe(next(n))
				n++
			}
			want := next(n - 1).ID()
			if got := v.LastPlan().ID(); got != want || v.Status(time.Now()).Plan != want {
				t.Errorf("%s: shows %s, the newest is %s", name, got, want)
			}
			if d, _, _ := v.Decisions("shop", "", 500, time.Now()); d.Decisions[0].Plan != want || d.Total != len(v.book.order) {
				t.Errorf("%s: %d decisions of %d, the newest %s", name, d.Total, len(v.book.order), d.Decisions[0].Plan)
			}
			cost := 0
			for _, d := range v.workloads["shop"].decisions {
				cost += d.cost()
			}
			if cost != v.book.cost {
				t.Errorf("%s: cost %d, counted %d", name, cost, v.book.cost)
			}
			if a, ok := v.Audited(); !ok || a.Plan != want {
				t.Errorf("%s: audit of %s", name, a.Plan)
			}
		})
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
