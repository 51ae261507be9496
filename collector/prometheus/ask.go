package prometheus

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/internal/metric"
)

// Asked is the result of one query.
type Asked struct {
	Query   Query
	Samples []trimtab.Sample
}

// Ask asks every query of c once, without a bus, and returns the samples that Run would
// publish. The error is that of [Open].
func Ask(ctx context.Context, c Config) ([]Asked, error) {
	asker, err := openAsker(c)
	if err != nil {
		return nil, err
	}
	defer func() { _ = asker.Close() }() // it was only used to read
	var out []Asked
	for i := range asker.config.Queries {
		samples, _ := asker.samples(ctx, &asker.config.Queries[i], &asker.states[i])
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		out = append(out, Asked{asker.config.Queries[i], samples})
	}
	return out, nil
}

// openAsker is Open for a caller without a bus, which asks and publishes nothing.
func openAsker(c Config) (*Collector, error) {
	c.Bus, c.Metrics, c.Logger = silent{}, metric.NewSet(), slog.New(slog.DiscardHandler)
	return Open(c)
}

// Clock returns how far the server's clock is ahead of this host's, give or take the
// time that the answer took.
func Clock(ctx context.Context, c Config) (ahead, within time.Duration, err error) {
	asker, err := openAsker(c)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = asker.Close() }() // it was only used to read
	before := time.Now()
	r, err := asker.client.ask(ctx, "time()")
	var all []number
	if err == nil {
		all, err = r.numbers()
	}
	if err != nil {
		return 0, 0, fmt.Errorf("ask Prometheus for its time: %w", err)
	}
	took := time.Since(before)
	there := time.UnixMilli(int64(all[0].value * 1000))
	return there.Sub(before.Add(took / 2)), took, nil
}

// Labelled is one series of an answer, with its present value.
type Labelled struct {
	Labels map[string]string
	Value  float64
}

// Vector evaluates expr now, and returns the series that have a finite value >= 0. An
// answer that is partial or too large is an error.
func Vector(ctx context.Context, c Config, expr string) ([]Labelled, error) {
	asker, err := openAsker(c)
	if err != nil {
		return nil, err
	}
	defer func() { _ = asker.Close() }() // it was only used to read
	r, err := asker.client.ask(ctx, expr)
	if err != nil {
		return nil, fmt.Errorf("ask Prometheus: %w", err)
	}
	if r.Data.Type != "vector" {
		return nil, fmt.Errorf("ask Prometheus: result type %.40q, want a vector", r.Data.Type)
	}
	var all []struct {
		Metric map[string]string `json:"metric"`
		Value  *point            `json:"value"`
	}
	if err := json.Unmarshal(r.Data.Result, &all); err != nil {
		return nil, fmt.Errorf("ask Prometheus: read answer: %s", clip(err.Error()))
	}
	var out []Labelled
	for _, s := range all {
		if s.Value != nil && s.Value.fault() == nil {
			out = append(out, Labelled{s.Metric, s.Value.value})
		}
	}
	return out, nil
}

// silent is the bus of a collector that only asks; none of its methods is called.
type silent struct{ bus.Bus }
