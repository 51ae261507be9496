package otlp

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/collector/internal/spantest"
	"github.com/trimtab/trimtab/internal/trial"
)

func zip(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// bombs are small bodies that become large, and large ones that hold nothing.
func bombs(t *testing.T) map[string][]byte {
	const most = largest / 16 * 15
	return map[string][]byte{
		"zeros":         zip(t, make([]byte, 4*largest)),
		"open brackets": zip(t, bytes.Repeat([]byte("["), most)),
		"empty objects": zip(t, append(append([]byte(`{"resourceSpans":[{}`), bytes.Repeat([]byte(",{}"), most/3-10)...), "]}"...)),
		"empty spans":   zip(t, append(append([]byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{}`), bytes.Repeat([]byte(",{}"), most/3-20)...), "]}]}]}"...)),
	}
}

// S5: the times are those of an answer.
func TestABombIsAnsweredAndMemoryStaysBounded(t *testing.T) {
	all := bombs(t)
	tr := trial.Start(t, 2*len(all))
	b := &spantest.Bus{}
	r := start(t, b, func(c *Config, _ *collector.Config) { c.MaxBody, c.Timeout = largest, 5*time.Minute }) // unpacking takes the race detector long
	for i := range tr.N {
		name, kind := slices.Sorted(maps.Keys(all))[i/2%len(all)], []string{typeJSON, typeProtobuf}[i%2]
		body := all[name]
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		got := post(t, r, kind, body, "Content-Encoding", "gzip")
		tr.Took(time.Since(began))
		runtime.ReadMemStats(&after)
		if total := after.TotalAlloc - before.TotalAlloc; total > 64<<20 {
			t.Errorf("%s as %s: %d MiB allocated in all", name, kind, total>>20)
		}
		if ok := got.code == 413 || got.code == 400 || (kind == typeJSON && strings.HasPrefix(name, "empty") && got.code == 200); !ok {
			t.Errorf("%s as %s: %d %.100s", name, kind, got.code, got.body)
		}
	}
	if n := len(b.Spans()); n != 0 {
		t.Errorf("%d spans", n)
	}
}

func TestBodiesHeldAtOneTimeAreBounded(t *testing.T) {
	held := &bodies{max: 1 << 20, maxHeld: 1 << 20}
	take := func(in io.Reader) (*body, error) {
		return held.read(nil, &http.Request{Body: io.NopCloser(in), ContentLength: -1})
	}
	// One client sends most of a body and stops.
	in, out := io.Pipe()
	type result struct {
		body *body
		err  error
	}
	slow := make(chan result, 1)
	go func() {
		b, err := take(in)
		slow <- result{b, err}
	}()
	if _, err := out.Write(make([]byte, 900_000)); err != nil { // returns when all was read
		t.Fatal(err)
	}
	b, err := take(bytes.NewReader(make([]byte, 100_000)))
	if !errors.Is(err, errNoRoom) {
		t.Errorf("%v", err)
	}
	if b != nil {
		held.free(b)
	}
	out.Close()
	r := <-slow
	if r.err != nil || len(r.body.data) != 900_000 {
		t.Errorf("%v", r.err)
	}
	held.free(r.body)
	if b, err = take(bytes.NewReader(make([]byte, 100_000))); err != nil {
		t.Errorf("the room did not come back: %v", err)
	}
	held.free(b)
	if n := held.held.Load(); n != 0 {
		t.Errorf("%d bytes held at the end", n)
	}
}

// slowly is a body that stops for a while when half of it was sent.
type slowly struct {
	io.Reader
	left int
}

func (s *slowly) Read(b []byte) (int, error) {
	if s.left > 0 && s.left <= len(b) {
		time.Sleep(time.Second) // net/http would wait half of that
	}
	n, err := s.Reader.Read(b)
	s.left -= n
	return n, err
}

func TestAClientThatSendsSlowlyHearsWhyItsBodyIsRefused(t *testing.T) {
	const size = 6 << 20
	for name, c := range map[string]struct {
		change func(c *Config)
		code   int
	}{
		"too large": {func(c *Config) { c.MaxBody = 4 << 20 }, http.StatusRequestEntityTooLarge},
		"no room":   {func(c *Config) { c.MaxHeld = 64 << 10 }, http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, &spantest.Bus{}, func(to *Config, _ *collector.Config) { c.change(to) })
			body := &slowly{bytes.NewReader(make([]byte, size)), size / 2}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+r.HTTPAddr()+"/v1/traces", nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Content-Type", typeProtobuf)
			request.ContentLength = size
			conn, err := net.Dial("tcp", r.HTTPAddr())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			// It reads when all is sent, as many clients do.
			request.Body = io.NopCloser(body)
			if err := request.Write(conn); err != nil {
				t.Fatal(err)
			}
			answer, err := http.ReadResponse(bufio.NewReader(conn), request)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			if answer.StatusCode != c.code {
				t.Errorf("%d, want %d", answer.StatusCode, c.code)
			}
		})
	}
}

// S6: as many requests of another as the trial says; the times are theirs.
func TestAThousandSlowClientsDoNotStopOthersAndAreCutOff(t *testing.T) {
	tr := trial.Start(t, 1)
	b := &spantest.Bus{}
	r := start(t, b, func(c *Config, _ *collector.Config) { c.Timeout = 10 * time.Second }) // what the other needs on a busy machine
	const n = 1000
	var gone atomic.Int64
	done := make(chan struct{})
	for range n {
		conn, err := net.Dial("tcp", r.HTTPAddr())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: 1000000\r\n\r\n{", typeJSON)
		go func() {
			_, _ = io.Copy(io.Discard, conn) // until the server ends it
			conn.Close()
			if gone.Add(1) == n {
				close(done)
			}
		}()
	}
	for i := range tr.N {
		began := time.Now()
		if got := post(t, r, typeProtobuf, exampleBatch(512)); got.code != 200 {
			tr.Failf("%v", got.code)
		}
		if gone.Load() > 0 { // what follows is delayed by fewer
			if i == 0 {
				t.Error("slow clients were gone before the other was served")
			}
			break
		}
		tr.Took(time.Since(began))
	}
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		t.Errorf("%d of %d slow clients cut off", gone.Load(), n)
	}
}

func TestAGRPCStreamThatTricklesItsBodyIsCutOff(t *testing.T) {
	r := start(t, &spantest.Bus{}, func(c *Config, _ *collector.Config) { c.Timeout = time.Second })
	conn := dial(t, r)
	stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, exportMethod, grpc.ForceCodec(rawCodec{}))
	if err != nil {
		t.Fatal(err)
	}
	// Nothing is sent: the server waits for a body that never comes.
	if err := stream.RecvMsg(nil); status.Code(err) != grpccodes.DeadlineExceeded {
		t.Errorf("%v", err)
	}
	wantRefusals(t, r, map[string]float64{"cut_off": 1})
}
