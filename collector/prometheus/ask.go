package prometheus

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/internal/metric"
)

// Asked is what became of one query.
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
	defer func() { _ = asker.Close() }() // it was only read
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
	defer func() { _ = asker.Close() }() // it was only read
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

// maxSeries bounds the series that one answer of Series lists.
const maxSeries = 1000

// Series lists the labels of the series that one of the selectors finds now, at most 1000.
func Series(ctx context.Context, c Config, selectors ...string) ([]map[string]string, error) {
	asker, err := openAsker(c)
	if err != nil {
		return nil, err
	}
	defer func() { _ = asker.Close() }() // it was only read
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	now := time.Now()
	form := url.Values{"match[]": selectors, "limit": {strconv.Itoa(maxSeries)},
		"start": {strconv.FormatInt(now.Add(-5*time.Minute).Unix(), 10)}, "end": {strconv.FormatInt(now.Unix(), 10)}}
	lister := asker.client
	response, err := lister.send(ctx, http.MethodPost, "series", form)
	if err != nil {
		return nil, fmt.Errorf("list series: %w", lister.unanswered(ctx, err))
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 16*maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("list series: %w", lister.unanswered(ctx, err))
	}
	var r struct {
		Status, Error string
		Data          []map[string]string
	}
	if err := json.Unmarshal(body, &r); err != nil || r.Status != "success" {
		return nil, fmt.Errorf("list series: HTTP %d: %s", response.StatusCode, clip(r.Error))
	}
	return r.Data[:min(len(r.Data), maxSeries)], nil
}

// silent is the bus of a collector that only asks: nothing of it is called.
type silent struct{ bus.Bus }
