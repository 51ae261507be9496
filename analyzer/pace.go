package analyzer

import "time"

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
