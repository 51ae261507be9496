package gate

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// run opens a gate before a service and runs it until the test ends.
func run(t *testing.T, service http.Handler, change func(*Config)) *Gate {
	t.Helper()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	behind := httptest.NewUnstartedServer(service)
	behind.Config.Protocols = protocols
	behind.Start()
	t.Cleanup(behind.Close)
	g, _ := runTo(t, behind.URL, change)
	return g
}

// runTo runs a gate before a URL. stop ends it and waits.
func runTo(t *testing.T, to string, change func(*Config)) (g *Gate, stop func()) {
	t.Helper()
	g = openTo(t, to, change)
	return g, g.start(t)
}

// openTo opens a gate before a URL.
func openTo(t *testing.T, to string, change func(*Config)) *Gate {
	t.Helper()
	c := Config{Listen: "127.0.0.1:0", To: to, Workload: "shop", Within: 10 * time.Second, Admin: "127.0.0.1:0",
		Upstream: 20 * time.Second, Drain: 200 * time.Millisecond, Connections: 1000, Logger: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&c)
	}
	g, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// start runs g until the test ends. stop ends it and waits.
func (g *Gate) start(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func (g *Gate) url(path string) string { return "http://" + g.Address() + path }

// get asks and returns status, headers and body.
func get(t *testing.T, url string, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

// control sends a request to the control API and returns status and document.
func control(t *testing.T, g *Gate, method, body string) (int, Document) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+g.AdminAddress()+"/v1/limit", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var d Document
	if resp.StatusCode == http.StatusOK {
		if err := json.NewDecoder(resp.Body).Decode(&d); err != nil {
			t.Fatal(err)
		}
	}
	return resp.StatusCode, d
}

func TestARequestPassesUnchangedWithItsHostAndTrailersAndIsCounted(t *testing.T) {
	g := run(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		w.Header().Set("Trailer", "Sum")
		fmt.Fprintf(w, "%s %s %s %s %s %s", r.Method, r.URL, r.Host, b, r.Header.Get("Traceparent"), r.Trailer.Get("End"))
		w.Header().Set("Sum", "42")
	}), nil)
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPut, g.url("/a?b=c"), struct{ io.Reader }{strings.NewReader("body")})
	r.Host = "shop.example"
	r.Header.Set("Traceparent", parent)
	r.Trailer = http.Header{"End": {"done"}}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	if want := "PUT /a?b=c shop.example body " + parent + " done"; string(b) != want || resp.Trailer.Get("Sum") != "42" {
		t.Errorf("%q, trailer %q", b, resp.Trailer.Get("Sum"))
	}
	if _, d := control(t, g, http.MethodGet, ""); d.Answered != 1 || d.InTime != 1 || d.Limit < 1 || d.Envelope != nil || d.Classes[0].Name != "all" {
		t.Errorf("%+v", d)
	}
	_, metrics := get(t, "http://"+g.AdminAddress()+"/metrics")
	for _, name := range []string{"limit", "in_flight", "queued", "connections", "request_seconds_bucket", "wait_seconds_bucket"} { // of the board
		if !strings.Contains(metrics, "\ntrimtab_gate_"+name+"{") {
			t.Errorf("no metric trimtab_gate_%s", name)
		}
	}
	if !strings.Contains(metrics, `trimtab_gate_requests_total{class="all",outcome="in_time",workload="shop"} 1`) || strings.Contains(metrics, "trimtab_planner") {
		t.Error(metrics)
	}
}

