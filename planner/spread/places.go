package spread

import "math"

// Problem is the problem of which host does the work of which workload, if load balancers can move
// work between a workload's hosts.
type Problem struct {
	// Needs is how much work each workload has, > 0, Hosts the capacity of each host, >= 0, in
	// the same unit.
	Needs, Hosts []float64
	// On lists the hosts of each workload, each once, at least one.
	On [][]int
}

// Solve returns the greatest t for which no host exceeds its capacity when all workloads have t
// times their needs, and such work x by workload and place in [Problem.On]:
//
//	Σ_h x_ih = t n_i,   Σ_i x_ih <= C_h,   x >= 0
//	t = min over sets S of workloads of  Σ_{h of S} C_h / Σ_{i in S} n_i
//
// so that t >= 1 means that the needs fit. It starts from now, as far as the hosts have room: of
// equally good answers it returns one near to that.
//
// Each step is a transport problem, solved by shortest augmenting paths; if t is too high, the
// set that is cut off gives the next, lower one (W. Dinkelbach, "On nonlinear fractional
// programming" (1967); J. Edmonds, R. M. Karp, "Theoretical improvements in algorithmic
// efficiency for network flow problems" (1972)).
func (p *Problem) Solve(now [][]float64) (x [][]float64, t float64) {
	if len(p.Needs) == 0 {
		return nil, math.Inf(1)
	}
	all := make([]bool, len(p.Needs))
	for i := range all {
		all[i] = true
	}
	t = p.ratio(all)
	for {
		f := p.flow(t, now)
		cut := f.fill()
		if cut == nil || !(p.ratio(cut) < t*(1-exact)) {
			return f.x, t
		}
		t = p.ratio(cut)
	}
}

// exact is the relative rounding error of sums of work.
const exact = 1e-9

// ratio returns the capacity of the hosts of a set of workloads, over the needs of the set.
func (p *Problem) ratio(set []bool) float64 {
	hosts, can, need := make([]bool, len(p.Hosts)), 0.0, 0.0
	for i, in := range set {
		if !in {
			continue
		}
		need += p.Needs[i]
		for _, h := range p.On[i] {
			if !hosts[h] {
				hosts[h], can = true, can+p.Hosts[h]
			}
		}
	}
	return can / need
}

// flow is the assignment under construction: the work of each workload on each host, what each
// workload still wants, and what each host has left.
type flow struct {
	*Problem
	x          [][]float64
	wants      []float64
	left       []float64
	tiny       float64
	from, seen []int // by host: the workload by which it was reached; by workload: the host, after 1
	users      [][][2]int
}

// flow starts from the work that is on the hosts now.
func (p *Problem) flow(t float64, now [][]float64) *flow {
	f := &flow{Problem: p, left: append([]float64(nil), p.Hosts...), users: make([][][2]int, len(p.Hosts))}
	for i, on := range p.On {
		f.x, f.wants = append(f.x, make([]float64, len(on))), append(f.wants, t*p.Needs[i])
		f.tiny = math.Max(f.tiny, exact*t*p.Needs[i])
		for k, h := range on {
			f.users[h] = append(f.users[h], [2]int{i, k})
			if now == nil {
				continue
			}
			v := math.Max(0, math.Min(now[i][k], math.Min(f.wants[i], f.left[h])))
			f.x[i][k], f.wants[i], f.left[h] = v, f.wants[i]-v, f.left[h]-v
		}
	}
	return f
}

// fill assigns the workloads what they still want. Otherwise it returns the set whose hosts are
// full: workloads that cannot get it, and all that use the same hosts; nil: there is none.
func (f *flow) fill() (cut []bool) {
	for i := range f.wants {
		for f.wants[i] > f.tiny {
			if f.augment(i) {
				continue
			}
			if cut == nil {
				cut = make([]bool, len(f.wants))
			}
			for j, from := range f.seen {
				cut[j] = cut[j] || from > 0
			}
			break
		}
	}
	return cut
}

// augment assigns workload i some of what it wants, and reports whether it could: on one of its
// hosts, from which others may move to other hosts.
func (f *flow) augment(i int) bool {
	f.seen, f.from = make([]int, len(f.wants)), make([]int, len(f.left))
	for h := range f.from {
		f.from[h] = -1
	}
	f.seen[i] = len(f.left) + 1 // it is the first
	for queue := []int{i}; len(queue) > 0; queue = queue[1:] {
		for _, h := range f.On[queue[0]] {
			if f.from[h] >= 0 {
				continue
			}
			if f.from[h] = queue[0]; f.left[h] > f.tiny {
				f.push(i, h)
				return true
			}
			for _, u := range f.users[h] {
				if f.seen[u[0]] == 0 && f.x[u[0]][u[1]] > f.tiny {
					f.seen[u[0]] = h + 1
					queue = append(queue, u[0])
				}
			}
		}
	}
	return false
}

// push moves as much as fits along the path from workload i to host h.
func (f *flow) push(i, h int) {
	type edge struct{ more, less *float64 }
	var path []edge
	most := math.Min(f.wants[i], f.left[h])
	for at := h; ; {
		j := f.from[at]
		e := edge{more: f.at(j, at)}
		if j != i {
			at = f.seen[j] - 1
			e.less = f.at(j, at)
			most = math.Min(most, *e.less)
		}
		if path = append(path, e); j == i {
			break
		}
	}
	for _, e := range path {
		if *e.more += most; e.less != nil {
			*e.less -= most
		}
	}
	f.wants[i] -= most
	f.left[h] -= most
}

// at is the work of workload j on host h.
func (f *flow) at(j, h int) *float64 {
	for k, on := range f.On[j] {
		if on == h {
			return &f.x[j][k]
		}
	}
	return nil
}
