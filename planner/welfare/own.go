package welfare

import (
	"github.com/trimtab/trimtab/planner/policy"
)

// Own is the operator's objective: the sum, or the minimum, over the workloads
// of an expression, [policy.Workload.Worth].
type Own struct {
	// Title is its name: the text of the objective, "sum(weight * u)".
	Title string
	// Least says that the minimum counts, not the sum.
	Least bool
	// Scale is the value of a Worth of 1, > 0; 0: 1. The Value of a solution is multiplied by it.
	Scale float64
	// Optimism and MoveCost are those of [Social], or of [Egalitarian].
	Optimism, MoveCost, LoadWeight float64
}

// Traits has the caution of [Social], or of [Egalitarian]. Its score is the sum, or the least, over
// the known workloads.
func (o Own) Traits() policy.Traits {
	caution := Social{LoadWeight: o.LoadWeight}.Traits().Caution
	if o.Least {
		caution = Egalitarian{LoadWeight: o.LoadWeight}.Traits().Caution
	}
	t := traitsOf(o.reading(), caution, o.score)
	t.Sums = !o.Least
	return t
}

// Name returns the title.
func (o Own) Name() string { return o.Title }

func (o Own) reading() reading {
	how := hopeful(o.Optimism, 0)
	if o.Least {
		how = wary(o.Optimism)
	}
	how.worth = func(w *policy.Workload) func(float64) float64 {
		if w.Worth == nil {
			return w.Utility
		}
		return w.Worth
	}
	return how
}

// Solve solves as [Social] for a sum and as [Egalitarian] for a minimum.
func (o Own) Solve(p *policy.Problem) (policy.Solution, error) {
	p, err := folded(p)
	if err != nil {
		return policy.Solution{}, err
	}
	answer, short := policy.Solution{}, 0.0
	if o.Least {
		answer = solveLeast(p, o.reading(), false)
	} else {
		answer, short = solveSum(p, o.reading(), unitCost(o.MoveCost, p))
	}
	answer.Value = o.score(p, o.reading())(answer.Units)
	answer.Bound = answer.Value + o.scale()*short/quantum
	return answer, nil
}

// score returns the sum, or the minimum, of the known workloads' values under the reading how.
func (o Own) score(p *policy.Problem, how reading) func(units []int) float64 {
	known, of := read(p, how)
	return func(units []int) float64 {
		sum, least := int64(0), int64(quantum)
		for _, j := range known {
			v := of[j].value(units[j])
			sum += v
			least = min(least, v)
		}
		switch {
		case len(known) == 0:
			return 0 // no workload has a known curve
		case o.Least:
			return o.scale() * float64(least) / quantum
		}
		return o.scale() * float64(sum) / quantum
	}
}

func (o Own) scale() float64 {
	if o.Scale > 0 {
		return o.Scale
	}
	return 1
}
