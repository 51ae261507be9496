package welfare

import (
	"math"
	"slices"
)

// core solves max Σ worth_j(k_j), Σ k_j <= left, exactly.
type core struct {
	*solver
	cost    int64
	choices [][]choice
	// at is the best choice of each workload at the present price.
	at    []int
	price float64
	// top[i] has the units and the worth that the choices in at give workloads i and later together.
	top []answer
	// best is the best answer so far; short is how far it is below the bound.
	best  []int
	short float64
	// steps counts the inner steps of the dynamic programme; effort is their largest number.
	steps, effort int
	// sampled says that only some of the choices were evaluated: see [thin].
	sampled bool
	// rounding is the largest floating-point error of a shortfall, in steps.
	rounding float64
	// spare are buffers that layers no longer need.
	spare [][]int64
}

// answer is the joint result of some workloads.
type answer struct {
	worth int64
	units int
}

// patience is the number of inner steps of the dynamic programme after which an answer proven to
// be within the worth of one move (1e-9 in the sum of all utilities) is good enough. It matters
// when a thousand curves are the same line, so that only rounding distinguishes them.
const patience = 3_000_000

// effort is the most inner steps of the dynamic programme: some 50 ms. It is a count, not a time,
// so that the answer does not depend on the machine.
const effort = 40_000_000

// enumerable is the number of allocations, of all workloads together, up to which each is
// evaluated. Beyond it the choices are sampled.
const enumerable = 4_000_000

func newCore(s *solver, cost int64) *core {
	n := len(s.known)
	c := &core{solver: s, cost: cost, choices: make([][]choice, n), at: make([]int, n), effort: effort}
	if s.headroom.Hosts() {
		return c
	}
	most, all := s.reach()
	if c.sampled = all > enumerable; c.sampled {
		return c
	}
	var scratch []choice
	for i, j := range s.known {
		scratch = choicesOf(scratch, s, j, most[i], cost)
		c.choices[i] = slices.Clone(scratch)
	}
	return c
}

// reach returns the largest allocation of each known workload while the others have their minimums,
// and the sum of the numbers of these allocations, without those beyond the end of a curve.
func (s *solver) reach() (most []int, all int) {
	least := 0
	for _, j := range s.known {
		least += s.problem.Workloads[j].Min
	}
	most = make([]int, len(s.known))
	for i, j := range s.known {
		w, end := &s.problem.Workloads[j], s.of[j].at
		most[i] = min(s.left-least+w.Min, w.Max)
		all += min(most[i], int(math.Min(end[len(end)-1]+1, math.MaxInt32))) - min(w.Min, most[i]) + 1
	}
	return most, all
}

// solve returns the choice of each known workload, and how far the answer may be below the
// optimum, in steps: 0 if it is proven.
func (c *core) solve() (picked []choice, short float64) {
	if c.headroom.Hosts() {
		return newMarket(c).trade()
	}
	if c.sampled {
		short = c.thin()
	} else if !c.relax() && !c.search() {
		short = math.Max(0, math.Floor(c.short+c.rounding)) // of whole steps
	}
	picked = make([]choice, len(c.best))
	for i, k := range c.best {
		picked[i] = c.choices[i][k]
	}
	return picked, short
}

// search widens the allowance until an answer lies within it, and reports whether it finished.
// Worths are whole steps, so any answer is a whole number of steps closer to the bound than the
// best so far.
func (c *core) search() bool {
	for allowance := c.short / 64; !c.stopped(); allowance *= 8 {
		whole := math.Floor(math.Max(0, c.short-allowance))
		proven, ended := c.within(c.short - whole)
		if proven || !ended || whole == 0 {
			return ended
		}
	}
	return false
}

// relax finds the price and a first answer; it reports whether the capacity
// does not bind, so that the answer is the optimum.
func (c *core) relax() bool {
	left := c.left
	for i := range c.choices {
		left -= int(c.choices[i][0].units)
	}
	c.best = make([]int, len(c.choices))
	blocked := make([]bool, len(c.choices))
	priced := false
	for _, s := range c.segments() {
		if blocked[s.workload] {
			continue
		}
		if s.units <= left {
			left -= s.units
			c.best[s.workload] = s.to
			if !priced {
				c.at[s.workload] = s.to
			}
			continue
		}
		blocked[s.workload] = true
		if !priced {
			priced, c.price = true, s.slope
		}
	}
	c.top = make([]answer, len(c.choices)+1)
	for i := len(c.choices) - 1; i >= 0; i-- {
		k := c.choices[i][c.at[i]]
		c.top[i] = answer{c.top[i+1].worth + k.worth, c.top[i+1].units + int(k.units)}
	}
	c.fill(left)
	c.short = c.shortfall(c.best)
	c.rounding = c.price * float64(c.left) * 0x1p-50
	return !priced
}

// fill spends the units that the first answer leaves on the best single change, until none fits or
// a limit of tries is reached.
func (c *core) fill(left int) {
	for range min(len(c.choices), 64) {
		gain, who, to := int64(0), -1, 0
		for i, k := range c.best {
			now := c.choices[i][k]
			next, _ := slices.BinarySearchFunc(c.choices[i], int(now.units)+left+1, func(x choice, units int) int { return int(x.units) - units })
			if g := c.choices[i][next-1].worth - now.worth; g > gain {
				gain, who, to = g, i, next-1
			}
		}
		if who < 0 {
			return
		}
		left -= int(c.choices[who][to].units - c.choices[who][c.best[who]].units)
		c.best[who] = to
	}
}

