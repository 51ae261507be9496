package prometheus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	promconfig "github.com/prometheus/common/config"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/internal/metric"
)

// Query is one expression of one workload.
type Query struct {
	Workload string
	// Quantity is what the value measures; load, performance, allocation, …
	Quantity trimtab.Quantity
	// Expr is PromQL for one number, with its labels filled in, or for one for each
	// instance, with the labels host and instance.
	Expr string
	// Requests is PromQL for the number of requests that a performance was
	// taken over; "" leaves it unknown.
	Requests string
}

// Config says whom to ask what, and how often.
type Config struct {
	// URL is the server's base URL, with a path prefix if it has one.
	URL string
	// HTTP is TLS, authentication and headers; begin with
	// promconfig.DefaultHTTPClientConfig.
	HTTP promconfig.HTTPClientConfig
	// Interval is the time between two queries of the same expression, > 0.
	Interval time.Duration
	// Timeout is when a query is given up, > 0; a sample takes up to three.
	Timeout time.Duration
	// Concurrency bounds the queries that run at once; 0 means 4.
	Concurrency int
	Queries     []Query
	Bus         bus.Bus
	Metrics     *metric.Set
	Logger      *slog.Logger
}

// Collector publishes samples. Run may be called once.
type Collector struct {
	config Config
	client *client
	log    *slog.Logger
	states []state // one per query, used by one goroutine at a time
}

// state is what is known of a query between rounds.
type state struct {
	age    string // the query for the age; "" when there is none
	known  bool   // the expression's selectors were understood
	window time.Duration
	// answered tells that there was an answer, gap that the last one was none,
	// until is when the window no longer reaches into the last gap.
	answered, gap bool
	until         time.Time
	missing       string // the last reason, to log changes only
	warned        string
}

// Open checks the configuration and makes the HTTP client; it does not yet
// ask. The error is [trimtab.ErrInvalid], or that of reading a certificate.
func Open(c Config) (*Collector, error) {
	if c.Interval <= 0 || c.Timeout <= 0 || c.Bus == nil || c.Metrics == nil || c.Logger == nil {
		return nil, trimtab.Invalidf("open prometheus collector: interval, timeout, bus, metrics and logger are needed")
	}
	if c.Concurrency <= 0 {
		c.Concurrency = 4
	}
	for _, q := range c.Queries {
		probe := trimtab.Sample{Workload: q.Workload, Quantity: q.Quantity, Time: time.Unix(1, 0)}
		if err := probe.Validate(); err != nil {
			return nil, fmt.Errorf("open prometheus collector: %w", err)
		}
		if strings.TrimSpace(q.Expr) == "" {
			return nil, trimtab.Invalidf("open prometheus collector: %s of %s: empty expression", q.Quantity, q.Workload)
		}
	}
	client, err := newClient(c.URL, c.HTTP, c.Timeout)
	if err != nil {
		return nil, fmt.Errorf("open prometheus collector: %w: %w", trimtab.ErrInvalid, err)
	}
	states := make([]state, len(c.Queries))
	for i, q := range c.Queries {
		selectors, window, ok := Selectors(q.Expr)
		states[i] = state{known: ok, window: window}
		if len(selectors) > 0 {
			states[i].age = ageQuery(selectors)
		}
	}
	return &Collector{config: c, client: client, log: c.Logger.With("collector", "prometheus"), states: states}, nil
}

// Close releases idle connections.
func (c *Collector) Close() error {
	c.client.http.CloseIdleConnections()
	return nil
}

