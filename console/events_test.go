package console

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/console/view"
)

// bound is how long a server of the tests lets a request take.
const bound = 2 * time.Second

// pipes is a listener whose connections stay in the process, so that the time
// of a test's bubble holds for both ends.
type pipes struct {
	accepts chan net.Conn
	closed  chan struct{}
	close   func()
}

func newPipes() *pipes {
	p := &pipes{accepts: make(chan net.Conn), closed: make(chan struct{})}
	p.close = sync.OnceFunc(func() { close(p.closed) })
	return p
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepts:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.close(); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.accepts <- server:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// served is a server in a bubble, with the bounds that production has, but
// shorter.
type served struct {
	*http.Server
	pipes *pipes
}

func serve(t *testing.T, v *view.Model, done <-chan struct{}) *served {
	t.Helper()
	s := &served{&http.Server{Handler: Handler(v, Options{Done: done}), ReadTimeout: bound, WriteTimeout: bound}, newPipes()}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(s.pipes) }()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return s
}

// listen opens a stream and returns what it says, line by line.
func listen(t *testing.T, ctx context.Context, s *served) (lines <-chan string, status int) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/api/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	// A connection of its own: the server closes those that idle.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: s.pipes.dial}}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	out := make(chan string, 10000)
	go func() {
		defer close(out)
		defer resp.Body.Close()
		for in := bufio.NewScanner(resp.Body); in.Scan(); {
			out <- in.Text()
		}
	}()
	return out, resp.StatusCode
}

// next returns the next event of a stream.
func next(t *testing.T, lines <-chan string) (c view.Change) {
	t.Helper()
	late := time.After(20 * time.Second)
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				t.Fatal("the stream ended")
			}
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				if err := json.Unmarshal([]byte(data), &c); err != nil {
					t.Fatal(err)
				}
				return c
			}
		case <-late:
			t.Fatal("no event")
		}
	}
}

func TestAnEventNamesWhatChangedAndAStreamOutlivesTheBoundsOfRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := testView()
		s := serve(t, v, nil)
		lines, status := listen(t, t.Context(), s)
		if status != 200 {
			t.Fatal(status)
		}
		<-lines // it stands
		v.Observe(plan(1, 2))
		if c := next(t, lines); len(c.Workloads) != 1 || c.Workloads[0] != "shop" || c.Plan != "2-1" || c.All {
			t.Errorf("%+v", c)
		}
		// Longer than the server lets a request take.
		<-time.After(bound + bound/2)
		v.Observe(&trimtab.Estimate{Workload: "batch", Time: noon})
		if c := next(t, lines); len(c.Workloads) != 1 || c.Workloads[0] != "batch" {
			t.Errorf("%+v", c)
		}
	})
}

func TestManyChangesBecomeFewEventsThatTogetherNameAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := testView()
		lines, _ := listen(t, t.Context(), serve(t, v, nil))
		<-lines
		names, events := map[string]bool{}, 0
		began := time.Now()
		for i := range 100 {
			for w := range 30 {
				v.Observe(&trimtab.Estimate{Workload: fmt.Sprint("w", w), Time: noon.Add(time.Duration(i) * time.Second)})
			}
			<-time.After(5 * time.Millisecond)
		}
		took := time.Since(began)
		for len(names) < 30 {
			for _, w := range next(t, lines).Workloads {
				names[w] = true
			}
			events++
		}
		if most := int(took/streamPause) + 3; events > most {
			t.Errorf("%d events in %v, at most %d", events, took, most)
		}
	})
}

func TestStreamsAreBoundedAndOneThatGoesMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := testView()
		s := serve(t, v, nil)
		ctx, leave := context.WithCancel(t.Context())
		for range maxStreams - 1 {
			if _, status := listen(t, t.Context(), s); status != 200 {
				t.Fatal(status)
			}
		}
		if _, status := listen(t, ctx, s); status != 200 {
			t.Fatal(status)
		}
		if _, status := listen(t, t.Context(), s); status != http.StatusServiceUnavailable {
			t.Fatalf("one too many: %d", status)
		}
		leave()
		for deadline := time.Now().Add(20 * time.Second); ; {
			ctx, cancel := context.WithCancel(t.Context())
			_, status := listen(t, ctx, s)
			cancel()
			if status == 200 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("a stream that was left still counts")
			}
			<-time.After(10 * time.Millisecond)
		}
	})
}

// TestAClientThatDoesNotReadIsDroppedAndDelaysNobody: what it is sent stands
// in the way of nobody else.
func TestAClientThatDoesNotReadIsDroppedAndDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := testView()
		h := &handler{view: v}
		server, client := net.Pipe() // no buffer at all
		defer client.Close()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			h.events(&pipeWriter{Conn: server, header: http.Header{}}, httptest.NewRequest("GET", "/api/v1/events", nil))
		}()
		// It reads how the stream begins, and then nothing.
		if _, err := client.Read(make([]byte, 8)); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for i := range 1000 {
			v.Observe(&trimtab.Estimate{Workload: "w", Time: noon.Add(time.Duration(i) * time.Second)})
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("the view waited %v for a client", took)
		}
		<-ended
		if took := time.Since(began); took > streamPatience+streamPause {
			t.Errorf("it kept its place for %v", took)
		}
		if n := h.streams.open.Load(); n != 0 {
			t.Errorf("%d places are taken", n)
		}
	})
}

// pipeWriter answers on a pipe.
type pipeWriter struct {
	net.Conn
	header http.Header
}

func (p *pipeWriter) Header() http.Header { return p.header }
func (p *pipeWriter) WriteHeader(int)     {}
func (p *pipeWriter) FlushError() error   { return nil }

func TestTheEndOfTheProcessEndsStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := make(chan struct{})
		s := serve(t, testView(), done)
		lines, _ := listen(t, t.Context(), s)
		<-lines
		close(done)
		for range lines { // until it ends
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestWhatChangesAsAStreamOpensIsTold: a client that heard that the stream
// stands misses nothing after that.
func TestWhatChangesAsAStreamOpensIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := testView()
		ctx, leave := context.WithTimeout(t.Context(), heartbeat/2)
		defer leave()
		w := &changing{ResponseRecorder: httptest.NewRecorder(), change: func() {
			v.Observe(&trimtab.Estimate{Workload: "shop", Time: noon})
		}}
		(&handler{view: v}).events(w, httptest.NewRequestWithContext(ctx, "GET", "/api/v1/events", nil))
		if !strings.Contains(w.Body.String(), `"shop"`) {
			t.Errorf("not told: %q", w.Body)
		}
	})
}

// changing makes its change once, while the first words are sent.
type changing struct {
	*httptest.ResponseRecorder
	change func()
}

func (c *changing) Write(b []byte) (int, error) {
	if c.change != nil {
		c.change()
		c.change = nil
	}
	return c.ResponseRecorder.Write(b)
}
