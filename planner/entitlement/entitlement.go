// Package entitlement divides a pool among workloads by weight, guarantees and the tree of
// their groups:
//
//	e = max(g, s·w) at each level of the tree, with the s at which the sum is what the level has
//
// of the guarantee g, or the sum of those below where that is more, and the weight w among the
// siblings. The sum is the capacity; guarantees of more than that are cut in proportion. So it
// is a share by weight that no demand bounds: package fair divides by demand.
package entitlement

import (
	"cmp"
	"math"
	"strings"
)

// Member is one workload.
type Member struct {
	// Group is the path of the group that it belongs to, parts joined by "/"; "": the root.
	Name, Group string
	Part
}

// Part is the weight and guarantee of a workload or group among its siblings.
type Part struct {
	// Weight is that among its siblings; 0: 1. Least is what it has before anything is shared by
	// weight, in the unit of the capacity.
	Weight, Least float64
}

// Divide returns what each member is entitled to, by name. groups has the groups with a weight or
// a guarantee of their own, by path.
func Divide(capacity float64, members []Member, groups map[string]Part) map[string]float64 {
	nodes := map[string]*node{"": {}}
	for _, m := range members {
		below := &node{name: m.Name, weight: cmp.Or(m.Weight, 1), least: m.Least}
		for path := m.Group; ; path = path[:max(0, strings.LastIndexByte(path, '/'))] {
			of, known := nodes[path]
			if !known {
				of = &node{weight: cmp.Or(groups[path].Weight, 1), least: groups[path].Least}
				nodes[path] = of
			}
			of.below = append(of.below, below)
			if known {
				break
			}
			below = of
		}
	}
	out := map[string]float64{}
	nodes[""].demand()
	nodes[""].divide(capacity, out)
	return out
}

// node is a workload, or a group of them.
type node struct {
	name          string // of a workload; "": a group
	weight, least float64
	below         []*node
}

// demand sums up what those below must have.
func (n *node) demand() float64 {
	sum := 0.0
	for _, b := range n.below {
		sum += b.demand()
	}
	n.least = math.Max(n.least, sum)
	return n.least
}

// divide divides an amount among the children.
func (n *node) divide(amount float64, out map[string]float64) {
	if n.name != "" {
		out[n.name] = amount
		return
	}
	least := 0.0
	for _, b := range n.below {
		least += b.least
	}
	if least > 0 && least >= amount {
		for _, b := range n.below {
			b.divide(amount*b.least/least, out)
		}
		return
	}
	level := n.level(amount)
	for _, b := range n.below {
		b.divide(math.Max(b.least, level*b.weight), out)
	}
}

// level is the s at which those below have an amount together.
func (n *node) level(amount float64) (level float64) {
	served := make([]bool, len(n.below)) // by more than their part
	for again := true; again; {
		left, weights := amount, 0.0
		for i, b := range n.below {
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
		for i, b := range n.below {
			if !served[i] && b.least > level*b.weight {
				served[i], again = true, true
			}
		}
	}
	return level
}
