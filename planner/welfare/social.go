package welfare

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/policy"
)

// Social maximises the mean utility, less the cost of moving.
type Social struct {
	// Optimism is the weight of the upper bound over the mean, in [0, 1].
	// Default 0.95; negative: 0, the mean alone.
	Optimism float64
	// Settled is the weight with much experience: the weight falls to it between 240 and 720
	// reports, and rises again when a learner forgets. Default 0.6, at most Optimism. The
	// configuration has no key for it: to change the decay, set the optimism, which is constant
	// if it is at most 0.6.
	Settled float64
	// MoveCost is the cost of moving as many units as there are, in mean utility, >= 0: one unit
	// costs MoveCost/Units of it. 0.05 is .001 of one utility a unit for 20 workloads on 1000
	// units. 2^-30 of one utility a unit is always added: ties go to fewest units moved, even if
	// a gain exactly equals the cost of its moves.
	MoveCost float64
	// LoadWeight is the weight of the load's upper bound over its mean in the
	// load that is planned for, in (0, 1]. Default 0.5.
	LoadWeight float64
}

// Traits has the mean utility of the known workloads as score.
func (s Social) Traits() policy.Traits {
	t := traitsOf(s.reading(), cautionOf(s.LoadWeight, 0.5), meanScorer)
	t.Sums = true
	return t
}

// Name returns "social".
func (Social) Name() string { return "social" }

func (s Social) reading() reading { return hopeful(s.Optimism, s.Settled) }

// hopeful returns the reading of the objectives in which optimism pays for exploration.
func hopeful(optimism, settled float64) reading {
	from := optimismOf(optimism, 0.95)
	how := settling(from, math.Min(from, optimismOf(settled, 0.6)))
	how.holds, how.of, how.limited = true, hope, true
	return how
}

// unitCost returns the cost of moving one unit in steps of 2^-40 of the sum of
// all utilities.
func unitCost(mean float64, p *policy.Problem) int64 {
	if !(mean > 0) || p.Units == 0 {
		return moveCost
	}
	unit := mean * float64(len(p.Workloads)) / float64(p.Units)
	return moveCost + int64(math.Min(unit, 1)*quantum)
}

// Solve returns an exact answer, see [policy.Policy], or one with its gap.
//
// For any price λ of a unit, Σ_j max_k (g_j(k) − λk) + λR bounds what can be reached; λ is taken
// where the concave hulls of the g_j meet the capacity, O(C log C) for C choices that no cheaper
// one dominates. A choice that is further below its workload's best at that price than the whole
// answer may be is in no optimum, so dynamic programming over the few that remain is exact: O(Σ_j
// choices_j · window), where the window is the units by which they can differ. The allowance
// starts small and is widened until an answer lies within it, which proves that answer. In the
// worst case, where every choice is worth its price, this is the full programme, O(n R max_j);
// after 4·10^7 steps of it the best answer so far is returned with its gap to the bound. Beyond
// 4·10^6 allocations in all, the choices are sampled, and the gap is that to a bound over all of
// them.
func (s Social) Solve(p *policy.Problem) (policy.Solution, error) {
	p, err := folded(p)
	if err != nil {
		return policy.Solution{}, err
	}
	how := s.reading()
	answer, short := solveSum(p, how, unitCost(s.MoveCost, p))
	answer.Value = meanScorer(p, how)(answer.Units)
	answer.Bound = answer.Value + short/quantum/float64(max(1, known(answer.Binding)))
	return answer, nil
}

// solveSum maximises the sum of the utilities under the reading how, less cost for each unit moved,
// and returns how far the answer may be below the optimum, in steps.
func solveSum(p *policy.Problem, how reading, cost int64) (policy.Solution, float64) {
	sv := newSolver(p, how)
	parts := sv.divide()
	room, short, left := sv.headroom.Clone(), 0.0, effort*min(len(parts), 8)
	for n, part := range parts {
		c := newCore(part, cost)
		c.effort = left / (len(parts) - n)
		picked, missed := c.solve()
		short += missed
		left -= c.steps
		sv.answer.Cut = sv.answer.Cut || part.answer.Cut
		for i, j := range part.known {
			k := int(picked[i].units)
			room.Subtract(j, k)
			sv.answer.Units[j] = k
			switch last := c.choices[i][len(c.choices[i])-1]; {
			case k == p.Workloads[j].Max:
				sv.answer.Binding[j] = trimtab.Binding{Kind: codes.BindingMax}
			case k >= int(last.units):
				sv.answer.Binding[j] = trimtab.Binding{Kind: codes.BindingDemand}
			}
		}
	}
	for _, j := range sv.known {
		if sv.answer.Binding[j].Kind == "" {
			sv.answer.Binding[j] = room.Binding(j, 1)
		}
	}
	return sv.answer, short
}

