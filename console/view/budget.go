package view

import (
	"time"

	"github.com/trimtab/trimtab"
)

// burnWindows returns the windows of burn rates, as in the multiwindow alerts of the SRE workbook,
// chapter 5.
func burnWindows() map[string]time.Duration {
	return map[string]time.Duration{"5m": 5 * time.Minute, "1h": time.Hour, "6h": 6 * time.Hour}
}

// budgetOver returns the error budget over the known history of a workload,
//
//	burn(W) = Σ_W l_t Δt (1 - p_t) / Σ_W l_t Δt / (1 - SLO)
//	left    = 1 - burn(all that is known)
//
// where p_t is 0 while nothing is measured of a workload that starves, and l_t its load before;
// nil: its SLO is no share of requests, or nothing is known.
func (s *state) budgetOver(spans []stretch, now time.Time) *Budget {
	allowed := 1 - s.Target
	if !s.Share || !(s.Target > 0 && s.Target < 1) {
		return nil
	}
	burn := func(window time.Duration) (rate float64, known time.Duration) {
		missed, all := 0.0, 0.0
		for i := len(spans) - 1; i >= 0; i-- {
			p := &spans[i]
			if now.Sub(p.ended()) > window {
				break
			}
			load, performance := p.v[colLoad], p.v[colPerformance]
			if p.starved() {
				performance = 0
			}
			if isMissing(load) || isMissing(performance) {
				continue
			}
			requests := float64(load) * p.Seconds()
			known += p.Duration
			all, missed = all+requests, missed+requests*(1-min(1, float64(performance)))
		}
		if all == 0 {
			return 0, 0
		}
		return missed / all / allowed, known
	}
	rate, known := burn(maxAge)
	if known == 0 {
		return nil
	}
	b := &Budget{Window: trimtab.SecondsOf(known), Left: 1 - rate, Burn: map[string]float64{}}
	for name, window := range burnWindows() {
		if rate, known := burn(window); known >= window/2 {
			b.Burn[name] = rate
		}
	}
	return b
}

// budgetEvery is how often a budget is computed again when clients request it.
const budgetEvery = 15 * time.Second

// budgetAt is a budget as it was at a time; nil: there is none.
type budgetAt struct {
	*Budget
	at time.Time
}

// budget is the error budget of all that is known of a workload.
func (s *state) budget(round time.Duration, now time.Time) *Budget {
	if b := s.budgetNow; b != nil && now.Sub(b.at) >= 0 && now.Sub(b.at) < budgetEvery {
		return b.Budget
	}
	s.budgetNow = &budgetAt{s.budgetOver(s.spans(now.Add(-maxAge), round), now), now}
	return s.budgetNow.Budget
}