func TestAnEnvelopeBoundsTheLimitUntilItsLeaseEndsOrItIsDeleted(t *testing.T) {
	g := run(t, http.NotFoundHandler(), nil)
	code, d := control(t, g, http.MethodPut, `{"min":1,"max":3,"rate":null,"lease_ms":60000}`)
	if code != http.StatusOK || d.Limit != 3 || d.Envelope == nil || *d.Envelope.Max != 3 || d.Envelope.LeaseLeft < 1 || d.Rate != nil {
		t.Errorf("%d %+v", code, d)
	}
	if _, d = control(t, g, http.MethodDelete, ""); d.Limit <= 3 || d.Envelope != nil {
		t.Errorf("after DELETE: %+v", d)
	}
	control(t, g, http.MethodPut, `{"max":3,"rate":5,"lease_ms":1}`)
	for d.Envelope = new(Envelope); d.Envelope != nil; { // the lease of a millisecond ends
		_, d = control(t, g, http.MethodGet, "")
	}
	if d.Limit <= 3 {
		t.Errorf("after the lease: %+v", d)
	}
	for _, bad := range []string{`{`, `{"min":0,"lease_ms":1}`, `{"min":4,"max":3,"lease_ms":1}`, `{"rate":-1,"lease_ms":1}`, `{"rate":1e-9,"lease_ms":1}`, `{"max":3}`, `{"max":3,"lease_ms":99999999999}`, `{"most":3,"lease_ms":1}`, `{"max":3,"lease_ms":1}{}`} {
		if code, _ := control(t, g, http.MethodPut, bad); code != http.StatusBadRequest {
			t.Errorf("%s: %d", bad, code)
		}
	}
	if resp, _ := get(t, "http://"+g.AdminAddress()+"/v1/limit"); resp.StatusCode != http.StatusOK {
		t.Error(resp.Status)
	}
}

func TestAPageOfAnotherSiteCannotUseTheControlAPI(t *testing.T) {
	g := run(t, http.NotFoundHandler(), nil)
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+g.AdminAddress()+"/v1/limit", nil)
	r.Host = "evil.example"
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		t.Error(resp.Status)
	}
}

// blocked is a service that answers when it is told to.
type blocked struct{ come, go_ chan struct{} }

func newBlocked() *blocked { return &blocked{make(chan struct{}, 1000), make(chan struct{})} }

func (b *blocked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.come <- struct{}{}
	select {
	case <-b.go_:
	case <-r.Context().Done():
	}
}

func TestWhatDoesNotFitIsRefusedWithATimeToComeAgain(t *testing.T) {
	service := newBlocked()
	g := run(t, service, func(c *Config) { c.Within = 200 * time.Millisecond; c.Class = "x-priority=critical,normal,low" })
	control(t, g, http.MethodPut, `{"max":1,"lease_ms":60000}`)
	first := make(chan string, 1)
	go func() { _, body := get(t, g.url("/")); first <- body }()
	<-service.come
	resp, body := get(t, g.url("/"), "x-priority", "low") // waits in vain
	if after := resp.Header.Get("Retry-After"); resp.StatusCode != http.StatusServiceUnavailable || len(after) != 1 || after < "1" || after > "3" || !strings.HasPrefix(body, "overloaded") {
		t.Errorf("%s %q %q", resp.Status, after, body)
	}
	close(service.go_)
	<-first
	_, d := control(t, g, http.MethodGet, "")
	if d.Classes[2].Shed != 1 || d.Shed != 1 || d.InFlight != 0 || d.Queued != 0 {
		t.Errorf("%+v", d)
	}
}

func TestAnAbsentServiceIsABadGatewayAndAHangingOneATimeOutAndNeitherIsShed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	absent := "http://" + l.Addr().String()
	l.Close()
	g, _ := runTo(t, absent, nil)
	if resp, _ := get(t, g.url("/")); resp.StatusCode != http.StatusBadGateway {
		t.Error(resp.Status)
	}
	hangs := newBlocked()
	g2 := run(t, hangs, func(c *Config) { c.Upstream = 50 * time.Millisecond })
	if resp, _ := get(t, g2.url("/")); resp.StatusCode != http.StatusGatewayTimeout {
		t.Error(resp.Status)
	}
	_, d := control(t, g, http.MethodGet, "")
	_, d2 := control(t, g2, http.MethodGet, "")
	if d.Shed != 0 || d.Answered != 0 || d2.Shed != 0 || d2.Answered != 1 || d2.InTime != 0 {
		t.Errorf("absent: %+v\nhangs: %+v", d, d2)
	}
}
