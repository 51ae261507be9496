package analyzer

import (
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/quantity"
)

// grants computes from the totals of fast loops how much CPU was granted on average, and for how
// long a quota stopped a workload. The curve is learned at the target, the quota's resting value,
// which is chosen independently of current latencies. The granted amount reacts to them, so that
// more of it would seem to make latency worse.
type grants struct {
	last map[counterKey]grant
}

// grant has the totals of one instance, and their time.
type grant struct {
	at               time.Time
	granted, stalled float64
}

// observe reads the totals in a holding. The difference of two totals gives the mean of the time
// between, even if holdings in between were lost. A total that fell belongs to a new incarnation of
// the agent.
func (g *grants) observe(h *trimtab.Holding, workload string, interval time.Duration, to *counters) {
	for i := range h.Targets {
		t := &h.Targets[i]
		f := t.Fast
		if t.Workload != workload || f == nil || f.Off != "" {
			continue
		}
		k := counterKey{quantity.Granted, h.Host, t.Instance}
		old, known := g.last[k]
		elapsed := h.Time.Sub(old.at)
		switch {
		case !known && len(g.last) >= maxCounters:
			continue
		case known && elapsed > 0 && elapsed < interval && f.Granted >= old.granted:
			continue // too short for a mean
		case known && elapsed <= 0:
			continue
		case g.last == nil:
			g.last = map[counterKey]grant{}
		}
		g.last[k] = grant{h.Time, f.Granted, f.Stalled}
		if !known || f.Granted < old.granted || f.Stalled < old.stalled {
			continue
		}
		for q, v := range map[quantity.Quantity]float64{quantity.Granted: f.Granted - old.granted, quantity.Stalled: f.Stalled - old.stalled} {
			to.observe(&trimtab.Sample{Workload: workload, Quantity: q, Host: h.Host, Instance: t.Instance, Time: h.Time,
				Value: v / elapsed.Seconds(), Source: "fast loop"})
		}
	}
}