// Run asks every query at once and then at every interval until ctx ends. It
// returns nil then; nothing that a server answers ends it.
func (c *Collector) Run(ctx context.Context) error {
	tick := time.NewTicker(c.config.Interval)
	defer tick.Stop()
	defer c.forget()
	for {
		c.round(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// round asks all queries, at most Concurrency at once.
func (c *Collector) round(ctx context.Context) {
	var group sync.WaitGroup
	slots := make(chan struct{}, c.config.Concurrency)
	for i := range c.config.Queries {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		group.Go(func() {
			defer func() { <-slots }()
			c.one(ctx, i)
		})
	}
	group.Wait()
}

// one asks query i and publishes its samples.
func (c *Collector) one(ctx context.Context, i int) {
	q, s := &c.config.Queries[i], &c.states[i]
	samples, kind := c.samples(ctx, q, s)
	if ctx.Err() != nil {
		return // stopping is no news about the workload
	}
	missing := ""
	for i := range samples {
		missing = max(missing, samples[i].Missing)
	}
	c.count(&samples[0], kind)
	if missing != s.missing {
		if s.missing = missing; missing != "" {
			c.log.Warn("no value", "workload", q.Workload, "quantity", q.Quantity, "reason", missing)
		} else {
			c.log.Info("value is back", "workload", q.Workload, "quantity", q.Quantity)
		}
	}
	for i := range samples {
		if err := c.config.Bus.Publish(ctx, &samples[i]); err != nil && ctx.Err() == nil {
			c.log.Error("publish sample", "workload", q.Workload, "quantity", q.Quantity, "err", err)
		}
	}
}

// samples asks for the value, its age, and its number of requests: one sample of
// the workload, or one of each instance that the answer tells of.
func (c *Collector) samples(ctx context.Context, q *Query, s *state) ([]trimtab.Sample, string) {
	now := time.Now().Round(0).UTC()
	sample := trimtab.Sample{
		Workload: q.Workload, Quantity: q.Quantity, Source: "prometheus",
		Time: now, Window: trimtab.SecondsOf(s.window),
	}
	all, err := c.ask(ctx, q, s, q.Expr)
	if err == nil && s.age != "" {
		var age []number
		if age, err = c.ask(ctx, q, s, s.age); err == nil {
			sample.Time = now.Add(-trimtab.Seconds(age[0].value).Duration())
		} else if f := (*fault)(nil); errors.As(err, &f) && f.kind == kindEmpty {
			err = &fault{kindGone, "the series behind the value have ended"}
		} else if errors.As(err, &f) && f.kind == kindNegative { // a sample from the server's future
			err = nil
		}
	}
	if !s.known {
		sample.Source = "prometheus: age unknown"
	}
	err = s.covered(err, now, sample.Time)
	if err != nil {
		kind := kindUnreachable
		if f := (*fault)(nil); errors.As(err, &f) {
			kind = f.kind
		}
		sample.Missing = err.Error()
		return []trimtab.Sample{sample}, kind
	}
	requests := map[place]float64{}
	if q.Requests != "" {
		if n, err := c.ask(ctx, q, s, q.Requests); err == nil {
			for _, of := range n {
				requests[of.place] = of.value // 0, which is unknown, where that is none
			}
		}
	}
	var samples []trimtab.Sample
	for _, n := range all {
		sample.Host, sample.Instance, sample.Value, sample.Requests, sample.Missing = n.host, n.instance, n.value, requests[n.place], ""
		if n.err != nil {
			sample.Value, sample.Requests, sample.Missing = 0, 0, n.err.Error()
		}
		samples = append(samples, sample)
	}
	return samples, "ok"
}

// covered returns err, or why a rate over a window is not yet, or no longer, that
// of a whole one: after a gap the part of it without scrapes reads as less, for as
// long as the window is. A gap is a query without an answer, or a newest scrape
// that is older than most of the window. No requests are no gap: 0/0 says nothing
// of scrapes.
func (s *state) covered(err error, now, scraped time.Time) error {
	if s.window <= 0 {
		return err
	}
	if f := (*fault)(nil); errors.As(err, &f) && (f.kind == kindNotFinite || f.kind == kindNegative) {
		return err
	}
	if err == nil && now.Sub(scraped) > s.window*6/10 {
		err = &fault{kindGap, fmt.Sprintf("the newest scrape is %v old, of a window of %v", now.Sub(scraped).Round(time.Second), s.window)}
	}
	switch {
	case err != nil:
		s.gap = s.answered // nothing was missed before there was a first answer
	case s.gap:
		s.gap, s.until = false, now.Add(s.window)
	}
	if s.answered = s.answered || err == nil; err == nil && now.Before(s.until) {
		err = &fault{kindGap, fmt.Sprintf("its window of %v reaches into a gap for another %v", s.window, s.until.Sub(now).Round(time.Second))}
	}
	return err
}

// ask evaluates one expression, and logs warnings when they change.
func (c *Collector) ask(ctx context.Context, q *Query, s *state, expr string) ([]number, error) {
	start := time.Now()
	all, warnings, err := c.client.ask(ctx, expr)
	c.config.Metrics.Histogram("trimtab_collector_prometheus_query_seconds").Observe(time.Since(start).Seconds())
	if text := clip(strings.Join(warnings, "; ")); text != "" && text != s.warned {
		s.warned = text
		c.log.Warn("Prometheus warns", "workload", q.Workload, "quantity", q.Quantity, "warnings", text)
	}
	return all, err
}

// ageMetric is a gauge per query.
const ageMetric = "trimtab_collector_prometheus_sample_age_seconds"

// forget drops the gauges of queries that are asked no more.
func (c *Collector) forget() {
	for _, q := range c.config.Queries {
		c.config.Metrics.Forget(ageMetric, q.Workload, string(q.Quantity))
	}
}

// count records what became of a query.
func (c *Collector) count(s *trimtab.Sample, kind string) {
	c.config.Metrics.Counter("trimtab_collector_prometheus_samples_total", kind).Inc()
	if s.Missing != "" {
		c.config.Metrics.Forget(ageMetric, s.Workload, string(s.Quantity))
		return
	}
	c.config.Metrics.Gauge(ageMetric, s.Workload, string(s.Quantity)).Set(time.Since(s.Time).Seconds())
}
