package hosts

import (
	"math"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/policy"
)

// grain is the rounding error of sums of shares, in units of a host.
const grain = 1e-9

// Headroom is what is left of the pool and its hosts.
type Headroom struct {
	// Units is what is left of the pool.
	Units int
	// Left is what is left of each row, a host that may become full.
	Left []float64
	*matrix
}

// matrix is the shares of a problem, by workload.
type matrix struct {
	start []int32
	part  []Part
	name  []string
}

// Part is how much of a row of [Headroom.Left] one unit of a workload uses.
type Part struct {
	Row   int32
	Share float64
}

// New returns the room of a valid problem, with nothing used.
func New(p *policy.Problem) *Headroom {
	r := &Headroom{Units: p.Units, matrix: &matrix{start: make([]int32, 1, len(p.Workloads)+1)}}
	rows := make([]int32, len(p.Hosts))
	for h, most := range mostOf(p) {
		if rows[h] = -1; most > p.Hosts[h].Units+grain {
			rows[h] = int32(len(r.Left))
			r.Left, r.name = append(r.Left, p.Hosts[h].Units), append(r.name, p.Hosts[h].Name)
		}
	}
	if len(r.Left) > 0 {
		parts := 0
		for j := range p.Workloads {
			parts += len(p.Workloads[j].Parts)
		}
		r.part = make([]Part, 0, parts)
	}
	for j := range p.Workloads {
		if len(r.Left) > 0 {
			for _, part := range p.Workloads[j].Parts {
				if row := rows[part.Host]; row >= 0 {
					r.part = append(r.part, Part{row, part.Share})
				}
			}
		}
		r.start = append(r.start, int32(len(r.part)))
	}
	return r
}

// mostOf returns the most that the workloads can use of each host.
func mostOf(p *policy.Problem) []float64 {
	most := make([]float64, len(p.Hosts))
	for j := range p.Workloads {
		for _, part := range p.Workloads[j].Parts {
			most[part.Host] += part.Share * float64(min(p.Workloads[j].Max, p.Units))
		}
	}
	return most
}

// Hosts reports whether any host may become full.
func (r *Headroom) Hosts() bool { return len(r.Left) > 0 }

// Clone returns an independent copy.
func (r *Headroom) Clone() *Headroom {
	return &Headroom{r.Units, append([]float64(nil), r.Left...), r.matrix}
}

// Set copies another room of the same problem.
func (r *Headroom) Set(other *Headroom) {
	r.Units = other.Units
	copy(r.Left, other.Left)
}

// Pool returns a room of so many units and no hosts.
func Pool(units int) *Headroom {
	return &Headroom{Units: units, matrix: &matrix{}}
}

// Parts returns what one unit of workload j uses of the rows.
func (m *matrix) Parts(j int) []Part {
	if m.start == nil {
		return nil
	}
	return m.part[m.start[j]:m.start[j+1]]
}

// Host names the host of a row.
func (m *matrix) Host(row int) string { return m.name[row] }

// Most returns how many more units workload j can get, >= 0.
func (r *Headroom) Most(j int) int {
	most := max(r.Units, 0)
	for _, p := range r.Parts(j) {
		if left := r.Left[p.Row] + grain; left < p.Share*float64(most) {
			most = max(int(left/p.Share), 0)
		}
	}
	return most
}

// Subtract subtracts n units for workload j; a negative n gives them back.
func (r *Headroom) Subtract(j, n int) {
	r.Units -= n
	for _, p := range r.Parts(j) {
		r.Left[p.Row] -= p.Share * float64(n)
	}
}

// Holds reports whether no more was used than there was.
func (r *Headroom) Holds() bool {
	for _, left := range r.Left {
		if left < -grain {
			return false
		}
	}
	return r.Units >= 0
}

// Over reports whether a row that workload j uses, or the pool, is over its capacity.
func (r *Headroom) Over(j int) bool {
	for _, p := range r.Parts(j) {
		if r.Left[p.Row] < -grain {
			return true
		}
	}
	return r.Units < 0
}

// Binding returns what stops workload j from getting n more units: the capacity of a host, or of
// the pool.
func (r *Headroom) Binding(j, n int) trimtab.Binding {
	binding, least := trimtab.Binding{Kind: codes.BindingCapacity}, math.Inf(1)
	if n > r.Units {
		return binding
	}
	for _, p := range r.Parts(j) {
		if spare := r.Left[p.Row]/p.Share - float64(n); spare < least {
			binding, least = trimtab.Binding{Kind: codes.BindingHost, Detail: r.name[p.Row]}, spare
		}
	}
	return binding
}

// Fold returns the problem without its hosts, where they say nothing that a
// number of units does not: no host can become full, or all workloads are on one
// host. Otherwise it returns the problem itself and false.
func Fold(p *policy.Problem) (folded *policy.Problem, ok bool) {
	if len(p.Hosts) == 0 {
		return p, true
	}
	units, ok := onOne(p)
	if !ok {
		units = p.Units
		for h, most := range mostOf(p) {
			if most > p.Hosts[h].Units+grain {
				return p, false
			}
		}
	}
	out := *p
	out.Units, out.Hosts, out.Workloads = units, nil, append([]policy.Workload(nil), p.Workloads...)
	for j := range out.Workloads {
		out.Workloads[j].Parts = nil
	}
	return &out, true
}

// onOne returns how many units there are if one host has all of every workload.
func onOne(p *policy.Problem) (units int, ok bool) {
	for j := range p.Workloads {
		parts := p.Workloads[j].Parts
		if len(parts) != 1 || parts[0] != (policy.Part{Host: p.Workloads[0].Parts[0].Host, Share: 1}) {
			return 0, false
		}
	}
	if len(p.Workloads) == 0 {
		return p.Units, true
	}
	return min(p.Units, int(p.Hosts[p.Workloads[0].Parts[0].Host].Units+grain)), true
}
