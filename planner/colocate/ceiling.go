package colocate

import "math"

// ceiling is the amount of one resource above which jobs harmed a service, by the service's load in
// steps of 1/bins; 0: unknown. It is the amount that jobs had when they were last stopped or cut
// for the service, reduced by the cut. It is not in algorithm 2. Jobs do not get more than the
// ceiling again at once, and are cut to it, without losing work, before the load rises to that
// level.
type ceiling []float64

const bins = 20

func bin(load float64) int {
	if !(load > 0) {
		return 0
	}
	return int(math.Min(load*bins, bins))
}

// lower records that jobs with n of the resource harmed the service at a load, and so would at every
// higher load.
func (c ceiling) lower(load, n float64) {
	for b := bin(load); b < len(c); b++ {
		if c[b] == 0 || n < c[b] {
			c[b] = n
		}
	}
}

// raise records that jobs with n did no harm at a load, and so would not at a lower load.
func (c ceiling) raise(load, n float64) {
	for b := 0; b <= bin(load) && b < len(c); b++ {
		if c[b] > 0 {
			c[b] = math.Max(c[b], n)
		}
	}
}

// at returns the ceiling at a load, +Inf if none is known.
func (c ceiling) at(load float64) float64 {
	if b := bin(load); b < len(c) && c[b] > 0 {
		return c[b]
	}
	return math.Inf(1)
}

// bound returns the lowest ceiling of a resource over all services, at their loads plus shift.
// Above a loadlimit it is the amount proven there, plus more.
func (p *policy) bound(r *round, name string, shift, more float64) float64 {
	least := math.Inf(1)
	for i := range r.o.Services {
		s := &r.o.Services[i]
		if math.IsNaN(known(s.Load)) {
			continue
		}
		st := p.Services[s.Workload]
		least = math.Min(least, st.Ceilings[name].at(st.Ready+shift))
		if st.over && p.apart && back(name) > 0 {
			proven := 0.0
			if c := st.Proven[name]; c != nil {
				proven = c[bin(st.Ready+shift)]
			}
			least = math.Min(least, proven+more)
		}
	}
	return least
}

// shed lowers jobs to the ceiling of each resource, but not below each job's need, since a higher
// load may have a lower ceiling.
func (p *policy) shed(r *round) {
	for k, name := range r.names {
		most := p.bound(r, name, -shift, 0)
		if most >= r.sum[k] {
			continue
		}
		floors := 0.0
		for i := range r.allocations {
			if s := &r.allocations[i]; s.runs() && !math.IsNaN(s.to[k]) {
				floors += p.sizes.floor(s, k, name)
			}
		}
		r.capacity[k] = math.Min(r.capacity[k], math.Max(most, floors))
	}
}

// beyond returns the size of a step beyond a ceiling: at least a tenth of the capacity.
func (z *sizes) beyond(name string) float64 {
	step := math.Max(z.step[name], z.greatest[name]/10)
	if whole(name) {
		step = math.Floor(step)
	}
	return step
}

// confine lets jobs grow up to the ceilings and, for one resource that has waited long enough, by
// one step beyond.
func (p *policy) confine(r *round) {
	next := -1
	for k, name := range r.names {
		most := p.bound(r, name, shift, p.sizes.step[name])
		if math.IsInf(most, 1) || r.capacity[k] <= most {
			continue
		}
		r.capacity[k] = math.Max(most, r.sum[k])
		if most-r.sum[k] >= p.sizes.step[name] {
			continue
		}
		if t := p.tryOf(name); !r.o.Time.Before(t.Next) && (next < 0 || back(name) < back(r.names[next])) {
			next = k
		}
	}
	if next >= 0 && !p.suspected(r) && p.allRoomy(r) {
		p.venture(r, next)
	}
}

// venture raises the ceilings of a resource by a step.
func (p *policy) venture(r *round, k int) {
	name := r.names[k]
	r.capacity[k] = math.Min(r.o.Capacity[name], r.capacity[k]+p.sizes.beyond(name))
	t := p.tryOf(name)
	t.Wait = max(leastWait, t.Wait/2)
	p.postpone(r, name, t)
	p.Tried = tried{Resource: name, At: r.o.Time}
	for i := range r.o.Services {
		s := p.Services[r.o.Services[i].Workload]
		s.Ceilings[name].raise(s.Ready+shift, r.capacity[k])
	}
}
