package main

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// inFlight is how many requests may be under way; what is more counts as failed at once.
const inFlight = 4000

// The classes of requests, by the header x-priority, and their parts of the load.
const (
	classHeader = "X-Priority"
	critical    = "critical"
	normal      = "normal"
	low         = "low"

	criticalPart, lowPart = 0.1, 0.3
)

// request is one that is meant to be sent.
type request struct {
	// At is when, counted from the start of the run.
	At    time.Duration
	Class string
}

// course is how the load of a run moves: Low, a step to High, and Low again, in requests per
// second.
type course struct {
	Before, Step, After time.Duration
	Low, High           float64
}

// end is when the step ends, whole when the run does.
func (c course) end() time.Duration   { return c.Before + c.Step }
func (c course) whole() time.Duration { return c.Before + c.Step + c.After }

func (c course) rate(at time.Duration) float64 {
	if at >= c.Before && at < c.end() {
		return c.High
	}
	return c.Low
}

// arrivals draws the requests: a Poisson process of that rate, by thinning one of the highest.
// The same seed gives the same requests.
func (c course) arrivals(seed uint64) (out []request) {
	r := rand.New(rand.NewPCG(seed, 1))
	highest := max(c.Low, c.High)
	for t := 0.0; ; {
		t += r.ExpFloat64() / highest
		at := time.Duration(t * float64(time.Second))
		if at >= c.whole() {
			return out
		}
		if r.Float64()*highest >= c.rate(at) {
			continue
		}
		class := normal
		if v := r.Float64(); v < criticalPart {
			class = critical
		} else if v < criticalPart+lowPart {
			class = low
		}
		out = append(out, request{at, class})
	}
}

// ending is how the last try of a request ended.
type ending int

const (
	// unsent: the run ended before, or too many requests were under way.
	unsent ending = iota
	answered
	// shed: refused with 503 or 429.
	shed
	// gaveUp: the client's time-out came first.
	gaveUp
	// failed: another answer than the right one, or none.
	failed
)

// outcome is what became of a request.
type outcome struct {
	request
	End ending
	// Took is the time from when it was meant to be sent to the end of its last try.
	Took time.Duration
	// Tries were sent, Shed of them refused, the first at ShedAt from the start of the run.
	Tries, Shed int
	ShedAt      time.Duration
	// Behind is by how much it was sent too late.
	Behind time.Duration
}

// client sends requests as many independent users do.
type client struct {
	url      string
	patience time.Duration
	retries  int
	http     *http.Client
	// observe is told of each try; nil: nobody is.
	observe func(from time.Time, took time.Duration, end ending)
}

// newClient makes a client. Each request has a connection of its own, as independent users have,
// unless they are reused.
func (o *options) newClient(url string, retries int) *client {
	return &client{url: url, patience: o.Patience, retries: retries, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: inFlight, DisableCompression: true, DisableKeepAlives: !o.Reuse}}}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// send sends each request at its time on a goroutine of its own, and returns what became of
// them when the last has ended.
func (c *client) send(ctx context.Context, in []request) []outcome {
	out := make([]outcome, len(in))
	var open atomic.Int64
	var requests sync.WaitGroup
	defer requests.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	begin := time.Now()
	for k, r := range in {
		o := &out[k]
		o.request = r
		timer.Reset(time.Until(begin.Add(r.At)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return out
		}
		if open.Add(1) > inFlight {
			open.Add(-1)
			o.End, o.Tries = failed, 1
			continue
		}
		requests.Go(func() {
			defer open.Add(-1)
			c.follow(ctx, begin, o)
		})
	}
	return out
}

// follow sends a request, and again as often as the client may when it is refused or gives up.
func (c *client) follow(ctx context.Context, begin time.Time, o *outcome) {
	from := begin.Add(o.At)
	o.Behind = time.Since(from)
	for {
		o.Tries++
		tried := time.Now()
		o.End = c.try(ctx, o.Class)
		if c.observe != nil {
			c.observe(tried, time.Since(tried), o.End)
		}
		o.Took = time.Since(from)
		if o.End == shed {
			if o.Shed++; o.Shed == 1 {
				o.ShedAt = time.Since(begin)
			}
		}
		if o.End == answered || o.Tries > c.retries {
			return
		}
		wait := time.Duration(0)
		if o.End == shed {
			// A refusal comes at once: what tries again waits a little, as libraries do.
			wait = time.Duration(o.Tries) * (25 + rand.N[time.Duration](50)) * time.Millisecond
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

func (c *client) try(ctx context.Context, class string) ending {
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return failed
	}
	req.Header.Set(classHeader, class)
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := c.http.Do(req)
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	switch {
	case ctx.Err() != nil:
		return gaveUp
	case err != nil:
		return failed
	case resp.StatusCode == http.StatusOK:
		return answered
	case resp.StatusCode == http.StatusServiceUnavailable || resp.StatusCode == http.StatusTooManyRequests:
		return shed
	}
	return failed
}
