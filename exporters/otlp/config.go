package otlp

import (
	"crypto/tls"
	"log/slog"
	"net/url"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/metric"
)

// FromEnvironment as an endpoint means the one in the OTEL_ variables.
const FromEnvironment = "env"

// The protocols.
const (
	GRPC = "grpc"
	HTTP = "http"
)

// Wait is the time that a decision waits for the answers of its hosts before its
// trace is written without them.
const Wait = 30 * time.Second

// Config says where to push and what.
type Config struct {
	// Endpoint is a URL, http://… or https://… (TLS), or FromEnvironment.
	Endpoint string
	// Protocol is GRPC or HTTP (protobuf); "": that of the environment, else GRPC.
	Protocol string
	// TLS is for an https endpoint; nil: the environment's, else the system's CA bundle.
	TLS *tls.Config
	// Headers go with every request; nil: those of the environment.
	Headers map[string]string
	// Interval is between two pushes of metrics, and Timeout how long one
	// request may take; 0: the environment's, else 1 min and 10 s.
	Interval, Timeout time.Duration
	// Own are the addresses, host:port, that this process receives OTLP on.
	Own []string
	// Version is the version of this program.
	Version string
	// Utility returns the utility in [0, 1] of a workload's performance, and
	// false when there is none; nil: none has.
	Utility func(workload string, performance float64) (float64, bool)
	Metrics *metric.Set
	// Logger; nil: silent.
	Logger *slog.Logger
}

// Validate checks endpoint and protocol.
func (c *Config) Validate() error {
	switch {
	case c.Metrics == nil:
		return trimtab.Invalidf("export OTLP: no metrics to count with")
	case c.Protocol != "" && c.Protocol != GRPC && c.Protocol != HTTP:
		return trimtab.Invalidf("export OTLP: protocol %.20q", c.Protocol)
	case c.Endpoint == FromEnvironment:
		return nil
	}
	u, err := url.Parse(c.Endpoint)
	// The text is not shown, since the mistake may be in a secret.
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return trimtab.Invalidf("export OTLP: the endpoint is not http://host:port or https://host:port")
	}
	if u.Scheme == "http" && c.TLS != nil {
		return trimtab.Invalidf("export OTLP: TLS is configured, and the endpoint is http and not https")
	}
	return nil
}
