package microservices

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/trimtab/trimtab"
)

// units is one round's question, in whole units, whose cost is a function: that of a simulation.
type units struct {
	// Units is the capacity.
	Units int
	// Min and Max bound each component, 0 <= Min <= Max.
	Min, Max []int
}

const maxUnits = 4096

// validate returns an error that is trimtab.ErrInvalid for a malformed problem
// and trimtab.ErrInfeasible when the minimums exceed the units.
func (p *units) validate() error {
	n := len(p.Min)
	if n == 0 || len(p.Max) != n || p.Units < 0 || p.Units > maxUnits {
		return trimtab.Invalidf("problem: %d units, %d minimums, %d maximums", p.Units, n, len(p.Max))
	}
	least := 0
	for i := range p.Min {
		if p.Min[i] < 0 || p.Max[i] < p.Min[i] || p.Max[i] > maxUnits {
			return trimtab.Invalidf("problem: component %d has bounds %d to %d", i, p.Min[i], p.Max[i])
		}
		least += p.Min[i]
	}
	if least > p.Units {
		return fmt.Errorf("divide %d units: the minimums need %d: %w", p.Units, least, trimtab.ErrInfeasible)
	}
	return nil
}

// separable returns the units of the least Σ cost(i, units), for costs of any shape but NaN, by
// dynamic programming over components in O(n R max). Ties go to fewer
// units for later components. Errors are those of validate.
func (p *units) separable(cost func(i, units int) float64) ([]int, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	n := len(p.Min)
	best := make([]float64, p.Units+1) // of the components so far, by units used at most
	next := make([]float64, p.Units+1)
	took := make([][]int, n)
	for i := range n {
		took[i] = make([]int, p.Units+1)
		most := min(p.Max[i], p.Units)
		costs := make([]float64, most+1)
		for u := p.Min[i]; u <= most; u++ {
			costs[u] = cost(i, u)
		}
		for r := range next {
			next[r], took[i][r] = math.Inf(1), -1
			for u := p.Min[i]; u <= min(most, r); u++ {
				if c := best[r-u] + costs[u]; took[i][r] < 0 && (i == 0 || took[i-1][r-u] >= 0) || c < next[r] {
					next[r], took[i][r] = c, u
				}
			}
		}
		best, next = next, best
	}
	out := make([]int, n)
	r := p.Units
	for i := n - 1; i >= 0; i-- {
		out[i] = took[i][r]
		r -= out[i]
	}
	return out, nil
}

// ascend returns units at least as good as start, which must be within bounds. It tries exchanges
// of 1, 2, 4 or 8 units between two components, and free units, in an order drawn from r, as long
// as one in a sequence helps, with at most so many evaluations of cost.
func (p *units) ascend(start []int, cost func(units []int) float64, evaluations int, r *rand.Rand) []int {
	at := slices.Clone(start)
	if evaluations < 1 {
		return at
	}
	least := cost(at)
	evaluations--
	free := p.Units
	for _, u := range at {
		free -= u
	}
	n := len(at)
	pairs := r.Perm((n + 1) * n)
	for since, k := 0, 0; since < len(pairs) && evaluations > 0; k++ {
		pair := pairs[k%len(pairs)]
		from, to := pair/n-1, pair%n // -1: the units that no workload has
		since++
		for size := 8; size >= 1 && from != to && evaluations > 0; size /= 2 {
			if at[to]+size > p.Max[to] || from < 0 && free < size || from >= 0 && at[from]-size < p.Min[from] {
				continue
			}
			move(at, &free, from, to, size)
			evaluations--
			if c := cost(at); c < least {
				least, since = c, 0
				break
			}
			move(at, &free, from, to, -size)
		}
	}
	return at
}

func move(at []int, free *int, from, to, size int) {
	at[to] += size
	if from < 0 {
		*free -= size
	} else {
		at[from] -= size
	}
}
