package pool

import (
	"cmp"
	"math"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/entitlement"
	"github.com/trimtab/trimtab/planner/policy"
)

// Quantum returns the step of amounts of several instances: as fine as knobs can be set, so that
// a small step reaches each of them.
func (r *Resource) Quantum() float64 {
	if step := trimtab.ResourceOf(r.Name).Step; step > 0 {
		return math.Min(step, r.Unit)
	}
	return r.Unit
}

// Down rounds an amount down to whole quanta.
func (r *Resource) Down(v float64) float64 {
	u := r.Quantum()
	return math.Floor(v/u+policy.Grain) * u
}

// StepTo returns the value at most B units from now towards aim units.
func (r *Resource) StepTo(now float64, aim int) float64 {
	at := now / r.Unit
	switch {
	case float64(aim) > at:
		aim = min(aim, int(math.Floor(at+float64(r.Step)+policy.Grain)))
	case float64(aim) < at:
		aim = max(aim, int(math.Ceil(at-float64(r.Step)-policy.Grain)))
	}
	return float64(aim) * r.Unit
}

// Ends reports whether neither the utility nor the operator's own objective rises beyond the SLO.
func (w *Workload) Ends() bool {
	if w.Mode == trimtab.Off {
		return true
	}
	for _, of := range []func(float64) float64{w.Utility, w.Worth} {
		if of != nil && of(16*w.SLO) > of(w.SLO)+1e-6 {
			return false
		}
	}
	return true
}

// PolicyGroups returns the declared groups in order of path, as policies know them.
func (c *Config) PolicyGroups() []policy.Group {
	out := make([]policy.Group, 0, len(c.Groups))
	for _, g := range c.Groups {
		weight := g.Weight
		if weight == 0 {
			weight = 1
		}
		group := policy.Group{Path: g.Path, Weight: weight, Guarantee: policy.DownUnits(g.Guarantee, c.Unit)}
		if len(g.Others) > 0 {
			for _, r := range c.Others {
				group.Others = append(group.Others, policy.DownUnits(g.Others[r.Name], r.Unit))
			}
		}
		out = append(out, group)
	}
	slices.SortFunc(out, func(a, b policy.Group) int { return cmp.Compare(a.Path, b.Path) })
	return out
}

// Entitled returns the groups that have a weight or a guarantee of their own, by path.
func (c *Config) Entitled() map[string]entitlement.Part {
	groups := make(map[string]entitlement.Part, len(c.Groups))
	for _, g := range c.Groups {
		groups[g.Path] = entitlement.Part{Weight: g.Weight, Least: g.Guarantee}
	}
	return groups
}

// BoundsOf are the bounds of a workload on a resource, the pool's first or not; false: it has no
// knob for it.
func (w *Workload) BoundsOf(r *Resource, first bool) (b Bounds, ok bool) {
	if b, ok = w.Others[r.Name]; first {
		b, ok = Bounds{w.Min, w.Max, w.Default, w.Guarantee}, !w.MemoryAlone
	}
	if b.Max == 0 || b.Max > r.Capacity {
		b.Max = r.Capacity
	}
	return b, ok
}
