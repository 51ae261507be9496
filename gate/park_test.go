package gate

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// parkedConnections returns the number of parked connections.
func parkedConnections(g *Gate) int {
	g.park.mu.Lock()
	defer g.park.mu.Unlock()
	return len(g.park.parked)
}

// until waits until ok.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(20 * time.Second); !ok(); {
		select {
		case <-end:
			t.Fatal(what)
		case <-tick.C:
		}
	}
}

func TestAnIdleConnectionIsParkedAndServedAgain(t *testing.T) {
	g := run(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) }), nil)
	c, err := net.Dial("tcp", g.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in := bufio.NewReader(c)
	for n := range 3 {
		fmt.Fprintf(c, "GET /%d HTTP/1.1\r\nHost: a\r\n\r\n", n)
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := io.ReadAll(resp.Body); string(b) != fmt.Sprintf("/%d", n) {
			t.Fatalf("%s", b)
		}
		until(t, "is not parked", func() bool { return parkedConnections(g) == 1 })
		if n := g.park.connections(); n != 1 {
			t.Errorf("%d open connections", n)
		}
	}
	g.park.sweep(time.Now().Add(idleTimeout+time.Second), idleTimeout)
	if _, err := in.ReadByte(); err != io.EOF {
		t.Errorf("after the idle time-out: %v", err)
	}
	if n := g.park.connections(); n != 0 || parkedConnections(g) != 0 {
		t.Errorf("%d open connections, %d parked", n, parkedConnections(g))
	}
}

func TestTheBeginningOfARequestIsNotLostInThePark(t *testing.T) {
	g := run(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Method) }), nil)
	for _, first := range []int{1, 3} {
		c, err := net.Dial("tcp", g.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		in := bufio.NewReader(c)
		request := "DELETE / HTTP/1.1\r\nHost: a\r\n\r\n"
		// The beginning of the second request comes with the first one, and again later.
		pieces := []string{request + request[:first], request[first:], request[:first], request[first:]}
		for n, piece := range pieces {
			if n > 0 {
				time.Sleep(2 * parkAfter)
			}
			if _, err := io.WriteString(c, piece); err != nil {
				t.Fatal(err)
			}
			if n == 2 {
				continue
			}
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(n, err)
			}
			if b, _ := io.ReadAll(resp.Body); string(b) != "DELETE" {
				t.Fatalf("%d: %s %s", n, resp.Status, b)
			}
		}
	}
}

func TestAnHTTP2ConnectionIsNotParked(t *testing.T) {
	g := run(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.RemoteAddr) }), nil)
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: &http.Transport{Protocols: p}}
	defer client.CloseIdleConnections()
	for range 2 {
		resp, err := client.Get(g.url("/"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		time.Sleep(2 * parkAfter)
		if n := parkedConnections(g); n != 0 || g.park.connections() != 1 {
			t.Errorf("%d parked, %d open", n, g.park.connections())
		}
	}
}

func TestAStopClosesParkedConnections(t *testing.T) {
	behind, _ := service(t, func(_ int64, r *bufio.Reader, c net.Conn) bool {
		if head(r) == "" {
			return false
		}
		_, err := io.WriteString(c, ok)
		return err == nil
	})
	g, stop := runTo(t, behind, nil)
	c := send(t, g, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	until(t, "is not parked", func() bool { return parkedConnections(g) == 1 })
	stop()
	if b, err := io.ReadAll(c); err != nil || len(b) == 0 {
		t.Errorf("%q %v", b, err)
	}
	if n := g.park.connections(); n != 0 {
		t.Errorf("%d open connections", n)
	}
}

// flood answers with 64 MiB.
func flood(w http.ResponseWriter, _ *http.Request) {
	b := make([]byte, 1<<16)
	for range 1 << 10 {
		if _, err := w.Write(b); err != nil {
			return
		}
	}
}

func TestAClientThatDoesNotReadIsCutOffAndASlowOneIsNot(t *testing.T) {
	g := run(t, http.HandlerFunc(flood), func(c *Config) { c.patience, c.Within = 200*time.Millisecond, time.Minute })
	stops := send(t, g, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	await(t, g, "a client that does not read", func(d Document) bool { return d.InFlight == 0 && g.park.connections() == 0 })
	_ = stops.Close()
	slow := send(t, g, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	b, n := make([]byte, 64<<10), 0
	for from := time.Now(); time.Since(from) < 1500*time.Millisecond; time.Sleep(20 * time.Millisecond) {
		m, err := slow.Read(b)
		if n += m; err != nil {
			t.Fatalf("after %d bytes: %v", n, err)
		}
	}
	rest, err := io.Copy(io.Discard, slow)
	if n += int(rest); err != nil || n < 64<<20 {
		t.Errorf("%d bytes: %v", n, err)
	}
}

func TestAnHTTP2ClientThatStopsReadingOneResponseLosesOnlyThat(t *testing.T) {
	g := run(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/flood" {
			flood(w, r)
		}
	}), func(c *Config) { c.patience = 200 * time.Millisecond })
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: &http.Transport{Protocols: p}}
	defer client.CloseIdleConnections()
	stops, err := client.Get(g.url("/flood"))
	if err != nil {
		t.Fatal(err)
	}
	defer stops.Body.Close()
	await(t, g, "a client that does not read", func(d Document) bool { return d.InFlight == 0 })
	if resp, err := client.Get(g.url("/")); err != nil || resp.StatusCode != http.StatusOK {
		t.Error(resp, err)
	}
	if n, err := io.Copy(io.Discard, stops.Body); err == nil {
		t.Errorf("%d bytes are taken for a whole response", n)
	}
	if n := g.park.connections(); n != 1 {
		t.Errorf("%d connections", n)
	}
}
