package gate

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab/internal/hint"
)

// Config configures a gate.
type Config struct {
	// Listen is the address on which clients are served, host:port.
	Listen string
	// To is the URL of the service: http:// or https://, host and port.
	To string
	// Workload names the service in metrics and spans.
	Workload string
	// Within is the SLO: the time from the arrival of a request until its response is complete.
	Within time.Duration
	// Class names the header that gives a request's class, and its values, the most important
	// first: "x-priority=critical,normal,low".
	Class string
	// ClassPath gives the class of requests whose header has none of those values, by the longest
	// beginning of their path: "/checkout=critical,/search=normal".
	ClassPath string
	// BrownoutHeader, "x-brownout: 1", is added to requests of the BrownoutClasses while requests
	// of their class are about to be refused. Empty: to none. Without BrownoutClasses, "low,normal",
	// it is added to all but the most important class.
	BrownoutHeader, BrownoutClasses string
	// Admin is the address of metrics and the control API: host:port on the loopback interface, or
	// unix:/path.
	Admin string
	// OTLP is the endpoint that spans are sent to; empty: no spans are sent.
	OTLP string
	// Upstream is how long the service may take until its response begins.
	Upstream time.Duration
	// Drain is how long a stop waits for the requests in progress.
	Drain time.Duration
	// HTTP2 sends every request over HTTP/2 with prior knowledge; without it only gRPC goes over
	// HTTP/2.
	HTTP2 bool
	// Connections is the largest number of client connections.
	Connections int
	// Version is the program version that spans report.
	Version string
	Logger  *slog.Logger
	// patience is how long a client may pause while it sends a body or reads a response; 0:
	// clientTimeout.
	patience time.Duration
}

// parsed is a validated Config.
type parsed struct {
	Config
	to       *url.URL
	classes  classes
	brownout brownout
}

// parse validates c. Its errors say what to change.
func (c Config) parse() (*parsed, error) {
	p := &parsed{Config: c}
	p.patience = cmp.Or(c.patience, clientTimeout)
	to, err := url.Parse(c.To)
	if err != nil || to.Host == "" || !slices.Contains([]string{"http", "https"}, to.Scheme) || to.Path != "" && to.Path != "/" || to.RawQuery != "" || to.User != nil {
		return nil, hint.Add(fmt.Errorf("read --to %q: not the address of a service", c.To), "write scheme, host and port, such as --to http://127.0.0.1:9000")
	}
	p.to = to
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return nil, hint.Add(fmt.Errorf("read --listen: %w", err), "write host and port, such as --listen :8080 or --listen 127.0.0.1:8080")
	}
	if c.Workload == "" || strings.ContainsFunc(c.Workload, func(r rune) bool { return r < ' ' }) {
		return nil, hint.Add(fmt.Errorf("read --workload %q: no name", c.Workload), "name the service as in your traces, such as --workload shop")
	}
	for _, d := range []struct {
		flag       string
		value, min time.Duration
	}{{"--within", c.Within, time.Millisecond}, {"--upstream-timeout", c.Upstream, time.Millisecond}, {"--drain", c.Drain, 0}} {
		if d.value < d.min || d.value > 24*time.Hour {
			return nil, hint.Add(fmt.Errorf("read %s %v: not between %v and 24h", d.flag, d.value, d.min), "--within is the latency that requests are to have, such as 200ms; the others are time-outs")
		}
	}
	if c.Connections < 1 {
		return nil, hint.Add(fmt.Errorf("read --connections %d: not positive", c.Connections), "16384 is the default")
	}
	if p.classes, err = parseClasses(c.Class, c.ClassPath); err != nil {
		return nil, hint.Add(err, "write a header and its values, the most important first: --class 'x-priority=critical,normal,low'; and paths with one of these: --class-path '/checkout=critical,/search=normal'")
	}
	if p.brownout, err = parseBrownout(c.BrownoutHeader, c.BrownoutClasses, &p.classes); err != nil {
		return nil, hint.Add(err, "write a header that your service understands, and classes: --brownout-header 'x-brownout: 1' --brownout-classes low")
	}
	if err := checkAdmin(c.Admin); err != nil {
		return nil, hint.Add(err, "whoever reaches it may lower the limit: write 127.0.0.1:PORT, or unix:/path of a socket")
	}
	return p, nil
}

func checkAdmin(address string) error {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		if path == "" {
			return fmt.Errorf("read --admin %q: no path", address)
		}
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("read --admin: %w", err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("read --admin %q: not on the loopback interface", address)
	}
	return nil
}
