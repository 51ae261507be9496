package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/knobtest"
	"github.com/trimtab/trimtab/internal/proctest"
)

// imitation answers as the admin API of a gate does, but that its leases end when the test says so.
type imitation struct {
	sync.Mutex
	*httptest.Server
	url      string
	envelope *envelope
	rates    map[string]map[string]any // by path
	puts     int
}

func imitate(t *testing.T) *imitation {
	t.Helper()
	i := &imitation{rates: map[string]map[string]any{}}
	socket := filepath.Join(proctest.SocketDir(t), "gate")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	i.Server = &httptest.Server{Listener: l, Config: &http.Server{Handler: i}}
	i.Start()
	t.Cleanup(i.Close)
	i.url = "unix:" + socket
	return i
}

func (i *imitation) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.Lock()
	defer i.Unlock()
	var v struct {
		Min, Max, Rate float64
		Exact          bool
		Lease          float64 `json:"lease_ms"`
	}
	limit := r.URL.Path == "/v1/limit"
	if r.Method == http.MethodPut {
		err := json.NewDecoder(r.Body).Decode(&v)
		if i.puts++; err != nil || v.Lease <= 0 || limit && (v.Min < 1 || v.Max < v.Min) || !limit && v.Rate <= 0 {
			http.Error(w, fmt.Sprint(v, err), http.StatusBadRequest)
			return
		}
	}
	if !limit {
		switch r.Method {
		case http.MethodPut:
			i.rates[r.URL.Path] = map[string]any{"rate": v.Rate, "in_force": 1.2 * v.Rate, "exact": v.Exact, "lease_left_ms": v.Lease}
		case http.MethodDelete:
			delete(i.rates, r.URL.Path)
		}
		none := map[string]any{"rate": nil, "in_force": nil}
		if told := i.rates[r.URL.Path]; told != nil {
			none = told
		}
		_ = json.NewEncoder(w).Encode(none)
		return
	}
	switch r.Method {
	case http.MethodPut:
		i.envelope = &envelope{Min: v.Min, Max: &v.Max, LeaseLeft: v.Lease}
	case http.MethodDelete:
		i.envelope = nil
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"limit": nil, "rate": nil, "in_flight": 3, "queued": 0, "envelope": i.envelope})
}

// do changes it.
func (i *imitation) do(change func()) {
	i.Lock()
	defer i.Unlock()
	change()
}

