package gate

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// await asks for the document until it is as wanted, or the test's time is over.
func await(t *testing.T, g *Gate, what string, ok func(Document) bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(20 * time.Second); ; {
		_, d := control(t, g, http.MethodGet, "")
		if ok(d) {
			return
		}
		select {
		case <-end:
			t.Fatalf("%s: %+v", what, d)
		case <-tick.C:
		}
	}
}

// send opens a connection, sends a text and leaves the connection open.
func send(t *testing.T, g *Gate, text string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", g.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestClientsThatDoNotSendTheRestTakeNoRoom(t *testing.T) {
	came := make(chan struct{}, 10)
	g := run(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		came <- struct{}{}
		_, _ = io.Copy(io.Discard, r.Body)
	}), func(c *Config) { c.Within = 20 * time.Millisecond })
	control(t, g, http.MethodPut, `{"max":3,"lease_ms":60000}`)
	for range 3 {
		send(t, g, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nx")
		<-came
	}
	await(t, g, "after ten times the SLO", func(d Document) bool { return d.InFlight == 0 })
}

func TestARequestThatItsClientBreaksOffIsNoFaultOfTheService(t *testing.T) {
	g := run(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }), nil)
	if got := raw(t, g, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nnone\r\n"); !strings.HasPrefix(got, "HTTP/1.1 400") {
		t.Error(got)
	}
	_, metrics := get(t, "http://"+g.AdminAddress()+"/metrics")
	if !strings.Contains(metrics, `outcome="abandoned",workload="shop"} 1`) {
		t.Error(metrics)
	}
}

func TestAResponseThatBreaksOffIsNotAnswered(t *testing.T) {
	g := run(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000000000")
		_, _ = w.Write(make([]byte, 1<<16))
		if r.URL.Path == "/cut" {
			panic(http.ErrAbortHandler)
		}
		for { // until the client has left
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	}), nil)
	for path, outcome := range map[string]string{"/cut": "failed", "/left": "abandoned"} {
		resp, err := http.Get(g.url(path))
		if err != nil {
			t.Fatal(err)
		}
		if path == "/cut" {
			_, err = io.Copy(io.Discard, resp.Body)
		}
		resp.Body.Close()
		if path == "/cut" && err == nil {
			t.Error("the client takes it for whole")
		}
		await(t, g, path, func(d Document) bool { return d.InFlight == 0 })
		_, metrics := get(t, "http://"+g.AdminAddress()+"/metrics")
		if want := fmt.Sprintf(`outcome="%s",workload="shop"} 1`, outcome); !strings.Contains(metrics, want) {
			t.Errorf("%s: no %s in %s", path, want, metrics)
		}
	}
	if _, d := control(t, g, http.MethodGet, ""); d.Answered != 0 {
		t.Errorf("%+v", d)
	}
}

func TestTheServiceSeesTheQueryAndWhatProxiesBeforeTheGateSay(t *testing.T) {
	g := run(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := r.Header
		fmt.Fprint(w, r.URL.RawQuery, " ", h["Forwarded"], h["X-Forwarded-Proto"], h["X-Forwarded-Host"], h["X-Forwarded-For"])
	}), nil)
	_, got := get(t, g.url("/?a;b=%zz&c"), "Forwarded", "proto=https", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "shop.example", "X-Forwarded-For", "192.0.2.1")
	if want := "a;b=%zz&c [proto=https] [https] [shop.example] [192.0.2.1, 127.0.0.1]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if _, got = get(t, g.url("/")); got != fmt.Sprintf(" [] [http] [%s] [127.0.0.1]", g.Address()) {
		t.Error(got)
	}
}

func TestMethodsThatClientsMakeUpAreOneOperation(t *testing.T) {
	for given, want := range map[string]string{"GET": "GET", "DELETE": "DELETE", "get": "_OTHER", "A1": "_OTHER"} {
		if got, name := methodOf(httptest.NewRequest(given, "/", nil)); got != want || (name == "HTTP") != (want == "_OTHER") {
			t.Errorf("%s: %s, %s", given, got, name)
		}
	}
}

func TestAConnectionThatWouldBypassTheGateIsNotUpgraded(t *testing.T) {
	g := run(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" || r.Header.Get("Http2-Settings") != "" {
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", r.Header.Get("Upgrade"))
			w.WriteHeader(http.StatusSwitchingProtocols)
		}
	}), nil)
	for _, connection := range []string{"Upgrade, HTTP2-Settings", "Upgrade"} {
		if got := raw(t, g, "GET / HTTP/1.1\r\nHost: a\r\nConnection: "+connection+"\r\nUpgrade: H2C\r\nHTTP2-Settings: AAMAAABk\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 200") {
			t.Error(got)
		}
	}
}

// deaf is a listener whose first connection is never answered.
type deaf struct {
	net.Listener
	heard atomic.Bool
}

func (d *deaf) Accept() (net.Conn, error) {
	c, err := d.Listener.Accept()
	if err == nil && !d.heard.Swap(true) {
		go func() { _, _ = io.Copy(io.Discard, c) }()
		return d.Listener.Accept()
	}
	return c, err
}

func TestAConnectionWithoutAPeerIsGivenUp(t *testing.T) {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	behind := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	behind.Config.Protocols = protocols
	behind.Listener = &deaf{Listener: behind.Listener}
	behind.Start()
	t.Cleanup(behind.Close)
	g, _ := runTo(t, behind.URL, func(c *Config) { c.HTTP2, c.Upstream = true, 200*time.Millisecond })
	for end := time.Now().Add(20 * time.Second); ; {
		resp, _ := get(t, g.url("/"))
		if resp.StatusCode == http.StatusOK {
			return
		}
		if time.Now().After(end) {
			t.Fatal(resp.Status)
		}
	}
}

func TestAClientThatStopsInItsBodyIsCutOff(t *testing.T) {
	g := run(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }), func(c *Config) { c.patience = 100 * time.Millisecond })
	if got := raw(t, g, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nx"); !strings.HasPrefix(got, "HTTP/1.1 408") {
		t.Error(got)
	}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	defer transport.CloseIdleConnections()
	body, end := io.Pipe()
	defer end.Close()
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, g.url("/"), body)
	resp, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Body.Close(); resp.StatusCode != http.StatusRequestTimeout {
		t.Error(resp.Status)
	}
}
