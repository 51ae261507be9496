package fair

import (
	"cmp"
	"math"
	"slices"

	"github.com/trimtab/trimtab/planner/hosts"
)

// claim is one workload of a filling. It gets clamp(v·weight, lo, hi), where v is the level of its
// group, until a row (a host or the pool) that it uses is full.
type claim struct {
	group          int
	weight, lo, hi float64
	state          state
	amount         float64 // valid while it does not rise
}

type state int8

const (
	waiting state = iota // at lo
	rising
	frozen
)

// event happens when the level of a group reaches v: to one of its claims, or, if claim is -1, to a
// group in it.
type event struct {
	v            float64
	claim, group int
}

// flow is one group of a filling; the root is the first, and every group comes after its parent.
type flow struct {
	parent int
	weight float64
	// level is v; speed is its derivative by the level of the root.
	level, speed float64
	// starts are the levels at which members begin to rise; ends are those at which claims have all
	// they want; both in ascending order.
	starts, ends []event
	claims       []int
	// started says that the group rises as a member of its parent. It rises while active, the
	// number of claims below it that are not frozen, is not 0.
	started bool
	active  int
	// pull is Σ weight of the members that rise; draw has, for each row, Σ weight·share of the
	// claims.
	pull sum
	draw []sum
}

// sum is a sum of n positive numbers. most is its value when it was last computed from all of them.
// An empty sum is exactly 0.
type sum struct {
	value   float64
	n, most int
}

func (s *sum) add(v float64) {
	s.value += v
	s.n++
	s.most = max(s.most, s.n)
}

// drop subtracts v and reports whether so much was subtracted that the rest should be summed again.
func (s *sum) drop(v float64) (afresh bool) {
	s.value -= v
	if s.n--; s.n == 0 {
		s.value = 0
	}
	return 2*s.n < s.most
}

// filling is progressive filling: the levels rise until a row, a host or the pool, is full, which
// freezes the claims that use it; the others continue. The rest of a frozen claim's share goes to
// its siblings first.
type filling struct {
	headroom *hosts.Headroom // the rows are its hosts, then the pool
	left     []float64       // by row
	on       [][]int         // the claims by row
	claims   []claim
	groups   []flow
	active   int
	drawn    []float64 // use of each row at the present speeds
}

// newFilling starts every claim at its lo; these must fit.
func newFilling(room *hosts.Headroom, groups []flow, claims []claim) *filling {
	n := len(room.Left) + 1
	f := &filling{headroom: room, left: append(slices.Clone(room.Left), float64(room.Units)), on: make([][]int, n),
		claims: claims, groups: groups, active: len(claims), drawn: make([]float64, n)}
	given := make([]float64, len(groups))
	for i := range claims {
		c := &claims[i]
		c.amount = c.lo
		f.each(i, func(r int, share float64) {
			f.left[r] -= share * c.lo
			f.on[r] = append(f.on[r], i)
		})
		g := &groups[c.group]
		g.claims = append(g.claims, i)
		g.starts = append(g.starts, event{c.lo / c.weight, i, -1})
		g.ends = append(g.ends, event{c.hi / c.weight, i, -1})
		for at := c.group; at >= 0; at = groups[at].parent {
			groups[at].active++
			given[at] += c.lo
		}
	}
	for k := range groups {
		g := &groups[k]
		g.draw = make([]sum, n)
		if g.started = g.parent < 0; !g.started && g.active > 0 {
			above := &groups[g.parent]
			above.starts = append(above.starts, event{given[k] / g.weight, -1, k})
		}
	}
	inOrder := func(a, b event) int { return cmp.Compare(a.v, b.v) }
	for k := range groups {
		slices.SortStableFunc(groups[k].starts, inOrder)
		slices.SortStableFunc(groups[k].ends, inOrder)
	}
	return f
}

// each calls fn with the rows that claim i uses.
func (f *filling) each(i int, fn func(row int, share float64)) {
	for _, p := range f.headroom.Parts(i) {
		fn(int(p.Row), p.Share)
	}
	fn(len(f.left)-1, 1)
}

// run fills until all claims are frozen.
func (f *filling) run() {
	for f.active > 0 {
		before := f.active
		for again := true; again; {
			again = false
			for k := range f.groups {
				again = f.groups[k].started && f.begin(k) || again
			}
		}
		f.speeds()
		dt, group, v := f.next()
		if !math.IsInf(dt, 0) {
			f.advance(dt, group, v)
		} else if f.active == before {
			return // no claim rises: the weights exceed the range of floats
		}
	}
}

// begin starts the members of group k that are due to rise. If none rises, the level skips to the
// next start, which uses nothing. It reports whether any began, or ended at once.
func (f *filling) begin(k int) (some bool) {
	g := &f.groups[k]
	for ; len(g.starts) > 0; g.starts = g.starts[1:] {
		e := g.starts[0]
		if e.v > g.level && g.pull.n > 0 {
			return some
		}
		some = true
		switch {
		case e.claim >= 0 && f.full(e.claim):
			f.freeze(e.claim)
		case e.claim >= 0:
			g.level = math.Max(g.level, e.v)
			f.rise(e.claim)
		case f.groups[e.group].active > 0:
			g.level = math.Max(g.level, e.v)
			f.groups[e.group].started = true
			g.pull.add(f.groups[e.group].weight)
		}
	}
	return some
}

