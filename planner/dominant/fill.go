package dominant

import (
	"cmp"
	"math"
	"slices"
)

// filling is one pass from event to event. Every active member of group g is
// at level_0 + weight V_g, so that what happens in g is known beforehand in
// terms of V_g; only how fast V_g grows changes as members freeze.
type filling struct {
	p     *pool
	limit []float64
	// before is each tenant's level at the beginning.
	before []float64
	active []bool
	left   int // active tenants
	room   []float64
	groups []flow
	// draws[i][r] tells that tenant i's share of r grows with its level: it is
	// past the floor.
	draws [][]bool
}

// flow is one group of a filling.
type flow struct {
	// v is V of the group and speed its derivative.
	v, speed float64
	// weights sums those of the active members, tenants and groups; members
	// counts them.
	weights float64
	members int
	// peak is the greatest weights since they were last summed up anew.
	peak float64
	// tenants counts the active tenants that are members themselves.
	tenants int
	// draw sums weight·rate of the active tenants that draw on a resource,
	// drawers counts them: an empty sum is exactly 0.
	draw    []float64
	drawers []int
	events  []event
}

// event is what happens to a tenant when V of its group is at v: it leaves the
// floor of a resource, or it has what it is to have (resource byLimit).
type event struct {
	v                float64
	tenant, resource int
}

func newFilling(p *pool, limit func(*tenant) float64) *filling {
	n, m := len(p.tenants), len(p.q.Resources)
	f := &filling{p: p, room: p.room(), groups: make([]flow, len(p.tree)),
		limit: make([]float64, n), before: make([]float64, n), active: make([]bool, n), draws: make([][]bool, n)}
	for g := range f.groups {
		f.groups[g].draw, f.groups[g].drawers = make([]float64, m), make([]int, m)
	}
	for i := range p.tenants {
		t := &p.tenants[i]
		f.limit[i], f.before[i], f.draws[i] = limit(t), t.level, make([]bool, m)
		if f.limit[i] <= t.level {
			t.bound = byLimit
			continue
		}
		f.active[i] = true
		f.left++
		f.join(t.group, t.weight)
		f.groups[t.group].tenants++
		g := &f.groups[t.group]
		at := func(level float64) float64 { return math.Max(0, (level-t.level)/t.weight) }
		g.events = append(g.events, event{at(f.limit[i]), i, byLimit})
		for r, a := range t.rate {
			if a > 0 {
				g.events = append(g.events, event{at(t.floor[r] / a), i, r})
			}
		}
	}
	for g := range f.groups {
		slices.SortStableFunc(f.groups[g].events, func(a, b event) int { return cmp.Compare(a.v, b.v) })
	}
	return f
}

// join adds a member to group g, and g to the groups above when it is its first.
func (f *filling) join(g int, weight float64) {
	for g >= 0 {
		s := &f.groups[g]
		s.weights += weight
		s.peak = s.weights
		s.members++
		if s.members > 1 {
			return
		}
		g, weight = f.p.tree[g].parent, f.p.tree[g].weight
	}
}

// leave takes a member out, and g with it when it was the last.
func (f *filling) leave(g int, weight float64) {
	for g >= 0 {
		s := &f.groups[g]
		s.weights -= weight
		s.members--
		if s.weights < s.peak/1024 {
			f.recount(g)
		}
		if s.members > 0 {
			return
		}
		s.weights = 0
		g, weight = f.p.tree[g].parent, f.p.tree[g].weight
	}
}

// recount sums a group up anew, when so much of it has left that what remains
// could be rounding.
func (f *filling) recount(g int) {
	s := &f.groups[g]
	s.weights = 0
	clear(s.draw)
	for i := range f.p.tenants {
		t := &f.p.tenants[i]
		if !f.active[i] || t.group != g {
			continue
		}
		s.weights += t.weight
		for r, draws := range f.draws[i] {
			if draws {
				s.draw[r] += t.weight * t.rate[r]
			}
		}
	}
	for c := range f.groups {
		if f.p.tree[c].parent == g && f.groups[c].members > 0 {
			s.weights += f.p.tree[c].weight
		}
	}
	s.peak = s.weights
}

