package otlp

import (
	"cmp"
	"crypto/tls"
	"log/slog"
	"net"
	"time"

	"google.golang.org/grpc"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/internal/metric"
)

// Config says where to listen and what to refuse. At least one address is
// needed; an empty one is not listened on.
type Config struct {
	// Sink takes the spans. Required.
	Sink *collector.Sink
	// Metrics counts refused requests. Required.
	Metrics *metric.Set
	// GRPC and HTTP are "host:port"; port 0 takes a free one.
	GRPC, HTTP string
	// TLS, when set, is used on both; versions under 1.2 are never accepted.
	TLS *tls.Config
	// MaxBody bounds a request body after decompression; 0 means 16 MiB.
	MaxBody int
	// MaxHeld bounds the HTTP bodies held at one time; 0 means 4 MaxBody.
	MaxHeld int64
	// Timeout bounds a request from its first byte to its answer, so that a slow client cannot
	// occupy a connection; 0 means 30 s.
	Timeout time.Duration
	// MaxConnections bounds the open connections of each listener; more wait
	// to be accepted. 0 means 4096.
	MaxConnections int
	// Register adds further services to the gRPC server, such as Jaeger's; each is a [Service].
	Register func(grpc.ServiceRegistrar)
	// Log receives the log of the servers; nil: slog.Default().
	Log *slog.Logger
}

// Validate fills in the defaults and checks the rest.
func (c *Config) Validate() error {
	if c.Sink == nil || c.Metrics == nil {
		return trimtab.Invalidf("otlp: no sink or no metrics")
	}
	if c.GRPC == "" && c.HTTP == "" {
		return trimtab.Invalidf("otlp: no address to listen on")
	}
	for _, addr := range []string{c.GRPC, c.HTTP} {
		if _, _, err := net.SplitHostPort(addr); addr != "" && err != nil {
			return trimtab.Invalidf("otlp: address %q: want host:port", addr)
		}
	}
	if c.MaxBody < 0 || c.MaxHeld < 0 || c.Timeout < 0 || c.MaxConnections < 0 {
		return trimtab.Invalidf("otlp: negative bound")
	}
	c.MaxBody = cmp.Or(c.MaxBody, 16<<20)
	c.MaxHeld = cmp.Or(c.MaxHeld, 4*int64(c.MaxBody))
	c.Timeout = cmp.Or(c.Timeout, 30*time.Second)
	c.MaxConnections = cmp.Or(c.MaxConnections, 4096)
	c.Log = cmp.Or(c.Log, slog.Default())
	if c.TLS != nil {
		c.TLS = c.TLS.Clone()
		c.TLS.MinVersion = max(c.TLS.MinVersion, tls.VersionTLS12)
	}
	return nil
}