// known counts the workloads whose curve the policy knew.
func known(binding []trimtab.Binding) int {
	n := 0
	for _, b := range binding {
		if b.Kind != codes.BindingUnknown {
			n++
		}
	}
	return n
}

// meanScorer returns the mean of the known workloads' utilities under the reading how, as a
// multiple of 2^40 steps.
func meanScorer(p *policy.Problem, how reading) func(units []int) float64 {
	known, of := read(p, how)
	return func(units []int) float64 {
		sum := 0.0
		for _, j := range known {
			sum += float64(of[j].value(units[j])) / quantum
		}
		return sum / float64(max(1, len(known))) // 0: no workload has a known curve
	}
}

// choice is an allocation that may be in an optimum, with its worth.
type choice struct {
	worth int64 // g(k) = u(k) − fall(k) − cost·|k − current|, in steps
	units int32
}

// choicesOf lists the allocations of w up to most units that are worth more than every smaller
// one, reusing the memory of out. It skips plateaus without evaluating the utility.
func choicesOf(out []choice, s *solver, j, most int, cost int64) []choice {
	u, w := &s.of[j], &s.problem.Workloads[j]
	most = min(most, w.Max)
	out = out[:0]
	best := int64(math.MinInt64)
	add := func(k int, v int64) {
		if g := v - u.fall.at(k) - cost*int64(max(k-w.Current, w.Current-k)); g > best {
			best = g
			out = append(out, choice{g, int32(k)})
		}
	}
	k := w.Min
	add(k, u.steps(u.interpolate(float64(k))))
	// last is a knot's utility; a segment between equal ones is a plateau.
	last := int64(-1)
	for i := 0; i <= len(u.at) && k < most; i++ {
		end, flat, v := most, true, int64(0)
		if i < len(u.at) {
			end = int(math.Floor(math.Min(u.at[i], float64(most))))
			v = u.steps(u.top[i])
			flat = i == 0 || v == last
		} else {
			v = last
		}
		last = v
		for k < end {
			k++
			if !flat {
				v = u.steps(u.between(i, float64(k)))
			}
			add(k, v)
			if flat && k >= w.Current {
				k = end // more of a plateau is worth less
			}
		}
	}
	return out
}

// hull returns the indices of the choices on the upper concave hull. It uses the memory of h.
func hull(h []int, cs []choice) []int {
	h = h[:0]
	for i, c := range cs {
		for len(h) >= 2 {
			a, b := cs[h[len(h)-2]], cs[h[len(h)-1]]
			if steeper(b.worth-a.worth, b.units-a.units, c.worth-b.worth, c.units-b.units) {
				break
			}
			h = h[:len(h)-1]
		}
		h = append(h, i)
	}
	return h
}

// steeper reports whether v over units rises faster than v2 over units2; none
// is negative.
func steeper(v int64, units int32, v2 int64, units2 int32) bool {
	hi, lo := bits.Mul64(uint64(v), uint64(units2))
	hi2, lo2 := bits.Mul64(uint64(v2), uint64(units))
	return hi > hi2 || hi == hi2 && lo > lo2
}

// segment is one edge of a workload's hull.
type segment struct {
	slope    float64 // steps of utility per unit
	workload int
	to       int // index of the choice at its end
	units    int
}

// segments returns the edges of all hulls, steepest first.
func (c *core) segments() []segment {
	var out []segment
	var h []int
	for i, cs := range c.choices {
		h = hull(h, cs)
		for n := 1; n < len(h); n++ {
			a, b := cs[h[n-1]], cs[h[n]]
			units := int(b.units - a.units)
			out = append(out, segment{float64(b.worth-a.worth) / float64(units), i, h[n], units})
		}
	}
	slices.SortStableFunc(out, func(a, b segment) int { return cmp.Compare(b.slope, a.slope) })
	return out
}
