package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"time"

	"github.com/prometheus/common/version"

	"github.com/trimtab/trimtab/gate"
	"github.com/trimtab/trimtab/internal/hint"
)

// gateCmd is `trimtab gate`.
type gateCmd struct {
	Listen      string        `help:"Address for clients: HTTP/1.1, and HTTP/2 without TLS." required:"" placeholder:"HOST:PORT"`
	To          string        `help:"The service behind the gate." required:"" placeholder:"URL"`
	Workload    string        `help:"Name of the service in metrics and spans." required:"" placeholder:"NAME"`
	Within      time.Duration `help:"The SLO: latency that an answered request is to have, waiting included." required:"" placeholder:"DURATION"`
	Class       string        `help:"Header that ranks requests, and its values, the most important first. A request with another value, or none, is normal, or else last but one." placeholder:"HEADER=A,B,C"`
	ClassPath   string        `name:"class-path" help:"Class of a request by the longest of these beginnings of its path, if its header has no value of --class." placeholder:"/PATH=A,..."`
	Brownout    string        `name:"brownout-header" help:"Header to add to requests while those of their class are about to be refused: a service that knows it answers cheaper." placeholder:"HEADER:VALUE"`
	Browned     string        `name:"brownout-classes" help:"Classes whose requests get that header. Left out: all but the most important." placeholder:"A,B"`
	Admin       string        `help:"Address of metrics and control: on the loopback interface, or unix:/path." default:"127.0.0.1:9610"`
	OTLP        string        `name:"otlp" help:"Send a span of each request there: gRPC, or HTTP at port 4318 or with a path." placeholder:"URL"`
	Upstream    time.Duration `name:"upstream-timeout" help:"How long the service may take until its response begins." default:"30s"`
	Drain       time.Duration `help:"How long a stop waits for requests in flight." default:"30s"`
	HTTP2       bool          `name:"http2" help:"The service speaks HTTP/2 without TLS for all requests. gRPC always goes over HTTP/2."`
	Connections int           `help:"Connections of clients at one time; more wait in the kernel." default:"16384"`
}

// gateBallast is counted as live by the garbage collector of a gate, in bytes. With 5,000
// connections 10 MiB are live beside it.
const gateBallast = 32 << 20

// Example is shown by --help.
func (gateCmd) Example() string {
	return "trimtab gate --listen :8080 --to http://127.0.0.1:9000 --workload shop --within 200ms\ntrimtab gate --listen :8080 --to http://127.0.0.1:9000 --workload shop --within 200ms --class 'x-priority=critical,normal,low' --class-path '/checkout=critical,/feed=low' --brownout-header 'x-brownout: 1'\ncurl -s 127.0.0.1:9610/v1/limit"
}

// Run serves until a signal, and then until the requests in progress are answered.
func (c *gateCmd) Run(ctx context.Context, log *logFlags, t terminal) error {
	logger, err := log.logger(t.err)
	if err != nil {
		return err
	}
	g, err := gate.Open(ctx, gate.Config{Listen: c.Listen, To: c.To, Workload: c.Workload, Within: c.Within, Class: c.Class, ClassPath: c.ClassPath, BrownoutHeader: c.Brownout, BrownoutClasses: c.Browned, Admin: c.Admin,
		OTLP: c.OTLP, Upstream: c.Upstream, Drain: c.Drain, HTTP2: c.HTTP2, Connections: c.Connections, Version: version.Version, Logger: logger})
	if errors.Is(err, syscall.EADDRINUSE) {
		return hint.Else(err, "another program listens there; a second gate of the same user may, and takes over when the first one stops")
	}
	if err != nil {
		return err
	}
	// The heap of a gate is so small that the garbage collector would run all the time. It counts a
	// block that is never touched, and so takes no memory: a quarter more is at least gateBallast/4.
	ballast := make([]byte, gateBallast)
	defer runtime.KeepAlive(ballast)
	stayLean(ctx, 0)
	useFewProcessors(ctx)
	fmt.Fprintf(t.out, "%s: %s goes to %s; answers within %v, and refuses at once requests that it cannot answer in that time; limits and metrics at %s\n",
		c.Workload, g.Address(), c.To, c.Within, g.AdminAddress())
	return g.Run(ctx)
}
