package services

import (
	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/quantity"
	"github.com/trimtab/trimtab/sim/cluster"
)

// The times of the simulated Prometheus and Alertmanager, in seconds: scrapes and
// rules, the range of the queries, how long an alert is pending, how long
// Alertmanager waits until it tells of one that fires, and of one that is over.
const (
	scrapeEvery = 5
	rangeOf     = 20
	pending     = 15
	tellFiring  = 1
	tellOver    = 6
)

// scraped is what Prometheus and Alertmanager know of one service.
type scraped struct {
	// phase is when in scrapeEvery it is scraped.
	phase  int
	name   string
	target float64
	// total is what the service counted so far, scrapes what was read of it.
	total   scrape
	scrapes []scrape
	// since is when the alert's condition began, 0: it does not hold; fires tells
	// that the alert does; tell is when that is told, 0: nothing is to be told.
	since float64
	fires bool
	tell  float64
}

// scrape is the counters of the latency histogram at a time: requests in time,
// and all.
type scrape struct{ at, in, all float64 }

// count adds what was answered.
func (p *scraped) count(done []answer, latency float64) {
	for _, a := range done {
		p.total.all++
		if a.met(latency) {
			p.total.in++
		}
	}
}

// scrape reads the counters, when it is time.
func (p *scraped) scrape(t float64) {
	if int(t)%scrapeEvery != p.phase {
		return
	}
	p.total.at = t
	p.scrapes = append(p.scrapes, p.total)
}

// last returns the first and the last scrape of a range that ends at t; ok is
// false with fewer than two.
func (p *scraped) last(t float64) (first, last scrape, n int, ok bool) {
	for _, s := range p.scrapes {
		if s.at <= t-rangeOf || s.at > t {
			continue
		}
		if n++; n == 1 {
			first = s
		}
		last = s
	}
	return first, last, n, n > 1
}

// rates returns what rate() says of both counters: the rise from the first
// scrape of the range to the last one, extrapolated to the range's ends unless
// they are farther off than the scrapes are apart.
func (p *scraped) rates(t float64) (in, all float64, ok bool) {
	first, last, n, ok := p.last(t)
	if !ok {
		return 0, 0, false
	}
	span := last.at - first.at
	each := span / float64(n-1)
	whole := span
	for _, gap := range []float64{first.at - (t - rangeOf), t - last.at} {
		if gap > 1.1*each {
			gap = each / 2
		}
		whole += gap
	}
	factor := whole / span / rangeOf
	return (last.in - first.in) * factor, (last.all - first.all) * factor, true
}

// query answers trimtab's queries at t.
func (p *scraped) query(loop *cluster.Loop, c *closed, t float64) {
	in, all, ok := p.rates(t)
	if !ok {
		return
	}
	_, last, _, _ := p.last(t)
	load := &trimtab.Sample{Workload: p.name, Quantity: quantity.Load, Source: "prometheus", Time: c.at(last.at), Window: rangeOf, Value: all}
	loop.Observe(c.at(t), load)
	s := &trimtab.Sample{Workload: p.name, Quantity: quantity.Performance, Source: "prometheus", Time: c.at(last.at), Window: rangeOf, Value: in / all, Requests: all * rangeOf}
	if all == 0 {
		s.Value, s.Requests, s.Missing = 0, 0, "not a number"
	}
	loop.Observe(c.at(t), s)
}

// rule evaluates the alert of the benchmark, that the SLO is missed, and tells of
// it as late as Alertmanager does.
func (p *scraped) rule(loop *cluster.Loop, c *closed, t float64) {
	if int(t)%scrapeEvery == 2 {
		in, all, ok := p.rates(t)
		holds := ok && all > 0 && in/all < p.target
		switch {
		case !holds:
			if p.since = 0; p.fires {
				p.fires, p.tell = false, t+tellOver
			}
		case p.since == 0:
			p.since = t
		case !p.fires && t-p.since >= pending:
			p.fires, p.tell = true, t+tellFiring
		}
	}
	if p.tell > 0 && t >= p.tell {
		p.tell = 0
		loop.Observe(c.at(t), &trimtab.Alert{Workload: p.name, Name: "SLOMissed", Group: "SLOMissed " + p.name, Fingerprint: p.name, Firing: p.fires, Time: c.at(t)})
	}
}
