package welfare

import "math"

// market is the search for prices of hosts. At prices λ_h >= 0 of a unit of each
// host and μ of one of the pool, a unit of workload j costs π_j = Σ_h f_jh λ_h + μ,
// and no answer is worth more than
//
//	D(λ, μ) = Σ_j max_k (g_j(k) − π_j k) + Σ_h λ_h C_h + μ R
//
// The prices are sought by coordinate ascent: one row after the other gets the
// price at which what is wanted of it is what there is. For that an edge of a
// workload's concave hull is wanted in part while the price is near its slope s:
//
//	1/2 + (s − π)/(2 ε s)   for |s − π| <= ε s,
//
// which makes what is wanted continuous, and costs at most ε/4 of the worth of the
// edges in doubt. The bound is that of the utilities themselves.
//
// Source: Everett (1963) for the bound; coordinate ascent on a smoothed dual as in
// Nesterov, "Smooth minimization of non-smooth functions" (2005).
type market struct {
	*core
	all  []sampler
	rows []supply // the hosts that may be full, then the pool
	// paid is π by known workload.
	paid []float64
	// edges are those of the hulls, steepest first, of workload i from first[i] on.
	edges []edge
	first []int
	// near is ε.
	near float64
}

// supply is one row: what there is of it, its price, and who takes of it.
type supply struct {
	has, price float64
	takes      []take
}

// take is how much of a row one unit of a known workload takes.
type take struct {
	at    int
	share float64
}

// edge is one edge of a hull: units more are worth slope each, after before units.
type edge struct{ slope, before, units float64 }

func newMarket(c *core) *market {
	n := len(c.known)
	m := &market{core: c, all: make([]sampler, n), rows: make([]supply, len(c.room.Left)+1), paid: make([]float64, n), near: 1.0 / 32}
	least := c.room.Clone()
	for _, j := range c.known {
		least.Take(j, c.problem.Workloads[j].Min)
	}
	for i, j := range c.known {
		w := &c.problem.Workloads[j]
		m.all[i] = sampler{u: &c.of[j], current: w.Current, cost: c.cost}
		m.all[i].look(w.Min, min(w.Min+least.Most(j), w.Max))
		for _, p := range c.room.Parts(j) {
			m.rows[p.Row].takes = append(m.rows[p.Row].takes, take{i, p.Share})
		}
		pool := &m.rows[len(m.rows)-1]
		pool.takes = append(pool.takes, take{i, 1})
	}
	for r, left := range c.room.Left {
		m.rows[r].has = left
	}
	m.rows[len(m.rows)-1].has = float64(c.room.Units)
	return m
}

// markets bounds how often prices are sought anew, after a look at more of the
// utilities, and sweeps how often each row gets a price in one search.
const markets, sweeps = 6, 60

// trade answers the problem and returns how far the answer may stay below the
// optimum, in steps.
func (m *market) trade() (best []choice, short float64) {
	bound, worth := math.Inf(1), math.Inf(-1)
	for round := range markets {
		m.hulls()
		if round == 0 {
			m.open()
		}
		for range sweeps {
			if m.sweep() || m.stopped() {
				break
			}
		}
		if picked, of := m.repair(); of > worth {
			best, worth = picked, of
		}
		fine := m.how.fine
		if fine == 0 {
			fine = certified * worth / float64(max(1, len(m.all)))
		}
		above, added := m.bound(math.Max(fine, 1) / 3)
		bound = math.Min(bound, above)
		if short = math.Max(0, bound-worth); short <= fine*float64(len(m.all)) || !added || m.stopped() {
			break
		}
		m.near /= 2
	}
	return best, short
}

// hulls lays the concave hulls of what was seen out anew.
func (m *market) hulls() {
	m.edges, m.first = m.edges[:0], append(m.first[:0], 0)
	var h []int
	for i := range m.all {
		cs := m.all[i].choices(m.choices[i])
		m.choices[i] = cs
		h = hull(h, cs)
		for n := 1; n < len(h); n++ {
			a, b := cs[h[n-1]], cs[h[n]]
			units := float64(b.units - a.units)
			m.edges = append(m.edges, edge{float64(b.worth-a.worth) / units, float64(a.units - cs[0].units), units})
		}
		m.first = append(m.first, len(m.edges))
	}
}

