// Package limiter has limits on concurrent requests as proxies and libraries publish them: each learns
// one number from how long requests take. They know neither the capacity of the service, nor its SLO,
// nor each other.
//
//	if under <= l.Limit() { … l.Learn(limiter.Sample{From: from, To: now, Under: under}) }
//
// Source: github.com/Netflix/concurrency-limits, Gradient2Limit; Envoy, "Adaptive Concurrency".
//
// The package reads no clock: times are arguments.
package limiter

import (
	"math"
	"slices"
	"time"
)

// Sample is a request that ended: when it began and ended, counted from the start of the
// proxy, and how many were under way as it began.
type Sample struct {
	From, To time.Duration
	Under    int
}

// Limiter learns how many requests may be under way from how long they take.
type Limiter interface {
	Limit() int
	Learn(s Sample)
}

// The names of the limiters that were published.
const (
	Gradient2 = "gradient2"
	Envoy     = "envoy"
)

// New returns a limiter of that name that has learnt nothing; false: there is none.
func New(name string) (l Limiter, ok bool) {
	switch name {
	case Gradient2:
		return newGradient2(), true
	case Envoy:
		return newEnvoy(), true
	}
	return nil, false
}

// gradient2 is Netflix's Gradient2 with its defaults. Each second, from the mean time R of a
// request in it and a mean B over about 600 such seconds,
//
//	g = B / R, within [0.5, 1]
//	limit = 0.8 limit + 0.2 (g limit + 4), within [20, 200],
//
// unless fewer than half of the limit were under way. Where B is more than twice R, B falls by a
// tenth.
//
// Source: github.com/Netflix/concurrency-limits, Gradient2Limit within WindowedLimit.
type gradient2 struct {
	now    float64
	base   float64
	seen   int
	window []Sample
	next   time.Duration
}

const (
	gradient2Least, gradient2Most = 20, 200
	gradient2Queue                = 4
	gradient2Smoothing            = 0.2
	gradient2Window               = time.Second
	// A window with fewer samples is not used; the base is a plain mean at first.
	gradient2Samples, gradient2Warm = 10, 10
	gradient2Long                   = 600
)

func newGradient2() *gradient2 { return &gradient2{now: gradient2Least} }

func (g *gradient2) Limit() int { return int(g.now) }

func (g *gradient2) Learn(s Sample) {
	g.window = append(g.window, s)
	if s.To <= g.next {
		return
	}
	g.next = s.To + gradient2Window
	window := g.window
	g.window = nil
	if len(window) < gradient2Samples {
		return
	}
	sum, under := time.Duration(0), 0
	for _, w := range window {
		sum += w.To - w.From
		under = max(under, w.Under)
	}
	g.update(sum.Seconds()/float64(len(window)), under)
}

// update sets the limit by the mean time of a request, in seconds.
func (g *gradient2) update(took float64, under int) {
	if g.seen < gradient2Warm {
		g.seen++
		g.base += (took - g.base) / float64(g.seen)
	} else {
		g.base += (took - g.base) * 2 / (gradient2Long + 1)
	}
	// The ratio is that from before the fall, as published.
	ratio := g.base / took
	if ratio > 2 {
		g.base *= 0.9
	}
	if float64(under) < g.now/2 {
		return
	}
	next := g.now*min(1, max(0.5, ratio)) + gradient2Queue
	g.now = min(gradient2Most, max(gradient2Least, (1-gradient2Smoothing)*g.now+gradient2Smoothing*next))
}

// envoy is the gradient controller of Envoy's adaptive concurrency with its defaults. Each
// 100 ms, from the median time R of a request in it and the median M of 50 requests with no more
// than 3 under way, which is measured at first, each minute, and when the limit was 3 five times
// in a row,
//
//	g = 1.25 M / R, within [0.5, 2]
//	limit = g limit + sqrt(g limit), within [3, 1000].
//
// Source: Envoy, Adaptive Concurrency (configuration of HTTP filters). Its jitter is left out:
// there is one proxy.
type envoy struct {
	now int
	// ideal is M in seconds, measured at the time of next anew; after is the limit that holds
	// when it was measured, 0: it is not being measured since the time of epoch.
	ideal       float64
	after       int
	epoch, next time.Duration
	window      []float64
	until       time.Duration
	atLeast     int
}

const (
	envoyLeast, envoyMost = 3, 1000
	envoyBuffer           = 0.25
	envoySamples          = 50
	envoyWindow           = 100 * time.Millisecond
	envoyIdealEvery       = time.Minute
	envoyTimesAtLeast     = 5
)

func newEnvoy() *envoy { return &envoy{now: envoyLeast, after: envoyLeast} }

func (e *envoy) Limit() int { return e.now }

func (e *envoy) Learn(s Sample) {
	if s.From < e.epoch {
		return
	}
	e.window = append(e.window, (s.To - s.From).Seconds())
	if e.after > 0 {
		if len(e.window) >= envoySamples {
			e.ideal, e.window = median(e.window), nil
			e.now, e.after = e.after, 0
			e.next, e.until = s.To+envoyIdealEvery, s.To+envoyWindow
		}
		return
	}
	if s.To >= e.until {
		e.until = s.To + envoyWindow
		e.update(median(e.window))
		e.window = nil
	}
	if s.To >= e.next || e.atLeast >= envoyTimesAtLeast {
		e.after, e.now, e.atLeast = e.now, envoyLeast, 0
		e.window, e.epoch = nil, s.To
	}
}

// update sets the limit by the median time of a request, in seconds.
func (e *envoy) update(took float64) {
	g := min(2, max(0.5, (1+envoyBuffer)*e.ideal/took))
	part := g * float64(e.now)
	next := min(envoyMost, max(envoyLeast, int(part+math.Sqrt(part))))
	if e.now == envoyLeast && next == envoyLeast {
		e.atLeast++
	} else {
		e.atLeast = 0
	}
	e.now = next
}

func median(in []float64) float64 {
	slices.Sort(in)
	return in[len(in)/2]
}
