package welfare

import (
	"cmp"
	"math"
	"slices"

	"github.com/trimtab/trimtab/planner/hosts"
)

// repair rounds the prices' answer to a feasible one, and returns it and its worth: the better of
// two. First each workload gets the edges that it surely demands; on a host that is over
// capacity, edges are given back, that of least worth for its price first. In one of the two each
// workload then takes what it demands in part. Then all take the edges that fit, the one worth
// most for its price first, and at last what is left goes to any workload that gains by it.
func (m *market) repair() (picked []choice, worth float64) {
	m.pay()
	picked, worth = m.fix(true)
	if other, of := m.fix(false); of > worth {
		return other, of
	}
	return picked, worth
}

func (m *market) fix(inPart bool) (picked []choice, worth float64) {
	f := &fix{market: m, headroom: m.headroom.Clone(), at: make([]choice, len(m.all)), next: make([]int, len(m.all))}
	for i, j := range m.known {
		f.at[i], f.next[i] = m.choices[i][0], m.hull.first[i]
		for k := m.hull.first[i]; k < m.hull.first[i+1] && m.hull.edges[k].wantedAt(m.paid[i], inPart); k++ {
			f.next[i] = k + 1
		}
		f.jump(i)
		f.headroom.Subtract(j, int(f.at[i].units))
	}
	f.giveBack()
	if inPart {
		f.takeParts()
	}
	f.takeEdges()
	for range fills {
		if !f.fill() {
			break
		}
	}
	for _, c := range f.at {
		worth += float64(c.worth)
	}
	return f.at, worth
}

// fills is how often the remaining units are offered to all workloads.
const fills = 4

// fix is an answer under construction.
type fix struct {
	market   *market
	headroom *hosts.Headroom
	at       []choice
	// next is the first edge of each hull that was not taken.
	next []int
}

// jump sets workload i to the end of the last edge that it took.
func (f *fix) jump(i int) {
	units := f.market.hull.least[i]
	if k := f.next[i] - 1; k >= f.market.hull.first[i] {
		units = f.market.hull.edges[k].end()
	}
	cs, to := f.market.choices[i], int32(units)
	at, _ := slices.BinarySearchFunc(cs, to, func(c choice, units int32) int { return cmp.Compare(c.units, units) })
	f.at[i] = cs[at]
}

// offer is an edge, or another change, of one workload.
type offer struct {
	at, edge int
	// gain is its worth relative to its price.
	gain float64
}

// gainOf returns the worth of an edge relative to its price.
func (f *fix) gainOf(i, k int) float64 {
	return f.market.hull.edges[k].slope / math.Max(f.market.paid[i], math.SmallestNonzeroFloat64)
}

// giveBack gives edges back until no host is over capacity.
func (f *fix) giveBack() {
	var offers []offer
	for i, j := range f.market.known {
		if !f.headroom.Over(j) {
			continue
		}
		for k := f.market.hull.first[i]; k < f.next[i]; k++ {
			offers = append(offers, offer{i, k, f.gainOf(i, k)})
		}
	}
	slices.SortStableFunc(offers, func(a, b offer) int {
		return cmp.Or(cmp.Compare(a.gain, b.gain), cmp.Compare(b.edge, a.edge))
	})
	for _, o := range offers {
		if j := f.market.known[o.at]; f.next[o.at] == o.edge+1 && f.headroom.Over(j) {
			before := f.at[o.at].units
			f.next[o.at] = o.edge
			f.jump(o.at)
			f.headroom.Subtract(j, int(f.at[o.at].units-before))
		}
	}
}

// wantedAt reports whether an edge is demanded at a price; with inPart set, whether it is
// demanded in whole.
func (e *edge) wantedAt(price float64, inPart bool) bool {
	if inPart {
		return e.low >= price
	}
	return e.slope > price
}

// takeParts gives each workload its demand.
func (f *fix) takeParts() {
	for i := range f.market.known {
		if units, _, _, _ := f.market.wanted(i, f.market.paid[i]); f.next[i] < f.market.hull.first[i+1] {
			f.takePart(i, int32(units))
		}
	}
}

// takePart raises workload i up to the given units, if they are worth nearly as much as on its
// hull.
func (f *fix) takePart(i int, to int32) {
	j, now, slope := f.market.known[i], f.at[i], f.market.hull.edges[f.next[i]].slope
	if to = min(to, now.units+int32(min(f.headroom.Most(j), math.MaxInt32-int(now.units)))); to <= now.units {
		return
	}
	g := f.market.all[i].worth(sample{f.market.all[i].u.value(int(to)), to})
	if units := to - now.units; float64(g-now.worth) >= 0.9*slope*float64(units) {
		f.headroom.Subtract(j, int(units))
		f.at[i] = choice{g, to}
	}
	for f.next[i] < f.market.hull.first[i+1] && f.market.hull.edges[f.next[i]].end() <= float64(f.at[i].units) {
		f.next[i]++
	}
}

// takeEdges takes the edges that fit, and of each workload a part of the first edge that does not
// fit.
func (f *fix) takeEdges() {
	var offers []offer
	for i := range f.market.known {
		for k := f.next[i]; k < f.market.hull.first[i+1]; k++ {
			offers = append(offers, offer{i, k, f.gainOf(i, k)})
		}
	}
	slices.SortStableFunc(offers, func(a, b offer) int {
		return cmp.Or(cmp.Compare(b.gain, a.gain), cmp.Compare(a.edge, b.edge))
	})
	for _, o := range offers {
		if f.next[o.at] != o.edge {
			continue
		}
		j, end := f.market.known[o.at], int32(f.market.hull.edges[o.edge].end())
		if units := int(end - f.at[o.at].units); f.headroom.Most(j) >= units {
			f.next[o.at]++
			f.jump(o.at)
			f.headroom.Subtract(j, units)
		} else {
			f.takePart(o.at, end-1)
		}
	}
}

// fill offers each workload the best choice that fits, the one that gains most for its price
// first, and reports whether any took it.
func (f *fix) fill() (some bool) {
	var offers []offer
	for i := range f.market.known {
		if c := f.best(i); c.worth > f.at[i].worth {
			units := float64(c.units - f.at[i].units)
			offers = append(offers, offer{i, 0, float64(c.worth-f.at[i].worth) / math.Max(f.market.paid[i]*units, math.SmallestNonzeroFloat64)})
		}
	}
	slices.SortStableFunc(offers, func(a, b offer) int { return cmp.Compare(b.gain, a.gain) })
	for _, o := range offers {
		if c := f.best(o.at); c.worth > f.at[o.at].worth {
			f.headroom.Subtract(f.market.known[o.at], int(c.units-f.at[o.at].units))
			f.at[o.at], some = c, true
		}
	}
	return some
}

// best returns the choice of workload i that gains most and fits: an evaluated one, or all units
// that fit.
func (f *fix) best(i int) choice {
	cs, now := f.market.choices[i], f.at[i]
	most := now.units + int32(min(f.headroom.Most(f.market.known[i]), int(cs[len(cs)-1].units-now.units)))
	if most <= now.units {
		return now
	}
	at, exact := slices.BinarySearchFunc(cs, most, func(c choice, units int32) int { return cmp.Compare(c.units, units) })
	if exact {
		return cs[at]
	}
	s, best := &f.market.all[i], cs[at-1]
	if g := s.worth(sample{s.u.value(int(most)), most}); g > best.worth {
		return choice{g, most}
	}
	return best
}
