package overload

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/policy"
)

// choose has the objective decide again where that is due, and gives each member its share.
func (d *decision) choose() {
	stuck := d.stuck()
	switch {
	case slices.ContainsFunc(d.Members, func(m Member) bool { return m.Turn.Slice == 0 }):
		d.state.Capping = d.far()
		d.elect()
	case !d.state.Capping && d.disturbed():
		// Others use the limit of all up on CPUs on which those who are served do not work.
		d.state.Capping = true
		d.divide()
	case stuck != nil:
		d.bar(stuck)
		d.elect()
	case d.Now.Sub(d.state.ChoseAt) >= Dwell && d.Now.Sub(d.state.AskedAt) >= Dwell, d.proven():
		d.elect()
	case d.state.Capping && d.recaps():
		d.divide()
	}
}

// far reports whether much more is wanted than the pool has: what those leave who are chosen
// serves nobody else, and no trial is needed for that.
func (d *decision) far() bool {
	wants := 0.0
	for i := range d.Members {
		wants += d.Members[i].wants(d.Unit)
	}
	return wants > far*float64(d.Units)
}

// late reports whether one that is served missed its SLO in more than so many reports in a row.
func (d *decision) late(reports int) bool {
	return slices.ContainsFunc(d.Members, func(m Member) bool { return m.Turn.Rank > 0 && m.Missed > reports && !d.free(&m) })
}

// proven reports whether one that is served came to be in time since the objective was asked,
// while another is not yet: what the first leaves for that one is known better now.
func (d *decision) proven() bool {
	news, waits := false, false
	for i := range d.Members {
		if t := &d.Members[i].Turn; t.Rank > 0 {
			known := t.InTime.Add(settles)
			waits = waits || t.InTime.IsZero()
			news = news || !t.InTime.IsZero() && !d.Now.Before(known) && d.state.AskedAt.Before(known)
		}
	}
	return news && waits
}

// disturbed reports whether one that is served missed its SLO since it was chosen, though others
// are behind it.
func (d *decision) disturbed() bool {
	return slices.ContainsFunc(d.Members, func(m Member) bool {
		last := !slices.ContainsFunc(d.Members, func(o Member) bool { return o.Turn.Rank == 0 || o.Turn.Rank > m.Turn.Rank })
		return m.Turn.Rank > 0 && !last && m.missed() > 1 && !d.free(&m) && d.Now.Sub(d.state.ChoseAt) >= max(fails, m.Window)
	})
}

// free reports whether a member had no queue a short time ago: a report that misses its SLO, as
// those before that time did, still tells of an older queue.
func (d *decision) free(m *Member) bool {
	return d.Now.Sub(m.Turn.FreeAt) <= m.Window && !m.Turn.LateSince.After(m.Turn.FreeAt)
}

// missed is how many reports in a row, of those since the choice, missed its SLO.
func (m *Member) missed() int { return min(m.Missed, m.Turn.Reports) }

// since is for how long the reports of a member are of the time after the choice alone.
func (d *decision) since(m *Member) time.Duration { return d.Now.Sub(d.state.ChoseAt) - m.Window }

// stuck is the last in turn of those that cannot be served though they had the time to show that
// they can, or that are late themselves while the first cannot be: what they use is taken from
// it. nil: there is none.
func (d *decision) stuck() (out *Member) {
	first := slices.IndexFunc(d.Members, func(m Member) bool { return m.Turn.Rank == 1 })
	for i := range d.Members {
		m := &d.Members[i]
		unserved := d.since(m) >= time.Duration(m.Turn.Rank)*proves && !d.works(m)
		harms := first >= 0 && m.Turn.Rank > 1 && d.since(m) >= proves && d.Now.Sub(m.Turn.Served) >= proves && d.Members[first].missed() > 3
		if m.Turn.Rank > 0 && (unserved || harms) && (out == nil || m.Turn.Rank > out.Turn.Rank) {
			out = m
		}
	}
	return out
}

// works reports whether a member was in time since the last choice, and not too long ago.
func (d *decision) works(m *Member) bool {
	return !m.Turn.Served.Before(d.state.ChoseAt) && d.Now.Sub(m.Turn.Served) < time.Duration(max(m.Turn.Rank, 1))*proves
}

