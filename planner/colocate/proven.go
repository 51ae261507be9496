package colocate

import (
	"cmp"
	"math"
	"slices"
)

// prove records, by load, the amounts of jobs while growth is allowed and slack is left. It is not
// in algorithm 2.
func (p *policy) prove(r *round) {
	for i := range r.o.Services {
		s := p.Services[r.o.Services[i].Workload]
		if math.IsNaN(known(r.o.Services[i].Load)) || !p.roomy(s) {
			continue
		}
		for k, name := range r.names {
			if back(name) == 0 {
				continue
			}
			c := table(&s.Proven, name)
			for b := 0; b <= bin(s.Ready+shift); b++ {
				c[b] = math.Max(c[b], r.sum[k])
			}
		}
	}
}

// proven returns the largest amount that jobs had at this load while all services had slack; 0:
// none is known.
func (m *memory) proven(r *round, name string) float64 {
	least := math.Inf(1)
	for i := range r.o.Services {
		s := &r.o.Services[i]
		load := known(s.Load)
		c := m.Services[s.Workload].Proven[name]
		if math.IsNaN(load) || c == nil {
			return 0
		}
		least = math.Min(least, c[bin(m.Services[s.Workload].Ready+shift)])
	}
	return least
}

// mostLeap is the largest number of steps of one leap.
const mostLeap = 128

// leap gives jobs at once the amounts that did no harm at this load, the largest job first. If no number of
// cores was ever too high and the slack is at least half of the SLO, it doubles their cores.
func (p *policy) leap(r *round) (any bool) {
	kept := slices.Clone(r.capacity)
	clear := p.apart && p.allClear(r)
	for k, name := range r.names {
		if back(name) == 0 {
			continue
		}
		most := p.proven(r, name)
		if clear && (name == cpu || name == cores) && math.IsInf(p.bound(r, name, shift, 0), 1) {
			most = math.Max(most, 2*r.sum[k])
		}
		r.capacity[k] = math.Max(r.sum[k], math.Min(r.capacity[k], most))
	}
	for p.resume(r) {
		any = true
	}
	places, steps := r.running(), 0
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(r.size(b), r.size(a)) })
	for _, i := range places {
		for steps < mostLeap && p.growShared(r, i) {
			any, steps = true, steps+1
		}
	}
	copy(r.capacity, kept)
	return any
}

// gather lets the largest job grow that can, and starts another only if none can: few jobs with
// much cache and bandwidth do more work than many with little.
func (p *policy) gather(r *round, places []int) bool {
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(r.size(b), r.size(a)) })
	for _, i := range places {
		if p.growShared(r, i) {
			return true
		}
	}
	return p.begin(r)
}

// running returns the indices of the jobs that run.
func (r *round) running() (places []int) {
	for i := range r.allocations {
		if r.allocations[i].runs() {
			places = append(places, i)
		}
	}
	return places
}

// growShared gives a job one step, and reports whether it got cores, cache or bandwidth; memory
// alone is no reason to continue.
func (p *policy) growShared(r *round, i int) bool {
	_, shared := p.sizes.growOne(r, i)
	return shared
}

// patience is how many measurements in a row must miss the SLO before jobs are killed. Until then
// they are suspended, which loses no work and frees all except memory at once.
const patience = 3

// strike stops the top level of the queue after a missed SLO, and returns the factor by which the
// wait for growth gets longer.
func (p *policy) strike(r *round, v *verdict) (longer int) {
	s := p.Services[v.by]
	s.Strikes++
	return p.stop(r, v.share, !p.spares || s.Strikes >= patience)
}

// spare resets the count of misses of services that meet their SLO again.
func (m *memory) spare(o *Observation) {
	for i := range o.Services {
		if s := &o.Services[i]; known(s.Slack) >= 0 {
			m.Services[s.Workload].Strikes = 0
		}
	}
}
