// Package entitlement divides a pool among workloads by weight, guarantees and the tree of their
// groups:
//
//	e = max(g, s·w) at each level of the tree, with the s at which the sum is what the level has
//
// g is the guarantee, or the sum of the guarantees below it if that is more; w is the weight among
// the siblings. The entitlements add up to the capacity. Guarantees that exceed the capacity are
// cut in proportion. Demands play no part: package fair divides by demand.
package entitlement

import (
	"cmp"
	"math"
	"strings"
)

// Member is one workload.
type Member struct {
	// Group is the path of its group, with parts joined by "/"; "": the root.
	Name, Group string
	Part
}

// Part is the weight and guarantee of a workload or group among its siblings.
type Part struct {
	// Weight is its weight among its siblings; 0 counts as 1. Least is its guarantee, which it has
	// before anything is shared by weight, in the unit of the capacity.
	Weight, Least float64
}

// Divide returns the entitlement of each member, by name. groups has the groups with a weight or
// guarantee of their own, by path.
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
	name          string // of the workload; "": it is a group
	weight, least float64
	below         []*node
}

// demand raises the guarantees of groups to the sum of those below them, and returns the node's
// guarantee.
func (n *node) demand() float64 {
	sum := 0.0
	for _, b := range n.below {
		sum += b.demand()
	}
	n.least = math.Max(n.least, sum)
	return n.least
}

// divide divides an amount among the children, and puts the workloads' parts into out.
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

// level returns the s at which the children have the amount in total.
func (n *node) level(amount float64) (level float64) {
	served := make([]bool, len(n.below)) // guarantee is more than its share by weight
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
			break // only rounding errors remain
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
