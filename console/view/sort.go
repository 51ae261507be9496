package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
)

// sortKeys are the keys by which workloads can be sorted, besides their name; without a key the
// worst come first.
func sortKeys() map[string]func(*Row) *float64 {
	return map[string]func(*Row) *float64{
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

// hostKeys are the keys by which hosts can be sorted, besides their name; without a key the least
// free come first.
func hostKeys() map[string]func(*Host) *float64 {
	count := func(of func(*Host) int) func(*Host) *float64 {
		return func(h *Host) *float64 { v := float64(of(h)); return &v }
	}
	return map[string]func(*Host) *float64{
		"free": func(h *Host) *float64 {
			if len(h.Resources) == 0 {
				return nil
			}
			return h.Resources[0].Free
		},
		"knobs":     count(func(h *Host) int { return h.Knobs }),
		"instances": count(func(h *Host) int { return h.Instances }),
		"lease":     func(h *Host) *float64 { v := float64(h.LeaseLeft); return &v },
	}
}

// order sorts rows by a key, or in descending order with "-" before it. Unknown values come last,
// and equal rows are ordered by name. Without a key, usual is the order.
func order[T any](rows []T, sort string, keys map[string]func(*T) *float64, name func(*T) string, usual func(a, b T) int) {
	key, down := strings.CutPrefix(sort, "-")
	sign := 1
	if down {
		sign = -1
	}
	of := keys[key]
	slices.SortFunc(rows, func(a, b T) int {
		switch {
		case key == "":
			return usual(a, b)
		case of == nil:
			return cmp.Or(sign*strings.Compare(name(&a), name(&b)), usual(a, b))
		}
		x, y := of(&a), of(&b)
		switch {
		case x != nil && y != nil:
			return cmp.Or(sign*cmp.Compare(*x, *y), strings.Compare(name(&a), name(&b)), usual(a, b))
		case x == nil && y == nil:
			return cmp.Or(strings.Compare(name(&a), name(&b)), usual(a, b))
		case x == nil:
			return 1
		}
		return -1
	})
}

// order sorts workloads as the filter says.
func (f *Filter) order(rows []Row) {
	order(rows, f.Sort, sortKeys(), func(r *Row) string { return r.Name }, func(a, b Row) int {
		return cmp.Or(cmp.Compare(rank(&a), rank(&b)), cmp.Compare(worth(&a), worth(&b)), strings.Compare(a.Name, b.Name))
	})
}

// orderHosts sorts hosts as the filter says.
func (f *Filter) orderHosts(rows []Host) {
	order(rows, f.Sort, hostKeys(), func(h *Host) string { return h.Name }, func(a, b Host) int {
		return cmp.Or(cmp.Compare(a.Spare(), b.Spare()), strings.Compare(a.Name, b.Name), strings.Compare(a.Pool, b.Pool))
	})
}

// validSort refuses a key that neither list has.
func (f *Filter) validSort() error {
	key := strings.TrimPrefix(f.Sort, "-")
	_, row := sortKeys()[key]
	_, host := hostKeys()[key]
	if f.Sort == "" || key == "name" || row || host {
		return nil
	}
	return trimtab.Invalidf("read sort %.40q: want name, of workloads utility, performance, load, p99 or allocation, of hosts free, knobs, instances or lease, with - before it from the greatest down", f.Sort)
}

// trendFor is the length of a trend, trendPoints its largest number of points.
const trendFor, trendPoints = time.Hour, 40

// trend is the last hour of one number, a place for each minute.
type trend struct {
	minute int64 // of the newest
	values []float32
}

// note keeps a value of a minute; minutes without one are missing.
func (t *trend) note(now time.Time, v float32) {
	minute := now.Unix() / 60
	most := int64(trendFor / time.Minute)
	for gap := min(minute-t.minute, most); gap > 0 && t.minute > 0; gap-- {
		t.values = append(t.values, none())
	}
	if len(t.values) == 0 {
		t.values = append(t.values, v)
	}
	t.values[len(t.values)-1] = v
	t.values = t.values[max(0, len(t.values)-int(most)):]
	t.minute = minute
}

// points are the values, oldest first; nil is missing.
func (t *trend) points() []*float64 {
	out := make([]*float64, len(t.values))
	for i, v := range t.values {
		out[i] = number(v)
	}
	return out
}

// Trend is the last hour of a workload for small pictures, oldest first; nil is missing.
type Trend struct{ Performance, Load, Allocation []*float64 }

// Trends returns the trends of the given workloads, by name.
func (v *Model) Trends(rows []Row, now time.Time) map[string]Trend {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := map[string]Trend{}
	for i := range rows {
		s := v.workloads.all[rows[i].Name]
		if s == nil {
			continue
		}
		var t Trend
		for _, p := range thin(s.series.since(now.Add(-trendFor)), trendPoints) {
			t.Performance = append(t.Performance, number(p.v[colPerformance]))
			t.Load = append(t.Load, number(p.v[colLoad]))
			t.Allocation = append(t.Allocation, number(p.v[colAllocation]))
		}
		out[s.Name] = t
	}
	return out
}
