package overload

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/policy"
)

// choose asks the objective again whom to serve where that is due, and sets the share of each
// member.
func (d *decision) choose() {
	stuck := d.stuck()
	switch {
	case slices.ContainsFunc(d.Members, func(m Member) bool { return m.State.Slice == 0 }):
		d.state.Capping = d.far()
		d.elect()
	case !d.state.Capping && d.disturbed():
		// Members that are not served use up the common limit, on CPUs on which the served members
		// do not run.
		d.state.Capping = true
		d.divide()
	case stuck != nil:
		d.bar(stuck)
		d.elect()
	case d.Now.Sub(d.state.ChoseAt) >= Dwell && d.Now.Sub(d.state.AskedAt) >= Dwell, d.learnedMore():
		d.elect()
	case d.state.Capping && d.recaps():
		d.divide()
	}
}

// far reports whether the members want much more than the pool has. What the served members leave
// is then too little to serve anybody else, and the others are capped at once, without trying
// weights alone first.
func (d *decision) far() bool {
	wants := 0.0
	for i := range d.Members {
		wants += d.Members[i].wants(d.Unit)
	}
	return wants > far*float64(d.Units)
}

// late reports whether a served member that may have a queue missed its SLO in more than the given
// number of reports in a row.
func (d *decision) late(reports int) bool {
	return slices.ContainsFunc(d.Members, func(m Member) bool { return m.State.Rank > 0 && m.Missed > reports && !d.free(&m) })
}

// learnedMore reports whether, since the objective was last asked, one served member came to meet its
// SLO while another does not yet. What the first leaves for the second is known better by then.
func (d *decision) learnedMore() bool {
	news, waits := false, false
	for i := range d.Members {
		if t := &d.Members[i].State; t.Rank > 0 {
			known := t.InTime.Add(settles)
			waits = waits || t.InTime.IsZero()
			news = news || !t.InTime.IsZero() && !d.Now.Before(known) && d.state.AskedAt.Before(known)
		}
	}
	return news && waits
}

// disturbed reports whether a served member still misses its SLO some time after the choice,
// although others come after it and should give way.
func (d *decision) disturbed() bool {
	return slices.ContainsFunc(d.Members, func(m Member) bool {
		last := !slices.ContainsFunc(d.Members, func(o Member) bool { return o.State.Rank == 0 || o.State.Rank > m.State.Rank })
		return m.State.Rank > 0 && !last && m.missed() > 1 && !d.free(&m) && d.Now.Sub(d.state.ChoseAt) >= max(fails, m.Window)
	})
}

// free reports whether a member had no queue a short time ago. A report that misses the SLO may
// still describe an older queue, if the reports before that time missed it as well.
func (d *decision) free(m *Member) bool {
	return d.Now.Sub(m.State.FreeAt) <= m.Window && !m.State.LateSince.After(m.State.FreeAt)
}

// missed returns how many of the latest reports, counting only those since the choice, missed the
// SLO in a row.
func (m *Member) missed() int { return min(m.Missed, m.State.Reports) }

// since returns for how long the reports of a member have covered only time after the last choice.
func (d *decision) since(m *Member) time.Duration { return d.Now.Sub(d.state.ChoseAt) - m.Window }

// stuck returns a member that is to be served no longer, or nil. A member is stuck if it was not served
// well enough (see works) in the time that it had for that, or if it is not served well enough while the
// first by rank misses its SLO, since it takes CPU from the first. Of several, stuck returns the last by
// rank.
func (d *decision) stuck() (out *Member) {
	first := slices.IndexFunc(d.Members, func(m Member) bool { return m.State.Rank == 1 })
	for i := range d.Members {
		m := &d.Members[i]
		unserved := d.since(m) >= time.Duration(m.State.Rank)*proves && !d.works(m)
		harms := first >= 0 && m.State.Rank > 1 && d.since(m) >= proves && d.Now.Sub(m.State.Served) >= proves && d.Members[first].missed() > 3
		if m.State.Rank > 0 && (unserved || harms) && (out == nil || m.State.Rank > out.State.Rank) {
			out = m
		}
	}
	return out
}

