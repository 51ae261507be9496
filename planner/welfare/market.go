package welfare

import (
	"math"
)

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
	// paid has π for each known workload.
	paid []float64
	hull hulls
	// near is ε, which starts at widest.
	near float64
}

// widest and nearest are the largest and the smallest ε.
const widest, nearest = 1.0 / 32, 1.0 / 256

// hulls has the concave hulls of the worths of the choices, for all known workloads.
type hulls struct {
	// edges has the edges of workload i from first[i] on, the steepest first.
	edges []edge
	first []int
	// least is the smallest allocation on each hull, in units.
	least []float64
}

// supply is one row: its capacity, its price, and the workloads that use it.
type supply struct {
	has, price float64
	takes      []take
}

// take is the share of a row that one unit of a known workload uses.
type take struct {
	at    int
	share float64
}

// edge is one edge of a hull: units more are worth slope each, after before units. The demand for
// it is whole at prices up to low, none from high on, and between them falls by rate for each
// unit of price.
type edge struct{ slope, before, units, low, high, rate float64 }

// end returns where the edge ends, in units.
func (e *edge) end() float64 { return e.before + e.units }

func newMarket(c *core) *market {
	n := len(c.known)
	m := &market{core: c, all: make([]sampler, n), paid: make([]float64, n), hull: hulls{least: make([]float64, n)}, near: widest}
	room, pool := c.headroom.Clone(), supply{has: float64(c.headroom.Units)}
	for _, j := range c.known {
		room.Subtract(j, c.problem.Workloads[j].Min)
	}
	rows := make([]int, len(c.headroom.Left)) // the place of a row in m.rows, plus 1
	for i, j := range c.known {
		w := &c.problem.Workloads[j]
		m.all[i] = sampler{u: &c.of[j], current: w.Current, cost: c.cost}
		m.all[i].look(w.Min, min(w.Min+room.Most(j), w.Max))
		for _, p := range c.headroom.Parts(j) {
			if rows[p.Row] == 0 {
				m.rows = append(m.rows, supply{has: c.headroom.Left[p.Row]})
				rows[p.Row] = len(m.rows)
			}
			s := &m.rows[rows[p.Row]-1]
			s.takes = append(s.takes, take{i, p.Share})
		}
		pool.takes = append(pool.takes, take{i, 1})
	}
	m.rows = append(m.rows, pool)
	return m
}

// markets bounds how often the prices are computed again after more utilities were evaluated;
// sweeps, how often each row gets a price in one search. Small problems, in which single prices
// matter, may take more.
const markets, sweeps, mostSweeps, smallSweeps = 6, 40, 500, 100_000

// trade solves the problem and returns how far the answer may be below the optimum, in steps. It
// ends when that gap is small, or no longer shrinks by a tenth.
func (m *market) trade() (best []choice, short float64) {
	m.hulls()
	m.open()
	most := 0.0
	for i := range m.choices {
		most += float64(m.choices[i][len(m.choices[i])-1].worth)
	}
	m.bound(m.fine(most)) // to find the relevant choices
	m.search()
	if m.near = nearest; !m.stopped() {
		m.bound(m.fine(most) / 3)
	}
	bound, worth := math.Inf(1), math.Inf(-1)
	for range markets {
		settled := m.search()
		if picked, of := m.repair(); of > worth {
			best, worth = picked, of
		}
		before, fine := bound-worth, m.fine(worth)
		above, added := m.bound(fine / 3)
		bound = math.Min(bound, above)
		short = math.Max(0, bound-worth)
		if short <= fine*float64(len(m.all)) || settled && (!added || short > 0.9*before) || m.stopped() {
			break
		}
	}
	return best, short
}

// search lays out the hulls and sets the price of every row. It reports whether nearly all prices
// settled.
func (m *market) search() (settled bool) {
	m.hulls()
	takes := 0
	for _, s := range m.rows {
		takes += len(s.takes)
	}
	most := min(max(smallSweeps/max(takes, 1), sweeps), mostSweeps)
	for n := 0; n < most && !settled && !m.stopped(); n++ {
		settled = m.sweep()
	}
	return settled
}

// fine returns the gap, in steps for each workload, that is small enough for an answer of that
// worth.
func (m *market) fine(worth float64) float64 {
	if m.how.fine > 0 {
		return m.how.fine
	}
	return math.Max(certified*worth/float64(max(1, len(m.all))), 1)
}

// hulls builds the concave hulls of the evaluated choices.
func (m *market) hulls() {
	m.hull.edges, m.hull.first = m.hull.edges[:0], append(m.hull.first[:0], 0)
	var h []int
	for i := range m.all {
		cs := m.all[i].choices(m.choices[i])
		m.choices[i] = cs
		m.hull.least[i] = float64(cs[0].units)
		h = hull(h, cs)
		for n := 1; n < len(h); n++ {
			a, b := cs[h[n-1]], cs[h[n]]
			units := float64(b.units - a.units)
			slope := float64(b.worth-a.worth) / units
			m.hull.edges = append(m.hull.edges, edge{slope, float64(a.units), units, (1 - m.near) * slope, (1 + m.near) * slope, units / (2 * m.near * slope)})
		}
		m.hull.first = append(m.hull.first, len(m.hull.edges))
	}
}

