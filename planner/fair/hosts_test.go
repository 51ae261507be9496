package fair

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab/planner/drf"
	"github.com/trimtab/trimtab/planner/hosts"
	"github.com/trimtab/trimtab/planner/policy"
)

// drawHosts draws workloads on up to four hosts, which hold all minimums, and at
// times a budget that is less than the hosts have.
func drawHosts(t *rapid.T) *policy.Problem {
	p := &policy.Problem{Unit: 1}
	n := rapid.IntRange(1, 4).Draw(t, "hosts")
	least, total := make([]float64, n), 0
	for i := range rapid.IntRange(1, 8).Draw(t, "workloads") {
		w := policy.Workload{Name: fmt.Sprint("w", i), Weight: float64(rapid.IntRange(1, 4).Draw(t, "weight")),
			Min: rapid.SampledFrom([]int{0, 0, 3, 20}).Draw(t, "min"), Current: rapid.IntRange(0, 100).Draw(t, "current")}
		w.Max = w.Min + rapid.IntRange(0, 300).Draw(t, "more")
		w.Demand = rapid.IntRange(0, 300).Draw(t, "demand")
		sum := 0.0
		for h := range n {
			if f := rapid.SampledFrom([]float64{0, 0.25, 0.5, 1.0 / 3, 1}).Draw(t, "share"); f > 0 && sum+f <= 1 {
				w.Parts = append(w.Parts, policy.Part{Host: h, Share: f})
				least[h] += f * float64(w.Min)
				sum += f
			}
		}
		total += w.Min
		p.Workloads = append(p.Workloads, w)
	}
	for h := range n {
		p.Hosts = append(p.Hosts, policy.Host{Name: fmt.Sprint("h", h), Units: least[h] + rapid.SampledFrom([]float64{0, 10, 50, 99.5, 200}).Draw(t, "host")})
	}
	p.Units = total + rapid.SampledFrom([]int{0, 50, 200, 5000}).Draw(t, "pool")
	return p
}

// filled returns the real shares, with every workload between lo and hi.
func filled(p *policy.Problem) ([]claim, *hosts.Headroom) {
	room := hosts.New(p)
	claims := make([]claim, len(p.Workloads))
	for i, w := range p.Workloads {
		claims[i] = claim{weight: w.Weight, lo: float64(w.Min), hi: float64(w.Max)}
	}
	newFilling(room, []flow{{parent: -1}}, claims).run()
	return claims, room
}

func used(room *hosts.Headroom, claims []claim) []float64 {
	sums := make([]float64, len(room.Left)+1)
	for i, c := range claims {
		for _, part := range room.Parts(i) {
			sums[part.Row] += part.Share * c.amount
		}
		sums[len(room.Left)] += c.amount
	}
	return sums
}

// Bertsekas and Gallager, Data Networks, 6.5.2: an allocation is max-min fair if
// and only if everybody who is to have more has a bottleneck: a full row on which
// nobody has more than it, per weight, but by its floor.
func TestWhoeverHasLessThanItWantsHasAFullHostWhereNobodyHasMorePerWeight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawHosts(t)
		claims, room := filled(p)
		sums := used(room, claims)
		size := append(slices.Clone(room.Left), float64(room.Units))
		on := func(i int) []int {
			rows := []int{len(room.Left)}
			for _, part := range room.Parts(i) {
				rows = append(rows, int(part.Row))
			}
			return rows
		}
		for r := range size {
			if sums[r] > size[r]+1e-6 {
				t.Fatalf("row %d has %v, of which %v are given out", r, size[r], sums[r])
			}
		}
		for i, c := range claims {
			if c.amount < c.lo-1e-9 || c.amount > c.hi+1e-9 {
				t.Fatalf("%+v is out of its bounds", c)
			}
			if c.amount > c.hi-1e-6 {
				continue
			}
			bottleneck := slices.ContainsFunc(on(i), func(r int) bool {
				if sums[r] < size[r]-1e-6 {
					return false
				}
				for j, d := range claims {
					if slices.Contains(on(j), r) && d.amount > d.lo+1e-6 && d.amount/d.weight > c.amount/c.weight+1e-6 {
						return false
					}
				}
				return true
			})
			if !bottleneck {
				t.Fatalf("workload %d has %v of %v and no bottleneck: %+v, used %v of %v", i, c.amount, c.hi, claims, sums, size)
			}
		}
	})
}

// planner/drf fills a sparse matrix up to limits, without floors. A level of it
// is an amount per weight where every resource has the weight w f/C.
func TestWithoutFloorsTheSharesAreThoseOfDRF(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawHosts(t)
		for i := range p.Workloads {
			p.Workloads[i].Min = 0
			p.Workloads[i].Max++
		}
		claims, room := filled(p)
		of := drf.Problem{Capacities: append(slices.Clone(room.Left), float64(room.Units))}
		for i, w := range p.Workloads {
			limit := float64(w.Max)
			tenant := drf.Tenant{Weight: 1, Limit: &limit}
			add := func(r int, share float64) {
				if of.Capacities[r] > 0 {
					tenant.Demands = append(tenant.Demands, drf.Demand{Resource: r, Amount: share, Weight: w.Weight * share / of.Capacities[r]})
				} else {
					limit = 0
				}
			}
			for _, part := range room.Parts(i) {
				add(int(part.Row), part.Share)
			}
			add(len(room.Left), 1)
			of.Tenants = append(of.Tenants, tenant)
		}
		s, err := drf.Solve(of)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range claims {
			if want := s.Level[i] * p.Workloads[i].Weight; math.Abs(c.amount-want) > 1e-6 {
				t.Fatalf("workload %d has %v, by drf %v", i, c.amount, want)
			}
		}
	})
}

func TestWithoutHostsTheSharesDownATreeAreThoseFromTheRootDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawHosts(t)
		p.Hosts = nil
		for i := range p.Workloads {
			w := &p.Workloads[i]
			w.Parts = nil
			w.Group = rapid.SampledFrom([]string{"", "a", "a/x", "b"}).Draw(t, "group")
			w.Min, w.Max = w.Min*1000, w.Max*1000
			w.Guarantee = 1000 * rapid.SampledFrom([]int{0, 0, 50}).Draw(t, "guarantee")
		}
		p.Units *= 1000
		for _, g := range []string{"a", "a/x", "b"} {
			p.Groups = append(p.Groups, policy.Group{Path: g, Weight: float64(rapid.IntRange(1, 3).Draw(t, "weight")),
				Guarantee: 1000 * rapid.SampledFrom([]int{0, 0, 100}).Draw(t, "guarantee")})
		}
		most := make([]int, len(p.Workloads))
		for i, w := range p.Workloads {
			most[i] = w.Max
		}
		if tree := treeOf(p, most); tree.due > p.Units {
			t.Skip("not all that is guaranteed is there")
		}
		want := make([]int, len(p.Workloads))
		treeOf(p, most).divide(p.Units, want)
		got := overHosts(p, most)
		for i, k := range got.Units {
			if max(k-want[i], want[i]-k) > 2*len(want) { // every level of the tree rounds
				t.Fatalf("%v, want %v", got.Units, want)
			}
		}
	})
}
