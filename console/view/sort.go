package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
)

// sortKeys are what rows may be sorted by; without one the worst come first.
func sortKeys() map[string]func(*Row) *float64 {
	return map[string]func(*Row) *float64{
		"name":        nil,
		"utility":     func(r *Row) *float64 { return r.Utility },
		"performance": func(r *Row) *float64 { return r.Performance },
		"load":        func(r *Row) *float64 { return r.Load },
		"p99": func(r *Row) *float64 {
			if s, ok := r.Latency["p99"]; ok {
				v := float64(s)
				return &v
			}
			return nil
		},
		"allocation": func(r *Row) *float64 {
			if r.Allocation == nil || r.Allocation.Unlimited {
				return nil
			}
			return &r.Allocation.Value
		},
	}
}

// order sorts rows as a filter says: by a key, with "-" before it from the greatest
// down, what is not known last.
func (f *Filter) order(rows []Row) {
	key, down := strings.CutPrefix(f.Sort, "-")
	of := sortKeys()[key]
	sign := 1
	if down {
		sign = -1
	}
	slices.SortFunc(rows, func(a, b Row) int {
		switch {
		case f.Sort == "":
			return cmp.Or(cmp.Compare(rank(&a), rank(&b)), cmp.Compare(worth(&a), worth(&b)), strings.Compare(a.Name, b.Name))
		case of == nil:
			return sign * strings.Compare(a.Name, b.Name)
		}
		x, y := of(&a), of(&b)
		switch {
		case x != nil && y != nil:
			return cmp.Or(sign*cmp.Compare(*x, *y), strings.Compare(a.Name, b.Name))
		case x == nil && y == nil:
			return strings.Compare(a.Name, b.Name)
		case x == nil:
			return 1
		}
		return -1
	})
}

// validSort refuses a key that there is not.
func (f *Filter) validSort() error {
	if f.Sort == "" {
		return nil
	}
	if _, ok := sortKeys()[strings.TrimPrefix(f.Sort, "-")]; !ok {
		return trimtab.Invalidf("read sort %.40q: want name, utility, performance, load, p99 or allocation, with - before it from the greatest down", f.Sort)
	}
	return nil
}

// trendFor is how far back a trend reaches, trendPoints how many points it has at most.
const trendFor, trendPoints = time.Hour, 40

// Trends returns the newest performances of workloads, oldest first, for a small
// picture: an hour of them; nil is missing.
func (v *Model) Trends(rows []Row, now time.Time) map[string][]*float64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := map[string][]*float64{}
	for i := range rows {
		s := v.workloads[rows[i].Name]
		if s == nil {
			continue
		}
		for _, p := range thin(s.series.since(now.Add(-trendFor)), trendPoints) {
			out[s.Name] = append(out[s.Name], number(p.v[colPerformance]))
		}
	}
	return out
}
