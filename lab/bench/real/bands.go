package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"time"

	"github.com/trimtab/trimtab"
)

// bands counts how often what services deliver lies in the bands that trimtab showed before:
// of each service, the mean over some seconds against the band of the curve from before them,
// at the allocation and load of those seconds.
type bands struct {
	curve [3]*trimtab.Curve
	since [3]time.Time
	// Of means were compared; Inside lay in their band, Near at most two standard errors of
	// their own outside of it, by the number of their requests.
	Of, Inside, Near int
}

// compared is how long the means are over, and how long after the start the first begins.
const compared, learned = 10 * time.Second, 30 * time.Second

// watch asks trimtab, at an address, about services until ctx ends.
func (b *bands) watch(ctx context.Context, address string, services []*service) {
	tick := time.NewTicker(compared)
	defer tick.Stop()
	for begin := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for i, s := range services {
			told, err := explained(ctx, "http://"+address+"/api/v1/workloads/"+url.PathEscape(s.Name)+"?observations=64")
			if err != nil {
				continue // no value is no band
			}
			if time.Since(begin) > learned {
				b.compare(b.curve[i], told.since(b.since[i]))
			}
			b.curve[i] = told.Curve
			if n := len(told.Observations); n > 0 {
				b.since[i] = told.Observations[n-1].Time
			}
		}
	}
}

// compare counts the mean of reports, each of about a second, against the band of a curve.
func (b *bands) compare(c *trimtab.Curve, reports []observation) {
	var performance, allocation, requests float64
	for _, o := range reports {
		performance, allocation, requests = performance+o.Performance*o.Load, allocation+o.Allocation*o.Load, requests+o.Load
	}
	if c == nil || len(c.Knots) == 0 || !(requests > 0) {
		return
	}
	p := performance / requests
	band := c.At(requests / float64(len(reports))).Eval(allocation / requests)
	off := math.Max(band.Lower-p, p-band.Upper)
	b.Of++
	if off <= 0 {
		b.Inside++
	}
	// Agresti and Coull: a share of 1 of few requests has an error, too.
	n := requests + 4
	if share := (p*requests + 2) / n; off <= 2*math.Sqrt(share*(1-share)/n) {
		b.Near++
	}
}

// observation is a report that had an allocation and a performance; explanation is what is read
// of the explanation of a workload.
type observation struct {
	Time                          time.Time
	Allocation, Load, Performance float64
}

type explanation struct {
	Curve        *trimtab.Curve
	Observations []observation
}

// since returns the observations after a moment.
func (e *explanation) since(t time.Time) (out []observation) {
	for _, o := range e.Observations {
		if o.Time.After(t) {
			out = append(out, o)
		}
	}
	return out
}

func explained(ctx context.Context, from string) (*explanation, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", from, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", from, err)
	}
	defer resp.Body.Close()
	var out explanation
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		return nil, fmt.Errorf("read answer of %s: %w", from, err)
	}
	return &out, nil
}
