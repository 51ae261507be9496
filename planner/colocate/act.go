package colocate

import (
	"cmp"
	"math"
	"slices"
)

// frozen records a suspended job.
type frozen struct {
	// Had are its amounts before.
	Had Amounts `json:"had,omitempty"`
	// Alone says that other jobs were not suspended with it.
	Alone bool `json:"alone,omitempty"`
}

// floor returns the least amount to which a running job may be cut. If it is unknown how much
// memory a job uses, its memory is not cut.
func (z *sizes) floor(s *allocation, k int, name string) float64 {
	least, ok := s.job.Least[name]
	if !(least >= 0 && least <= greatestAmount) {
		least, ok = 0, false
	}
	switch {
	case name == ram && !ok:
		return s.to[k]
	case name == ram || name == network:
		return least
	case whole(name):
		return math.Max(1, math.Ceil(least))
	case z.deflates:
		return math.Max(z.start[name]/10, least)
	}
	return math.Max(math.Min(z.start[name], z.step[name]), least)
}

// lower cuts one resource of a job by an amount, at most down to its floor, and reports whether
// that freed anything.
func (z *sizes) lower(r *round, i, k int, by float64) bool {
	s, name := &r.allocations[i], r.names[k]
	to := math.Max(z.floor(s, k, name), s.to[k]-by)
	if whole(name) {
		to = math.Floor(to + tolerance)
	}
	if !(to < s.to[k]-tolerance*r.capacity[k]) {
		return false
	}
	r.set(i, k, to)
	return true
}

// park suspends a job and records its amounts.
func (m *memory) park(r *round, i int, alone bool) {
	if m.Frozen == nil {
		m.Frozen = map[string]frozen{}
	}
	s := &r.allocations[i]
	had := make(Amounts, len(r.names))
	for k, name := range r.names {
		if v := s.has[k]; !math.IsNaN(v) {
			had[name] = v
		}
	}
	m.Frozen[s.job.ID] = frozen{had, alone}
	r.suspend(i)
}

// forget drops the records of jobs that are no longer suspended.
func (m *memory) forget(r *round) {
	if len(m.Frozen) == 0 {
		return
	}
	suspended := make(map[string]bool, len(r.allocations))
	for i := range r.allocations {
		if s := &r.allocations[i]; s.job.State == Suspended {
			suspended[s.job.ID] = true
		}
	}
	for id := range m.Frozen {
		if !suspended[id] {
			delete(m.Frozen, id)
		}
	}
}

// fit cuts jobs until they fit the capacity. It first cuts each job down to its need, in the order
// of the queue. Then, from the front of the queue, it suspends jobs, or kills them if memory is
// short. It reports whether it had to cut.
func (p *policy) fit(r *round) (forced bool) {
	for k, name := range r.names {
		if r.free(k) >= 0 {
			continue
		}
		forced = true
		places, _ := p.queue(r, 1)
		for _, i := range places {
			if over := -r.free(k); over > 0 {
				p.sizes.lower(r, i, k, over)
			}
		}
		for _, i := range places {
			switch {
			case r.free(k) >= 0:
			case name != ram:
				p.park(r, i, true)
			case !p.deflates:
				r.kill(i)
			}
		}
		for i := range r.allocations {
			s := &r.allocations[i]
			holds := s.act == Suspend || s.act == "" && s.job.State == Suspended
			if holds && r.free(k) < 0 && name == ram && !p.deflates {
				r.kill(i)
			}
		}
	}
	return forced
}

// stop frees at once the resources of the jobs in the top level of the queue. It suspends these
// jobs, which lose no work, and, if kills is set, kills the first of them. A policy that treats all
// jobs alike kills all. stop returns the factor by which the wait for growth gets longer.
func (p *policy) stop(r *round, share float64, kills bool) int {
	places, size := p.queue(r, share)
	for n, i := range places[:size] {
		if kills && (n == 0 || p.alike) {
			r.kill(i)
		} else {
			p.park(r, i, false)
		}
	}
	if size == 0 {
		return 1
	}
	return 4
}

// suspendAll freezes all jobs.
func (p *policy) suspendAll(r *round) {
	for i := range r.allocations {
		if r.allocations[i].runs() {
			p.park(r, i, false)
		}
	}
}

// cut takes one step from each job of the top level of the queue. A job that has nothing left to
// take is suspended, and loses no work. It returns the factor by which the wait for growth gets
// longer.
func (p *policy) cut(r *round, v verdict) int {
	places, size := p.queue(r, v.share)
	if p.deflates {
		size = len(places)
	}
	for _, i := range places[:size] {
		got := false
		for k, name := range r.names {
			switch {
			case name == network || math.IsNaN(r.allocations[i].to[k]):
			case p.deflates:
				p.sizes.lower(r, i, k, r.allocations[i].to[k]*deflation)
			case p.sizes.lower(r, i, k, p.sizes.step[name]) && name != ram:
				got = got || !r.turns(i, cpu, cores) || name == cpu || name == cores
			}
		}
		if !got && !p.deflates {
			p.park(r, i, true)
		}
	}
	if size == 0 {
		return 1
	}
	return 2
}