// works reports whether a member was served well enough (see WorkloadState.Served) since the last choice, and
// not too long ago.
func (d *decision) works(m *Member) bool {
	return !m.State.Served.Before(d.state.ChoseAt) && d.Now.Sub(m.State.Served) < time.Duration(max(m.State.Rank, 1))*proves
}

// bar keeps a member that could not be served from being chosen again for the time Exclusion. If it
// was not the first by rank, the same holds for unserved members that want about as much: what the
// others left for it is not enough for them either.
func (d *decision) bar(out *Member) {
	out.State.ExcludedUntil = d.Now.Add(Exclusion)
	for i := range d.Members {
		if m := &d.Members[i]; out.State.Rank > 1 && m.State.Rank == 0 && m.wants(d.Unit) > similar*out.wants(d.Unit) {
			m.State.ExcludedUntil = d.Now.Add(Exclusion)
		}
	}
}

// elect asks the objective whom to serve, orders the served members, and divides the pool.
func (d *decision) elect() {
	prob := &policy.Problem{Units: d.Units, Unit: d.Unit, Groups: d.Groups, Stop: d.Stop}
	// Members that are served well enough count with the size wants/fuller. Another one may only
	// join if these could have wants/full: slack is the difference, in units.
	slack := 0.0
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
		if w.Max = max(min(d.Units, w.Demand), w.Min); d.Now.Before(m.State.ExcludedUntil) {
			w.Max = w.Min
		}
		if w.Current = w.Min; m.State.Rank > 0 {
			w.Current = w.Max // of equally good answers, choose the one that changes least
		}
		prob.Workloads = append(prob.Workloads, w)
	}
	d.state.AskedAt = d.Now
	before := d.ranks()
	answer, err := d.Policy.Solve(prob)
	var served []*Member
	for i := range d.Members {
		m := &d.Members[i]
		if err == nil && answer.Units[i] >= prob.Workloads[i].Demand && !d.Now.Before(m.State.ExcludedUntil) {
			served = append(served, m)
			continue
		}
		m.State.Rank, m.State.Held = 0, math.Max(m.State.Wants, m.State.Held)
	}
	// Members that were served before keep their order; new ones follow, the shortest queue first.
	slices.SortStableFunc(served, func(a, b *Member) int {
		rank := func(m *Member) int { return cmp.Or(m.State.Rank, len(d.Members)+1) }
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Waiting, b.Waiting), cmp.Compare(a.Name, b.Name))
	})
	for i, m := range served {
		m.State.Rank = i + 1
	}
	if !slices.Equal(before, d.ranks()) || d.state.ChoseAt.IsZero() {
		d.state.ChoseAt = d.Now
		for i := range d.Members {
			d.Members[i].State.Reports = 0
		}
	}
	d.divide()
}

// ranks returns the members' ranks, in order of the members.
func (d *decision) ranks() (all []int) {
	for i := range d.Members {
		all = append(all, d.Members[i].State.Rank)
	}
	return all
}

// breaks is the fraction of its SLO that a member's curve loses for each member that is preferred
// to it: enough to break ties.
const breaks = 0.01

// before returns how many members are preferred to m if not all can be served. Members that are
// served well enough come first, then other served ones. Among equals, members that clearly want
// less come first, then those with cheaper requests.
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

// stands returns 2 for a member that is served well enough, 1 for another served member, else 0.
func (d *decision) stands(m *Member) int {
	switch {
	case m.State.Rank == 0:
		return 0
	case !d.works(m):
		return 1
	}
	return 2
}

