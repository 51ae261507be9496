package otlp

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/trimtab/trimtab/internal/metric"
)

// openSecure starts both endpoints with one certificate, whose authority the
// returned configuration trusts.
func openSecure(t *testing.T) (site *endpoint, trust *tls.Config) {
	t.Helper()
	site = openEndpoint(t)
	web := httptest.NewTLSServer(site)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: web.TLS.Certificates, MinVersion: tls.VersionTLS12})))
	coltrace.RegisterTraceServiceServer(server, site)
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	t.Cleanup(func() { server.Stop(); <-done; web.Close() })
	pool := x509.NewCertPool()
	pool.AddCert(web.Certificate())
	site.grpc, site.http = "https://"+l.Addr().String(), web.URL
	return site, &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

func TestTLSEndpointsAreVerified(t *testing.T) {
	t.Setenv("OTEL_METRICS_EXPORTER", "none")
	site, trust := openSecure(t)
	for _, c := range []Config{{Endpoint: site.grpc, Protocol: GRPC}, {Endpoint: site.http, Protocol: HTTP}} {
		for _, known := range []bool{false, true} {
			set := metric.NewSet()
			c.Metrics, c.TLS, c.Timeout = set, &tls.Config{MinVersion: tls.VersionTLS12}, 5*time.Second
			if known {
				c.TLS = trust
			} else {
				c.Timeout = 300 * time.Millisecond
			}
			send(t, open(t, c), decide()...)
			sent := testutil.ToFloat64(set.Counter("trimtab_otlp_spans_total", "sent"))
			if (sent == 9) != known || (sent == 0) == known {
				t.Errorf("%s, authority known: %v: %v spans sent", c.Protocol, known, sent)
			}
		}
	}
}
