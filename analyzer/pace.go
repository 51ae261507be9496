package analyzer

import (
	"cmp"
	"time"

	"github.com/trimtab/trimtab"
)

// pace is how often a source has news: the least of the latest distances between
// samples of different times, so that a gap does not make it slower. A sample that
// is asked of Prometheus is as old as its newest scrape, and no asking makes it
// younger.
type pace struct {
	last time.Time
	gaps [4]time.Duration // 0: not seen yet
	next int
}

// take enters when a sample is of. Times that differ by less than least are one:
// the age of a scrape is known to some milliseconds.
func (p *pace) take(at time.Time, least time.Duration) {
	gap := at.Sub(p.last)
	if gap < least {
		return
	}
	if !p.last.IsZero() {
		p.gaps[p.next%len(p.gaps)] = gap
		p.next++
	}
	p.last = at
}

// every returns the time between two pieces of news; 0: unknown.
func (p *pace) every() (least time.Duration) {
	for _, gap := range p.gaps {
		if gap > 0 && (least == 0 || gap < least) {
			least = gap
		}
	}
	return least
}

// slowest is the longest pace that is waited for, in rounds.
const slowest = 12

// pace returns the pace of a quantity.
func (w *workload) pace(q trimtab.Quantity) *pace {
	p := w.paces[q]
	if p == nil {
		p = &pace{}
		w.paces[q] = p
	}
	return p
}

// lateAfter is the age at which a quantity is late: a round, or, where that is
// longer, when the second piece of news after it was due. What spans tell comes in one
// piece of all the time for which their senders collect them.
func (w *workload) lateAfter(q trimtab.Quantity) time.Duration {
	return max(w.config.Round, 2*w.config.Report, 2*w.every(q)) + w.config.Grace + w.underWay(q)
}

// staleAfter is the age at which nothing is proven by it any more.
func (w *workload) staleAfter(q trimtab.Quantity) time.Duration {
	return time.Duration(w.config.StaleAfter)*max(w.config.Round, w.every(q)) + w.underWay(q)
}

// from is the source of a quantity; "": it is no input of a report.
func (w *workload) from(q trimtab.Quantity) string {
	switch q {
	case trimtab.Load:
		return cmp.Or(w.last.LoadFrom, w.LoadFrom)
	case trimtab.Performance:
		return cmp.Or(w.last.PerfFrom, w.PerformanceFrom)
	}
	return ""
}

// underWay is for how long what tells a quantity may be on its way.
func (w *workload) underWay(q trimtab.Quantity) time.Duration {
	if w.from(q) != FromSpans {
		return 0
	}
	return w.arrival.wait()
}

// every returns the pace of a quantity, as far as it is waited for; 0: unknown, or
// told by spans, which come all the time: slow samples beside them excuse nothing.
func (w *workload) every(q trimtab.Quantity) time.Duration {
	if p := w.paces[q]; p != nil && w.from(q) != FromSpans {
		return min(p.every(), slowest*w.config.Round)
	}
	return 0
}
