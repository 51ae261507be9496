package fair

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/trimtab/trimtab/planner/policy"
)

// node is a group, or a workload, which has no members.
type node struct {
	// at is the index of the workload in the problem; -1: it is a group.
	at     int
	weight float64
	// least is the hard minimum, due that or the guarantee, if greater, most the largest amount
	// wanted, current the present allocation: for a group, sums over its members.
	least, due, most, current int
	members                   []*node
}

// treeOf builds the tree of the problem's groups with the workloads at its leaves. The members of
// each group are in order of name, groups last. most is the largest amount that each workload may
// want.
func treeOf(p *policy.Problem, most []int) *node {
	root := &node{at: -1, weight: 1}
	groups := map[string]*node{"": root}
	declared := make(map[string]*policy.Group, len(p.Groups))
	for i := range p.Groups {
		declared[p.Groups[i].Path] = &p.Groups[i]
	}
	paths := make([]string, 0, len(p.Workloads))
	for i := range p.Workloads {
		w := &p.Workloads[i]
		if w.Group != "" {
			paths = append(paths, w.Group)
		}
	}
	slices.Sort(paths)
	var above []*node // the groups, each before those in it
	for _, path := range slices.Compact(paths) {
		above = plant(groups, declared, path, above)
	}
	for i := range p.Workloads {
		w := &p.Workloads[i]
		g := groups[w.Group]
		g.members = append(g.members, &node{at: i, weight: w.Weight, least: w.Min, most: most[i], current: w.Current,
			due: min(max(w.Guarantee, w.Min), most[i])})
	}
	for _, g := range slices.Backward(above) {
		g.sum()
	}
	root.sum()
	return root
}

// plant creates the group at path, and its missing parents.
func plant(groups map[string]*node, declared map[string]*policy.Group, path string, made []*node) []*node {
	if groups[path] != nil {
		return made
	}
	above := path[:max(0, strings.LastIndexByte(path, '/'))]
	made = plant(groups, declared, above, made)
	g := &node{at: -1, weight: 1}
	if d := declared[path]; d != nil {
		g.weight, g.due = d.Weight, d.Guarantee
	}
	groups[path] = g
	groups[above].members = append(groups[above].members, g)
	return append(made, g)
}

// sum adds up a group's members, and puts workloads, in order of name, before
// groups, in order of path.
func (n *node) sum() {
	slices.SortStableFunc(n.members, func(a, b *node) int { return cmp.Compare(isGroup(a), isGroup(b)) })
	guaranteed := 0
	for _, m := range n.members {
		n.least += m.least
		n.most += m.most
		n.current += m.current
		guaranteed += m.due
	}
	n.due = min(max(n.due, guaranteed), n.most)
}

func isGroup(n *node) int {
	if n.at < 0 {
		return 1
	}
	return 0
}

// divide shares units among the members, and within them, into out: first the guarantees, in
// proportion if they exceed the units, then by weight.
func (n *node) divide(units int, out []int) {
	if n.at >= 0 {
		out[n.at] = units
		return
	}
	guaranteed := 0
	for _, m := range n.members {
		guaranteed += m.due
	}
	of := make([]bounded, len(n.members))
	for i, m := range n.members {
		of[i] = bounded{float64(m.due), float64(m.most), m.weight, m.current}
		if guaranteed > units {
			of[i] = bounded{float64(m.least), float64(m.due), math.Max(float64(m.due), 1), m.current}
		}
	}
	for i, got := range round(units, of, level(float64(units), of)) {
		n.members[i].divide(got, out)
	}
}

// entitlements returns R·Π (weight/Σ weights of the siblings) along each
// workload's path, in units.
func entitlements(p *policy.Problem) []float64 {
	out := make([]float64, len(p.Workloads))
	var walk func(n *node, units float64)
	walk = func(n *node, units float64) {
		if n.at >= 0 {
			out[n.at] = units
			return
		}
		total := 0.0
		for _, m := range n.members {
			total += m.weight
		}
		for _, m := range n.members {
			walk(m, units*m.weight/total)
		}
	}
	walk(treeOf(p, make([]int, len(p.Workloads))), float64(p.Units))
	return out
}
