package dominant

import (
	"cmp"
	"math"
	"slices"

	"github.com/trimtab/trimtab/planner/hosts"
)

// grain absorbs rounding when a share is turned into units: 1e-9 of a unit.
const grain = 1e-9

// round turns the shares of resource r into whole units that sum to at most what may be given
// out, on each host too: every share is rounded down, and the units that are left go to the
// largest remainders, as far as their hosts have room; ties: first to those that would otherwise
// lose a unit that they have, then in order.
func (p *pool) round(r int, units [][]int) {
	type part struct {
		at        int
		remainder float64
		keeps     int // 0: it would lose a unit that it holds
	}
	of := p.q.Resources[r]
	room := hosts.Pool(of.Units)
	if p.headroom[r] != nil {
		room = p.headroom[r].Clone()
		room.Units = of.Units
	}
	var parts []part
	for i := range p.tenants {
		w := &p.q.Workloads[i].Wants[r]
		exact := p.tenants[i].share(r) * of.Capacity
		n := min(max(int(math.Floor(exact+grain)), w.Min), w.Max)
		units[i][r] = n
		room.Subtract(i, n)
		if rest := exact - float64(n); rest > grain && n < w.Max {
			keeps := 1
			if w.Current > n {
				keeps = 0
			}
			parts = append(parts, part{i, math.Round(rest / grain), keeps})
		}
	}
	// Rounding within the grain may have taken a unit too many.
	for i := len(p.tenants) - 1; i >= 0; i-- {
		for room.Over(i) && units[i][r] > p.q.Workloads[i].Wants[r].Min {
			units[i][r]--
			room.Subtract(i, -1)
		}
	}
	slices.SortStableFunc(parts, func(a, b part) int {
		return cmp.Or(cmp.Compare(b.remainder, a.remainder), cmp.Compare(a.keeps, b.keeps))
	})
	for _, t := range parts {
		if room.Most(t.at) > 0 {
			units[t.at][r]++
			room.Subtract(t.at, 1)
		}
	}
}
