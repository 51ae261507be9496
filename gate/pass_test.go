package gate

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/trimtab/trimtab/internal/hint"
)

// serveGRPC starts a gRPC server with the health service and returns its URL.
func serveGRPC(t *testing.T) (url string, h *health.Server) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	h = health.NewServer()
	grpc_health_v1.RegisterHealthServer(s, h)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return "http://" + l.Addr().String(), h
}

// dial connects a gRPC client to a gate.
func dial(t *testing.T, g *Gate) grpc_health_v1.HealthClient {
	t.Helper()
	c, err := grpc.NewClient(g.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return grpc_health_v1.NewHealthClient(c)
}

func TestGRPCPassesWithItsStatusAndItsStreams(t *testing.T) {
	url, h := serveGRPC(t)
	g, _ := runTo(t, url, nil)
	c := dial(t, g)
	if r, err := c.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}); err != nil || r.Status != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Fatal(r, err)
	}
	if _, err := c.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "none"}); status.Code(err) != codes.NotFound {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := c.Watch(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []grpc_health_v1.HealthCheckResponse_ServingStatus{grpc_health_v1.HealthCheckResponse_SERVING, grpc_health_v1.HealthCheckResponse_NOT_SERVING} {
		r, err := stream.Recv()
		if err != nil || r.Status != want {
			t.Fatal(r, err)
		}
		h.SetServingStatus("", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	}
}

func TestARefusedCallIsResourceExhaustedWithPushback(t *testing.T) {
	url, _ := serveGRPC(t)
	g, _ := runTo(t, url, func(c *Config) { c.Within = 100 * time.Millisecond })
	c := dial(t, g)
	control(t, g, http.MethodPut, `{"max":1,"lease_ms":60000}`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if s, err := c.Watch(ctx, &grpc_health_v1.HealthCheckRequest{}); err != nil {
		t.Fatal(err)
	} else if _, err := s.Recv(); err != nil {
		t.Fatal(err)
	}
	var trailer metadata.MD
	_, err := c.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}, grpc.Trailer(&trailer))
	if status.Code(err) != codes.ResourceExhausted || len(trailer.Get("grpc-retry-pushback-ms")) != 1 {
		t.Errorf("%v, trailer %v", err, trailer)
	}
	// A stream that goes on makes room in the end.
	for err != nil {
		_, err = c.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	}
}

func TestAnAbsentGRPCServiceIsUnavailable(t *testing.T) {
	g, _ := runTo(t, "http://127.0.0.1:1", nil)
	if _, err := dial(t, g).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}); status.Code(err) != codes.Unavailable {
		t.Error(err)
	}
}

func TestAnUpgradedConnectionPassesBothWaysAndTakesNoRoom(t *testing.T) {
	g := run(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		line, _ := rw.ReadString('\n')
		fmt.Fprintf(c, "heard %s", line)
		_, _ = io.Copy(io.Discard, rw)
	}), nil)
	c, err := net.Dial("tcp", g.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: shop\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(resp, err)
	}
	fmt.Fprintf(c, "hello\n")
	if line, err := r.ReadString('\n'); line != "heard hello\n" {
		t.Fatal(line, err)
	}
	if _, d := control(t, g, http.MethodGet, ""); d.InFlight != 0 || d.InTime != 1 {
		t.Errorf("%+v", d)
	}
}

func TestEventsPassAsTheyComeAndTakeNoRoom(t *testing.T) {
	next := make(chan struct{})
	g := run(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 2 {
			fmt.Fprint(w, "data: 1\n\n")
			_ = http.NewResponseController(w).Flush()
			<-next
		}
	}), nil)
	resp, err := http.Get(g.url("/"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b := make([]byte, 9)
	if _, err := io.ReadFull(resp.Body, b); err != nil {
		t.Fatal(err)
	}
	if _, d := control(t, g, http.MethodGet, ""); d.InFlight != 0 {
		t.Errorf("%+v", d)
	}
	next <- struct{}{}
	next <- struct{}{}
	if rest, err := io.ReadAll(resp.Body); string(rest) != "data: 1\n\n" || err != nil {
		t.Errorf("%q %v", rest, err)
	}
}

func TestHTTP2WithoutTLSPassesToAServiceOfEitherVersion(t *testing.T) {
	for _, both := range []bool{false, true} {
		g := run(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto) }), func(c *Config) { c.HTTP2 = both })
		p := new(http.Protocols)
		p.SetUnencryptedHTTP2(true)
		client := &http.Client{Transport: &http.Transport{Protocols: p}}
		resp, err := client.Get(g.url("/"))
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		client.CloseIdleConnections()
		if want := map[bool]string{false: "HTTP/1.1", true: "HTTP/2.0"}[both]; resp.ProtoMajor != 2 || string(b) != want {
			t.Errorf("%s to the gate, %s to the service, want %s", resp.Proto, b, want)
		}
	}
}

