package packing

import (
	"cmp"
	"math"
	"slices"
)

// Amounts are cores and bytes: the requests of a pod, or what a node has for pods.
type Amounts struct{ CPU, Memory float64 }

func (a Amounts) fits(in Amounts) bool {
	return a.CPU <= in.CPU*(1+rounding) && a.Memory <= in.Memory*(1+rounding)
}

// rounding is the tolerance for sums of requests.
const rounding = 1e-9

// share is the larger share of a node, [0, ∞).
func (a Amounts) share(of Amounts) float64 {
	share := 0.0
	if a.CPU > 0 {
		share = a.CPU / of.CPU
	}
	if a.Memory > 0 {
		share = math.Max(share, a.Memory/of.Memory)
	}
	return share
}

// Result is how many nodes pods need.
type Result struct {
	// Nodes have a pod; Least is a lower bound for any way to place them.
	Nodes int `json:"nodes"`
	Least int `json:"least"`
	// More of Nodes are not among those that were seen.
	More int `json:"more,omitempty"`
	// Unplaced is how many pods fit on no node; they are in no other figure.
	Unplaced int `json:"unplaced,omitempty"`
}

// BestFit places pods on nodes. All amounts are finite and 0 or more.
func BestFit(pods, nodes []Amounts) (out Result) {
	if len(nodes) == 0 {
		return Result{Unplaced: len(pods)}
	}
	var mean, most, sum Amounts
	for _, n := range nodes {
		mean.CPU, mean.Memory = mean.CPU+n.CPU/float64(len(nodes)), mean.Memory+n.Memory/float64(len(nodes))
		most.CPU, most.Memory = math.Max(most.CPU, n.CPU), math.Max(most.Memory, n.Memory)
	}
	largest := func(a, b Amounts) int {
		return cmp.Or(cmp.Compare(b.share(mean), a.share(mean)), cmp.Compare(b.CPU, a.CPU), cmp.Compare(b.Memory, a.Memory))
	}
	pods, nodes = slices.SortedFunc(slices.Values(pods), largest), slices.SortedFunc(slices.Values(nodes), largest)
	var open []Amounts // what is left of each
	closed := slices.Clone(nodes)
	for _, p := range pods {
		best := -1
		for i, left := range open {
			if p.fits(left) && (best < 0 || left.share(mean) < open[best].share(mean)) {
				best = i
			}
		}
		if best < 0 {
			from := slices.IndexFunc(closed, p.fits)
			more := slices.IndexFunc(nodes, p.fits)
			switch {
			case from >= 0:
				open, closed = append(open, closed[from]), slices.Delete(closed, from, from+1)
			case more >= 0:
				open = append(open, nodes[more])
				out.More++
			default:
				out.Unplaced++
				continue
			}
			best = len(open) - 1
		}
		sum = Amounts{sum.CPU + p.CPU, sum.Memory + p.Memory}
		open[best] = Amounts{math.Max(0, open[best].CPU-p.CPU), math.Max(0, open[best].Memory-p.Memory)}
	}
	out.Nodes = len(open)
	out.Least = int(math.Ceil(sum.share(most) - rounding))
	if out.Nodes > 0 {
		out.Least = max(out.Least, 1)
	}
	return out
}
