package welfare

import (
	"math"

	"github.com/trimtab/trimtab/planner/policy"
)

// Nash maximises the product of the utilities, less the cost of moving: first
// the number of workloads with any utility, then the product of theirs.
type Nash struct {
	// Optimism is the weight of the upper bound over the mean, in [0, 1].
	// Default 0.1; negative: 0, the mean alone.
	Optimism float64
	// MoveCost is as in [Social], in the mean of the utilities' logarithms
	// (natural).
	MoveCost float64
	// LoadWeight is the weight of the load's upper bound over its mean in the
	// load that is planned for, in (0, 1]. Default 0.8.
	LoadWeight float64
}

// Traits has the geometric mean of the known workloads' utilities as score: 0 if one of them is
// 0.
func (s Nash) Traits() policy.Traits {
	return traitsOf(s.linear(), cautionOf(s.LoadWeight, 0.8), geometric)
}

// Name returns "nash".
func (Nash) Name() string { return "nash" }

// scale defines how Nash welfare is counted for n workloads: a utility v has the value
//
//	(reward + log2 v)·steps   for v >= 2^-40,   0 for less,
//
// where the reward exceeds what all others together can lose by their logarithms, so that one
// more workload with any utility is always worth it.
type scale struct{ reward, steps float64 }

// smallest is the least utility that counts as more than 0: 2^-40.
const smallest = 1.0 / quantum

// scaleOf returns the scale for n workloads, with as many steps as fit into 2^61, at most 2^32.
func scaleOf(n int) scale {
	reward := 40*float64(n) + 1
	room := 61 - math.Ceil(math.Log2(reward*float64(max(1, n))))
	return scale{reward, math.Exp2(math.Min(32, room))}
}

func (c scale) of(v float64) int64 {
	if !(v >= smallest) {
		return 0
	}
	return int64(math.Round((c.reward + math.Log2(math.Min(v, 1))) * c.steps))
}

func (s Nash) reading(p *policy.Problem) (reading, scale) {
	how, c := utilities(optimismOf(s.Optimism, 0.1)), scaleOf(len(p.Workloads))
	how.steps, how.fine = c.of, certified*c.steps
	return how, c
}

// Solve returns an exact answer, see [policy.Policy], or one with its gap: [Social.Solve] over
// logarithms.
func (s Nash) Solve(p *policy.Problem) (policy.Solution, error) {
	p, err := folded(p)
	if err != nil {
		return policy.Solution{}, err
	}
	how, c := s.reading(p)
	cost := float64(unitCost(s.MoveCost, p)) / quantum * math.Log2E * c.steps
	answer, short := solveSum(p, how, max(1, int64(cost)))
	answer.Value = geometric(p, s.linear())(answer.Units)
	answer.Bound = answer.Value
	if n := known(answer.Binding); n > 0 {
		answer.Bound = math.Min(1, answer.Value*math.Exp2(short/c.steps/float64(n)))
		if short >= c.steps && answer.Value == 0 { // another workload might get a utility above 0
			answer.Bound = 1
		}
	}
	return answer, nil
}

// geometric returns the geometric mean of the known workloads' utilities under the reading how.
func geometric(p *policy.Problem, how reading) func(units []int) float64 {
	known, of := read(p, how)
	return func(units []int) float64 {
		if len(known) == 0 {
			return 0 // no workload has a known curve
		}
		sum := 0.0
		for _, j := range known {
			sum += math.Log2(float64(of[j].value(units[j])) / quantum)
		}
		return math.Exp2(sum / float64(len(known)))
	}
}

func (s Nash) linear() reading { return utilities(optimismOf(s.Optimism, 0.1)) }
