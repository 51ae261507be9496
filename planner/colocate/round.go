package colocate

import (
	"math"
	"slices"
)

// round has the observation of one tick, and the decisions so far. Its memory is reused.
type round struct {
	o *Observation
	// names are the resources that can be set and added up, in order; capacity is the capacity of
	// each, and sum the jobs' total: all amounts of a running job, only the memory of a suspended
	// one.
	names         []string
	capacity, sum []float64
	allocations   []allocation
	buffer        []float64
	order         []int
	hashes        []uint64 // of the jobs' names, if jobs are ordered by hash
}

// allocation has the present and the new amounts of one job. They are indexed as names; NaN: the
// resource cannot be set for this job.
type allocation struct {
	job *Job
	// act is the operation on the job; "": only the amounts change, from has to to.
	act     Act
	has, to []float64
	// before and after are its clock in MHz; NaN: it cannot be set.
	before, after float64
}

// runs reports whether a job runs after the decisions so far.
func (s *allocation) runs() bool {
	switch s.act {
	case Kill, Suspend:
		return false
	case Resume, Start:
		return true
	}
	return s.job.State == Running
}

// begin starts a round with an observation.
func (r *round) begin(o *Observation) {
	r.o = o
	r.names, r.capacity = r.names[:0], r.capacity[:0]
	for name, v := range o.Capacity {
		if v >= 0 && v <= greatestAmount && name != frequency {
			r.names = append(r.names, name)
		}
	}
	slices.Sort(r.names)
	for _, name := range r.names {
		v := o.Capacity[name]
		if l := o.Link; name == network && l != nil {
			v = linkShare(l, v)
		}
		r.capacity = append(r.capacity, v)
	}
	n := len(r.names)
	r.buffer = resize(r.buffer, 2*n*len(o.Jobs))
	r.sum = resize(r.sum, n)
	r.allocations = slices.Grow(r.allocations[:0], len(o.Jobs))[:len(o.Jobs)]
	for i := range o.Jobs {
		at := 2 * n * i
		r.allocations[i] = allocation{job: &o.Jobs[i], has: r.buffer[at : at+n : at+n], to: r.buffer[at+n : at+2*n : at+2*n]}
		r.read(&r.allocations[i])
	}
}

// resize returns a slice of n zeros that reuses the memory of v.
func resize(v []float64, n int) []float64 {
	v = slices.Grow(v[:0], n)[:n]
	clear(v)
	return v
}

// read reads the amounts of a job. An invalid amount counts as the whole capacity.
func (r *round) read(s *allocation) {
	s.before, s.after = math.NaN(), math.NaN()
	if v, ok := s.job.Has[frequency]; ok && v > 0 && v <= greatestAmount {
		s.before, s.after = v, v
	}
	for k, name := range r.names {
		v, ok := s.job.Has[name]
		switch {
		case !ok || s.job.State == Waiting:
			v = math.NaN()
		case !(v >= 0 && v <= greatestAmount):
			v = r.capacity[k]
		}
		s.has[k], s.to[k] = v, v
		if s.job.State == Running || s.job.State == Suspended && name == ram {
			r.sum[k] += zero(v)
		}
	}
}

// zero returns v, or 0 if it is missing.
func zero(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}

// tolerance is the largest rounding error of a sum, as a fraction of the capacity.
const tolerance = 1e-9

// free returns the unused amount of a resource; negative: jobs exceed the capacity.
func (r *round) free(k int) float64 {
	left := r.capacity[k] - r.sum[k]
	if math.Abs(left) <= tolerance*r.capacity[k] {
		return 0
	}
	return left
}

// set changes an amount of a running job.
func (r *round) set(i, k int, v float64) {
	r.sum[k] += zero(v) - zero(r.allocations[i].to[k])
	r.allocations[i].to[k] = v
}

// kill ends a job, and frees all its resources.
func (r *round) kill(i int) {
	s := &r.allocations[i]
	for k, name := range r.names {
		if s.runs() || name == ram {
			r.sum[k] -= zero(s.to[k])
		}
	}
	s.act = Kill
}

// suspend freezes a running job, which keeps its memory.
func (r *round) suspend(i int) {
	s := &r.allocations[i]
	for k, name := range r.names {
		if name != ram {
			r.sum[k] -= zero(s.to[k])
		}
	}
	s.act = Suspend
}

// run starts or resumes a job with the amounts that the function to returns, if they fit, and
// reports whether they did. A suspended job has its memory already.
func (r *round) run(i int, act Act, to func(name string, k int) float64) bool {
	s := &r.allocations[i]
	suspended := s.job.State == Suspended
	for k, name := range r.names {
		if v := zero(to(name, k)); v > max(0, r.free(k)) && !(suspended && name == ram) {
			return false
		}
	}
	for k, name := range r.names {
		if v := to(name, k); !suspended || name != ram {
			s.to[k] = v
			r.sum[k] += zero(v)
		}
	}
	s.act = act
	return true
}

// changes lists the decisions, reductions first.
func (r *round) changes() []Change {
	// Counted first, to allocate the list once.
	n := 0
	for i := range r.allocations {
		if s := &r.allocations[i]; s.act != "" || r.lower(s) || r.higher(s) {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	out := make([]Change, 0, n)
	for _, act := range []Act{Kill, Cut, Suspend, Resume, Grow, Start} {
		for i := range r.allocations {
			s := &r.allocations[i]
			switch {
			case act == Kill || act == Suspend:
				if s.act == act {
					out = append(out, Change{Job: s.job.ID, Act: act})
				}
			case act == Cut && s.act != Kill && r.lower(s):
				out = append(out, Change{Job: s.job.ID, Act: Cut, To: r.amounts(s, true)})
			case act == Grow && s.act == "" && r.higher(s), s.act == act && act != Cut:
				out = append(out, Change{Job: s.job.ID, Act: act, To: r.amounts(s, false)})
			}
		}
	}
	return out
}

// lower reports whether an amount of a job decreases; false for one that resumes or starts.
func (r *round) lower(s *allocation) bool {
	if s.act == Resume || s.act == Start {
		return false
	}
	for k := range s.to {
		if s.to[k] < s.has[k] {
			return true
		}
	}
	return s.after < s.before
}

func (r *round) higher(s *allocation) bool {
	for k := range s.to {
		if s.to[k] > s.has[k] {
			return true
		}
	}
	return s.after > s.before
}

// amounts returns the amounts of a job afterwards; with least, without increases.
func (r *round) amounts(s *allocation, least bool) Amounts {
	out := make(Amounts, max(len(r.names)+1, len(s.job.Has)))
	put := func(name string, has, to float64) {
		if least && to > has {
			to = has
		}
		if !math.IsNaN(to) {
			out[name] = to
		}
	}
	for k, name := range r.names {
		put(name, s.has[k], s.to[k])
	}
	put(frequency, s.before, s.after)
	for name, v := range s.job.Has { // amounts that cannot be set do not change
		if name != frequency && index(r.names, name) < 0 && v >= 0 && v <= greatestAmount {
			out[name] = v
		}
	}
	return out
}
