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
	left   int       // active tenants
	room   []float64 // by row
	groups []flow
	speed  []rate // by row
	// stale: the speeds of hosts must be summed again, as after a number of steps.
	stale bool
	steps int
	// draws[i][r]: tenant i's share of r grows with its level, since it is past the floor.
	draws [][]bool
	// cells are the rows that tenants use, by tenant and resource; on has the tenants of the rows
	// of hosts.
	cells [][]cell
	on    [][]int32
}

// rate is how fast a row is used up. That of a host is updated by differences, as long as these
// are small compared with its peak: else the rest would be rounding errors. drawers counts the
// tenants.
type rate struct {
	now, peak float64
	drawers   int
}

// cell is one row that a tenant uses, and its index in the tenant's group.
type cell struct {
	row, at int32
	share   float64
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
	// tenants counts the active tenants that are members themselves; all are the initial ones.
	tenants int
	all     []int32
	// rows are those that all members use; places are all indices in it, budgets those of the
	// pool's rows. draw sums weight·rate·share of the active tenants that use a row, drawers
	// counts them: an empty sum is exactly 0.
	rows, places, budgets []int32
	draw                  []float64
	drawers               []int
	events                []event
}

// event happens to a tenant when V of its group is at v: it leaves the floor of a resource, or
// reaches its limit (resource byLimit).
type event struct {
	v                float64
	tenant, resource int
}

func newFilling(p *pool, limit func(*tenant) float64) *filling {
	n, m := len(p.tenants), len(p.q.Resources)
	f := &filling{p: p, room: p.room(), speed: make([]rate, len(p.rows)), groups: make([]flow, len(p.tree)),
		limit: make([]float64, n), before: make([]float64, n), active: make([]bool, n), draws: make([][]bool, n)}
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
		g := &f.groups[t.group]
		g.tenants++
		g.all = append(g.all, int32(i))
		at := func(level float64) float64 { return math.Max(0, (level-t.level)/t.weight) }
		g.events = append(g.events, event{at(f.limit[i]), i, byLimit})
		for r, a := range t.rate {
			if a > 0 {
				g.events = append(g.events, event{at(t.floor[r] / a), i, r})
			}
		}
	}
	f.place()
	for g := range f.groups {
		slices.SortStableFunc(f.groups[g].events, func(a, b event) int { return cmp.Compare(a.v, b.v) })
	}
	return f
}

// place finds the rows of each group and the cells of each tenant.
func (f *filling) place() {
	m := len(f.p.q.Resources)
	f.cells, f.on = make([][]cell, len(f.p.tenants)*m), make([][]int32, len(f.p.rows))
	at, in := make([]int32, len(f.p.rows)), make([]int, len(f.p.rows)) // the place of a row in group in-1
	for g := range f.groups {
		s := &f.groups[g]
		add := func(i int32, r, row int, share float64) {
			if in[row] != g+1 {
				in[row], at[row] = g+1, int32(len(s.rows))
				s.rows, s.places = append(s.rows, int32(row)), append(s.places, at[row])
				if row < m {
					s.budgets = append(s.budgets, at[row])
				}
			}
			of := &f.cells[int(i)*m+r]
			*of = append(*of, cell{int32(row), at[row], share})
		}
		for _, i := range s.all {
			for r, a := range f.p.tenants[i].rate {
				if a <= 0 {
					continue
				}
				parts := f.p.parts(int(i), r)
				f.cells[int(i)*m+r] = make([]cell, 0, 1+len(parts))
				add(i, r, r, 1)
				for _, part := range parts {
					row := f.p.first[r] + int(part.Row)
					add(i, r, row, part.Share)
					f.on[row] = append(f.on[row], i)
				}
			}
		}
		s.draw, s.drawers = make([]float64, len(s.rows)), make([]int, len(s.rows))
	}
}

// draw starts or stops a tenant's use of the rows of a resource.
func (f *filling) draw(i, r, sign int) {
	t := &f.p.tenants[i]
	g := &f.groups[t.group]
	f.draws[i][r] = sign > 0
	for _, c := range f.cells[i*len(f.p.q.Resources)+r] {
		v := float64(sign) * (t.weight * t.rate[r] * c.share)
		g.draw[c.at] += v
		if g.drawers[c.at] += sign; g.drawers[c.at] == 0 {
			g.draw[c.at] = 0
		}
		f.speed[c.row].drawers += sign
		f.change(c.row, g.speed*v)
	}
}

