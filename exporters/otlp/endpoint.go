package otlp

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
)

// signal is TRACES or METRICS, as in the names of the OTEL_ variables.
type signal string

const (
	traces  signal = "TRACES"
	metrics signal = "METRICS"
)

// variable returns the signal's own variable, else the general one.
func (s signal) variable(name string) string {
	if v := strings.TrimSpace(os.Getenv("OTEL_EXPORTER_OTLP_" + string(s) + "_" + name)); v != "" {
		return v
	}
	return strings.TrimSpace(os.Getenv("OTEL_EXPORTER_OTLP_" + name))
}

// wanted reports whether the environment does not switch the signal off.
func (s signal) wanted() bool {
	return !strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") && os.Getenv("OTEL_"+string(s)+"_EXPORTER") != "none"
}

// protocol returns GRPC or HTTP.
func (s signal) protocol(c *Config) (string, error) {
	if c.Protocol != "" {
		return c.Protocol, nil
	}
	switch v := s.variable("PROTOCOL"); v {
	case "", "grpc":
		return GRPC, nil
	case "http/protobuf":
		return HTTP, nil
	default:
		return "", fmt.Errorf("export OTLP: protocol %.40q of the environment: %w", v, trimtab.ErrUnsupported)
	}
}

// address returns host and port that the signal will be sent to.
func (s signal) address(c *Config, protocol string) (host, port string) {
	text := c.Endpoint
	if text == FromEnvironment {
		text = s.variable("ENDPOINT")
	}
	if text == "" { // the specification's default
		text = "https://localhost:" + map[string]string{GRPC: "4317", HTTP: "4318"}[protocol]
	}
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	if err != nil {
		return "", ""
	}
	port = u.Port()
	if port == "" {
		port = map[string]string{"http": "80"}[u.Scheme]
	}
	if port == "" {
		port = "443"
	}
	return u.Hostname(), port
}

// refuseLoop returns an error that is trimtab.ErrRefused when host and port are one of this
// process's receivers. A name that does not resolve now is accepted: it may be another machine.
func refuseLoop(ctx context.Context, host, port string, own []string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var there []netip.Addr
	for _, address := range own {
		ownHost, ownPort, err := net.SplitHostPort(address)
		if err != nil || ownPort != port {
			continue
		}
		if there == nil {
			there = resolve(ctx, host)
		}
		here := resolve(ctx, ownHost)
		if ownHost == "" || anyUnspecified(here) {
			here = interfaces()
		}
		for _, a := range there {
			for _, b := range here {
				if a == b {
					return fmt.Errorf("export OTLP to %s: it is our own receiver on %s, which would feed on itself: %w",
						net.JoinHostPort(host, port), address, trimtab.ErrRefused)
				}
			}
		}
	}
	return nil
}

// resolve returns the addresses of host. The unspecified address is reached on the loopback
// interface.
func resolve(ctx context.Context, host string) []netip.Addr {
	out, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		if host != "localhost" {
			return nil
		}
		out = []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()}
	}
	for i, a := range out {
		out[i] = a.Unmap().WithZone("")
	}
	if anyUnspecified(out) {
		out = append(out, netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback())
	}
	return out
}

func anyUnspecified(list []netip.Addr) bool {
	for _, a := range list {
		if a.IsUnspecified() {
			return true
		}
	}
	return false
}

// interfaces returns this machine's own addresses.
func interfaces() []netip.Addr {
	out := []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()}
	list, err := net.InterfaceAddrs()
	if err != nil {
		return out
	}
	for _, a := range list {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			out = append(out, p.Addr().Unmap().WithZone(""))
		}
	}
	return out
}
