package fair

import (
	"math"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/hosts"
	"github.com/trimtab/trimtab/planner/policy"
)

// overHosts divides the units of a problem with hosts, each workload between its minimum and
// most: first the guarantees, in proportion if hosts cannot hold all of them, then by weight,
// down the tree. No workload could get more except from one with less per weight, on a full host,
// or in a full pool. It takes O(events × hosts × groups), with at most three events a workload.
func overHosts(p *policy.Problem, most []int) policy.Solution {
	room := hosts.New(p)
	tree := treeOf(p, most)
	due := make([]float64, len(p.Workloads))
	tree.guarantee(float64(tree.due), due)
	claims := make([]claim, len(p.Workloads))
	for i := range claims {
		claims[i] = claim{weight: math.Max(due[i], 1), lo: float64(p.Workloads[i].Min), hi: due[i]}
	}
	f := newFilling(room, []flow{{parent: -1}}, claims)
	f.run()
	groups, of := tree.flows(nil, -1, make([]int, len(claims)))
	shares := make([]claim, len(claims))
	for i := range shares {
		shares[i] = claim{group: of[i], weight: p.Workloads[i].Weight, lo: claims[i].amount, hi: float64(most[i])}
	}
	f = newFilling(room, groups, shares)
	f.run()
	return whole(p, room, shares)
}

// guarantee divides the guarantee of a group among the workloads below it, as [node.divide] does,
// but without rounding.
func (n *node) guarantee(units float64, out []float64) {
	if n.at >= 0 {
		out[n.at] = units
		return
	}
	of := make([]bounded, len(n.members))
	for i, m := range n.members {
		of[i] = bounded{float64(m.due), float64(m.most), m.weight, m.current}
	}
	s := level(units, of)
	for i, m := range n.members {
		m.guarantee(math.Min(math.Max(s*of[i].weight, of[i].lo), of[i].hi), out)
	}
}

// flows lists the groups of the tree, each before its children, and in of the index of each
// workload's group.
func (n *node) flows(groups []flow, parent int, of []int) ([]flow, []int) {
	at := len(groups)
	groups = append(groups, flow{parent: parent, weight: n.weight})
	for _, m := range n.members {
		if m.at >= 0 {
			of[m.at] = at
		} else {
			groups, of = m.flows(groups, at, of)
		}
	}
	return groups, of
}

// whole rounds shares down to whole units, and gives the units that are left to the largest
// remainders, as [round] does, where hosts have room.
func whole(p *policy.Problem, room *hosts.Headroom, shares []claim) policy.Solution {
	s := policy.Solution{Units: make([]int, len(shares)), Binding: make([]trimtab.Binding, len(shares))}
	for i := range shares {
		s.Units[i] = int(math.Floor(shares[i].amount + grain))
		room.Subtract(i, s.Units[i])
	}
	for i := len(shares) - 1; i >= 0; i-- { // rounding within the grain may have taken a unit too many
		if room.Over(i) && s.Units[i] > p.Workloads[i].Min {
			s.Units[i]--
			room.Subtract(i, -1)
		}
	}
	for _, i := range byRemainder(p, shares, s.Units) {
		if room.Most(i) > 0 {
			s.Units[i]++
			room.Subtract(i, 1)
		}
	}
	for i := range shares {
		switch k := s.Units[i]; {
		case float64(k) < shares[i].hi:
			s.Binding[i] = room.Binding(i, 1)
		case k == p.Workloads[i].Max:
			s.Binding[i] = trimtab.Binding{Kind: codes.BindingMax}
		default:
			s.Binding[i] = trimtab.Binding{Kind: codes.BindingDemand}
		}
	}
	return s
}

// byRemainder lists the workloads that may get a unit more, the largest remainder first; ties:
// first those that would otherwise lose a unit that they have, then by name.
func byRemainder(p *policy.Problem, shares []claim, units []int) []int {
	var order []int
	remainder := func(i int) float64 { return math.Round((shares[i].amount - float64(units[i])) / grain) }
	holds := func(i int) float64 { return math.Min(float64(p.Workloads[i].Current-units[i]), 1) }
	for i := range shares {
		if remainder(i) > 1 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if ra, rb := remainder(a), remainder(b); ra != rb {
			return compare(rb, ra)
		}
		return compare(math.Max(holds(b), 0), math.Max(holds(a), 0))
	})
	return order
}
