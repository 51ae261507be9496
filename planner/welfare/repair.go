package welfare

import (
	"cmp"
	"math"
	"slices"

	"github.com/trimtab/trimtab/planner/hosts"
)

// repair makes an answer of the prices, and returns it and its worth: the better
// of two. Everybody first has the edges that it surely wants; who is on a host that
// cannot hold all that gives back, the edge that is worth least for its price
// first. In one of the two everybody then takes what it wants in part.
// Then everybody takes the edges that fit, the one that is worth most for its price
// first, and at last what is left goes to whatever gains by it.
func (m *market) repair() (picked []choice, worth float64) {
	m.pay()
	picked, worth = m.fix(true)
	if other, of := m.fix(false); of > worth {
		return other, of
	}
	return picked, worth
}

func (m *market) fix(inPart bool) (picked []choice, worth float64) {
	f := &fix{market: m, room: m.room.Clone(), at: make([]choice, len(m.all)), next: make([]int, len(m.all))}
	for i, j := range m.known {
		f.at[i], f.next[i] = m.choices[i][0], m.first[i]
		for k := m.first[i]; k < m.first[i+1] && m.edges[k].wantedAt(m.paid[i], inPart); k++ {
			f.next[i] = k + 1
		}
		f.jump(i)
		f.room.Take(j, int(f.at[i].units))
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

// fills bounds how often what is left is offered to everybody.
const fills = 4

// fix is an answer on its way.
type fix struct {
	*market
	room *hosts.Room
	at   []choice
	// next is the first edge of each hull that is not taken.
	next []int
}

// jump puts workload i at the end of the last edge that it took.
func (f *fix) jump(i int) {
	units := f.least[i]
	if k := f.next[i] - 1; k >= f.first[i] {
		units = f.edges[k].end()
	}
	cs, to := f.choices[i], int32(units)
	at, _ := slices.BinarySearchFunc(cs, to, func(c choice, units int32) int { return cmp.Compare(c.units, units) })
	f.at[i] = cs[at]
}

// offer is an edge, or another change, of one workload.
type offer struct {
	at, edge int
	// gain is what it is worth for its price.
	gain float64
}

// gainOf is the worth of an edge for its price.
func (f *fix) gainOf(i, k int) float64 {
	return f.edges[k].slope / math.Max(f.paid[i], math.SmallestNonzeroFloat64)
}

// giveBack takes edges back until no host is over what it has.
func (f *fix) giveBack() {
	var offers []offer
	for i, j := range f.known {
		if !f.room.Over(j) {
			continue
		}
		for k := f.first[i]; k < f.next[i]; k++ {
			offers = append(offers, offer{i, k, f.gainOf(i, k)})
		}
	}
	slices.SortStableFunc(offers, func(a, b offer) int {
		return cmp.Or(cmp.Compare(a.gain, b.gain), cmp.Compare(b.edge, a.edge))
	})
	for _, o := range offers {
		if j := f.known[o.at]; f.next[o.at] == o.edge+1 && f.room.Over(j) {
			before := f.at[o.at].units
			f.next[o.at] = o.edge
			f.jump(o.at)
			f.room.Take(j, int(f.at[o.at].units-before))
		}
	}
}

// wantedAt reports whether an edge is wanted at a price, or, where those in doubt
// are wanted in part, in whole.
func (e *edge) wantedAt(price float64, inPart bool) bool {
	if inPart {
		return e.low >= price
	}
	return e.slope > price
}

// takeParts gives everybody what it wants.
func (f *fix) takeParts() {
	for i := range f.known {
		if units, _, _, _ := f.wanted(i, f.paid[i]); f.next[i] < f.first[i+1] {
			f.takePart(i, int32(units))
		}
	}
}

// takePart gives workload i up to so many units, where they are worth nearly what
// its hull says.
func (f *fix) takePart(i int, to int32) {
	j, now, slope := f.known[i], f.at[i], f.edges[f.next[i]].slope
	if to = min(to, now.units+int32(min(f.room.Most(j), math.MaxInt32-int(now.units)))); to <= now.units {
		return
	}
	g := f.all[i].worth(sample{f.all[i].u.value(int(to)), to})
	if units := to - now.units; float64(g-now.worth) >= 0.9*slope*float64(units) {
		f.room.Take(j, int(units))
		f.at[i] = choice{g, to}
	}
	for f.next[i] < f.first[i+1] && f.edges[f.next[i]].end() <= float64(f.at[i].units) {
		f.next[i]++
	}
}

// takeEdges takes the edges that fit, and a part of the first of each workload
// that does not.
func (f *fix) takeEdges() {
	var offers []offer
	for i := range f.known {
		for k := f.next[i]; k < f.first[i+1]; k++ {
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
		j, end := f.known[o.at], int32(f.edges[o.edge].end())
		if units := int(end - f.at[o.at].units); f.room.Most(j) >= units {
			f.next[o.at]++
			f.jump(o.at)
			f.room.Take(j, units)
		} else {
			f.takePart(o.at, end-1)
		}
	}
}

// fill offers everybody the best that fits, the one that gains most for its price
// first, and reports whether anybody took it.
func (f *fix) fill() (some bool) {
	var offers []offer
	for i := range f.known {
		if c := f.best(i); c.worth > f.at[i].worth {
			units := float64(c.units - f.at[i].units)
			offers = append(offers, offer{i, 0, float64(c.worth-f.at[i].worth) / math.Max(f.paid[i]*units, math.SmallestNonzeroFloat64)})
		}
	}
	slices.SortStableFunc(offers, func(a, b offer) int { return cmp.Compare(b.gain, a.gain) })
	for _, o := range offers {
		if c := f.best(o.at); c.worth > f.at[o.at].worth {
			f.room.Take(f.known[o.at], int(c.units-f.at[o.at].units))
			f.at[o.at], some = c, true
		}
	}
	return some
}

// best returns the choice of workload i that gains most of those that fit: one
// that was seen, or all that there is room for.
func (f *fix) best(i int) choice {
	cs, now := f.choices[i], f.at[i]
	most := now.units + int32(min(f.room.Most(f.known[i]), int(cs[len(cs)-1].units-now.units)))
	if most <= now.units {
		return now
	}
	at, exact := slices.BinarySearchFunc(cs, most, func(c choice, units int32) int { return cmp.Compare(c.units, units) })
	if exact {
		return cs[at]
	}
	s, best := &f.all[i], cs[at-1]
	if g := s.worth(sample{s.u.value(int(most)), most}); g > best.worth {
		return choice{g, most}
	}
	return best
}
