package analyzer

import (
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/report"
	"github.com/trimtab/trimtab/quantity"
)

// used has the measurements of a window that ends at to: the mean use in cores, the fraction of the
// quota's periods that were throttled, for how many seconds per second threads waited for a CPU,
// and how many connections waited to be accepted at its end. What was not measured is 0. told has a
// bit for each measured kind, known for each that covers all instances.
type used struct {
	from, to                         time.Time
	cores, throttled, waited, queued float64
	reported, known                  uint8
}

// kinds is the number of quantities that accompany the use in a window. knowsStops is the bit for
// throttled periods.
const kinds, knowsStops = 3, 1

// kind returns the index of such a quantity, or −1.
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

// set adds such a quantity. If it covers only some instances, it may be too low and does not count
// as known.
func (u *used) set(kind int, s *trimtab.Sample) {
	*[kinds]*float64{&u.throttled, &u.waited, &u.queued}[kind] = s.Value
	if u.reported |= 1 << kind; s.Note != report.Partly {
		u.known |= 1 << kind
	}
}

// observe adds a window of use, or a quantity that accompanies it.
func (q *queueing) observe(s *trimtab.Sample) {
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

// use returns the mean use over [from, to) in cores; false if too little of it was measured.
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

// contended returns the fraction of periods in [from, to) in which a quota was used up, its own or
// that of a parent group, as far as it was measured.
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

// uneven reports whether the use in [from, to) varied: the mean of one quarter exceeds that of
// another by more than half.
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
