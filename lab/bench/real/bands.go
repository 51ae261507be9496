package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/lab/services/shown"
)

// bands keeps the curves that trimtab showed, to compare what services delivered after each with
// its band.
type bands struct{ curves [3][]told }

// told is a curve and when it was shown, from the begin of the load.
type told struct {
	at    time.Duration
	curve *trimtab.Curve
}

// watch asks trimtab, at an address, about services until ctx ends.
func (b *bands) watch(ctx context.Context, address string, services []*service, begin time.Time) {
	tick := time.NewTicker(shown.Every * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for i, s := range services {
			c, err := curveOf(ctx, "http://"+address+"/api/v1/workloads/"+url.PathEscape(s.Name))
			if err == nil && c != nil { // no value is no band
				b.curves[i] = append(b.curves[i], told{time.Since(begin), c})
			}
		}
	}
}

// compare counts the windows after each curve. What was delivered is what the clients saw, and not
// what trimtab was told of it, which is late and, as a rate, of an older time. quotas tells that
// services have quotas; otherwise their amounts are their sure parts of the pool.
func (b *bands) compare(pool float64, quotas bool, services [3]*service, outcomes [3][]outcome, seen *watched) (out shown.Tally) {
	for i, s := range services {
		for _, c := range b.curves[i] {
			to := c.at + shown.Every*time.Second
			mean, ok := seen.mean(c.at, to)
			if c.at < shown.Learning*time.Second || !ok {
				continue
			}
			w := shown.Window{Seconds: shown.Every, Allocation: mean.Cores[i], Open: [2]float64{open(outcomes[i], c.at), open(outcomes[i], to)}}
			if !quotas {
				others := 0.0
				for j := range services {
					if j != i {
						others += mean.used[j]
					}
				}
				w.Allocation = shown.Effective(w.Allocation, pool, others)
			}
			sent, met := count(outcomes[i], s.SLO, c.at, to)
			w.Requests, w.InTime = float64(sent), float64(met)
			out.Add(c.curve, w)
		}
	}
	return out
}

// open is how many requests were unanswered at a moment.
func open(in []outcome, at time.Duration) (n float64) {
	for k := range in {
		if o := &in[k]; o.Sent && o.At <= at && o.At+o.Took > at {
			n++
		}
	}
	return n
}

// means are the mean amounts and uses of the services, in cores.
type means struct{ Cores, used [3]float64 }

// mean is over the time from one moment to another; not ok: it was not watched for all of it.
func (w *watched) mean(from, to time.Duration) (out means, ok bool) {
	var first, last *sample
	n := 0.0
	for k := range w.Samples {
		s := &w.Samples[k]
		if s.At < from-look/2 || s.At > to+look/2 {
			continue
		}
		if first == nil {
			first = s
		}
		last = s
		n++
		for i := range out.Cores {
			out.Cores[i] += s.Cores[i]
		}
	}
	if n < 2 || last.At-first.At < (to-from)/2 || last.At < to-look {
		return out, false
	}
	for i := range out.Cores {
		out.Cores[i] /= n
		out.used[i] = (last.Used[i] - first.Used[i]).Seconds() / (last.At - first.At).Seconds()
	}
	return out, true
}

// curveOf asks for the explanation of a workload, and returns its curve; nil: it has none.
func curveOf(ctx context.Context, from string) (*trimtab.Curve, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", from, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", from, err)
	}
	defer resp.Body.Close()
	var out struct{ Curve *trimtab.Curve }
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		return nil, fmt.Errorf("read answer of %s: %w", from, err)
	}
	return out.Curve, nil
}
