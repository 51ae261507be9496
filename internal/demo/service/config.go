package service

import (
	"math"
	"math/rand/v2"
	"net/url"
	"time"

	"github.com/trimtab/trimtab"
)

// Draw is a lognormal distribution of lengths of time, cut off at ten times
// its mean.
type Draw struct {
	// Mean is >= 0.
	Mean time.Duration
	// CoV is the standard deviation over the mean, in [0, 10]; 0: constant.
	CoV float64
}

// Sample draws one length: exp(N(ln m - s²/2, s²)) with s² = ln(1 + CoV²).
func (d Draw) Sample(r *rand.Rand) time.Duration {
	if d.Mean <= 0 || d.CoV <= 0 {
		return max(0, d.Mean)
	}
	s2 := math.Log1p(d.CoV * d.CoV)
	x := math.Exp(r.NormFloat64()*math.Sqrt(s2) - s2/2)
	return time.Duration(min(x, 10) * float64(d.Mean))
}

func (d Draw) validate(what string) error {
	if d.Mean < 0 || d.Mean > time.Minute || !(d.CoV >= 0 && d.CoV <= 10) {
		return trimtab.Invalidf("%s: mean %v, coefficient of variation %v", what, d.Mean, d.CoV)
	}
	return nil
}

// Config configures one component.
type Config struct {
	// Name is the component: service.name of its spans. Workload is its service:
	// service.namespace.
	Name, Workload string
	// Listen is host:port; port 0 picks a free one.
	Listen string
	// Inherit, when not empty, is the Unix socket at which [Lend] lends the
	// socket to listen on. The service is then one of several workers, takes
	// one connection at a time, and tells itself from the others by
	// TRIMTAB_WORKER in its environment. Listen only names the address.
	Inherit string
	// OTLP is host:port of a gRPC receiver without TLS. Empty: the OTEL_
	// variables say where spans go.
	OTLP string
	// CPU and Wait are drawn for each request.
	CPU, Wait Draw
	// Calls is the URL of the component that each request calls, or empty.
	Calls string
	// Slots is how many requests may be on the processor at a time, in
	// [1, 1024]; a slot is given up once the CPU work is done.
	Slots int
	// Queue is how many requests may wait for a slot; more are answered 503.
	Queue int
	// Patience is the longest time from the request's start to its slot; a request that waited
	// longer is answered 503 before any work is done. > 0.
	Patience time.Duration
	// Seed of the draws.
	Seed uint64
	// Ready, when not nil, gets the address once the service listens.
	Ready func(addr string)
}

// Validate checks the ranges of all fields.
func (c *Config) Validate() error {
	switch {
	case c.Name == "" || c.Workload == "":
		return trimtab.Invalidf("service %q of workload %q: both need a name", c.Name, c.Workload)
	case c.Listen == "":
		return trimtab.Invalidf("service %s: no address to listen on", c.Name)
	case c.Slots < 1 || c.Slots > 1024:
		return trimtab.Invalidf("service %s: %d slots, want 1 to 1024", c.Name, c.Slots)
	case c.Queue < 0:
		return trimtab.Invalidf("service %s: queue of %d", c.Name, c.Queue)
	case c.Patience <= 0:
		return trimtab.Invalidf("service %s: patience %v", c.Name, c.Patience)
	}
	if c.Calls != "" {
		if u, err := url.Parse(c.Calls); err != nil || u.Host == "" {
			return trimtab.Invalidf("service %s: calls %.80q: want a URL", c.Name, c.Calls)
		}
	}
	if err := c.CPU.validate("CPU time of " + c.Name); err != nil {
		return err
	}
	return c.Wait.validate("wait of " + c.Name)
}
