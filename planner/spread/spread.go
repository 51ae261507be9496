package spread

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/trimtab/trimtab"
)

// Pool is the problem of spreading one resource, in quanta.
type Pool struct {
	// Quanta is the capacity of the whole pool, >= 0.
	Quanta int
	// Hosts are the capacities of its hosts, >= 0.
	Hosts []int
	// Workloads are in order of name.
	Workloads []Workload
}

// Workload is one workload's target and where it runs.
type Workload struct {
	// Target is how many quanta the solver wants for the workload, >= 0.
	Target    int
	Instances []Instance
}

// Instance is one running copy.
type Instance struct {
	// Host is its place in [Pool.Hosts].
	Host int
	// Load is what it serves, in any unit that its siblings share; nil: not known.
	Load *float64
	// Min and Max bound what it may be given, 0 <= Min <= Max.
	Min, Max int
	// Current is what it has: the larger of the value read and a requested value that is not
	// confirmed. An instance that cannot be read has at most Max.
	Current int
	// New says that it has only just appeared.
	New bool
	// Unreadable says that what it has is not known.
	Unreadable bool
}

// counts returns what the instance may hold now.
func (in *Instance) counts() int {
	if in.Unreadable {
		return max(in.Max, in.Current)
	}
	return in.Current
}

// mostQuanta bounds every amount: sums of them cannot overflow.
const mostQuanta = 1 << 50

// Validate returns an error that is trimtab.ErrInvalid for values out of range.
func (p *Pool) Validate() error {
	for _, c := range append([]int{p.Quanta}, p.Hosts...) {
		if c < 0 || c > mostQuanta {
			return trimtab.Invalidf("spread: capacity of %d quanta: want 0 to %d", c, mostQuanta)
		}
	}
	for j := range p.Workloads {
		w := &p.Workloads[j]
		if w.Target < 0 || w.Target > mostQuanta {
			return trimtab.Invalidf("spread: workload %d: target of %d quanta: want 0 to %d", j, w.Target, mostQuanta)
		}
		for i := range w.Instances {
			in := &w.Instances[i]
			if in.Host < 0 || in.Host >= len(p.Hosts) {
				return trimtab.Invalidf("spread: workload %d, instance %d: host %d of %d", j, i, in.Host, len(p.Hosts))
			}
			if in.Min < 0 || in.Min > in.Max || in.Max > mostQuanta || in.Current < 0 || in.Current > mostQuanta {
				return trimtab.Invalidf("spread: workload %d, instance %d has %d quanta, bounds %d to %d", j, i, in.Current, in.Min, in.Max)
			}
		}
	}
	return nil
}

// share is an instance whose amount can be set.
type share struct {
	*Instance
	workload, at int
	// exact is what it is to have, units the whole quanta of it.
	exact float64
	units int
}

// grain absorbs rounding when a share is turned into quanta: 1e-9 of a quantum.
const grain = 1e-9

// Amounts returns the amount of each instance, by workload and instance. No host, nor the pool,
// is given more than its capacity, or, where an instance that cannot be read uses it, than it may
// hold now.
func (p *Pool) Amounts() ([][]int, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	out, n := make([][]int, len(p.Workloads)), 0
	for j := range p.Workloads {
		n += len(p.Workloads[j].Instances)
	}
	all, shares := make([]int, n), make([]share, 0, n)
	for j := range p.Workloads {
		w := &p.Workloads[j]
		out[j], all = all[:len(w.Instances):len(w.Instances)], all[len(w.Instances):]
		shares = w.wants(shares, j)
		for i := range w.Instances {
			out[j][i] = w.Instances[i].Current
		}
	}
	p.cut(shares)
	p.round(shares)
	for k := range shares {
		out[shares[k].workload][shares[k].at] = shares[k].units
	}
	return out, nil
}

// wants appends what each readable instance of the workload should have.
func (w *Workload) wants(shares []share, j int) []share {
	first, appeared := len(shares), false
	for i, f := range w.Shares() {
		in := &w.Instances[i]
		if in.Unreadable {
			continue
		}
		want := math.Min(math.Max(f*float64(w.Target), float64(in.Min)), float64(in.Max))
		shares = append(shares, share{Instance: in, workload: j, at: i, exact: want})
		appeared = appeared || in.New
	}
	of := shares[first:]
	if appeared {
		place(of)
	}
	for k := range of {
		of[k].units = int(math.Floor(of[k].exact + grain))
	}
	return shares
}

