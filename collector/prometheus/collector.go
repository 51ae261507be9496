package prometheus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	promconfig "github.com/prometheus/common/config"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/internal/metric"
	"github.com/trimtab/trimtab/internal/promql"
	"github.com/trimtab/trimtab/quantity"
)

// Query is one expression of one workload.
type Query struct {
	Workload string
	// Quantity is the measured quantity: load, performance, allocation, …
	Quantity quantity.Quantity
	// Expr is PromQL for one number, with its labels filled in, or for one for each
	// instance, with the labels host and instance.
	Expr string
	// Requests is PromQL for the number of requests over which a performance was taken; "":
	// unknown.
	Requests string
	// Pods says that each series is of the pod that its label pod names, which is an instance; Counter,
	// that the values count events, of which those since the answer before are told.
	Pods, Counter bool
}

// Config has the server, the queries and the interval.
type Config struct {
	// URL is the server's base URL, with a path prefix if it has one.
	URL string
	// HTTP is TLS, authentication and headers; begin with
	// promconfig.DefaultHTTPClientConfig.
	HTTP promconfig.HTTPClientConfig
	// Interval is the time between two queries of the same expression, > 0.
	Interval time.Duration
	// Timeout is the time limit of one query, > 0; a sample takes up to four queries.
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

// state is the state of a query between rounds.
type state struct {
	selectors []string // of the expression
	known     bool     // they were understood
	window    time.Duration
	// targets are the scrape targets that the selectors find. merged says that they are too many to
	// be followed one by one.
	targets targets
	merged  bool
	// answered says that there was an answer once; gap, that the last query failed. until is when
	// the window no longer contains any of the last gap.
	answered, gap bool
	until         time.Time
	missing       string // why the last answer was none, to log changes only
	warned        string
	// counters are those of a query for pods.
	counters counters
}

// Open checks the configuration and makes the HTTP client; it sends no query yet. The error is
// [trimtab.ErrInvalid], or that of reading a certificate.
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
		selectors, window, ok := promql.Selectors(q.Expr)
		states[i] = state{selectors: selectors, known: ok, window: window}
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
	defer c.forget()
	return poll.Every(ctx, c.config.Interval, c.round)
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

// one sends query i and publishes its samples.
func (c *Collector) one(ctx context.Context, i int) {
	q, s := &c.config.Queries[i], &c.states[i]
	samples, kind := c.samples(ctx, q, s)
	if ctx.Err() != nil {
		return // stopping is no news about the workload
	}
	reason := ""
	for i := range samples {
		reason = max(reason, samples[i].Missing)
	}
	c.count(&samples[0], kind)
	missing := reason
	if kind != kindOK { // a reason contains ages, which change with every answer
		missing = kind
	}
	if missing != s.missing {
		if s.missing = missing; missing != "" {
			c.log.Warn("no value", "workload", q.Workload, "quantity", q.Quantity, "reason", reason)
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

// samples queries the value, its age, and its number of requests, and returns one sample of the
// workload, or one for each instance in the answer.
func (c *Collector) samples(ctx context.Context, q *Query, s *state) ([]trimtab.Sample, string) {
	now := time.Now().Round(0).UTC()
	sample := trimtab.Sample{
		Workload: q.Workload, Quantity: q.Quantity, Source: "prometheus",
		Time: now, Window: trimtab.SecondsOf(s.window),
	}
	all, err := c.numbers(ctx, q, s, q.Expr)
	st := targetState{live: true}
	if err == nil && len(s.selectors) > 0 {
		st, err = c.look(ctx, q, s)
	}
	requests := map[place]float64{}
	if err == nil && q.Requests != "" {
		if n, err := c.numbers(ctx, q, s, q.Requests); err == nil {
			for _, of := range n {
				requests[of.place] = of.value // 0, which means unknown, without a value
			}
		}
	}
	// A sum shows whether a target is missing from it. Values of instances do not: they count as
	// old as the oldest.
	sum, shows := 0.0, err == nil && len(all) == 1
	if shows {
		sum, shows = additive(q.Quantity, all[0].value, requests[all[0].place])
	}
	if !shows {
		st.age = st.oldest
	}
	sample.Time = now.Add(-st.age)
	if !s.known {
		sample.Source = "prometheus: age unknown"
	}
	if err = s.covered(err, now, st); err == nil && shows && len(s.selectors) > 0 {
		err = s.targets.partial(&st, sum, s.window)
	}
	if err != nil {
		kind := kindUnreachable
		if f := (*fault)(nil); errors.As(err, &f) {
			kind = f.kind
		}
		sample.Missing = err.Error()
		return []trimtab.Sample{sample}, kind
	}
	var samples []trimtab.Sample
	for _, n := range all {
		sample.Host, sample.Instance, sample.Value, sample.Requests, sample.Missing = n.host, n.instance, n.value, requests[n.place], ""
		if n.err != nil {
			sample.Value, sample.Requests, sample.Missing = 0, 0, n.err.Error()
		}
		samples = append(samples, sample)
	}
	return samples, kindOK
}

// additive returns the part of an answer that adds up over targets: load, use and allocation
// themselves, and for other values the number of requests.
func additive(q quantity.Quantity, value, requests float64) (sum float64, ok bool) {
	if q == quantity.Load || q == quantity.Allocation || q == quantity.Usage {
		return value, true
	}
	return requests, requests > 0
}

// look queries which targets the expression reads and their state.
func (c *Collector) look(ctx context.Context, q *Query, s *state) (targetState, error) {
	found, now, err := c.ages(ctx, q, s)
	if err != nil {
		return targetState{}, err
	}
	var up health
	away := s.targets.away(found)
	if !s.merged && s.targets.unsure(found) {
		if r, err := c.ask(ctx, q, s, upQuery(s.selectors, away)); err == nil {
			up, _ = r.health() // nil: unknown
		} else if ctx.Err() != nil {
			return targetState{}, ctx.Err()
		}
	}
	s.targets.enter(now, found, up, away)
	return s.targets.stand(now, s.window), nil
}

// ages queries the ages of each target's series, and as of when they are; too many targets are
// merged into one.
func (c *Collector) ages(ctx context.Context, q *Query, s *state) (found map[target]ages, asOf time.Time, err error) {
	for {
		by := byTarget
		if s.merged {
			by = ""
		}
		var r *reply
		r, err = c.ask(ctx, q, s, ageQuery(s.selectors, by))
		if err == nil {
			found, asOf, err = r.ages()
		}
		f := (*fault)(nil)
		many := len(found) > maxTargets || errors.As(err, &f) && f.kind == kindTooLarge
		if s.merged || !many {
			return found, asOf, err
		}
		s.merged, s.targets = true, targets{}
	}
}

// covered returns err, or why a rate over a window does not cover a whole one: after a gap the
// part without scrapes makes the rate too low, for as long as the window is. A gap is a failed
// query, or samples older than most of the window. No requests are no gap: 0/0 says nothing about
// scrapes.
func (s *state) covered(err error, now time.Time, st targetState) error {
	if s.window <= 0 {
		return err
	}
	if f := (*fault)(nil); errors.As(err, &f) && (f.kind == kindNotFinite || f.kind == kindNegative || f.kind == kindPartial) {
		return err
	}
	if err == nil && st.age > s.window*6/10 {
		which := "newest sample"
		if st.live {
			which = "oldest of what is still scraped"
		}
		err = &fault{kindGap, fmt.Sprintf("the %s is %v old, of a window of %v", which, st.age.Round(time.Second), s.window)}
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

// numbers evaluates one expression that has numbers as its result.
func (c *Collector) numbers(ctx context.Context, q *Query, s *state, expr string) ([]number, error) {
	r, err := c.ask(ctx, q, s, expr)
	if err != nil {
		return nil, err
	}
	if q.Pods {
		return r.pods(q, &s.counters)
	}
	return r.numbers()
}

// ask evaluates one expression, and logs remarks on it when they change.
func (c *Collector) ask(ctx context.Context, q *Query, s *state, expr string) (*reply, error) {
	start := time.Now()
	r, err := c.client.ask(ctx, expr)
	c.config.Metrics.Histogram("trimtab_collector_prometheus_query_seconds").Observe(time.Since(start).Seconds())
	if err != nil {
		return nil, err
	}
	if text := clip(strings.Join(slices.Concat(r.Warnings, r.Infos), "; ")); text != "" && text != s.warned {
		s.warned = text
		c.log.Warn("Prometheus warns", "workload", q.Workload, "quantity", q.Quantity, "warnings", text)
	}
	return r, nil
}

// ageMetric is a gauge per query.
const ageMetric = "trimtab_collector_prometheus_sample_age_seconds"

// forget drops the gauges of queries that are asked no more.
func (c *Collector) forget() {
	for _, q := range c.config.Queries {
		c.config.Metrics.Forget(ageMetric, q.Workload, string(q.Quantity))
	}
}

// count counts the result of a query.
func (c *Collector) count(s *trimtab.Sample, kind string) {
	c.config.Metrics.Counter("trimtab_collector_prometheus_samples_total", kind).Inc()
	if s.Missing != "" {
		c.config.Metrics.Forget(ageMetric, s.Workload, string(s.Quantity))
		return
	}
	c.config.Metrics.Gauge(ageMetric, s.Workload, string(s.Quantity)).Set(time.Since(s.Time).Seconds())
}
