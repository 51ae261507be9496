package path

import (
	"time"

	"github.com/trimtab/trimtab"
)

// Match configures which resources belong to a workload.
type Match struct {
	// Name is the name of the workload.
	Name string
	// Attributes maps a resource attribute to the values that it may have. A resource belongs to
	// the workload if each attribute has one of its values. Not empty.
	Attributes map[string][]string
	// Threshold is the latency limit of the SLO; 0: none, and no request counts as within it.
	Threshold time.Duration
}

// fits reports whether attrs match m. Of several equal keys the first counts.
func (m *Match) fits(attrs []trimtab.Attr) bool {
	for key, values := range m.Attributes {
		value, ok := attribute(attrs, key)
		if !ok || !contains(values, value) {
			return false
		}
	}
	return true
}

func attribute(attrs []trimtab.Attr, key string) (string, bool) {
	for _, a := range attrs {
		if a.Key == key {
			return a.Value, true
		}
	}
	return "", false
}

func contains(values []string, v string) bool {
	for _, x := range values {
		if x == v {
			return true
		}
	}
	return false
}

// Config configures a [Path]. Zero values stand for the defaults.
type Config struct {
	// Workloads are tried in order; a resource belongs to the first that matches.
	Workloads []Match
	// Discover adds a workload, named by service.name, for each service that no configured workload
	// matches, unless a configured workload has that name.
	Discover bool
	// Every is the length of an interval. Default 1 s, at least 1 ms.
	Every time.Duration
	// Settle is how long a complete-looking trace (with a root and no missing parent) waits for
	// further spans. A missing child cannot be detected: for exact sojourn times of callers, Settle
	// must exceed the time for which senders collect spans before they send them (5 s in
	// OpenTelemetry's SDKs unless configured). Requests and latencies do not depend on it. Default
	// 250 ms, or Timeout if that is less.
	Settle time.Duration
	// Timeout is how long any trace waits, from its first span. Spans that arrive later form a
	// trace of their own. Default 2 s, or Settle if that is more.
	Timeout time.Duration
	// Lateness is how late the spans of a sender are assumed to be as long as the sender is new, or
	// if it sends them in batches, as OpenTelemetry's SDKs do every 5 s. Later the lateness of each
	// sender is learned from its spans, at most Timeout, and Grace is not used. 0: nothing is
	// learned of senders; for recordings.
	Lateness time.Duration
	// Grace is how long after its end an interval stays open if Lateness is 0. Default Settle + 250
	// ms.
	Grace time.Duration
	// Skew is how far a sender's clock may run ahead of this host's before its times are
	// rejected. Default 2 s.
	Skew time.Duration
	// MaxSpans is the largest number of spans in memory, 48 bytes each; beyond it the oldest traces
	// are finished early. Default 1,048,576.
	MaxSpans int
	// MaxSpansPerTrace is the largest number of spans of one trace; further ones are dropped and
	// counted. Default 131,072 or MaxSpans, whichever is less.
	MaxSpansPerTrace int
	// MaxTraces is the largest number of traces in memory; beyond it the oldest are finished early.
	// Default 262,144.
	MaxTraces int
	// MaxWorkloads is the largest number of workloads, configured ones included; spans of further
	// services count as unmatched. Default 512.
	MaxWorkloads int
	// MaxComponents is the largest number of components of all workloads together; further ones are
	// added up under [Other] of their workload. Default 2,048, or MaxWorkloads if that is more.
	MaxComponents int
	// Partition is copied to the sketches.
	Partition int
	// Requests, if not nil, is called with each request of a finished trace, including where its
	// time was spent. Components are then also distinguished by process, so that MaxComponents must
	// allow for all processes. The request is valid only during the call.
	Requests func(*Request)
}

// Other is the component of services beyond Config.MaxComponents.
const Other = "other"

// withDefaults returns c with the defaults in place of zero values.
func (c Config) withDefaults() Config {
	settle := c.Settle
	duration := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	limit := func(n *int, v int) {
		if *n == 0 {
			*n = v
		}
	}
	duration(&c.Every, time.Second)
	duration(&c.Settle, 250*time.Millisecond)
	if settle == 0 && c.Timeout > 0 {
		c.Settle = min(c.Settle, c.Timeout)
	}
	duration(&c.Timeout, max(2*time.Second, c.Settle))
	duration(&c.Grace, c.Settle+250*time.Millisecond)
	duration(&c.Skew, 2*time.Second)
	limit(&c.MaxSpans, 1<<20)
	limit(&c.MaxSpansPerTrace, min(1<<17, c.MaxSpans))
	limit(&c.MaxTraces, 1<<18)
	limit(&c.MaxWorkloads, 512)
	limit(&c.MaxComponents, max(2048, c.MaxWorkloads))
	return c
}

// Validate returns an error that is trimtab.ErrInvalid if c is invalid. Zero values stand for the
// defaults.
func (c Config) Validate() error {
	c = c.withDefaults()
	switch {
	case c.Every < time.Millisecond || c.Every > 24*time.Hour:
		return trimtab.Invalidf("path interval %v: want 1ms to 24h", c.Every)
	case c.Settle < 0 || c.Timeout < c.Settle || c.Timeout > time.Hour:
		return trimtab.Invalidf("path settle %v, timeout %v: want 0 <= settle <= timeout <= 1h", c.Settle, c.Timeout)
	case c.Lateness < 0 || c.Lateness > c.Timeout:
		return trimtab.Invalidf("path lateness %v, timeout %v: want 0 <= lateness <= timeout", c.Lateness, c.Timeout)
	case c.Grace < 0 || c.Grace > time.Hour || c.Skew < 0 || c.Skew > time.Hour:
		return trimtab.Invalidf("path grace %v, skew %v: want 0 to 1h", c.Grace, c.Skew)
	case c.MaxSpans < 1 || c.MaxSpans > 1<<30 || c.MaxTraces < 1 || c.MaxTraces > 1<<30:
		return trimtab.Invalidf("path limits of %d spans, %d traces: want 1 to 2^30", c.MaxSpans, c.MaxTraces)
	case c.MaxSpansPerTrace < 1 || c.MaxSpansPerTrace > c.MaxSpans:
		return trimtab.Invalidf("path limit of %d spans per trace: want 1 to %d", c.MaxSpansPerTrace, c.MaxSpans)
	case c.MaxWorkloads < len(c.Workloads) || c.MaxWorkloads > 1<<20 || c.MaxComponents < 1 || c.MaxComponents > 1<<24:
		return trimtab.Invalidf("path limits of %d workloads (%d configured), %d components", c.MaxWorkloads, len(c.Workloads), c.MaxComponents)
	case c.Partition < 0:
		return trimtab.Invalidf("path partition %d", c.Partition)
	}
	return validMatches(c.Workloads)
}

func validMatches(matches []Match) error {
	seen := map[string]bool{}
	for _, m := range matches {
		switch {
		case m.Name == "" || len(m.Name) > maxName:
			return trimtab.Invalidf("workload %.40q: want 1 to %d bytes", m.Name, maxName)
		case seen[m.Name]:
			return trimtab.Invalidf("workload %q: given twice", m.Name)
		case len(m.Attributes) == 0:
			return trimtab.Invalidf("workload %q: no attribute to match", m.Name)
		case m.Threshold < 0:
			return trimtab.Invalidf("workload %q: threshold %v", m.Name, m.Threshold)
		}
		seen[m.Name] = true
	}
	return nil
}
