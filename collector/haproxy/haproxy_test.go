package haproxy

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/collector/internal/spantest"
	"github.com/trimtab/trimtab/internal/haproxy"
	"github.com/trimtab/trimtab/internal/haproxy/haproxytest"
	"github.com/trimtab/trimtab/internal/metric"
)

// backend is a reading of a backend with one server.
func backend(of haproxy.Process, own, server haproxy.Row) *haproxy.Backend {
	return &haproxy.Backend{Of: of, Own: &own, Servers: []haproxy.Row{server}}
}

func TestWhatAServerFailedIsNotRefused(t *testing.T) {
	var m meter
	quiet := haproxy.Row{}
	if got := m.take(backend("a", quiet, quiet), map[string]haproxy.Class{"low": {Requests: 10, Answered: 5}}); got != nil {
		t.Errorf("a first reading says %v", got)
	}
	failing := haproxy.Row{NoResponse: 2, NoConnection: 1, Left: 1}
	got := m.take(backend("a", quiet, failing), map[string]haproxy.Class{
		"low": {Requests: 30, Answered: 10, Underway: 3}, "critical": {Requests: 9, Answered: 1, Underway: 4},
	}) // 12 and 4 more were not served, of which 4 failed
	if want := map[string]float64{"low": 9, "critical": 3}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Between its answer and its end a request is counted in both.
func TestACounterThatDipsCountsNothingTwice(t *testing.T) {
	var m meter
	sum := 0.0
	for _, c := range []haproxy.Class{{}, {Requests: 9, Underway: 2}, {Requests: 9, Answered: 2, Underway: 2}, {Requests: 9, Answered: 2}, {Requests: 12, Answered: 2, Underway: 1}} {
		sum += m.take(backend("a", haproxy.Row{}, haproxy.Row{}), map[string]haproxy.Class{"x": c})["x"]
	}
	if sum != 9 {
		t.Errorf("%v were refused, want 9", sum)
	}
}

func TestAnotherProcessBeginsAnew(t *testing.T) {
	var m meter
	m.take(backend("a", haproxy.Row{NoConnection: 50}, haproxy.Row{}), nil)
	if got := m.take(backend("b", haproxy.Row{NoConnection: 3}, haproxy.Row{}), nil); got != nil {
		t.Errorf("after a restart %v", got)
	}
	if got := m.take(backend("b", haproxy.Row{NoConnection: 9, Left: 2}, haproxy.Row{NoConnection: 2, Left: 1}), nil); got[haproxy.All] != 5 {
		t.Errorf("%v, want 5", got)
	}
	if got := m.take(backend("b", haproxy.Row{NoConnection: 1}, haproxy.Row{}), nil); len(got) != 0 {
		t.Errorf("counters that went back say %v", got)
	}
}

func TestARealHAProxyInModeTCPIsCounted(t *testing.T) {
	upstream, err := net.Listen("unix", filepath.Join(t.TempDir(), "up"))
	if err != nil {
		t.Fatal(err)
	}
	defer upstream.Close()
	p := haproxytest.Start(t, "db", fmt.Sprintf(`global
  stats socket DIR/s mode 600 level admin
defaults
  mode tcp
  timeout connect 1s
  timeout client 10s
  timeout server 10s
  timeout queue 50ms
frontend in
  bind unix@DIR/in
  default_backend db
backend db
  server one unix@%s maxconn 1
`, upstream.Addr()))
	b := &spantest.Bus{}
	sink, err := collector.Open(collector.Config{Bus: b, Metrics: metric.NewSet()})
	if err != nil {
		t.Fatal(err)
	}
	c, err := Open(Config{Sink: sink, Rand: rand.New(rand.NewPCG(1, 2)), Backends: []Backend{{Workload: "db", Spans: []trimtab.Attr{{Key: "service.name", Value: "db"}}, Socket: p.Socket, Backend: "db"}}})
	if err != nil {
		t.Fatal(err)
	}
	c.round(t.Context(), time.Now())
	var held []net.Conn
	for range 31 {
		conn, err := net.Dial("unix", filepath.Join(p.Dir, "in"))
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, conn)
	}
	for _, conn := range held[1:] {
		_, _ = conn.Read(make([]byte, 1)) // HAProxy closes it
	}
	c.round(t.Context(), time.Now())
	sum, spans := 0.0, b.Spans()
	for _, s := range spans {
		if sum += float64(s.Adjusted); s.Attrs["service.name"] != "db" || s.Attrs[codes.RefusedAttribute] != haproxy.All {
			t.Errorf("%+v", s)
		}
	}
	if math.Abs(sum-30) > 1e-3 || len(spans) != mostSpans {
		t.Errorf("%v in %d spans, want 30", sum, len(spans))
	}
}
