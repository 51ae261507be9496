package path

import "github.com/trimtab/trimtab"

// account adds the loaded trace to the open intervals.
func (p *Path) account() {
	t := &p.tree
	t.sojourns(p.places)
	for i := range t.nodes {
		if n := &t.nodes[i]; !n.duplicate && n.top == int32(i) {
			p.accountTop(n)
		}
	}
	for i := range t.nodes {
		n := &t.nodes[i]
		if n.duplicate {
			continue
		}
		if n.flags&recCounted != 0 {
			p.places.places[p.places.places[n.place].base].foresee(n.top != int32(i))
		}
		p.counts.flagged.add(n.faults)
		if n.workload == noWorkload {
			p.counts.unmatched++
			continue
		}
		w := p.windows.at(t.nodes[n.top].window)
		s := w.sum(n.workload)
		s.spans++
		s.flagged.add(n.faults)
		s.sampled = s.sampled || n.flags&trimtab.FlagAdjusted != 0
		c := w.cell(p.places.places[n.place].base)
		c.Spans += float64(n.adjusted)
		if n.known && !p.refused(n) {
			c.Sojourn.Add(seconds(n.duration()-n.below.covered), float64(n.adjusted))
		}
	}
}

// accountTop assigns a span without a request above it in its workload to an interval, and counts
// it if it is a request. A request of unknown duration counts as load, but not as within the
// latency limit.
func (p *Path) accountTop(n *node) {
	if n.workload == noWorkload {
		return
	}
	var fault faults
	end := n.end
	if !n.known {
		end = max(n.start, n.end) // one of them is wrong, but it is unknown which
	}
	n.window, fault = p.windows.pick(n.workload, end, p.now)
	if n.flags&recShifted != 0 {
		fault |= wrongClock
	}
	if n.flags&recCounted != 0 {
		n.faults |= fault &^ late
		return
	}
	n.faults |= fault
	if n.role == innerRole {
		return
	}
	weight := float64(n.adjusted)
	s := p.sumOf(n)
	if fault&late != 0 {
		s.late += weight
		return
	}
	s.requests += weight
	if n.flags&trimtab.FlagAdjusted != 0 {
		s.adjusted += weight
	}
	s.serve(n.instance, weight)
	began := end
	if n.known {
		began = n.start
	}
	s.begin(n.window-began/int64(p.windows.config.Every), weight)
	failed := n.flags&trimtab.FlagError != 0
	if failed {
		s.errors += weight
	}
	if !n.known || p.refused(n) {
		return
	}
	s.latency.Add(seconds(n.duration()), weight)
	switch threshold := p.places.workloads[n.workload].threshold; {
	case threshold <= 0 || n.duration() > threshold:
		if n.duration() >= s.slowest.least() {
			s.slowest.add(slow{duration: n.duration(), trace: p.tree.trace, span: n.id})
		}
	case !failed:
		s.under += weight
	}
}

// refused reports whether a gate did not pass the request of n on to the workload.
func (p *Path) refused(n *node) bool {
	return n.workload != noWorkload && p.places.workloads[n.workload].instances.refuses(n.instance)
}

// sumOf returns the sums that a request counts in: those of its workload or, for a request without
// a SERVER or CONSUMER span, separate ones of its component, which count only if the component
// never serves requests.
func (p *Path) sumOf(n *node) *sum {
	s := p.windows.at(n.window).sum(n.workload)
	if n.role == startedRole {
		return s.startedBy(p.places.places[n.place].base)
	}
	return s
}

// seconds converts from nanoseconds.
func seconds(ns int64) float64 { return float64(ns) / 1e9 }
