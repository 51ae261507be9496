package dominant

import "strings"

// node is one group; node 0 is the root.
type node struct {
	path   string
	parent int
	weight float64
}

// grow makes the tree of the groups that workloads name, parents before their children, and
// returns the index of each path in it.
func (p *pool) grow() map[string]int {
	p.tree = []node{{parent: -1, weight: 1}}
	places := map[string]int{"": 0}
	weights := map[string]float64{}
	for _, g := range p.q.Groups {
		weights[g.Path] = g.Weight
	}
	for i := range p.q.Workloads {
		path := p.q.Workloads[i].Group
		for end := 0; end < len(path); end++ {
			next := strings.IndexByte(path[end+1:], '/')
			if next < 0 {
				next = len(path) - end - 1
			}
			at := path[:end+1+next]
			if _, ok := places[at]; !ok {
				w, given := weights[at]
				if !given {
					w = 1
				}
				above := at[:max(0, strings.LastIndexByte(at, '/'))]
				places[at] = len(p.tree)
				p.tree = append(p.tree, node{path: at, parent: places[above], weight: w})
			}
			end += next
		}
	}
	return places
}

// below reports whether the node is the group of that path or lies in it.
func (p *pool) below(at int, path string) bool {
	for ; at > 0; at = p.tree[at].parent {
		if p.tree[at].path == path {
			return true
		}
	}
	return false
}
