package main

import (
	"context"
	"math"
	"sync"
	"time"
)

// Other work on the machine changes what a request costs by up to a third
// within seconds, which would decide more than any policy. So the work that a
// request asks for is set anew all the time, alike for every policy, to what
// takes the CPU time that was calibrated.
const (
	// priceEvery is how often, priceHalf the age at which what was measured
	// counts half.
	priceEvery = 500 * time.Millisecond
	priceHalf  = 4 * time.Second
	// pricePrior is how many calibrated requests the beginning counts for, and
	// priceMost how far the work may go from where a row began, as a factor.
	pricePrior = 20
	priceMost  = 1.6
)

// price is what the work of a service costs, by what it did lately.
type price struct {
	mu sync.Mutex
	// began is the work of a request at the beginning of the row, work now.
	began, work int
	// units is the work that was done and used the CPU time that it took, in
	// seconds, both fading; spent is what the group had used then.
	units, used float64
	spent       time.Duration
}

// now returns the work of a request of size 1.
func (p *price) now() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.work
}

// begin starts anew: a request of so much work costs that, and the group has used
// so much.
func (p *price) begin(work int, cost, spent time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.began, p.work, p.spent = work, work, spent
	p.units, p.used = pricePrior*float64(work), pricePrior*cost.Seconds()
}

// did adds work that ended.
func (p *price) did(work int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.units += float64(work)
}

// tune sets the work of a request to what takes cost, after the group was seen
// to have used so much.
func (p *price) tune(cost, spent time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used += (spent - p.spent).Seconds()
	p.spent = spent
	if p.used > 0 && p.units > 0 {
		v := cost.Seconds() * p.units / p.used
		p.work = max(1, int(math.Round(min(priceMost*float64(p.began), max(float64(p.began)/priceMost, v)))))
	}
	fade := math.Exp2(-priceEvery.Seconds() / priceHalf.Seconds())
	p.units *= fade
	p.used *= fade
}

// hold keeps the prices of all services until ctx ends; that of one that was just started anew
// only after cold, since until then it is the service itself whose requests are dearer.
func (h *host) hold(ctx context.Context, cold time.Duration) error {
	begin := time.Now()
	tick := time.NewTicker(priceEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		used, err := h.usage()
		if err != nil {
			return err
		}
		for i, s := range h.services {
			if s.isCold() && time.Since(begin) < cold {
				s.price.begin(s.price.now(), s.Cost, used[i])
				continue
			}
			s.price.tune(s.Cost, used[i])
		}
	}
}
