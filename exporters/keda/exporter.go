package keda

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/internal/listen"
	"github.com/trimtab/trimtab/internal/metric"
)

// Config says where to listen and whom to advise.
type Config struct {
	// Listen is "host:port"; port 0 takes a free one.
	Listen string
	// TLS is needed where Listen is not on loopback, with ClientCAs.
	TLS *tls.Config
	// Pool is the one whose plans are followed.
	Pool string
	// Round is the time between two plans: advice that is two rounds old is stale.
	Round time.Duration
	// Workloads lists the workloads that KEDA may ask for.
	Workloads []Workload
	// Metrics counts answers. Required.
	Metrics *metric.Set
}

// Validate checks all but the address, which is tried when it listens. An address that other
// machines reach, without client certificates, is trimtab.ErrRefused.
func (c *Config) Validate() error {
	host, _, err := net.SplitHostPort(c.Listen)
	ip := net.ParseIP(host)
	local := host == "localhost" || ip != nil && ip.IsLoopback()
	switch {
	case err != nil:
		return trimtab.Invalidf("keda: address %q: want host:port", c.Listen)
	case c.Pool == "" || c.Round <= 0 || c.Metrics == nil:
		return trimtab.Invalidf("keda: no pool, round or metrics")
	case !local && (c.TLS == nil || c.TLS.ClientAuth != tls.RequireAndVerifyClientCert):
		return fmt.Errorf("listen for KEDA on %s without certificates of clients: %w", c.Listen, trimtab.ErrRefused)
	}
	return nil
}

// Exporter answers KEDA. Its methods are safe for concurrent use.
type Exporter struct {
	advice   *advice
	metrics  *metric.Set
	listener net.Listener
	server   *grpc.Server
	streams  chan struct{}
	quit     chan struct{}
	once     sync.Once
	done     chan error
}

const (
	// maxConnections bounds those who ask: KEDA keeps one connection for each address.
	maxConnections = 256
	// maxRequest bounds a request in bytes.
	maxRequest = 64 << 10
	// silent is the time without traffic after which a peer is pinged.
	silent = 30 * time.Second
)

// Open listens and answers. The error is trimtab.ErrInvalid or ErrRefused for settings.
func Open(c Config) (*Exporter, error) { return open(c, time.Now) }

func open(c Config, now func() time.Time) (*Exporter, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	l, err := listen.TCP(c.Listen, maxConnections)
	if err != nil {
		return nil, fmt.Errorf("answer KEDA: %w", err)
	}
	e := &Exporter{advice: newAdvice(&c, now), metrics: c.Metrics, listener: l,
		streams: make(chan struct{}, maxStreams), quit: make(chan struct{}), done: make(chan error, 1)}
	options := []grpc.ServerOption{
		grpc.ForceServerCodecV2(codec{}),
		grpc.MaxRecvMsgSize(maxRequest),
		grpc.MaxHeaderListSize(maxRequest),
		grpc.MaxConcurrentStreams(maxStreams + 100), // leaves room for requests beside all streams
		grpc.ConnectionTimeout(silent),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: silent, Timeout: silent}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.WaitForHandlers(true),
		grpc.UnaryInterceptor(func(ctx context.Context, r any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			a, err := handle(ctx, r)
			e.count(err)
			return a, err
		}),
		grpc.StreamInterceptor(func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			err := handle(srv, s)
			if s.Context().Err() == nil {
				e.count(err)
			}
			return err
		}),
	}
	if c.TLS != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(c.TLS)))
	}
	e.server = grpc.NewServer(options...)
	e.server.RegisterService(service(), e)
	go func() { e.done <- e.server.Serve(l) }()
	return e, nil
}

// count counts an answer by its code.
func (e *Exporter) count(err error) {
	e.metrics.Counter("trimtab_keda_answers_total", status.Code(err).String()).Inc()
}

// Addr returns the address at which the exporter listens.
func (e *Exporter) Addr() net.Addr { return e.listener.Addr() }

// Follow subscribes to plans and holdings; stop ends it.
func (e *Exporter) Follow(ctx context.Context, b bus.Bus) (stop func(), err error) {
	return bus.Follow(ctx, b, false, e.Observe, trimtab.KindPlan, trimtab.KindHolding)
}

// Observe reads one value.
func (e *Exporter) Observe(v trimtab.Value) { e.advice.observe(v) }

// Close ends all calls, and the listener.
func (e *Exporter) Close() error {
	var err error
	e.once.Do(func() {
		close(e.quit)
		e.server.Stop()
		if err = <-e.done; err != nil {
			err = fmt.Errorf("answer KEDA: %w", err)
		}
	})
	return err
}
