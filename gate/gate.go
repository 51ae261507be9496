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

// Gate is a reverse proxy with an admission limit. Open makes one.
type Gate struct {
	config  *parsed
	opened  time.Time
	clients net.Listener
	park    *park // of the connections of clients
	admin   net.Listener
	// proxy passes on the requests that transport.direct does not carry.
	proxy     *httputil.ReverseProxy
	transport *transport
	buffers   buffers
	metrics   *metric.Set
	counted   *counters
	tracer    *tracer
	draining  atomic.Bool
	visits    atomic.Int64 // requests in progress

	mu         sync.Mutex // guards the fields below
	controller *admission.Controller
	classed    []classCounts
	// running lists the admitted requests that count against the limit, the oldest first.
	running visitList
}

// classCounts counts the requests of one class by outcome.
type classCounts struct{ shed, answered, inTime, brown uint64 }

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
	g.transport = newTransport(g)
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
	g.park, err = newPark(listen.Limit(g.clients, c.Connections), p.patience)
	if err != nil {
		return nil, errors.Join(err, g.clients.Close(), g.admin.Close())
	}
	return g, nil
}

// Address returns the address on which clients are served.
func (g *Gate) Address() string { return g.clients.Addr().String() }

// AdminAddress returns the address of metrics and the control API.
func (g *Gate) AdminAddress() string { return g.admin.Addr().String() }

// now returns the time since the gate opened, on the monotonic clock: leases and limits must not
// depend on a wall clock that may jump.
func (g *Gate) now() time.Duration { return time.Since(g.opened) }

// interval is the time between two ticks of the rule.
const interval = 100 * time.Millisecond

// Bounds on what a client may use before its request is complete.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 60 * time.Second
	maxHeader     = 64 << 10
)

// Run serves until ctx ends. It returns when all requests in progress have been answered, or when
// the drain timeout has passed.
func (g *Gate) Run(ctx context.Context) error {
	base, cut := context.WithCancel(context.Background())
	defer cut()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: g, Protocols: protocols, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader, ErrorLog: quietLog(), BaseContext: func(net.Listener) context.Context { return base }, ConnState: state}
	control := &http.Server{Handler: g.control(), ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader, ErrorLog: quietLog()}
	ended := make(chan error, 2)
	go func() { ended <- server.Serve(g.park) }()
	go func() { ended <- control.Serve(listen.Limit(g.admin, 64)) }()
	err := g.tick(ctx, ended)
	g.drain(server, cut)
	_ = control.Close()
	if g.tracer != nil {
		g.tracer.close()
	}
	return err
}

// tick advances the admission rule every interval until ctx or a server ends.
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

// learn advances the admission rule by one interval.
func (g *Gate) learn() {
	g.mu.Lock()
	now := g.now()
	g.releaseStreams(now)
	g.controller.Tick(now)
	state := g.controller.State(now)
	g.mu.Unlock()
	g.park.sweep(time.Now(), idleTimeout)
	if d := g.transport.direct; d != nil {
		d.sweep(time.Now())
	}
	if g.tracer != nil {
		g.tracer.answered.observe(state.Admitted, interval)
		g.tracer.refused.observe(state.Arrived-state.Admitted-uint64(state.Queued), interval) // and those whose clients left
	}
}

// settle is how long TCP handshakes may still take that began before new connections were steered
// to the next process.
const settle = 300 * time.Millisecond

// drain stops the server in three steps: it sends new connections to the next process, closes each
// client connection with its next response, and cuts what still runs at the drain timeout.
func (g *Gate) drain(server *http.Server, cut func()) {
	end := time.Now().Add(g.config.Drain)
	if err := errors.Join(steer(g.clients), steer(g.admin)); err != nil {
		g.config.Logger.Debug("new connections are not steered away: one that comes in the instant in which the listener closes is reset", "err", err)
	}
	g.draining.Store(true)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	began := time.Now()
	// Idle HTTP/1 connections end with the response to their next request; without one, at the
	// timeout.
	for quiet := min(g.config.Drain/2, 3*time.Second); time.Since(began) < quiet && (time.Since(began) < settle || g.park.connections() > 0); {
		<-tick.C
		g.learn()
	}
	g.park.release()
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
