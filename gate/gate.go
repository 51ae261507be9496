package gate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trimtab/trimtab/internal/listen"
	"github.com/trimtab/trimtab/internal/metric"
	"github.com/trimtab/trimtab/planner/admission"
)

// Gate is an open gate.
type Gate struct {
	config   *parsed
	opened   time.Time
	clients  net.Listener
	admin    net.Listener
	proxy    *httputil.ReverseProxy
	metrics  *metric.Set
	counted  *counters
	tracer   *tracer
	draining atomic.Bool
	// visits counts requests, and connections counts those of clients, that are open.
	visits, connections atomic.Int64

	mu         sync.Mutex // guards the rest
	controller *admission.Controller
	classed    []classCounts
	// running are the admitted requests that hold a place in the limit, the oldest first.
	running visitList
}

// classCounts is what came of the requests of a class.
type classCounts struct{ shed, answered, inTime uint64 }

// Open checks the configuration and listens.
func Open(ctx context.Context, c Config) (*Gate, error) {
	p, err := c.parse()
	if err != nil {
		return nil, err
	}
	g := &Gate{config: p, opened: time.Now(), metrics: metric.NewSetOf(metric.GateRows()),
		controller: admission.New(admission.Settings{Within: c.Within, Classes: len(p.classes.names)}),
		classed:    make([]classCounts, len(p.classes.names))}
	g.counted = newCounters(g)
	g.proxy = newProxy(g)
	if c.OTLP != "" {
		if g.tracer, err = newTracer(ctx, p); err != nil {
			return nil, err
		}
	}
	if g.clients, err = open(ctx, c.Listen); err != nil {
		return nil, err
	}
	if g.admin, err = open(ctx, c.Admin); err != nil {
		_ = g.clients.Close()
		return nil, err
	}
	return g, nil
}

// Address returns where clients are served.
func (g *Gate) Address() string { return g.clients.Addr().String() }

// AdminAddress returns the address of metrics and control.
func (g *Gate) AdminAddress() string { return g.admin.Addr().String() }

// now is the time since the gate opened, on the monotonic clock: leases and limits do not follow
// a wall clock that jumps.
func (g *Gate) now() time.Duration { return time.Since(g.opened) }

// interval is the time between two ticks of the rule.
const interval = 100 * time.Millisecond

// The bounds on what a client may cost before it is a request.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 60 * time.Second
	maxHeader     = 64 << 10
)

// Run serves until ctx ends, and returns when what was in flight then has been answered or
// the time to drain is over.
func (g *Gate) Run(ctx context.Context) error {
	base, cut := context.WithCancel(context.Background())
	defer cut()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: g, Protocols: protocols, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader, ErrorLog: quietLog(), BaseContext: func(net.Listener) context.Context { return base }, ConnState: g.connection}
	control := &http.Server{Handler: g.control(), ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader, ErrorLog: quietLog()}
	ended := make(chan error, 2)
	go func() { ended <- server.Serve(listen.Limit(g.clients, g.config.Connections)) }()
	go func() { ended <- control.Serve(listen.Limit(g.admin, 64)) }()
	err := g.tick(ctx, ended)
	g.drain(server, cut)
	_ = control.Close()
	if g.tracer != nil {
		g.tracer.close()
	}
	return err
}

// tick moves the rule on until ctx or a server ends.
func (g *Gate) tick(ctx context.Context, ended <-chan error) error {
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			return fmt.Errorf("serve: %w", err)
		case <-t.C:
			g.learn()
		}
	}
}

// learn is one tick.
func (g *Gate) learn() {
	g.mu.Lock()
	now := g.now()
	g.releaseStreams(now)
	g.controller.Tick(now)
	state := g.controller.State(now)
	g.mu.Unlock()
	if g.tracer != nil {
		g.tracer.answered.observe(state.Admitted, interval)
		g.tracer.refused.observe(state.Refused, interval)
	}
}

// settle is how long handshakes may take that began before new connections were steered away.
const settle = 300 * time.Millisecond

// drain ends the server: new connections go to the next process, those of clients end with
// their next response, and what still runs when the time is over is cut.
func (g *Gate) drain(server *http.Server, cut func()) {
	end := time.Now().Add(g.config.Drain)
	if err := errors.Join(steer(g.clients), steer(g.admin)); err != nil {
		g.config.Logger.Debug("new connections are not steered away: one that comes in the instant in which the listener closes is reset", "err", err)
	}
	g.draining.Store(true)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	began := time.Now()
	// Idle connections of HTTP/1 end with the answer to their next request; if none comes, at the end.
	for quiet := min(g.config.Drain/2, 3*time.Second); time.Since(began) < quiet && (time.Since(began) < settle || g.connections.Load() > 0); {
		<-tick.C
		g.learn()
	}
	stopping, cancel := context.WithDeadline(context.Background(), end)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- server.Shutdown(stopping) }()
	for stopped := false; !stopped || g.visits.Load() > 0 && time.Now().Before(end); {
		select {
		case err := <-done:
			stopped, done = true, nil
			if errors.Is(err, context.DeadlineExceeded) {
				g.config.Logger.Warn("requests were cut: they ran longer than --drain", "requests", g.visits.Load())
			}
		case <-tick.C:
			g.learn()
		}
	}
	cut()
	_ = server.Close()
}

// connection counts the clients' connections.
func (g *Gate) connection(_ net.Conn, s http.ConnState) {
	switch s {
	case http.StateNew:
		g.connections.Add(1)
	case http.StateClosed, http.StateHijacked:
		g.connections.Add(-1)
	}
}
