package collector

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/codec"
	"github.com/trimtab/trimtab/internal/metric"
)

// Config says where spans go and how many may be in flight.
type Config struct {
	// Bus takes the frames. Required.
	Bus bus.Bus
	// Metrics counts. Required.
	Metrics *metric.Set
	// Partitions is the number of partitions of traces, and so the largest number of analyzers that
	// share them, at most 256; 0 means 1. All collectors of a cluster need the same number.
	Partitions int
	// InFlightBytes bounds the frames that were published and not yet
	// answered; as many again may wait. 0 means 8 MiB.
	InFlightBytes int64
	// MaxWait bounds the wait for room; 0 means 1 s.
	MaxWait time.Duration
	// AnswerTimeout bounds the wait for the analyzer's answer; 0 means 8 s,
	// which is under the 10 s that OpenTelemetry's exporters wait.
	AnswerTimeout time.Duration
	// Naming adds attributes of known senders; nil: none are known.
	Naming Naming
}

// Validate fills in the defaults and checks the rest.
func (c *Config) Validate() error {
	if c.Bus == nil || c.Metrics == nil {
		return trimtab.Invalidf("collector: no bus or no metrics")
	}
	if c.Partitions < 0 || c.Partitions > 256 {
		return trimtab.Invalidf("collector: %d partitions", c.Partitions)
	}
	if c.InFlightBytes < 0 || c.MaxWait < 0 || c.AnswerTimeout < 0 {
		return trimtab.Invalidf("collector: negative bound")
	}
	c.Partitions = max(1, c.Partitions)
	c.InFlightBytes = cmp.Or(c.InFlightBytes, 8<<20)
	c.MaxWait = cmp.Or(c.MaxWait, time.Second)
	c.AnswerTimeout = cmp.Or(c.AnswerTimeout, 8*time.Second)
	return nil
}

// Sink publishes spans on the bus. It is safe for concurrent use, starts no goroutine that
// outlives a Send, and needs no Close.
type Sink struct {
	config  Config
	gate    *gate
	packers sync.Pool
	// inFlight and waiting are the gauges of the gate.
	inFlight, waiting interface{ Set(float64) }
}

// Open returns a sink.
func Open(c Config) (*Sink, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("open span sink: %w", err)
	}
	s := &Sink{
		config: c, gate: newGate(c.InFlightBytes, c.MaxWait),
		inFlight: c.Metrics.Gauge("trimtab_collector_held_bytes", "in_flight"),
		waiting:  c.Metrics.Gauge("trimtab_collector_held_bytes", "waiting"),
	}
	var names *namer
	if c.Naming != nil {
		names = &namer{of: c.Naming, now: time.Now}
	}
	s.packers.New = func() any {
		p := NewPacker(c.Partitions)
		p.names = names
		p.limit = maxRequestBytes
		return p
	}
	return s, nil
}

// adder is the part of a Prometheus counter in use.
type adder interface{ Add(float64) }

// Source counts the spans of one receiver and sends them.
type Source struct {
	sink *Sink

	received, accepted       atomic.Uint64
	rejected                 [reasons]atomic.Uint64
	receivedTotal, okTotal   adder
	rejectedTotal            [reasons]adder
	emptyTotal, strangeTotal adder
	seconds                  interface{ Observe(float64) }
}

// Source returns the counters of a receiver; call it once per receiver name.
func (s *Sink) Source(name string) *Source {
	m := s.config.Metrics
	from := &Source{
		sink:          s,
		receivedTotal: m.Counter("trimtab_collector_spans_received_total", name),
		okTotal:       m.Counter("trimtab_collector_spans_accepted_total", name),
		emptyTotal:    m.Counter("trimtab_collector_requests_without_spans_total", name, "empty"),
		strangeTotal:  m.Counter("trimtab_collector_requests_without_spans_total", name, UnknownKey.String()),
		seconds:       m.Histogram("trimtab_collector_answer_seconds", name),
	}
	for r := range reasons {
		from.rejectedTotal[r] = m.Counter("trimtab_collector_spans_rejected_total", name, r.String())
	}
	return from
}

