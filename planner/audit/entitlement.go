package audit

import "strings"

// Member is one workload with its position in the tree of groups.
type Member struct {
	// Group is the path of its group, parts joined by "/"; "": the root.
	Group string
	// Weight is its weight among the members of the group, > 0.
	Weight float64
}

// Entitlements returns each member's share of the pool,
//
//	e_i = Π w / Σ w of the siblings, from the first level down to i,
//
// where only groups with members count. weights has those of groups by path; others have 1. The
// sum is 1.
func Entitlements(members []Member, weights map[string]float64) []float64 {
	weightOf := func(path string) float64 {
		if w, ok := weights[path]; ok {
			return w
		}
		return 1
	}
	sums := map[string]float64{} // of the children, by the parent's path
	seen := map[string]bool{"": true}
	for _, m := range members {
		sums[m.Group] += m.Weight
		for path := m.Group; !seen[path]; path = parent(path) {
			seen[path] = true
			sums[parent(path)] += weightOf(path)
		}
	}
	out := make([]float64, len(members))
	for i, m := range members {
		out[i] = m.Weight / sums[m.Group]
		for path := m.Group; path != ""; path = parent(path) {
			out[i] *= weightOf(path) / sums[parent(path)]
		}
	}
	return out
}

// parent returns the path of the group above.
func parent(path string) string {
	return path[:max(0, strings.LastIndexByte(path, '/'))]
}
