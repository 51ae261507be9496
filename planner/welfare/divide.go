package welfare

import (
	"math"

	"github.com/trimtab/trimtab/planner/hosts"
)

// divide splits the problem into independent ones: workloads that share a host that may become
// full stay together. It stays whole if the pool may be full before its hosts are.
func (s *solver) divide() []*solver {
	if !s.headroom.Hosts() {
		return []*solver{s}
	}
	above := make([]int32, len(s.headroom.Left)) // a forest over the rows
	for r := range above {
		above[r] = int32(r)
	}
	root := func(r int32) int32 {
		for above[r] != r {
			above[r] = above[above[r]]
			r = above[r]
		}
		return r
	}
	for _, j := range s.known {
		for _, p := range s.headroom.Parts(j) {
			above[root(p.Row)] = root(s.headroom.Parts(j)[0].Row)
		}
	}
	at := make([]int, len(above)) // index in parts of a tree, plus 1
	var parts []*solver
	var free *solver // the workloads on no host that may become full
	for _, j := range s.known {
		of := &free
		if ps := s.headroom.Parts(j); len(ps) > 0 {
			r := root(ps[0].Row)
			if at[r] == 0 {
				parts = append(parts, nil)
				at[r] = len(parts)
			}
			of = &parts[at[r]-1]
		}
		if *of == nil {
			*of = &solver{}
			**of = *s
			(*of).known = nil
		}
		(*of).known = append((*of).known, j)
	}
	if free != nil {
		parts = append(parts, free)
	}
	most := 0.0
	for _, part := range parts {
		most += part.most()
	}
	if most > float64(s.left) {
		return []*solver{s}
	}
	for _, part := range parts {
		part.fold()
	}
	return parts
}

// most returns a bound on the units that the workloads of a part can have together.
func (s *solver) most() float64 {
	all, least := 0.0, math.Inf(1)
	rows := map[int32]bool{}
	for _, j := range s.known {
		all += float64(s.problem.Workloads[j].Max)
		shares := 0.0
		for _, p := range s.headroom.Parts(j) {
			rows[p.Row] = true
			shares += p.Share
		}
		least = math.Min(least, shares)
	}
	has := 0.0
	for r := range rows {
		has += s.headroom.Left[r]
	}
	if least > 0 {
		all = math.Min(all, has/least)
	}
	return all
}

// fold replaces a part that is on a single host, with the same share for all workloads, by one
// without hosts.
func (s *solver) fold() {
	first := s.headroom.Parts(s.known[0])
	for _, j := range s.known {
		if p := s.headroom.Parts(j); len(p) != len(first) || len(p) > 1 || len(p) == 1 && p[0] != first[0] {
			return
		}
	}
	s.left = s.headroom.Most(s.known[0])
	s.headroom = hosts.Pool(s.left)
}
