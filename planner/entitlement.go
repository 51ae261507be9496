package planner

import (
	"cmp"
	"math"
	"strings"
)

// due is a workload, or a group of them, where a pool is divided by entitlement.
type due struct {
	name string // of a workload; "": a group
	// least is what it has before anything is shared by weight, or the sum of that below it.
	weight, least float64
	below         []*due
}

// party is a workload that shares an amount with others, and what it has before anything is
// shared by weight.
type party struct {
	*workload
	least float64
}

// entitlements is what each workload of the pool is entitled to of its first resource, by name.
func (r *decision) entitlements() map[string]float64 {
	p := r.planner
	least := map[string]float64{}
	for _, s := range r.seats {
		if s.resource == 0 {
			least[s.Name] = float64(s.lo) * s.of.Unit
		}
	}
	var all []party
	for _, w := range p.workloads {
		if len(w.dials) > 0 && w.dials[0] != nil {
			all = append(all, party{w, math.Max(w.dials[0].Guarantee, least[w.Name])})
		}
	}
	return p.entitle(all, p.resources[0].Capacity)
}

// entitle divides an amount among workloads, by name:
//
//	e = max(g, s·w) at each level of the tree of groups, with the s at which the sum is what
//	the level has
//
// of the guarantee or minimum g, and the weight w among the siblings. The sum is the amount;
// guarantees of more than that are cut in proportion.
func (p *Planner) entitle(all []party, amount float64) map[string]float64 {
	groups := map[string]*due{"": {}}
	for _, w := range all {
		d := &due{name: w.Name, weight: cmp.Or(w.Weight, 1), least: w.least}
		for path := w.Group; ; path = path[:max(0, strings.LastIndexByte(path, '/'))] {
			of := groups[path]
			if of == nil {
				of = p.group(path)
				groups[path] = of
			} else {
				of.below = append(of.below, d)
				break
			}
			of.below = append(of.below, d)
			d = of
		}
	}
	out := map[string]float64{}
	groups[""].demand()
	groups[""].divide(amount, out)
	return out
}

// group is a group without members, as it was declared.
func (p *Planner) group(path string) *due {
	for i := range p.cfg.Groups {
		if g := &p.cfg.Groups[i]; g.Path == path {
			return &due{weight: cmp.Or(g.Weight, 1), least: g.Guarantee}
		}
	}
	return &due{weight: 1}
}

// demand sums up what those below must have.
func (d *due) demand() float64 {
	sum := 0.0
	for _, b := range d.below {
		sum += b.demand()
	}
	d.least = math.Max(d.least, sum)
	return d.least
}

// divide gives those below their parts of an amount.
func (d *due) divide(amount float64, out map[string]float64) {
	if d.name != "" {
		out[d.name] = amount
		return
	}
	least := 0.0
	for _, b := range d.below {
		least += b.least
	}
	if least > 0 && least >= amount {
		for _, b := range d.below {
			b.divide(amount*b.least/least, out)
		}
		return
	}
	served := make([]bool, len(d.below)) // by more than their part
	level := 0.0
	for again := true; again; {
		left, weights := amount, 0.0
		for i, b := range d.below {
			if served[i] {
				left -= b.least
			} else {
				weights += b.weight
			}
		}
		if weights == 0 {
			break // but for a rounding, the least of all is the amount
		}
		level, again = left/weights, false
		for i, b := range d.below {
			if !served[i] && b.least > level*b.weight {
				served[i], again = true, true
			}
		}
	}
	for _, b := range d.below {
		b.divide(math.Max(b.least, level*b.weight), out)
	}
}