// bar keeps one that could not be served from being chosen again for some time, and, where it
// was not alone, all who want as much: what was left for it is not enough for them either.
func (d *decision) bar(out *Member) {
	out.Turn.Barred = d.Now.Add(Barred)
	for i := range d.Members {
		if m := &d.Members[i]; out.Turn.Rank > 1 && m.Turn.Rank == 0 && m.wants(d.Unit) > similar*out.wants(d.Unit) {
			m.Turn.Barred = d.Now.Add(Barred)
		}
	}
}

// elect has the objective decide who is served, in which turn, and divides the pool.
func (d *decision) elect() {
	prob := &policy.Problem{Units: d.Units, Unit: d.Unit, Groups: d.Groups, Stop: d.Stop}
	slack := 0.0 // what those who are in time may want more while nobody joins them
	for i := range d.Members {
		if m := &d.Members[i]; d.stands(m) == 2 {
			slack += m.wants(d.Unit) * (1/full - 1/fuller)
		}
	}
	for i := range d.Members {
		m := &d.Members[i]
		w, size := m.Workload, m.wants(d.Unit)/fuller
		if d.stands(m) < 2 {
			size = m.wants(d.Unit)/full + slack
		}
		w.Demand = int(math.Ceil(size))
		w.Curve = step(w.Demand, d.Unit, m.SLO*(1-breaks*float64(d.before(m))), m.Curve)
		if w.Max = max(min(d.Units, w.Demand), w.Min); d.Now.Before(m.Turn.Barred) {
			w.Max = w.Min
		}
		if w.Current = w.Min; m.Turn.Rank > 0 {
			w.Current = w.Max // of equal answers that which moves least
		}
		prob.Workloads = append(prob.Workloads, w)
	}
	d.state.AskedAt = d.Now
	before := d.ranks()
	answer, err := d.Policy.Solve(prob)
	var served []*Member
	for i := range d.Members {
		m := &d.Members[i]
		if err == nil && answer.Units[i] >= prob.Workloads[i].Demand && !d.Now.Before(m.Turn.Barred) {
			served = append(served, m)
			continue
		}
		m.Turn.Rank, m.Turn.Held = 0, math.Max(m.Turn.Wants, m.Turn.Held)
	}
	// Those who were served keep their turn; of the others it is the shorter queue's.
	slices.SortStableFunc(served, func(a, b *Member) int {
		rank := func(m *Member) int { return cmp.Or(m.Turn.Rank, len(d.Members)+1) }
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Waiting, b.Waiting), cmp.Compare(a.Name, b.Name))
	})
	for i, m := range served {
		m.Turn.Rank = i + 1
	}
	if !slices.Equal(before, d.ranks()) || d.state.ChoseAt.IsZero() {
		d.state.ChoseAt = d.Now
		for i := range d.Members {
			d.Members[i].Turn.Reports = 0
		}
	}
	d.divide()
}

// ranks are the turns of the members.
func (d *decision) ranks() (all []int) {
	for i := range d.Members {
		all = append(all, d.Members[i].Turn.Rank)
	}
	return all
}

// breaks is the part of its SLO that each member has less before whom another is served of
// equally many: enough to break ties.
const breaks = 0.01

// before is how many members are served rather than m where not all can be: those who are
// already and in time, then the others who are, then those who want clearly less, then those
// whose requests are short, which wait least for others.
func (d *decision) before(m *Member) (n int) {
	for i := range d.Members {
		o := &d.Members[i]
		is, was, wants, than := d.stands(o), d.stands(m), o.wants(d.Unit), m.wants(d.Unit)
		if is > was || is == was && (wants < similar*than || similar*wants <= than && o.Cost < m.Cost) {
			n++
		}
	}
	return n
}

// stands is 2 for who is served and in time, 1 for who is served, 0 for the others.
func (d *decision) stands(m *Member) int {
	switch {
	case m.Turn.Rank == 0:
		return 0
	case !d.works(m):
		return 1
	}
	return 2
}

