package colocate

import (
	"math"
	"time"
)

// ceiling is what jobs had of one resource beside a service when they were last
// stopped or cut for it, less what was taken, by its load in steps of 1/bins; 0: not
// known. It is ours, beside algorithm 2: what was seen to be too much at a load is not
// given again at once, and is taken before the load gets there, by cuts that lose no
// work.
type ceiling []float64

const bins = 20

func bin(load float64) int {
	if !(load > 0) {
		return 0
	}
	return int(math.Min(load*bins, bins))
}

// lower notes that n were too many at a load, and at every higher one.
func (c ceiling) lower(load, n float64) {
	for b := bin(load); b < len(c); b++ {
		if c[b] == 0 || n < c[b] {
			c[b] = n
		}
	}
}

// raise notes that n did no harm at a load, nor would at a lower one.
func (c ceiling) raise(load, n float64) {
	for b := 0; b <= bin(load) && b < len(c); b++ {
		if c[b] > 0 {
			c[b] = math.Max(c[b], n)
		}
	}
}

// at is the ceiling at a load, +Inf where none is known.
func (c ceiling) at(load float64) float64 {
	if b := bin(load); b < len(c) && c[b] > 0 {
		return c[b]
	}
	return math.Inf(1)
}

// back is by what part the ceiling of a resource falls with a stop: that of cores, of
// which jobs gain most, the least. Of others there is no ceiling. Of two
// settings tried in sim/colocate (seed 1, 3 hours, both loads) the one with more work.
func back(resource string) float64 {
	switch resource {
	case llc:
		return 0.5
	case membw:
		return 0.4
	case cpu, cores:
		return 0.25
	}
	return 0
}

// shift is the hysteresis of ceilings, in load; ahead is for how many standard
// deviations of the load's change in a tick they leave room, and lasting how many ticks
// that is the mean of.
const shift, ahead, lasting = 0.02, 2, 50

// follow takes in the load of a tick.
func (s *standing) follow(load float64) {
	if math.IsNaN(load) || load > 10 {
		return
	}
	if s.Load > 0 {
		d := load - s.Load
		s.Spread += (d*d - s.Spread) / lasting
	}
	s.Load = load
}

// remember lowers the ceilings of the service that decides, once until it is calm
// again. After a step beyond one of them, it is that resource which was too much.
func (p *policy) remember(r *round, v *verdict) {
	if v.free || p.rules.limits != nil {
		return
	}
	if v.verb == AllowBEGrowth && p.Calm+1 >= leastWait {
		for _, s := range p.Services {
			s.Episode = false
		}
	}
	s := p.Services[v.by]
	p.prove(r, v)
	if s.Episode || math.IsNaN(v.load) || v.verb != StopBE && v.verb != CutBE {
		return
	}
	s.Episode = true
	guilty := ""
	if r.o.Time.Sub(p.Tried.At) <= blamed*p.Period {
		guilty = p.Tried.Resource
	}
	for k, name := range r.names {
		by := back(name) * r.sum[k]
		if v.verb == CutBE || guilty != "" {
			by = math.Min(by, p.step[name])
		}
		if by > 0 && (guilty == "" || guilty == name) {
			if s.Ceilings == nil {
				s.Ceilings = map[string]ceiling{}
			}
			if s.Ceilings[name] == nil {
				s.Ceilings[name] = make(ceiling, bins+1)
			}
			s.Ceilings[name].lower(v.load, math.Max(r.sum[k]-by, p.step[name]))
		}
	}
}

// tried is the last step beyond a ceiling.
type tried struct {
	Resource string    `json:"resource,omitempty"`
	At       time.Time `json:"at,omitzero"`
	Turn     int       `json:"turn,omitempty"`
	// Failed tells that jobs were stopped or cut since.
	Failed bool `json:"failed,omitempty"`
}

// blamed is for how many periods after a step it is blamed.
const blamed = 10

// bound is the least ceiling of a resource at the loads of now and a shift.
func (p *policy) bound(r *round, name string, shift float64) float64 {
	least := math.Inf(1)
	for i := range r.o.Services {
		s := &r.o.Services[i]
		if load := known(s.Load); !math.IsNaN(load) {
			st := p.Services[s.Workload]
			least = math.Min(least, st.Ceilings[name].at(load+shift+ahead*math.Sqrt(st.Spread)))
		}
	}
	return least
}

// shed lowers what there is of each resource to its ceiling, and not below what each
// job needs: the load may have risen to where less is stood.
func (p *policy) shed(r *round) {
	for k, name := range r.names {
		most := p.bound(r, name, -shift)
		if most >= r.sum[k] {
			continue
		}
		floors := 0.0
		for i := range r.seats {
			if s := &r.seats[i]; s.runs() && !math.IsNaN(s.to[k]) {
				floors += p.floor(s, k, name)
			}
		}
		r.capacity[k] = math.Min(r.capacity[k], math.Max(most, floors))
	}
}

// confine lets jobs grow up to the ceilings: where the wait is over, one step, at least
// a tenth of all, beyond one of them, each in its turn.
func (p *policy) confine(r *round, beyond bool) {
	var confined []int
	for k, name := range r.names {
		most := p.bound(r, name, shift)
		if math.IsInf(most, 1) || r.capacity[k] <= most {
			continue
		}
		r.capacity[k] = math.Max(most, r.sum[k])
		if most-r.sum[k] < p.step[name] {
			confined = append(confined, k)
		}
	}
	if !beyond || len(confined) == 0 {
		return
	}
	k := confined[p.Tried.Turn%len(confined)]
	name := r.names[k]
	step := math.Max(p.step[name], p.greatest[name]/10)
	if whole(name) {
		step = math.Floor(step)
	}
	r.capacity[k] = math.Min(r.o.Capacity[name], r.capacity[k]+step)
	if !p.Tried.Failed {
		p.Wait = max(leastWait, p.Wait/2)
	}
	p.Tried = tried{Resource: name, At: r.o.Time, Turn: p.Tried.Turn + 1}
	p.Calm = 0
	for i := range r.o.Services {
		s := &r.o.Services[i]
		if load := known(s.Load); !math.IsNaN(load) {
			p.Services[s.Workload].Ceilings[name].raise(load, r.capacity[k])
		}
	}
}
