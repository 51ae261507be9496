package welfare

import (
	"cmp"
	"math"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner"
)

// Social maximises the mean utility, less MoveCost for every unit moved.
type Social struct {
	// Optimism is the weight of the upper bound over the mean, in [0, 1].
	// Default 1; negative: 0, the mean alone.
	Optimism float64
	// MoveCost is the utility that moving one unit must gain at least, summed
	// over the workloads, >= 0. Default, and least, 1e-9 (2^-30).
	MoveCost float64
}

// Name returns "social".
func (Social) Name() string { return "social" }

func (s Social) optimism() float64 {
	switch {
	case s.Optimism == 0:
		return 1
	case s.Optimism < 0:
		return 0
	}
	return min(s.Optimism, 1)
}

func (s Social) moveCost() int64 {
	return max(moveCost, int64(math.Min(s.MoveCost, 1)*quantum))
}

// Solve returns an exact answer, see [planner.Policy].
//
// For any price λ of a unit, Σ_j max_k (g_j(k) − λk) + λR bounds what can be
// reached; λ is taken where the concave hulls of the g_j meet the capacity,
// O(C log C) for C choices that no cheaper one dominates. A choice that stays
// further below its workload's best at that price than the whole answer may
// is in no optimum, so dynamic programming over the few that remain is exact:
// O(Σ_j choices_j · window), where the window is the units by which they can
// differ. The allowance starts small and is doubled until an answer lies
// within it, which proves that answer. In the worst case, where every choice
// is worth its price, this is the full programme, O(n R max_j).
func (s Social) Solve(p *planner.Problem) (planner.Solution, error) {
	if err := p.Validate(); err != nil {
		return planner.Solution{}, err
	}
	sv := newSolver(p, s.optimism())
	c := newCore(sv, s.moveCost())
	picked := c.solve()
	for i, j := range sv.known {
		w, k := &p.Workloads[j], picked[i]
		sv.answer.Units[j] = int(k.units)
		switch last := c.choices[i][len(c.choices[i])-1]; {
		case int(k.units) == w.Max:
			sv.answer.Binding[j] = "max"
		case k == last:
			sv.answer.Binding[j] = "demand"
		default:
			sv.answer.Binding[j] = "capacity"
		}
	}
	sv.answer.Value = s.Scorer(p)(sv.answer.Units)
	return sv.answer, nil
}

// Expect returns the performance that the policy counts on.
func (s Social) Expect(b trimtab.Band) float64 { return mix(b, s.optimism()) }

// Scorer returns the mean utility over the known workloads.
func (s Social) Scorer(p *planner.Problem) func(units []int) float64 {
	known, of := read(p, s.optimism())
	return func(units []int) float64 {
		sum := 0.0
		for _, j := range known {
			sum += float64(of[j].value(units[j])) / quantum
		}
		return sum / float64(max(1, len(known))) // 0: nothing is known of anybody
	}
}

// choice is an allocation that may be in an optimum, and what it is worth.
type choice struct {
	worth int64 // g(k) = u(k) − cost·|k − current|, in steps
	units int32
}

// choicesOf lists the allocations of w up to most units that are worth more
// than every smaller one, in the space of out. Plateaus are skipped without a
// call of the utility.
func choicesOf(out []choice, s *solver, j, most int, cost int64) []choice {
	u, w := &s.of[j], &s.problem.Workloads[j]
	most = min(most, w.Max)
	out = out[:0]
	best := int64(math.MinInt64)
	add := func(k int, v int64) {
		if g := v - cost*int64(max(k-w.Current, w.Current-k)); g > best {
			best = g
			out = append(out, choice{g, int32(k)})
		}
	}
	k := w.Min
	add(k, u.value(k))
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

// hull returns the indices of the choices on the upper concave hull, in the
// space of h.
func hull(h []int, cs []choice) []int {
	h = h[:0]
	for i, c := range cs {
		for len(h) >= 2 {
			a, b := cs[h[len(h)-2]], cs[h[len(h)-1]]
			if (b.worth-a.worth)*int64(c.units-b.units) > (c.worth-b.worth)*int64(b.units-a.units) {
				break
			}
			h = h[:len(h)-1]
		}
		h = append(h, i)
	}
	return h
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
