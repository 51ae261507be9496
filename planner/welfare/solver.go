package welfare

import (
	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/hosts"
	"github.com/trimtab/trimtab/planner/policy"
)

// solver has the common parts of all objectives: the known workloads, and the capacity for them.
type solver struct {
	problem *policy.Problem
	of      []utility
	// known are the workloads with a curve, in order of name.
	known []int
	// headroom is the capacity without the unknown workloads, which keep their allocations; left is its
	// number of units.
	headroom *hosts.Headroom
	left     int
	answer   policy.Solution
	how      reading
}

// newSolver lets unknown workloads keep their allocations. If that leaves less than the minimums of
// the others, the workloads that are last by name give up theirs first.
func newSolver(p *policy.Problem, how reading) *solver {
	n := len(p.Workloads)
	s := &solver{problem: p, headroom: hosts.New(p), how: how}
	s.known, s.of = read(p, how)
	for _, j := range s.known {
		if how.holds {
			s.of[j].fall = fallOf(&p.Workloads[j], p.Unit, how)
		}
	}
	s.answer = policy.Solution{Units: make([]int, n), Binding: make([]trimtab.Binding, n)}
	for j := range p.Workloads {
		s.headroom.Subtract(j, p.Workloads[j].Min)
		s.answer.Binding[j] = trimtab.Binding{Kind: codes.BindingUnknown}
	}
	for _, j := range s.known {
		s.answer.Binding[j] = trimtab.Binding{}
	}
	for j := range p.Workloads {
		w := &p.Workloads[j]
		if s.answer.Binding[j].Kind == "" {
			continue
		}
		keep := min(min(max(w.Current, w.Min), w.Max)-w.Min, s.headroom.Most(j))
		s.answer.Units[j] = w.Min + keep
		s.headroom.Subtract(j, keep)
	}
	for _, j := range s.known {
		s.headroom.Subtract(j, -p.Workloads[j].Min)
	}
	s.left = s.headroom.Units
	return s
}

// folded returns a validated problem, without hosts if they do not matter.
func folded(p *policy.Problem) (*policy.Problem, error) {
	if err := p.ValidateHosts(); err != nil {
		return nil, err
	}
	p, _ = hosts.Fold(p)
	return p, nil
}

// read returns the utilities, and the indices of the workloads that have one.
func read(p *policy.Problem, how reading) (known []int, of []utility) {
	of = make([]utility, len(p.Workloads))
	for j := range p.Workloads {
		if u, ok := utilityOf(&p.Workloads[j], p.Unit, how); ok {
			of[j] = u
			known = append(known, j)
		}
	}
	return known, of
}

func (s *solver) stopped() bool {
	if s.problem.Stop != nil && s.problem.Stop() {
		s.answer.Cut = true
	}
	return s.answer.Cut
}