// raw sends bytes and returns the status line of the answer.
func raw(t *testing.T, g *Gate, text string) string {
	t.Helper()
	c, err := net.Dial("tcp", g.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go func() { _, _ = io.WriteString(c, text) }()
	line, _ := bufio.NewReader(c).ReadString('\n')
	return strings.TrimSpace(line)
}

func TestAmbiguousAndHugeRequestsAreRefusedBeforeTheService(t *testing.T) {
	g := run(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the service was asked") }), nil)
	for name, c := range map[string]struct{ text, status string }{
		"two lengths":          {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", "400"},
		"unknown coding":       {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "501"},
		"space before colon":   {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", "400"},
		"two hosts":            {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400"},
		"no host":              {"GET / HTTP/1.1\r\n\r\n", "400"},
		"a length that is not": {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\nx", "400"},
		"megabytes of headers": {"GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 4<<20) + "\r\n\r\n", "431"},
	} {
		if got := raw(t, g, c.text); !strings.HasPrefix(got, "HTTP/1.1 "+c.status) {
			t.Errorf("%s: %q, want %s", name, got, c.status)
		}
	}
}

func TestAHundredThousandClassesCostNothing(t *testing.T) {
	c, err := parseClasses("x-priority=critical,normal,low", "")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100_000 {
		if got := c.of(&http.Request{Header: http.Header{"X-Priority": {fmt.Sprint("class", i)}}}); got != 1 {
			t.Fatal(got)
		}
	}
	if len(c.names) != 3 || len(c.rank) != 3 {
		t.Error(c)
	}
	for value, want := range map[string]int{"critical": 0, "normal": 1, "low": 2, "": 1} {
		if got := c.of(&http.Request{Header: http.Header{"X-Priority": {value}}}); got != want {
			t.Errorf("%q: %d, want %d", value, got, want)
		}
	}
}

func TestARetryIsSeenByItsAttemptHeaders(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        bool
	}{
		{"X-Envoy-Attempt-Count", "1", false}, {"X-Envoy-Attempt-Count", "2", true}, {"Grpc-Previous-Rpc-Attempts", "0", false},
		{"Grpc-Previous-Rpc-Attempts", "1", true}, {"X-Envoy-Attempt-Count", "-2", false}, {"X-Envoy-Attempt-Count", "99999999999", false}, {"X-Other", "9", false},
	} {
		if got := isRetry(http.Header{c.name: {c.value}}); got != c.want {
			t.Errorf("%s: %s: %v", c.name, c.value, got)
		}
	}
}

func TestBadFlagsSayWhatToDo(t *testing.T) {
	good := Config{Listen: "127.0.0.1:0", To: "http://127.0.0.1:9000", Workload: "shop", Within: time.Second, Admin: "127.0.0.1:0", Upstream: time.Second, Connections: 1}
	if _, err := good.parse(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Config){
		"a path in --to":        func(c *Config) { c.To = "http://127.0.0.1:9000/shop" },
		"no scheme":             func(c *Config) { c.To = "127.0.0.1:9000" },
		"no port":               func(c *Config) { c.Listen = "127.0.0.1" },
		"no SLO":                func(c *Config) { c.Within = 0 },
		"no name":               func(c *Config) { c.Workload = "" },
		"control for everybody": func(c *Config) { c.Admin = ":9610" },
		"no values":             func(c *Config) { c.Class = "x-priority" },
		"a value twice":         func(c *Config) { c.Class = "x-priority=a,a" },
		"no connections":        func(c *Config) { c.Connections = 0 },
	} {
		c := good
		change(&c)
		if _, err := c.parse(); err == nil || hint.Of(err) == "" {
			t.Errorf("%s: %v, hint %q", name, err, hint.Of(err))
		}
	}
}