func open(t *testing.T, url string) *Limit {
	t.Helper()
	k, err := Open(Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func reopen(undo []byte) (actuator.Knob, error) { return actuator.OrNil(Reopen(undo)) }

func TestAGateMeetsTheContractOfKnobs(t *testing.T) {
	knobtest.Run(t, func(t *testing.T) knobtest.Fixture {
		i := imitate(t)
		return knobtest.Fixture{Knob: open(t, i.url), Reopen: reopen, Least: 1, Most: 1000, Vanish: i.Close}
	})
}

func TestARateOfAGateMeetsTheContractOfKnobs(t *testing.T) {
	for _, class := range []string{"", "low"} {
		knobtest.Run(t, func(t *testing.T) knobtest.Fixture {
			i := imitate(t)
			k, err := Open(Config{URL: i.url, Resource: trimtab.Rate, Class: class, Exact: class != ""})
			if err != nil {
				t.Fatal(err)
			}
			return knobtest.Fixture{Knob: k, Reopen: reopen, Least: 0.01, Most: 1000, Vanish: i.Close}
		})
	}
}

func TestTheLimitsOfOneGateDoNotTouchEachOther(t *testing.T) {
	i := imitate(t)
	var knobs []actuator.Knob
	seen := map[string]bool{}
	for _, of := range []struct {
		at       actuator.Location
		resource string
	}{{actuator.Location{}, trimtab.Concurrency}, {actuator.Location{}, trimtab.Rate}, {actuator.Location{Class: "low", Exact: true}, trimtab.Rate}} {
		of.at.Path = i.url
		k, err := Kind().Open(of.at, of.resource)
		if err != nil {
			t.Fatal(err)
		}
		at, err := k.Traits().Location()
		if seen[at] || err != nil {
			t.Errorf("two knobs have the location %s (%v)", at, err)
		}
		seen[at] = true
		knobs = append(knobs, k)
	}
	for n, k := range knobs {
		if err := k.Write(t.Context(), trimtab.Units(float64(10+n))); err != nil {
			t.Fatal(err)
		}
	}
	i.do(func() {
		if i.envelope.Rate != nil || i.rates["/v1/rate"]["exact"] != false || i.rates["/v1/rate/low"]["exact"] != true {
			t.Errorf("the gate has %+v and %v", i.envelope, i.rates)
		}
	})
	for n, k := range knobs {
		if v, err := k.Read(t.Context()); err != nil || v != trimtab.Units(float64(10+n)) {
			t.Errorf("%s has %v, %v", k, v, err)
		}
		if err := k.Write(t.Context(), trimtab.Unlimited()); err != nil {
			t.Fatal(err)
		}
	}
	i.do(func() {
		if i.envelope != nil || len(i.rates) > 0 {
			t.Errorf("after all were taken back the gate has %+v and %v", i.envelope, i.rates)
		}
	})
}

func TestOnlyTheRateHasClasses(t *testing.T) {
	for _, c := range []Config{{Resource: "memory"}, {Class: "low"}, {Resource: trimtab.Concurrency, Class: "low"}} {
		c.URL = "unix:/g"
		if _, err := Open(c); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestAReadRenewsWhatTheKnobSetAndNothingElse(t *testing.T) {
	i := imitate(t)
	k, other := open(t, i.url), open(t, i.url)
	puts := func(want int, when string) {
		t.Helper()
		i.do(func() {
			if i.puts != want {
				t.Errorf("%s: %d envelopes were set, want %d", when, i.puts, want)
			}
		})
	}
	read := func(k *Limit) trimtab.Amount {
		t.Helper()
		v, err := k.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	read(k)
	puts(0, "a read of a gate that is free")
	if err := k.Write(t.Context(), trimtab.Units(40)); err != nil {
		t.Fatal(err)
	}
	read(other)
	puts(1, "a read by somebody who only looks")
	read(k)
	puts(2, "a read by the knob that set it")
	forty := 50.0
	i.do(func() { i.envelope.Max = &forty })
	if v := read(k); v != trimtab.Units(50) {
		t.Errorf("read %v", v)
	}
	puts(2, "what somebody else set")
	i.do(func() { i.envelope = nil })
	if v := read(k); !v.Unlimited {
		t.Errorf("read %v of a gate whose lease ended", v)
	}
	puts(2, "a lease that ended")
}

func TestTheNextProcessKeepsAliveWhatTheLastSet(t *testing.T) {
	i := imitate(t)
	k := open(t, i.url)
	if err := k.Write(t.Context(), trimtab.Units(40)); err != nil {
		t.Fatal(err)
	}
	next := open(t, i.url)
	if err := next.Recall(k.Undo()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if v, err := next.Read(t.Context()); err != nil || v != trimtab.Units(40) {
			t.Errorf("%v, %v", v, err)
		}
	}
	i.do(func() {
		if i.puts != 3 {
			t.Errorf("%d envelopes were set, want 3", i.puts)
		}
	})
}

func TestWhatIsNoGateSaysSo(t *testing.T) {
	for text, want := range map[string]string{
		"hello": "read the limit of the gate", "{}": "is this its admin address", "[]": "read the limit", "null": "is this its admin address",
		`{"envelope":{"max":0.5}}`: "want a whole number", `{"envelope":{"max":"x"}}`: "read the limit",
		strings.Repeat("x", maxAnswer+1): "more than",
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }))
		k := open(t, s.URL)
		if _, err := k.Read(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q in it", text, err, want)
		}
		s.Close()
		if err := k.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "start `trimtab gate`") {
			t.Errorf("nobody is there: %v", err)
		}
	}
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	if err := open(t, s.URL).Write(t.Context(), trimtab.Units(1)); !errors.Is(err, trimtab.ErrRefused) {
		t.Errorf("%v", err)
	}
}

func TestAGateThatHangsCostsNoMoreThanItsDeadline(t *testing.T) {
	over := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	defer s.Close()
	defer close(over)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := open(t, s.URL).Read(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func TestOnlyAdminAddressesAreTaken(t *testing.T) {
	for _, url := range []string{"", "http://", "http://a", "https://a:1", "http://a:1/x", "http://u:p@a:1", "unix:", "unix:a", "http://a:1?x", "unix:/" + strings.Repeat("x", 200), "\x00"} {
		if _, err := Open(Config{URL: url}); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%q: %v", url, err)
		}
	}
}

func FuzzDocument(f *testing.F) {
	f.Add([]byte(`{"limit":12,"rate":null,"in_flight":3,"queued":0,"envelope":{"min":1,"max":40,"rate":null,"lease_left_ms":4000}}`))
	f.Add([]byte(`{"limit":null,"envelope":null}`))
	f.Add([]byte(`{"rate":12.5,"in_force":13,"exact":false,"lease_left_ms":4000}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, resource := range []string{trimtab.Concurrency, trimtab.Rate} {
			of := formOf(resource)
			v, left, err := of.parse(b)
			if err == nil && (v.Validate() != nil || v.Value > of.most || !(left >= 0)) {
				t.Errorf("%s: %v, %v", b, v, left)
			}
		}
	})
}