// change adds to the speed of a row.
func (f *filling) change(row int32, v float64) {
	s := &f.speed[row]
	s.now += v
	s.peak = math.Max(s.peak, s.now)
	if s.drawers == 0 {
		s.now, s.peak = 0, 0
	}
	f.stale = f.stale || s.now < s.peak/1024
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

// leave removes a member, and g with its last one.
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
	f.stale = true
	for _, i := range s.all {
		if !f.active[i] {
			continue
		}
		t := &f.p.tenants[i]
		s.weights += t.weight
		for r, draws := range f.draws[i] {
			if !draws {
				continue
			}
			for _, c := range f.cells[int(i)*len(f.draws[i])+r] {
				s.draw[c.at] += t.weight * t.rate[r] * c.share
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
		if !f.step() {
			return // nobody's level grows: weights beyond the range of floats
		}
	}
}

// step advances to the next event, and reports whether there is one.
func (f *filling) step() bool {
	dt, group := f.next()
	if math.IsInf(dt, 0) {
		return false
	}
	full := f.advance(dt)
	if group >= 0 {
		f.groups[group].v = f.groups[group].events[0].v
	}
	for _, r := range full {
		f.freeze(r)
	}
	f.happen()
	return true
}

// afresh is after how many steps the speeds of hosts are summed up anew.
const afresh = 64

// speeds divides the rate of each group among its active members, parents before their children,
// and updates how fast rows are used up.
func (f *filling) speeds() {
	for g := range f.groups {
		s := &f.groups[g]
		rate := 1.0
		if parent := f.p.tree[g].parent; parent >= 0 {
			rate = f.groups[parent].speed * f.p.tree[g].weight
		}
		before := s.speed
		s.speed = 0
		if s.members > 0 {
			s.speed = rate / s.weights
		}
		if s.speed == before || f.stale {
			continue
		}
		for k, row := range s.rows {
			if s.drawers[k] > 0 {
				f.change(row, (s.speed-before)*s.draw[k])
			}
		}
	}
	f.steps++
	f.sum(f.stale || f.steps%afresh == 0)
}

// sum sums up how fast the pool's rows are used up, or all.
func (f *filling) sum(all bool) {
	rows := f.speed[:len(f.p.q.Resources)]
	if all {
		rows, f.stale = f.speed, false
	}
	for r := range rows {
		rows[r].now = 0
	}
	for g := range f.groups {
		s := &f.groups[g]
		places := s.budgets
		if all {
			places = s.places
		}
		for _, k := range places {
			if s.drawers[k] > 0 {
				rows[s.rows[k]].now += s.speed * s.draw[k]
			}
		}
	}
	for r := range rows {
		rows[r].peak = rows[r].now
	}
}

// next returns the time to the next event, and its group; -1: a row that is full.
func (f *filling) next() (dt float64, group int) {
	dt, group = math.Inf(1), -1
	for r, room := range f.room {
		if drawn := f.speed[r].now; drawn > 0 {
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

// advance advances time and returns the rows that are full now.
func (f *filling) advance(dt float64) (full []int) {
	for r := range f.room {
		drawn := f.speed[r].now
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

// freeze ends all tenants that draw on a row.
func (f *filling) freeze(row int) {
	r := f.p.rows[row].resource
	if row >= len(f.p.q.Resources) {
		for _, i := range f.on[row] {
			if f.active[i] && f.draws[i][r] {
				f.end(int(i), row)
			}
		}
		return
	}
	for i := range f.draws {
		if f.active[i] && f.draws[i][r] {
			f.end(i, row)
		}
	}
}

// full returns a row of resource r that tenant i draws on and that is full; -1: none.
func (f *filling) full(i, r int) int {
	for _, c := range f.cells[i*len(f.p.q.Resources)+r] {
		if f.room[c.row] == 0 {
			return int(c.row)
		}
	}
	return -1
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
			f.draw(i, r, -1)
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
			if e.resource == byLimit {
				f.end(e.tenant, byLimit)
			} else if row := f.full(e.tenant, e.resource); row >= 0 {
				f.end(e.tenant, row) // its floor is all that there is
			} else {
				f.draw(e.tenant, e.resource, 1)
			}
		}
	}
}
