package otlp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"google.golang.org/grpc"

	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/internal/listen"
)

// Receiver listens for OTLP. Open listens at once, so that a port in use is
// an error there; requests wait until Serve.
type Receiver struct {
	config             Config
	grpcAddr, httpAddr net.Listener
	grpc               *grpc.Server
	http               *http.Server
	// sources count by receiver.
	sources []*collector.Source
}

// Open listens on the configured addresses.
func Open(c Config) (*Receiver, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("open OTLP receiver: %w", err)
	}
	r := &Receiver{config: c}
	var err error
	if c.GRPC != "" {
		if r.grpcAddr, err = listen.TCP(c.GRPC, c.MaxConnections); err != nil {
			return nil, fmt.Errorf("open OTLP receiver: %w", err)
		}
		r.openGRPC()
	}
	if c.HTTP != "" {
		if r.httpAddr, err = listen.TCP(c.HTTP, c.MaxConnections); err != nil {
			return nil, errors.Join(fmt.Errorf("open OTLP receiver: %w", err), r.Close())
		}
		r.openHTTP()
	}
	return r, nil
}

func (r *Receiver) openGRPC() {
	const name = "otlp_grpc"
	r.grpc = newServer(&r.config, &Service{
		From: r.source(name), Scan: ScanRequest, Refused: r.refused(name),
		Answer: func(p *collector.Packer) ([]byte, error) { return partialOf(p).protobuf(), nil },
	})
}

func (r *Receiver) openHTTP() {
	const name, nameZipkin = "otlp_http", "zipkin"
	r.http = newHTTPServer(&r.config, &web{
		from: r.source(name), fromZipkin: r.source(nameZipkin),
		bodies:  bodies{max: r.config.MaxBody, maxHeld: r.config.MaxHeld},
		refused: r.refused(name), refusedZipkin: r.refused(nameZipkin),
	})
}

// source returns the counters of a receiver.
func (r *Receiver) source(name string) *collector.Source {
	from := r.config.Sink.Source(name)
	r.sources = append(r.sources, from)
	return from
}

// refused returns the function that counts wholly refused requests.
func (r *Receiver) refused(name string) func(reason string) {
	return func(reason string) {
		r.config.Metrics.Counter("trimtab_collector_requests_rejected_total", name, reason).Inc()
	}
}

// GRPCAddr returns the address of the gRPC listener, or "" without one.
func (r *Receiver) GRPCAddr() string { return addr(r.grpcAddr) }

// HTTPAddr returns the address of the HTTP listener, or "" without one.
func (r *Receiver) HTTPAddr() string { return addr(r.httpAddr) }

func addr(l net.Listener) string {
	if l == nil {
		return ""
	}
	return l.Addr().String()
}

// Counts returns the sum of the counts of gRPC and HTTP.
func (r *Receiver) Counts() collector.Counts {
	sum := collector.Counts{Rejected: map[collector.Reason]uint64{}}
	for _, from := range r.sources {
		c := from.Counts()
		sum.Received += c.Received
		sum.Accepted += c.Accepted
		for reason, n := range c.Rejected {
			sum.Rejected[reason] += n
		}
	}
	return sum
}

// Serve serves requests until ctx ends, then finishes those under way, for at most 5 s, and
// closes. It returns nil after ctx ended, and otherwise why a server stopped.
func (r *Receiver) Serve(ctx context.Context) error {
	stopped := make(chan error, 2)
	running := 0
	if r.grpc != nil {
		running++
		go func() { stopped <- r.grpc.Serve(r.grpcAddr) }()
	}
	if r.http != nil {
		running++
		go func() { stopped <- r.serveHTTP() }()
	}
	var err error
	select {
	case <-ctx.Done():
		r.drain(context.WithoutCancel(ctx))
	case first := <-stopped:
		running--
		err = unlessClosed(first)
	}
	_ = r.Close() // what is left; the listeners may be closed already
	for range running {
		err = errors.Join(err, unlessClosed(<-stopped))
	}
	if err != nil {
		return fmt.Errorf("serve OTLP: %w", err)
	}
	return nil
}

// unlessClosed returns err, or nil when it only says that serving has ended.
func unlessClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) || errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

func (r *Receiver) serveHTTP() error {
	if r.config.TLS != nil {
		return r.http.ServeTLS(r.httpAddr, "", "")
	}
	return r.http.Serve(r.httpAddr)
}

// drainTime bounds how long requests under way may go on at the end.
const drainTime = 5 * time.Second

// drain stops taking requests and waits for the answers of the others.
func (r *Receiver) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if r.grpc != nil {
			r.grpc.GracefulStop()
		}
	}()
	if r.http != nil {
		_ = r.http.Shutdown(ctx) // Close ends what remains
	}
	select {
	case <-done:
	case <-ctx.Done():
		if r.grpc != nil {
			r.grpc.Stop() // ends GracefulStop
		}
		<-done
	}
}

// Close closes listeners and connections at once; requests under way are
// not answered. Serve then returns nil.
func (r *Receiver) Close() error {
	var errs []error
	if r.grpc != nil {
		r.grpc.Stop()
	}
	if r.http != nil {
		errs = append(errs, r.http.Close())
	}
	for _, l := range []net.Listener{r.grpcAddr, r.httpAddr} {
		if l == nil {
			continue
		}
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close OTLP receiver: %w", err)
	}
	return nil
}
