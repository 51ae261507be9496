// Package haproxy counts the requests that HAProxy refused before a workload, by class, and sends a
// span for them, so that they count as load that was not served, as those of a gate do:
//
//	refused of class c = Δ(requests − answered − under way) · (1 − failed / all not served)
//	refused of all     = Δ(no connection and left, of the backend − of its servers)
//
// The first is for a backend with the lines of `trimtab init haproxy`, the second for any other, also
// in mode tcp. Both contain what HAProxy refused by a rule (only the first), what ended in its queue,
// and clients that left while they waited. What a server was asked for and did not answer failed,
// and is not refused.
//
// At most 20 spans stand for the refusals of a class in a second; each says for how many. HAProxy
// counts from its start: a reading of another process, or of counters that went back, says nothing,
// and the refusals between are missing. The package sends no spans of answered requests: the service
// or a proxy before it does.
package haproxy

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/internal/haproxy"
)

// Source is the name of this source of spans in metrics.
const Source = "haproxy"

// Interval is how often HAProxy is read.
const Interval = time.Second

// mostSpans is how many spans of a class an interval may have.
const mostSpans = 20

// Backend is what stands before one workload.
type Backend struct {
	// Workload is its name in messages, Spans the resource attributes by which its spans are found.
	Workload string
	Spans    []trimtab.Attr
	Socket   string
	Backend  string
	// Classes are those of its lines in haproxy.cfg; nil: there are no such lines.
	Classes *haproxy.Classes
}

// Config says what to read.
type Config struct {
	Backends []Backend
	Sink     *collector.Sink
	// Logger may be nil.
	Logger *slog.Logger
	// Rand makes the ids of spans. Required.
	Rand *rand.Rand
}

// Collector reads the counters of HAProxies.
type Collector struct {
	config Config
	from   *collector.Source
	meters []meter
	// problems has why a backend could not be read.
	problems []string
	at       time.Time
}

// Open returns a collector. It does not connect.
func Open(c Config) (*Collector, error) {
	if c.Sink == nil || c.Rand == nil {
		return nil, trimtab.Invalidf("count refusals of HAProxy: no sink or no randomness")
	}
	for _, b := range c.Backends {
		if _, _, err := haproxy.Dialed(b.Socket); err != nil {
			return nil, fmt.Errorf("count refusals before %s: %w", b.Workload, err)
		}
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return &Collector{config: c, from: c.Sink.Source(Source), meters: make([]meter, len(c.Backends)), problems: make([]string, len(c.Backends))}, nil
}

// Close does nothing: nothing stays open.
func (c *Collector) Close() error { return nil }

// Run reads until ctx ends; it then returns nil.
func (c *Collector) Run(ctx context.Context) error {
	tick := time.NewTicker(Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			c.round(ctx, now)
		}
	}
}

// round reads all backends and sends the spans.
func (c *Collector) round(ctx context.Context, now time.Time) {
	p := c.from.Packer()
	defer c.from.Recycle(p)
	since := now.Add(-Interval)
	if before := c.at; before.Before(now) && now.Sub(before) < time.Minute {
		since = before
	}
	c.at = now
	for i := range c.config.Backends {
		b := &c.config.Backends[i]
		refused, err := c.meters[i].read(ctx, b)
		problem := ""
		if err != nil {
			problem = err.Error()
		}
		if problem != c.problems[i] && ctx.Err() == nil {
			c.problems[i] = problem
			c.config.Logger.Info("count refusals of HAProxy", "of", b.Workload, "problem", problem)
		}
		for _, class := range slices.Sorted(maps.Keys(refused)) {
			c.add(p, b, class, refused[class], since, now)
		}
	}
	if p.Spans() == 0 {
		return
	}
	if err := c.from.Send(ctx, p); err != nil && ctx.Err() == nil {
		c.config.Logger.Debug("refusals of HAProxy were not taken", "cause", err)
	}
}

// add packs the spans of the refused requests of a class.
func (c *Collector) add(p *collector.Packer, b *Backend, class string, n float64, since, now time.Time) {
	p.SetResource(collector.NewResource(append(slices.Clone(b.Spans), trimtab.Attr{Key: codes.RefusedAttribute, Value: class})))
	spans := max(1, min(int(n), mostSpans))
	for i := range spans {
		at := since.Add(now.Sub(since) * time.Duration(i+1) / time.Duration(spans)).UnixNano()
		s := trimtab.Span{Start: at, End: at, Kind: trimtab.SpanServer, Flags: trimtab.FlagError | trimtab.FlagAdjusted, Adjusted: float32(n / float64(spans))}
		binary.LittleEndian.PutUint64(s.TraceID[:8], c.config.Rand.Uint64())
		binary.LittleEndian.PutUint64(s.TraceID[8:], c.config.Rand.Uint64()|1)
		binary.LittleEndian.PutUint64(s.SpanID[:], c.config.Rand.Uint64()|1)
		p.Add(&s)
	}
}

// meter follows the counters of one backend in one process of HAProxy.
type meter struct {
	of haproxy.Process
	// lost is the highest number of requests that were not served, by class, and failed how many of
	// them a server failed.
	lost   map[string]uint64
	failed uint64
	// owed are refusals of less than a whole request, by class.
	owed map[string]float64
}

// read returns how many requests were refused since the last reading, by class.
func (m *meter) read(ctx context.Context, b *Backend) (map[string]float64, error) {
	var more []string
	if b.Classes != nil {
		more = append(more, b.Classes.ShowTable())
	}
	found, err := haproxy.Look(ctx, b.Socket, b.Backend, more...)
	if err != nil {
		return nil, err
	}
	if found.Own == nil {
		return nil, trimtab.Invalidf("HAProxy lists no backend %s", b.Backend)
	}
	var table map[string]haproxy.Class
	if b.Classes != nil {
		if table, err = haproxy.ParseTable(found.Rest); err != nil {
			return nil, err
		}
	}
	return m.take(&found, table), nil
}

// take returns the refusals between the last reading and this one; none if it is the first one of a
// process. table is nil if there are no lines.
func (m *meter) take(found *haproxy.Backend, table map[string]haproxy.Class) map[string]float64 {
	var connection, left, response uint64
	for i := range found.Servers {
		s := &found.Servers[i]
		connection, left, response = connection+s.NoConnection, left+s.Left, response+s.NoResponse
	}
	lost, failed := map[string]uint64{}, uint64(0)
	if table == nil {
		own := found.Own.NoConnection + found.Own.Left
		lost[haproxy.All] = own - min(own, connection+left)
	} else {
		for class, c := range table {
			lost[class] = c.NotServed()
		}
		failed = connection + left + response
	}
	if found.Of != m.of || failed < m.failed {
		*m = meter{of: found.Of, lost: lost, failed: failed, owed: map[string]float64{}}
		return nil
	}
	total, more := 0.0, map[string]float64{}
	for class, n := range lost {
		if before := m.lost[class]; n > before {
			more[class], m.lost[class] = float64(n-before), n
			total += more[class]
		}
	}
	share := 1 - math.Min(1, float64(failed-m.failed)/math.Max(1, total))
	m.failed = failed
	for class, n := range more {
		n = n*share + m.owed[class]
		if m.owed[class] = n; n < 1 {
			delete(more, class)
			continue
		}
		m.owed[class] -= math.Floor(n)
		more[class] = math.Floor(n)
	}
	return more
}