// step returns a curve with the performance slo from size units on, and 0 with one unit less.
func step(size int, unit, slo float64, like *trimtab.Curve) *trimtab.Curve {
	c := &trimtab.Curve{Level: like.Level, Load: like.Load}
	for _, k := range []struct{ at, performance float64 }{{float64(size-1) * unit, 0}, {float64(size) * unit, slo}} {
		c.Knots = append(c.Knots, trimtab.Knot{Allocation: k.at, Band: trimtab.Band{Lower: k.performance, Mean: k.performance, Upper: k.performance}})
	}
	return c
}

// leaves returns how many units the served members leave, by their latest reports and with a
// margin, and how many members are not served.
func (d *decision) leaves() (units float64, others int) {
	units = float64(d.Units)
	for i := range d.Members {
		if t := &d.Members[i].State; t.Rank == 0 {
			others++
		} else {
			units -= math.Max(t.now+t.late, t.Wants) * spares / d.Unit
		}
	}
	return math.Max(units, 0), others
}

// recaps reports whether the caps are out of date: the served members leave much more than the
// others are capped at, a served member is capped or not against waits, or one is late while the
// others have more than 5% of the pool.
func (d *decision) recaps() bool {
	has := 0.0
	for i := range d.Members {
		if t := &d.Members[i].State; t.Rank == 0 {
			has += float64(t.Slice)
		}
	}
	little := 0.05 * float64(d.Units)
	for i := range d.Members {
		if m := &d.Members[i]; m.State.Rank > 0 && m.State.Capped != d.waits(m) {
			return true
		}
	}
	if d.late(1) {
		return has > little
	}
	leaves, others := d.leaves()
	return others > 0 && leaves > 1.3*has+little
}

// waits reports whether the share of a served member is also a limit while shares are capped: until
// all members before it are served well enough.
func (d *decision) waits(m *Member) bool {
	return slices.ContainsFunc(d.Members, func(o Member) bool {
		return o.State.Rank > 0 && o.State.Rank < m.State.Rank && !d.works(&o)
	})
}

// divide sets the share of each member. Served members get theirs by rank. The others get a crumb;
// if shares are capped and no served member is late, they get what the served ones leave. If all
// shares change only little, they stay as they are.
func (d *decision) divide() {
	left, others := 0.0, 0
	if d.state.Capping && !d.late(0) {
		left, others = d.leaves()
	}
	var served []int
	for i := range d.Members {
		if d.Members[i].State.Rank > 0 {
			served = append(served, i)
		}
	}
	slices.SortFunc(served, func(a, b int) int { return cmp.Compare(d.Members[a].State.Rank, d.Members[b].State.Rank) })
	share, rest := make([]int, len(d.Members)), d.Units
	for i := range d.Members {
		m := &d.Members[i]
		share[i] = d.least(m)
		switch {
		case len(served) == 0: // the pool can serve no member in full: all get their entitlements
			share[i] = min(max(int(m.Entitled/d.Unit), m.Min, 1), m.Max)
		case m.State.Rank == 0 && others > 0:
			share[i] = min(max(share[i], int(left/float64(others))), m.Max)
		}
		rest -= share[i]
		m.State.Capped = d.state.Capping && len(served) > 0 && (m.State.Rank == 0 || d.waits(m))
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
			if m.State.Capped {
				continue
			}
			more := max(min(int(math.Max(has, 0)*m.wants(d.Unit)/wants), m.Max-share[i]), 0)
			share[i] += more
			rest -= more
		}
	}
	if d.differs(share, 0.25, 0.1) {
		for i := range d.Members {
			d.Members[i].State.Slice = share[i]
		}
	}
}

// differs reports whether a member has no share yet, or one that differs from its new share by
// enough to be worth a change: by more than a part of it, and of its entitlement.
func (d *decision) differs(share []int, part, entitled float64) bool {
	for i, to := range share {
		m := &d.Members[i]
		if m.State.Slice == 0 || math.Abs(float64(to-m.State.Slice)) > math.Max(part*float64(m.State.Slice), entitled*m.Entitled/d.Unit) {
			return true
		}
	}
	return false
}