// deflation is the share of its amounts that the policy deflation takes from each job per tick.
const deflation = 0.1

// turns reports whether trimtab can set one of the resources for a job.
func (r *round) turns(i int, names ...string) bool {
	for k, name := range r.names {
		if slices.Contains(names, name) && !math.IsNaN(r.allocations[i].to[k]) {
			return true
		}
	}
	return false
}

// resume resumes all jobs that were suspended together, or else one that was suspended alone. It
// reports whether it resumed any.
func (p *policy) resume(r *round) (any bool) {
	for _, alone := range []bool{false, true} {
		for i := range r.allocations {
			s := &r.allocations[i]
			if s.job.State != Suspended || s.act != "" {
				continue
			}
			f, known := p.Frozen[s.job.ID]
			if (!known || f.Alone) != alone {
				continue
			}
			if r.run(i, Resume, func(name string, k int) float64 { return p.sizes.back(r, s, f, name, k) }) {
				any = true
			}
			if any && alone {
				return true
			}
		}
		if any {
			return true
		}
	}
	return false
}

// back returns the amount with which a suspended job resumes: its former amount, as far as that is
// free, and at least the amount of a new job.
func (z *sizes) back(r *round, s *allocation, f frozen, name string, k int) float64 {
	v, ok := f.Had[name]
	if !ok {
		v = s.has[k]
	}
	if math.IsNaN(v) {
		return v
	}
	if name == ram {
		return math.Max(s.has[k], math.Min(z.start[name], s.has[k]+r.free(k)))
	}
	if name == network {
		return 0
	}
	v = math.Max(v, z.start[name])
	v = math.Max(math.Min(v, r.free(k)), z.floor(s, k, name))
	if whole(name) {
		v = math.Floor(v + tolerance)
	}
	return v
}

// begin starts the first waiting job that fits. It starts none if no knob limits the cores of a
// job.
func (p *policy) begin(r *round) bool {
	if index(r.names, cpu) < 0 && index(r.names, cores) < 0 {
		return false
	}
	for i := range r.allocations {
		s := &r.allocations[i]
		if s.job.State != Waiting || s.act != "" {
			continue
		}
		if r.run(i, Start, func(name string, k int) float64 { return p.sizes.first(r, s, name, k) }) {
			s.after = r.slowest()
			return true
		}
	}
	return false
}

// first returns the amount of a new job: its start amount; of cache and memory bandwidth less if
// only less is left.
func (z *sizes) first(r *round, s *allocation, name string, k int) float64 {
	v, ok := z.start[name]
	if name == network {
		v, ok = 0, true
	}
	if !ok {
		return math.NaN()
	}
	if name == llc || name == membw {
		least := z.step[name]
		if name == llc {
			least = 1
		}
		v = math.Max(least, math.Min(v, r.free(k)))
	}
	return math.Min(v, most(s, name))
}

// most returns the largest amount that a job may get.
func most(s *allocation, name string) float64 {
	if v, ok := s.job.Most[name]; ok && v >= 0 {
		return v
	}
	return math.Inf(1)
}

// grow starts one job, and gives one step to the job that has the least.
func (p *policy) grow(r *round) bool {
	places := r.order[:0]
	for i := range r.allocations {
		if r.allocations[i].runs() {
			places = append(places, i)
		}
	}
	r.order = places
	if p.apart {
		return p.gather(r, places)
	}
	any := p.begin(r)
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(r.size(a), r.size(b)) })
	for _, i := range places {
		if got, _ := p.sizes.growOne(r, i); got {
			return true
		}
	}
	return any
}

// size returns the number of cores of a job.
func (r *round) size(i int) float64 {
	for k, name := range r.names {
		if name == cpu || name == cores {
			return zero(r.allocations[i].to[k])
		}
	}
	return 0
}

// growOne gives a job one step of each resource that is left. It reports whether the job got any,
// and whether it got cores, cache or bandwidth.
func (z *sizes) growOne(r *round, i int) (any, shared bool) {
	s := &r.allocations[i]
	for k, name := range r.names {
		step := z.step[name]
		if name == network || math.IsNaN(s.to[k]) || !(step > 0) {
			continue
		}
		v := math.Min(step, math.Min(r.free(k), most(s, name)-s.to[k]))
		if whole(name) {
			v = math.Floor(v + tolerance)
		}
		if v >= step/10 {
			r.set(i, k, s.to[k]+v)
			any, shared = true, shared || back(name) > 0
		}
	}
	return any, shared
}

// growFreely starts and resumes all jobs that fit, and gives each job one step.
func (p *policy) growFreely(r *round) {
	for p.resume(r) {
	}
	running := r.order[:0]
	for i := range r.allocations {
		if r.allocations[i].runs() {
			running = append(running, i)
		}
	}
	r.order = running
	for p.begin(r) {
	}
	for _, i := range running {
		p.sizes.growOne(r, i)
	}
}
