package ledger

import (
	"math"
	"slices"
)

// Counts has the amount with which each knob of one resource counts. It is valid until the ledger
// reads another holding or outcome.
type Counts struct {
	// of are in the order of the names of all knobs, 0 for one of another resource; sites are the
	// indices of their hosts.
	of    []float64
	sites []int32
	// capacity is the capacity that each host reports, +Inf if it reports none; nil with a
	// single host, which has the capacity of the pool.
	capacity []float64
	// nodes marks the sites that are nodes: limits there may exceed what the node has, and count
	// in full, since no planner may give out more than the pool has.
	nodes []bool
	// coming is taken by instances that have no knob yet, on no host that is known.
	coming float64
}

// Count counts the knobs of a resource.
func (l *Ledger) Count(resource string, counted func(*Knob) float64) *Counts {
	c := &Counts{of: make([]float64, len(l.Knobs()))}
	for i, k := range l.Knobs() {
		if k.Resource == resource {
			c.of[i] = counted(k)
		}
	}
	c.sites = l.sites
	if l.Coming != nil {
		c.coming = l.Coming(resource)
	}
	if !l.bounded() {
		return c
	}
	c.capacity, c.nodes = make([]float64, l.places), make([]bool, l.places)
	for _, h := range l.hosts {
		has, says := h.capacity[resource]
		if !says || len(h.nodes) > 0 { // its nodes have it
			has = math.Inf(1)
		}
		c.capacity[h.at] = has
		for at, of := range h.nodes {
			c.nodes[at] = true
			if c.capacity[at], says = of[resource]; !says {
				c.capacity[at] = math.Inf(1)
			}
		}
	}
	return c
}

// Clone returns a copy, of which knobs can be left out.
func (c *Counts) Clone() *Counts {
	out := *c
	out.of = slices.Clone(c.of)
	return &out
}

// LeaveOut counts the knob at an index as nothing.
func (c *Counts) LeaveOut(place int) { c.of[place] = 0 }

// Least counts the knob at an index as no less than v.
func (c *Counts) Least(place int, v float64) { c.of[place] = max(c.of[place], v) }

// Of returns what the knob at an index counts as.
func (c *Counts) Of(place int) float64 { return c.of[place] }

// Sum returns the sum over all knobs.
func (c *Counts) Sum() (sum float64) {
	sum = c.coming
	for _, v := range c.of {
		sum += v
	}
	return sum
}

// Left returns what is left of an amount beside all knobs; negative: they have more. A host gives
// no more than it reports: what its knobs have beyond that takes nothing from knobs of other
// hosts.
func (c *Counts) Left(amount float64) float64 {
	has := slices.Clone(c.capacity)
	amount -= c.coming
	for i, v := range c.of {
		if has != nil && !c.nodes[c.sites[i]] {
			left := &has[c.sites[i]]
			v = math.Min(v, math.Max(0, *left))
			*left -= v
		}
		amount -= v
	}
	return amount
}

// Headroom returns what is left on each host beside its knobs, by [Knob.Site]: +Inf on a host that
// does not report its capacity. nil: there is a single host, which has what the pool has.
func (c *Counts) Headroom() []float64 {
	left := slices.Clone(c.capacity)
	if left != nil {
		for i, v := range c.of {
			left[c.sites[i]] -= v
		}
	}
	return left
}

// Rest is the amount of a resource that its knobs leave, of a total and on each host. Take keeps
// it up to date.
type Rest struct {
	// Idle is as [Counts.Left], Headroom as [Counts.Headroom].
	Idle     float64
	Headroom []float64
	nodes    []bool
}

// Rest returns what is left of an amount.
func (c *Counts) Rest(amount float64) *Rest { return &Rest{c.Left(amount), c.Headroom(), c.nodes} }

// Subtract subtracts v at a host, by [Knob.Site]; a negative v gives it back. What a host gives
// beyond its capacity takes nothing from the others.
func (r *Rest) Subtract(site int, v float64) {
	if r.Headroom == nil || math.IsInf(r.Headroom[site], 1) {
		r.Idle -= v
		return
	}
	before := math.Max(0, r.Headroom[site])
	r.Headroom[site] -= v
	if r.nodes[site] {
		r.Idle -= v
		return
	}
	r.Idle -= before - math.Max(0, r.Headroom[site])
}

// Sites returns how many hosts and nodes are known.
func (l *Ledger) Sites() int { return l.places }

// Index returns the knob's index among all, valid until a knob is added or removed.
func (k *Knob) Index() int { return k.at }

// Site returns the index of the node that the knob's instance is on, or of the host where it is
// on none. It does not change while the instance stays there.
func (k *Knob) Site() int { return k.site }