// step is a curve that reaches the SLO at a size in units, and nothing with a unit less.
func step(size int, unit, slo float64, like *trimtab.Curve) *trimtab.Curve {
	c := &trimtab.Curve{Level: like.Level, Load: like.Load}
	for _, k := range []struct{ at, performance float64 }{{float64(size-1) * unit, 0}, {float64(size) * unit, slo}} {
		c.Knots = append(c.Knots, trimtab.Knot{Allocation: k.at, Band: trimtab.Band{Lower: k.performance, Mean: k.performance, Upper: k.performance}})
	}
	return c
}

// leaves is what those who are served leave, in units, by their latest reports, with a margin,
// and how many are not served.
func (d *decision) leaves() (units float64, others int) {
	units = float64(d.Units)
	for i := range d.Members {
		if t := &d.Members[i].Turn; t.Rank == 0 {
			others++
		} else {
			units -= math.Max(t.now+t.late, t.Wants) * spares / d.Unit
		}
	}
	return math.Max(units, 0), others
}

// recaps reports whether those who are served leave much more than the others are capped at, or
// are late while the others have more than a crumb.
func (d *decision) recaps() bool {
	has := 0.0
	for i := range d.Members {
		if t := &d.Members[i].Turn; t.Rank == 0 {
			has += float64(t.Slice)
		}
	}
	little := 0.05 * float64(d.Units)
	for i := range d.Members {
		if m := &d.Members[i]; m.Turn.Rank > 0 && m.Turn.Capped != d.waits(m) {
			return true
		}
	}
	if d.late(1) {
		return has > little
	}
	leaves, others := d.leaves()
	return others > 0 && leaves > 1.3*has+little
}

// waits reports whether the share of one that is served is a limit, too, where shares are capped:
// until all before it have been in time.
func (d *decision) waits(m *Member) bool {
	return slices.ContainsFunc(d.Members, func(o Member) bool {
		return o.Turn.Rank > 0 && o.Turn.Rank < m.Turn.Rank && !d.works(&o)
	})
}

// divide gives each its share: those who are served by turns, the others a crumb, or, where
// shares are capped and nobody who is served is late, what is left. Shares that hardly change stay.
func (d *decision) divide() {
	left, others := 0.0, 0
	if d.state.Capping && !d.late(0) {
		left, others = d.leaves()
	}
	var served []int
	for i := range d.Members {
		if d.Members[i].Turn.Rank > 0 {
			served = append(served, i)
		}
	}
	slices.SortFunc(served, func(a, b int) int { return cmp.Compare(d.Members[a].Turn.Rank, d.Members[b].Turn.Rank) })
	share, rest := make([]int, len(d.Members)), d.Units
	for i := range d.Members {
		m := &d.Members[i]
		share[i] = max(m.Min, 1, int(math.Max(Crumb*m.Entitled, m.Guaranteed)/d.Unit))
		switch {
		case len(served) == 0: // nobody can be: all are as if there were nothing to decide
			share[i] = min(max(int(m.Entitled/d.Unit), m.Min, 1), m.Max)
		case m.Turn.Rank == 0 && others > 0:
			share[i] = min(max(share[i], int(left/float64(others))), m.Max)
		}
		rest -= share[i]
		m.Turn.Capped = d.state.Capping && len(served) > 0 && (m.Turn.Rank == 0 || d.waits(m))
	}
	n := min(turns, len(served))
	for k := range n {
		part := served[k*len(served)/n : (k+1)*len(served)/n]
		has, wants := first*float64(rest), 0.0
		if k == n-1 {
			has = float64(rest)
		}
		for _, i := range part {
			wants += d.Members[i].wants(d.Unit)
		}
		for _, i := range part {
			m := &d.Members[i]
			if m.Turn.Capped {
				continue
			}
			more := max(min(int(math.Max(has, 0)*m.wants(d.Unit)/wants), m.Max-share[i]), 0)
			share[i] += more
			rest -= more
		}
	}
	if d.differs(share) {
		for i := range d.Members {
			d.Members[i].Turn.Slice = share[i]
		}
	}
}

// differs reports whether one has no share yet, or its share differs by more than it is worth to
// stay.
func (d *decision) differs(share []int) bool {
	for i, to := range share {
		m := &d.Members[i]
		if m.Turn.Slice == 0 || math.Abs(float64(to-m.Turn.Slice)) > math.Max(0.25*float64(m.Turn.Slice), 0.1*m.Entitled/d.Unit) {
			return true
		}
	}
	return false
}
