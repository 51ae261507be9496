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
	since := d.Now.Sub(d.state.ChoseAt)
	stuck := slices.IndexFunc(d.Members, func(m Member) bool {
		return m.Turn.Rank > 0 && since >= time.Duration(m.Turn.Rank)*proves && m.Turn.Served.Before(d.state.ChoseAt)
	})
	switch {
	case slices.ContainsFunc(d.Members, func(m Member) bool { return m.Turn.Slice == 0 }):
		d.state.Capping = false
		d.elect()
	case stuck >= 0 && !d.state.Capping:
		// It serves nobody in time, though it is its turn: others use the limit of all up on
		// CPUs on which it does not work.
		d.state.Capping = true
		d.elect()
	case stuck >= 0 && d.Members[stuck].Turn.Rank == 1:
		d.Members[stuck].Turn.Barred = d.Now.Add(barred)
		d.elect()
	case since >= dwell:
		d.elect()
	case d.state.Capping && d.loosens():
		d.divide()
	}
}

// elect has the objective decide who is served, in which turn, and divides the pool.
func (d *decision) elect() {
	d.state.ChoseAt = d.Now
	prob := &policy.Problem{Units: d.Units, Unit: d.Unit, Groups: d.Groups, Stop: d.Stop}
	for i := range d.Members {
		m := &d.Members[i]
		w, of := m.Workload, full
		if m.Turn.Rank > 0 {
			of = fuller
		}
		size := m.wants(d.Unit) / of
		w.Curve = step(size*d.Unit, m.SLO, m.Curve)
		w.Demand = int(math.Ceil(size))
		if w.Max = max(min(d.Units, w.Demand), w.Min); d.Now.Before(m.Turn.Barred) {
			w.Max = w.Min
		}
		if w.Current = w.Min; m.Turn.Rank > 0 {
			w.Current = w.Max // of equal answers that which moves least
		}
		prob.Workloads = append(prob.Workloads, w)
	}
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
	d.divide()
}

// step is a curve that reaches the SLO at a size, and nothing below.
func step(size, slo float64, like *trimtab.Curve) *trimtab.Curve {
	c := &trimtab.Curve{Level: like.Level, Load: like.Load}
	for _, k := range []struct{ at, performance float64 }{{0.999 * size, 0}, {size, slo}} {
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

// loosens reports whether those who are served leave much more than the others are capped at.
func (d *decision) loosens() bool {
	has := 0.0
	for i := range d.Members {
		if t := &d.Members[i].Turn; t.Rank == 0 {
			has += float64(t.Slice)
		}
	}
	leaves, others := d.leaves()
	return others > 0 && leaves > 1.3*has+0.05*float64(d.Units)
}

// divide gives each its share: those who are served by turns, the others a crumb, or, where
// shares are capped, what is left. Shares that hardly change stay.
func (d *decision) divide() {
	left, others := 0.0, 0
	if d.state.Capping {
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
		share[i] = max(m.Min, 1, int(math.Max(crumb*m.Entitled, m.Guaranteed)/d.Unit))
		switch {
		case len(served) == 0: // nobody can be: all are as if there were nothing to decide
			share[i] = min(max(int(m.Entitled/d.Unit), m.Min, 1), m.Max)
		case m.Turn.Rank == 0 && others > 0:
			share[i] = min(max(share[i], int(left/float64(others))), m.Max)
		}
		rest -= share[i]
		m.Turn.Capped = d.state.Capping && m.Turn.Rank == 0 && len(served) > 0
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

// differs reports whether a share differs by more than it is worth to stay.
func (d *decision) differs(share []int) bool {
	for i, to := range share {
		m := &d.Members[i]
		if math.Abs(float64(to-m.Turn.Slice)) > math.Max(0.25*float64(m.Turn.Slice), 0.1*m.Entitled/d.Unit) {
			return true
		}
	}
	return false
}