// place gives new instances the median of their siblings' amounts.
func place(of []share) {
	var siblings []float64
	for k := range of {
		if !of[k].New {
			siblings = append(siblings, of[k].exact)
		}
	}
	n := len(siblings)
	if n == 0 {
		return
	}
	slices.Sort(siblings)
	median := (siblings[(n-1)/2] + siblings[n/2]) / 2
	for k := range of {
		if s := &of[k]; s.New {
			s.exact = math.Min(math.Max(median, float64(s.Min)), float64(s.Max))
		}
	}
}

// cut lowers what is wanted of each host, then of the pool, to its capacity.
func (p *Pool) cut(shares []share) {
	hosts := make([]group, len(p.Hosts))
	all := []group{{free: p.Quanta}}
	for h, c := range p.Hosts {
		hosts[h].free = c
	}
	for j := range p.Workloads {
		for i := range p.Workloads[j].Instances {
			if in := &p.Workloads[j].Instances[i]; in.Unreadable {
				hosts[in.Host].reserve(in.counts())
				all[0].reserve(in.counts())
			}
		}
	}
	cut(shares, hosts, func(s *share) int { return s.Host })
	cut(shares, all, func(*share) int { return 0 })
}

// group is the readable instances of a host, or of the pool: what is free for them, what they
// want, and the least that they may be cut to.
type group struct {
	free, sum, floor int
	unknown          bool
}

func (g *group) reserve(quanta int) {
	g.free -= quanta
	g.unknown = true
}

// floorOf returns the least that an instance may be cut to: its minimum, or what it has if an
// instance that cannot be read is the reason.
func (g *group) floorOf(s *share) int {
	if g.unknown {
		return min(s.units, s.Current)
	}
	return min(s.units, s.Min)
}

// cut lowers, in proportion, what exceeds the floors, until all instances of each group fit. If
// not even the floors fit they are cut in proportion, except floors that are what an instance
// has.
func cut(shares []share, groups []group, of func(*share) int) {
	for k := range shares {
		s := &shares[k]
		g := &groups[of(s)]
		g.sum += s.units
		g.floor += g.floorOf(s)
	}
	for k := range shares {
		s := &shares[k]
		g := &groups[of(s)]
		floor := g.floorOf(s)
		switch {
		case g.sum <= g.free:
		case g.floor <= g.free:
			s.units = floor + part(s.units-floor, g.free-g.floor, g.sum-g.floor)
		case g.unknown:
			s.units = floor
		default:
			s.units = part(floor, max(g.free, 0), g.floor)
		}
	}
}

// part returns a·b/c rounded down, for b <= c.
func part(a, b, c int) int {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int(q)
}

// round gives the quanta left by rounding down to the largest remainders, one each; ties go to
// instances that would otherwise lose one they have, then in order.
func (p *Pool) round(shares []share) {
	left, pool := slices.Clone(p.Hosts), p.Quanta
	targets := make([]int, len(p.Workloads))
	for j := range p.Workloads {
		w := &p.Workloads[j]
		targets[j] = w.Target
		for i := range w.Instances {
			if in := &w.Instances[i]; in.Unreadable {
				left[in.Host] -= in.counts()
				pool -= in.counts()
				targets[j] -= in.Current
			}
		}
	}
	type more struct {
		remainder float64 // in grains
		loses, at int
	}
	var rest []more
	for k := range shares {
		s := &shares[k]
		left[s.Host] -= s.units
		pool -= s.units
		targets[s.workload] -= s.units
		if s.remainder() > grain && s.units < s.Max {
			rest = append(rest, more{math.Round(s.remainder() / grain), s.loses(), k})
		}
	}
	slices.SortFunc(rest, func(a, b more) int {
		return cmp.Or(cmp.Compare(b.remainder, a.remainder), cmp.Compare(b.loses, a.loses), cmp.Compare(a.at, b.at))
	})
	for _, m := range rest {
		s := &shares[m.at]
		if left[s.Host] > 0 && pool > 0 && targets[s.workload] > 0 {
			s.units++
			left[s.Host]--
			targets[s.workload]--
			pool--
		}
	}
}

func (s *share) remainder() float64 { return s.exact - float64(s.units) }

// loses returns 1 if the instance has more than it should have.
func (s *share) loses() int {
	if s.Current > s.units {
		return 1
	}
	return 0
}