// shortfall returns how far an answer is below the bound, in steps.
func (c *core) shortfall(picked []int) float64 {
	units, worth := 0, int64(0)
	for i, k := range picked {
		units += int(c.choices[i][k].units)
		worth += c.choices[i][k].worth
	}
	return c.lost(0, worth, units) + c.price*float64(c.left-units)
}

// lost returns how far workloads i.. are below their best at the price, in steps. It subtracts
// before it rounds: when thousands of answers differ by less than rounding, the bound could
// otherwise not tell them apart.
func (c *core) lost(i int, worth int64, units int) float64 {
	return float64(c.top[i].worth-worth) - c.price*float64(c.top[i].units-units)
}

// layer has the best worth of workloads i and later for each sum of units from lo on, and the
// choice of workload i with which it is reached.
type layer struct {
	lo    int
	worth []int64
	by    []int32
}

// none marks a sum that cannot be reached or exceeds the allowance. Adding any workload keeps it
// below half of none.
const none = math.MinInt64 / 2

// within searches all answers that are at most allowance below the bound. proven says that there is
// one, which is the optimum and in c.best; ended says that the search finished.
func (c *core) within(allowance float64) (proven, ended bool) {
	n := len(c.choices)
	// Rounding may affect the answer, the bound to which it is compared, and the loss on the way to
	// it.
	limit := allowance + 3*c.rounding
	cores := make([][]int32, n)
	// The range of sums for workloads i and later: the units left, less the most and the least that
	// the workloads before i take.
	most, least := make([]int, n+1), make([]int, n+1)
	for i, cs := range c.choices {
		after := c.top[i+1]
		for k, x := range cs {
			if c.lost(i, after.worth+x.worth, after.units+int(x.units)) <= limit {
				cores[i] = append(cores[i], int32(k))
			}
		}
		ks := cores[i]
		most[i+1] = most[i] + int(cs[ks[len(ks)-1]].units)
		least[i+1] = least[i] + int(cs[ks[0]].units)
	}
	floor := 0
	if unused := limit / c.price; unused < float64(c.left) {
		floor = c.left - int(unused) - 1
	}
	layers := make([]layer, n+1)
	layers[n] = layer{0, []int64{0}, []int32{0}}
	for i := n - 1; i >= 0; i-- {
		if c.stopped() || c.enough(len(layers[i+1].worth)*len(cores[i])) {
			return false, false
		}
		l := c.extend(layers[i+1], i, cores[i], max(0, floor-most[i]), c.left-least[i])
		if !c.prune(&l, i, limit) {
			return false, true
		}
		c.spare = append(c.spare, layers[i+1].worth)
		layers[i], layers[i+1].worth = l, nil
	}
	return c.finish(layers, allowance), true
}

// enough reports whether the answer is good enough to save that many further steps, or they are too
// many.
func (c *core) enough(steps int) bool {
	return c.steps+steps > c.effort || c.steps+steps > patience && c.short < moveCost
}

// buffer returns a slice of n numbers that is not in use.
func (c *core) buffer(n int) []int64 {
	for i, b := range c.spare {
		if cap(b) >= n {
			c.spare = slices.Delete(c.spare, i, i+1)
			return b[:n]
		}
	}
	return make([]int64, n, 2*n)
}

// extend adds workload i to a layer, for sums in [from, to].
func (c *core) extend(after layer, i int, ks []int32, from, to int) layer {
	cs := c.choices[i]
	lo := max(from, after.lo+int(cs[ks[0]].units))
	hi := min(to, after.lo+len(after.worth)-1+int(cs[ks[len(ks)-1]].units))
	l := layer{lo: lo}
	if hi < lo {
		return l
	}
	l.worth, l.by = c.buffer(hi-lo+1), make([]int32, hi-lo+1)
	for w := range l.worth {
		l.worth[w] = none
	}
	for _, k := range ks { // ascending: ties go to the most units
		x := cs[k]
		shift := after.lo + int(x.units) - lo
		first, last := max(0, -shift), min(len(after.worth), len(l.worth)-shift)
		if first >= last {
			continue
		}
		c.steps += last - first
		from := after.worth[first:last]
		to, by := l.worth[first+shift:][:len(from)], l.by[first+shift:][:len(from)]
		for w, v := range from {
			if v += x.worth; v >= to[w] {
				to[w], by[w] = v, k
			}
		}
	}
	return l
}

// prune drops the sums that are further below the bound than limit, and reports whether any is
// left.
func (c *core) prune(l *layer, i int, limit float64) bool {
	first, last := -1, -1
	for w, v := range l.worth {
		if v < none/2 || c.lost(i, v, l.lo+w) > limit {
			l.worth[w] = none
			continue
		}
		if first < 0 {
			first = w
		}
		last = w
	}
	if first < 0 {
		return false
	}
	l.lo, l.worth, l.by = l.lo+first, l.worth[first:last+1], l.by[first:last+1]
	return true
}

// finish picks the best sum, the smallest among equals, and follows the choices that lead to it.
func (c *core) finish(layers []layer, allowance float64) (proven bool) {
	best, at := int64(none), 0
	for w, v := range layers[0].worth {
		if v > best {
			best, at = v, layers[0].lo+w
		}
	}
	picked := make([]int, len(c.choices))
	for i := range picked {
		picked[i] = int(layers[i].by[at-layers[i].lo])
		at -= int(c.choices[i][picked[i]].units)
	}
	short := c.shortfall(picked)
	proven = short <= allowance+c.rounding
	if proven || short < c.short {
		c.best, c.short = picked, short
	}
	return proven
}