// wanted returns how many units workload i demands at a price, how fast that falls with the
// price, and, if it is flat here, by how much the price must rise or drop before it changes.
func (m *market) wanted(i int, price float64) (units, falls, rise, drop float64) {
	units, rise, drop = m.hull.least[i], math.Inf(1), math.Inf(1)
	edges := m.hull.edges[m.hull.first[i]:m.hull.first[i+1]]
	for k := range edges {
		switch e := &edges[k]; {
		case price <= e.low:
			units, rise = e.end(), e.low-price
		case price < e.high:
			units += (e.high - price) * e.rate
			falls += e.rate
		default:
			return units, falls, rise, price - e.high
		}
	}
	return units, falls, rise, drop
}

// demand returns the demand for a row if its price rises by more.
func (m *market) demand(s *supply, more float64) (units, falls, rise, drop float64) {
	rise, drop = math.Inf(1), math.Inf(1)
	for _, t := range s.takes {
		u, f, r, d := m.wanted(t.at, m.paid[t.at]+t.share*more)
		units += t.share * u
		falls += t.share * t.share * f
		if r < rise*t.share {
			rise = r / t.share
		}
		if d < drop*t.share {
			drop = d / t.share
		}
	}
	return units, falls, rise, drop
}

// looks is the largest number of prices that are tried for a row in one sweep.
const looks = 10

// settle sets the price of row r at which demand equals capacity, or 0. It reports whether the
// price was right before. It tries a few prices, by Newton's method within their bounds, and
// takes the best.
func (m *market) settle(r int) (was bool) {
	s := &m.rows[r]
	more, lo, hi := 0.0, -s.price, math.Inf(1)
	best, by := 0.0, math.Inf(1)
	for step := range looks {
		units, falls, rise, drop := m.demand(s, more)
		over := units - s.has
		if over < 0 && more <= -s.price {
			over = 0
		}
		if math.Abs(over) < by {
			best, by = more, math.Abs(over)
		}
		if by <= math.Max(m.near/10, 1.5e-3)*math.Max(s.has, 1) {
			was = step == 0
			break
		}
		if over > 0 {
			lo = more
		} else {
			hi = more
		}
		next := more + over/falls
		switch {
		case falls > 0:
		case over > 0:
			next = more + rise*(1+m.near)
		default:
			next = more - drop*(1+m.near)
		}
		switch {
		case next > lo && next < hi:
		case over < 0 && lo == -s.price: // it may need no price
			next, lo = -s.price, math.Inf(-1)
		case math.IsInf(hi, 0):
			next = lo + s.price + 1
		default:
			next = math.Max(lo, -s.price)/2 + hi/2
		}
		more = next
	}
	if best != 0 {
		s.price = math.Max(0, s.price+best)
		for _, t := range s.takes {
			m.paid[t.at] = math.Max(0, m.paid[t.at]+t.share*best)
		}
	}
	return was
}

// sweep settles every row, the pool first, and reports whether nearly all were
// settled.
func (m *market) sweep() (settled bool) {
	changed := 0
	for r := len(m.rows) - 1; r >= 0; r-- {
		if !m.settle(r) {
			changed++
		}
	}
	return 20*changed <= len(m.rows)
}

// open gives all hosts one price, at which their total demand equals their total capacity; or the
// pool such a price, if that gives a tighter bound.
func (m *market) open() {
	pool := len(m.rows) - 1
	hosts, shares := supply{}, make([]float64, len(m.all))
	for r := range m.rows[:pool] {
		hosts.has += m.rows[r].has
		for _, t := range m.rows[r].takes {
			shares[t.at] += t.share
		}
	}
	for i, f := range shares {
		if f > 0 {
			hosts.takes = append(hosts.takes, take{i, f})
		}
	}
	m.rows = append(m.rows, hosts)
	price, byHosts := m.alone(pool + 1)
	m.rows = m.rows[:pool+1]
	for r := range m.rows[:pool] {
		m.rows[r].price = price
	}
	if price, byPool := m.alone(pool); byPool < byHosts {
		for r := range m.rows[:pool] {
			m.rows[r].price = 0
		}
		m.rows[pool].price = price
	}
	m.pay()
}

// alone computes the price of row r with all others at 0, and clears it again. It returns the
// price and the bound D of the hulls.
func (m *market) alone(r int) (price, above float64) {
	clear(m.paid)
	for range 8 {
		if m.settle(r) {
			break
		}
	}
	s := &m.rows[r]
	above = s.price * s.has
	for i := range m.all {
		above += float64(m.choices[i][0].worth) - m.hull.least[i]*m.paid[i]
		for _, e := range m.hull.edges[m.hull.first[i]:m.hull.first[i+1]] {
			above += math.Max(0, e.slope-m.paid[i]) * e.units
		}
	}
	price, s.price = s.price, 0
	return price, above
}

// bound returns D at the present prices over all allocations, and whether more utilities were
// evaluated for it.
func (m *market) bound(tolerance float64) (above float64, added bool) {
	m.pay()
	for _, s := range m.rows {
		above += s.price * (s.has + 1e-6) // the tolerance of rounding
	}
	for i := range m.all {
		best, more := m.all[i].refine(m.paid[i], tolerance)
		above += best
		added = added || more
	}
	n := float64(len(m.all) + len(m.rows))
	return above + n + 64 + math.Abs(above)*n*0x1p-52, added
}

// pay computes π again.
func (m *market) pay() {
	clear(m.paid)
	for _, s := range m.rows {
		for _, t := range s.takes {
			m.paid[t.at] += t.share * s.price
		}
	}
}