// maxRequestBytes bounds the frames of one request. A body of 16 MiB with the shortest spans
// takes 32 MiB; only resources that are repeated for many partitions take more.
const maxRequestBytes = 48 << 20

// Packer returns an empty packer; give it back with Recycle.
func (s *Source) Packer() *Packer { return s.sink.packers.Get().(*Packer) }

// maxKeptSpans is up to how many spans a packer may have held to be reused.
const maxKeptSpans = codec.MaxFrameSpans

// Recycle returns a packer for reuse.
func (s *Source) Recycle(p *Packer) {
	if p.Spans() <= maxKeptSpans {
		p.Reset()
		s.sink.packers.Put(p)
	}
}

// Send publishes the spans in p and counts them. nil means that every span was analysed; a
// [Refusal], that the sender still owns all of them.
func (s *Source) Send(ctx context.Context, p *Packer) error {
	n := uint64(p.Spans())
	total := p.Rejected()
	s.received.Add(n + total)
	s.receivedTotal.Add(float64(n + total))
	for r, k := range p.rejected {
		s.reject(Reason(r), k)
	}
	if n == 0 {
		s.countEmpty(p)
		return nil
	}
	if err := s.sink.send(ctx, s, p.Frames()); err != nil {
		s.reject(err.Reason, n)
		return err
	}
	s.accepted.Add(n)
	s.okTotal.Add(float64(n))
	return nil
}

// countEmpty counts a request without any span, so that a sender in another format does not go
// unnoticed.
func (s *Source) countEmpty(p *Packer) {
	switch empty, unread := p.Empty(); {
	case empty && unread == "":
		s.emptyTotal.Add(1)
	case empty:
		s.strangeTotal.Add(1)
	}
}

func (s *Source) reject(r Reason, n uint64) {
	if n > 0 {
		s.rejected[r].Add(n)
		s.rejectedTotal[r].Add(float64(n))
	}
}

// Counts is the totals of a source: Received = Accepted + Σ Rejected whenever no Send is running.
type Counts struct {
	Received, Accepted uint64
	Rejected           map[Reason]uint64
}

// Counts returns the counters; reasons that never occurred are absent.
func (s *Source) Counts() Counts {
	c := Counts{Received: s.received.Load(), Accepted: s.accepted.Load(), Rejected: map[Reason]uint64{}}
	for r := range reasons {
		if n := s.rejected[r].Load(); n > 0 {
			c.Rejected[r] = n
		}
	}
	return c
}

// retryAfter is the wait that a refused sender is given.
const retryAfter = time.Second

// send publishes frames within the bounds.
func (s *Sink) send(ctx context.Context, from *Source, frames []*trimtab.SpanFrame) *Refusal {
	var bytes int64
	for _, f := range frames {
		bytes += int64(len(f.Data))
	}
	taken, ok := s.gate.enter(ctx, bytes)
	if !ok {
		return &Refusal{Reason: Overloaded, RetryAfter: retryAfter}
	}
	defer func() {
		s.gate.leave(taken)
		s.showLevel()
	}()
	s.showLevel()
	ctx, cancel := context.WithTimeout(ctx, s.config.AnswerTimeout)
	defer cancel()
	start := time.Now()
	err := s.publish(ctx, frames)
	from.seconds.Observe(time.Since(start).Seconds())
	if err != nil {
		return &Refusal{Reason: Unanswered, RetryAfter: retryAfter, Cause: err}
	}
	return nil
}

// showLevel exports how full the gate is.
func (s *Sink) showLevel() {
	s.inFlight.Set(float64(s.gate.used.Load()))
	s.waiting.Set(float64(s.gate.waiting.Load()))
}

// publish publishes all frames, concurrently if there are several.
func (s *Sink) publish(ctx context.Context, frames []*trimtab.SpanFrame) error {
	if len(frames) == 1 {
		return s.config.Bus.Publish(ctx, frames[0])
	}
	errs := make(chan error, len(frames))
	for _, f := range frames {
		go func() { errs <- s.config.Bus.Publish(ctx, f) }()
	}
	var first error
	for range frames {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return first
}
