package analyzer

import (
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/report"
	"github.com/trimtab/trimtab/quantity"
)

// used is the mean use over a window that ends at to, the share of the quota's periods in it
// that were throttled, for how long in each second threads waited for a CPU, and how many
// connections waited to be accepted at its end; what is not told is 0. Bits say what is told, and what is known of all instances.
type used struct {
	from, to                         time.Time
	cores, throttled, waited, queued float64
	told, known                      uint8
}

// kinds is how many quantities come beside the use in a window, knowsStops the bit of the periods
// that were throttled.
const kinds, knowsStops = 3, 1

// kind is the number of such a quantity; below 0: it is none.
func kind(q quantity.Quantity) int {
	switch q {
	case quantity.Throttled:
		return 0
	case quantity.Waited:
		return 1
	case quantity.Queued:
		return 2
	}
	return -1
}

// set enters such a quantity. Of some instances alone it may be too low, and is not known.
func (u *used) set(kind int, s *trimtab.Sample) {
	*[kinds]*float64{&u.throttled, &u.waited, &u.queued}[kind] = s.Value
	if u.told |= 1 << kind; s.Note != report.Partly {
		u.known |= 1 << kind
	}
}

// take enters a window of use, or what came beside it.
func (q *queueing) take(s *trimtab.Sample) {
	if q.model == nil || !(s.Window > 0) {
		return
	}
	i, found := slices.BinarySearchFunc(q.used, s.Time, func(u used, t time.Time) int { return u.to.Compare(t) })
	if k := kind(s.Quantity); k >= 0 {
		if found {
			q.used[i].set(k, s)
		} else {
			q.early[k] = *s
		}
		return
	}
	if found {
		q.used[i].cores = math.Max(q.used[i].cores, s.Value)
		return
	}
	u := used{from: s.Time.Add(-s.Window.Duration()), to: s.Time, cores: s.Value}
	for k := range q.early {
		if q.early[k].Time.Equal(s.Time) {
			u.set(k, &q.early[k])
		}
	}
	q.used = slices.Insert(q.used, i, u)
	if len(q.used) > maxUsed {
		q.used = slices.Delete(q.used, 0, 1)
	}
}

// use returns the mean use over [from, to); false when too little of it was
// measured.
func (q *queueing) use(from, to time.Time) (cores float64, ok bool) {
	sum, measured := 0.0, 0.0
	for _, u := range q.used {
		begin, end := u.from, u.to
		if begin.Before(from) {
			begin = from
		}
		if end.After(to) {
			end = to
		}
		if d := end.Sub(begin).Seconds(); d > 0 {
			sum, measured = sum+d*u.cores, measured+d
		}
	}
	if whole := to.Sub(from).Seconds(); !(measured >= covered*whole) || measured == 0 {
		return 0, false
	}
	return sum / measured, true
}

// contended is the share of the periods in [from, to) in which a quota was used up, its own
// or that of a group above, as far as it was measured.
func (q *queueing) contended(from, to time.Time) float64 {
	sum, measured := 0.0, 0.0
	for _, u := range q.used {
		if d := min(u.to.Sub(from), to.Sub(u.from), u.to.Sub(u.from)).Seconds(); d > 0 {
			sum, measured = sum+d*u.throttled, measured+d
		}
	}
	if measured == 0 {
		return 0
	}
	return sum / measured
}

// uneven reports whether the use in [from, to) was not all alike: the mean of a
// quarter of that time is half as much again as that of another.
func (q *queueing) uneven(from, to time.Time) bool {
	if q.model == nil {
		return false
	}
	least, most, quarter := math.Inf(1), 0.0, to.Sub(from)/4
	for k := range time.Duration(4) {
		if cores, ok := q.use(from.Add(k*quarter), from.Add((k+1)*quarter)); ok {
			least, most = math.Min(least, cores), math.Max(most, cores)
		}
	}
	return most > 1.5*least
}