// wanted returns how many units workload i wants at a price, how fast that falls
// with the price, and by how much the price has to rise, or fall, before it
// changes where it does not fall here.
func (m *market) wanted(i int, price float64) (units, falls, rise, drop float64) {
	lo, end := m.first[i], m.first[i+1]
	units = float64(m.choices[i][0].units)
	rise, drop = math.Inf(1), math.Inf(1)
	full := price / (1 - m.near)
	for hi := end; lo < hi; { // the first that is not wanted in whole
		if k := int(uint(lo+hi) / 2); m.edges[k].slope >= full {
			lo = k + 1
		} else {
			hi = k
		}
	}
	if lo > m.first[i] {
		e := &m.edges[lo-1]
		units += e.before + e.units
		rise = e.slope*(1-m.near) - price
	}
	for ; lo < end; lo++ {
		e := &m.edges[lo]
		width := 2 * m.near * e.slope
		part := (e.slope*(1+m.near) - price) / width
		if part <= 0 {
			drop = -part * width
			break
		}
		units += part * e.units
		falls += e.units / width
	}
	return units, falls, rise, drop
}

// demand returns what is wanted of a row where its price is more by so much.
func (m *market) demand(s *supply, more float64) (units, falls, rise, drop float64) {
	rise, drop = math.Inf(1), math.Inf(1)
	for _, t := range s.takes {
		u, f, r, d := m.wanted(t.at, m.paid[t.at]+t.share*more)
		units += t.share * u
		falls += t.share * t.share * f
		rise, drop = math.Min(rise, r/t.share), math.Min(drop, d/t.share)
	}
	return units, falls, rise, drop
}

// settledPart is how near what is wanted of a row comes to what there is.
const settledPart = 1e-3

// settle gives row r the price at which what is wanted is what there is, or 0. It
// reports whether it had that.
func (m *market) settle(r int) (was bool) {
	s := &m.rows[r]
	close := settledPart * math.Max(s.has, 1)
	more, lo, hi := 0.0, -s.price, math.Inf(1)
	for step := range 12 {
		units, falls, rise, drop := m.demand(s, more)
		over := units - s.has
		if math.Abs(over) <= close || over < 0 && more <= -s.price {
			was = step == 0
			break
		}
		if over > 0 {
			lo = more
		} else {
			hi = more
		}
		next := more + over/falls
		if falls == 0 {
			if next = more + rise*(1+m.near); over < 0 {
				next = more - drop*(1+m.near)
			}
		}
		if next <= -s.price && more > -s.price {
			next, lo = -s.price, math.Inf(-1)
		}
		switch {
		case next > lo && next < hi:
		case math.IsInf(hi, 0):
			next = lo + s.price + 1
		default:
			next = lo + (hi-lo)/2
		}
		more = next
	}
	if more != 0 {
		s.price = math.Max(0, s.price+more)
		for _, t := range s.takes {
			m.paid[t.at] = math.Max(0, m.paid[t.at]+t.share*more)
		}
	}
	return was
}

// sweep settles every row, the pool first, and reports whether all were settled.
func (m *market) sweep() (settled bool) {
	settled = true
	for r := len(m.rows) - 1; r >= 0; r-- {
		settled = m.settle(r) && settled
	}
	return settled
}

// open gives all hosts one price, at which what is wanted of all of them together
// is what there is.
func (m *market) open() {
	has, shares := 0.0, make([]float64, len(m.all))
	for r := range m.rows[:len(m.rows)-1] {
		has += m.rows[r].has
		for _, t := range m.rows[r].takes {
			shares[t.at] += t.share
		}
	}
	all := supply{has: has}
	for i, f := range shares {
		if f > 0 {
			all.takes = append(all.takes, take{i, f})
		}
	}
	m.rows = append(m.rows, all)
	for range 8 {
		if m.settle(len(m.rows) - 1) {
			break
		}
	}
	price := m.rows[len(m.rows)-1].price
	m.rows = m.rows[:len(m.rows)-1]
	for r := range m.rows[:len(m.rows)-1] {
		m.rows[r].price = price
	}
}

// bound returns D at the present prices, over all allocations, and whether more of
// the utilities was looked at for it.
func (m *market) bound(tolerance float64) (above float64, added bool) {
	m.pay()
	for _, s := range m.rows {
		above += s.price * (s.has + 1e-6) // what rounding lets through
	}
	for i := range m.all {
		best, more := m.all[i].refine(m.paid[i], tolerance)
		above += best
		added = added || more
	}
	n := float64(len(m.all) + len(m.rows))
	return above + n + 64 + math.Abs(above)*n*0x1p-52, added
}

// pay sums up π afresh.
func (m *market) pay() {
	clear(m.paid)
	for _, s := range m.rows {
		for _, t := range s.takes {
			m.paid[t.at] += t.share * s.price
		}
	}
}