// full reports whether a claim has all it may have, or a row that it uses is full.
func (f *filling) full(i int) bool {
	full := f.claims[i].hi <= f.claims[i].lo
	f.each(i, func(r int, _ float64) { full = full || f.left[r] <= 0 })
	return full
}

// rise begins to raise a claim.
func (f *filling) rise(i int) {
	c := &f.claims[i]
	g := &f.groups[c.group]
	c.state = rising
	g.pull.add(c.weight)
	f.each(i, func(r int, share float64) { g.draw[r].add(c.weight * share) })
}

// freeze stops a claim at its present amount, and its group with it if it was the last.
func (f *filling) freeze(i int) {
	c := &f.claims[i]
	g := &f.groups[c.group]
	rose := c.state == rising
	if rose {
		c.amount = math.Min(math.Max(c.weight*g.level, c.lo), c.hi)
	}
	c.state = frozen
	f.active--
	if rose {
		f.each(i, func(r int, share float64) {
			if g.draw[r].drop(c.weight * share) {
				f.sumDraw(c.group, r)
			}
		})
		f.leave(c.group, c.weight)
	}
	for at := c.group; at >= 0; at = f.groups[at].parent {
		if f.groups[at].active--; f.groups[at].active == 0 && f.groups[at].started && f.groups[at].parent >= 0 {
			f.leave(f.groups[at].parent, f.groups[at].weight)
		}
	}
}

// leave subtracts the weight of a member from that of its group.
func (f *filling) leave(k int, weight float64) {
	g := &f.groups[k]
	if !g.pull.drop(weight) {
		return
	}
	g.pull = sum{}
	for _, i := range g.claims {
		if f.claims[i].state == rising {
			g.pull.add(f.claims[i].weight)
		}
	}
	for m := range f.groups {
		if f.groups[m].parent == k && f.groups[m].started && f.groups[m].active > 0 {
			g.pull.add(f.groups[m].weight)
		}
	}
}

// sumDraw sums the use of row r by group k.
func (f *filling) sumDraw(k, r int) {
	s := sum{}
	for _, i := range f.on[r] {
		if c := &f.claims[i]; c.state == rising && c.group == k {
			f.each(i, func(at int, share float64) {
				if at == r {
					s.add(c.weight * share)
				}
			})
		}
	}
	f.groups[k].draw[r] = s
}

// speeds divides the speed of each group among its members that rise, and sums their use of rows.
func (f *filling) speeds() {
	clear(f.drawn)
	for k := range f.groups {
		g := &f.groups[k]
		if g.speed = 0; g.pull.n == 0 || !g.started {
			continue
		}
		if g.speed = 1; g.parent >= 0 {
			g.speed = f.groups[g.parent].speed * g.weight / g.pull.value
		}
		for r := range g.draw {
			f.drawn[r] += g.speed * g.draw[r].value
		}
	}
}

// next returns the time to the next event, and the group and level where it
// happens; group -1: a row is full.
func (f *filling) next() (dt float64, group int, v float64) {
	dt, group = math.Inf(1), -1
	for r, drawn := range f.drawn {
		if drawn > 0 {
			dt = math.Min(dt, math.Max(f.left[r], 0)/drawn)
		}
	}
	for k := range f.groups {
		g := &f.groups[k]
		if g.speed == 0 {
			continue
		}
		for len(g.ends) > 0 && f.claims[g.ends[0].claim].state == frozen {
			g.ends = g.ends[1:]
		}
		for _, events := range [][]event{g.starts, g.ends} {
			if len(events) == 0 {
				continue
			}
			if t := math.Max(events[0].v-g.level, 0) / g.speed; t < dt {
				dt, group, v = t, k, events[0].v
			}
		}
	}
	return dt, group, v
}

// advance advances time by dt.
func (f *filling) advance(dt float64, group int, v float64) {
	for k := range f.groups {
		f.groups[k].level += f.groups[k].speed * dt
	}
	if group >= 0 {
		f.groups[group].level = v
	}
	for r, drawn := range f.drawn {
		if drawn <= 0 {
			continue
		}
		if f.left[r] -= drawn * dt; group < 0 && f.left[r] <= drawn*dt*1e-12 || f.left[r] <= 0 {
			f.left[r] = 0
			f.freezeRow(r)
		}
	}
	for k := range f.groups {
		g := &f.groups[k]
		for len(g.ends) > 0 && (g.ends[0].v <= g.level || f.claims[g.ends[0].claim].state == frozen) {
			if i := g.ends[0].claim; f.claims[i].state == rising {
				f.freeze(i)
			} else if f.claims[i].state == waiting {
				break // it also starts at this level
			}
			g.ends = g.ends[1:]
		}
	}
}

// freezeRow freezes all rising claims that use a row.
func (f *filling) freezeRow(r int) {
	for _, i := range f.on[r] {
		if f.claims[i].state == rising {
			f.freeze(i)
		}
	}
}
