package analyzer

import (
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/quantity"
)

// grants turn the totals that hosts tell of their fast loops into what was granted, on
// average, and how long a quota stopped a workload. The curve is taught at the target,
// where the knob rests: that was chosen without regard to trouble, while what was granted
// follows it, so that more of it would seem to make latency worse.
type grants struct {
	last map[counterKey]grant
}

// grant is what was told of one instance, and when.
type grant struct {
	at               time.Time
	granted, stalled float64
}

// take enters what a holding says of a workload. Differences of totals give the mean of the
// time between, whatever was lost in it; totals that fell are of another life.
func (g *grants) take(h *trimtab.Holding, workload string, interval time.Duration, to *counters) {
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
			continue // too short a time to say anything
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
			to.take(&trimtab.Sample{Workload: workload, Quantity: q, Host: h.Host, Instance: t.Instance, Time: h.Time,
				Value: v / elapsed.Seconds(), Source: "fast loop"})
		}
	}
}