func (f *filling) run() {
	for f.left > 0 {
		f.speeds()
		dt, group := f.next()
		if math.IsInf(dt, 0) {
			return // nobody's level grows: weights beyond the range of floats
		}
		full := f.advance(dt)
		if group >= 0 {
			f.groups[group].v = f.groups[group].events[0].v
		}
		for _, r := range full {
			f.freeze(r)
		}
		f.happen()
	}
}

// speeds divides the rate of each group among its active members: parents come
// before their children.
func (f *filling) speeds() {
	for g := range f.groups {
		s := &f.groups[g]
		rate := 1.0
		if parent := f.p.tree[g].parent; parent >= 0 {
			rate = f.groups[parent].speed * f.p.tree[g].weight
		}
		s.speed = 0
		if s.members > 0 {
			s.speed = rate / s.weights
		}
	}
}

// drawn returns how fast resource r is used up.
func (f *filling) drawn(r int) (sum float64) {
	for g := range f.groups {
		if s := &f.groups[g]; s.drawers[r] > 0 {
			sum += s.speed * s.draw[r]
		}
	}
	return sum
}

// next returns the time to the next event, and its group; -1: a resource that
// is full.
func (f *filling) next() (dt float64, group int) {
	dt, group = math.Inf(1), -1
	for r, room := range f.room {
		if drawn := f.drawn(r); drawn > 0 {
			dt = math.Min(dt, room/drawn)
		}
	}
	for g := range f.groups {
		s := &f.groups[g]
		f.skip(s)
		if s.tenants == 0 || len(s.events) == 0 {
			continue
		}
		if t := math.Max(0, s.events[0].v-s.v) / s.speed; t < dt {
			dt, group = t, g
		}
	}
	return dt, group
}

// skip drops the events of tenants that are frozen.
func (f *filling) skip(s *flow) {
	for len(s.events) > 0 && !f.active[s.events[0].tenant] {
		s.events = s.events[1:]
	}
}

// advance lets time pass and returns the resources that are full now.
func (f *filling) advance(dt float64) (full []int) {
	for r := range f.room {
		drawn := f.drawn(r)
		if drawn <= 0 {
			continue
		}
		if f.room[r]/drawn <= dt {
			f.room[r] = 0
			full = append(full, r)
		} else {
			f.room[r] -= drawn * dt
		}
	}
	for g := range f.groups {
		f.groups[g].v += f.groups[g].speed * dt
	}
	return full
}

// freeze ends all tenants that draw on resource r.
func (f *filling) freeze(r int) {
	for i := range f.draws {
		if f.active[i] && f.draws[i][r] {
			f.end(i, r)
		}
	}
}

// end freezes one tenant at its level.
func (f *filling) end(i, bound int) {
	t := &f.p.tenants[i]
	g := &f.groups[t.group]
	t.level, t.bound = math.Min(f.limit[i], f.before[i]+t.weight*g.v), bound
	if bound == byLimit {
		t.level = f.limit[i]
	}
	f.active[i] = false
	f.left--
	g.tenants--
	for r, draws := range f.draws[i] {
		if draws {
			g.draw[r] -= t.weight * t.rate[r]
			if g.drawers[r]--; g.drawers[r] == 0 {
				g.draw[r] = 0
			}
		}
	}
	f.leave(t.group, t.weight)
}

// happen carries out the events that are due.
func (f *filling) happen() {
	for g := range f.groups {
		s := &f.groups[g]
		for f.skip(s); len(s.events) > 0 && s.events[0].v <= s.v; f.skip(s) {
			e := s.events[0]
			s.events = s.events[1:]
			switch {
			case e.resource == byLimit:
				f.end(e.tenant, byLimit)
			case f.room[e.resource] == 0:
				f.end(e.tenant, e.resource) // its floor is all that there is
			default:
				f.draws[e.tenant][e.resource] = true
				s.draw[e.resource] += f.p.tenants[e.tenant].weight * f.p.tenants[e.tenant].rate[e.resource]
				s.drawers[e.resource]++
			}
		}
	}
}
