package machines

import (
	"fmt"
	"math"
	"time"

	"github.com/trimtab/trimtab"
)

// Report is what a machine reports of itself. NaN is a missing value.
type Report struct {
	Machine string
	// Time is by the machine's own clock; it orders its reports.
	Time time.Time
	// Load and Capacity are in the order of [Config.Dimensions]; a NaN
	// capacity is none. Both are >= 0, in the dimension's unit.
	Load, Capacity []float64
	// CPI is cycles per instruction, MPKI cache misses per thousand
	// instructions, means over the window.
	CPI, MPKI float64
}

// tolerated is by what factor a bounded value may exceed its capacity, as a measurement error.
const tolerated = 1.01

// Update applies one report that arrived at now. It changes one row, and costs the same for any
// number of machines. bad counts the invalid values, which are missing from now on. A refused
// report changes nothing: trimtab.ErrInvalid if its machine is unknown or its form is wrong,
// trimtab.ErrStale if its time is not after that of the last.
func (x *Index[F]) Update(now time.Time, r *Report) (bad int, err error) {
	i, known := x.at[r.Machine]
	if !known {
		return 0, trimtab.Invalidf("report of machine %.60q: it is not in the list", r.Machine)
	}
	n := len(x.config.Dimensions)
	if len(r.Load) != n || len(r.Capacity) != n {
		return 0, trimtab.Invalidf("report of machine %.60q: %d loads, %d capacities: want %d", r.Machine, len(r.Load), len(r.Capacity), n)
	}
	arrived, ok := nanoseconds(now)
	told, ok2 := nanoseconds(r.Time)
	if !ok || !ok2 {
		return 0, trimtab.Invalidf("report of machine %.60q: of %v, at %v: want times from 1970 to 2241", r.Machine, r.Time, now)
	}
	if err := x.heard(i, told, arrived); err != nil {
		return 0, fmt.Errorf("report of machine %.60q: %w", r.Machine, err)
	}
	for d := range n {
		bad += x.set(d, i, r.Load[d], r.Capacity[d])
	}
	var faults [2]int
	x.columns.cpi[i], faults[0] = sane[F](r.CPI, math.Inf(1))
	x.columns.mpki[i], faults[1] = sane[F](r.MPKI, math.Inf(1))
	return bad + faults[0] + faults[1], nil
}

// heard records that a machine has reported.
func (x *Index[F]) heard(i uint32, told, arrived int64) error {
	c := &x.columns
	lost := !x.connected(i, arrived)
	if !lost && told <= c.told[i] {
		return fmt.Errorf("its time is not after that of the last: %w", trimtab.ErrStale)
	}
	there := c.seen[i] - c.since[i] // for how long, until it was lost
	switch {
	case c.seen[i] == never:
		c.since[i] = arrived
	case c.seen[i] > arrived && c.seen[i] != parted: // the aggregator's clock was set back; it is not the machine's fault
		c.since[i] = arrived - there
	case lost:
		c.unsettled[i] = there < int64(x.config.SettleAfter)
		c.since[i] = arrived
	}
	c.told[i], c.seen[i] = told, arrived
	return nil
}

// connected reports whether a machine has reported within the time-out. An arrival in the future
// means that the aggregator's clock was set back: the machine must report again.
func (x *Index[F]) connected(i uint32, now int64) bool {
	seen := x.columns.seen[i]
	return seen != never && seen <= now && now-seen <= int64(x.config.Timeout)
}

// Disconnect marks a machine as gone, before its time-out. Its next report counts as a return.
func (x *Index[F]) Disconnect(id string) error {
	i, known := x.at[id]
	if !known {
		return trimtab.Invalidf("disconnect machine %.60q: it is not in the list", id)
	}
	c := &x.columns
	if c.seen[i] != never {
		// How long it was there is kept.
		c.since[i], c.seen[i] = parted-(c.seen[i]-c.since[i]), parted
	}
	return nil
}

// set stores one value and its capacity, and counts invalid ones.
func (x *Index[F]) set(dimension int, i uint32, load, capacity float64) (bad int) {
	d := &x.config.Dimensions[dimension]
	most := math.Inf(1)
	if d.MaxCapacity > 0 {
		most = d.MaxCapacity
	}
	size, bad := sane[F](capacity, most)
	old := float64(x.columns.capacity[dimension][i])
	x.columns.capacity[dimension][i] = size
	switch {
	case float64(size) >= x.largest[dimension]:
		x.largest[dimension] = float64(size)
	case old == x.largest[dimension]:
		x.unsure[dimension] = true
	}
	most = math.Inf(1)
	if d.Bounded {
		most = float64(size) * tolerated // NaN without a capacity
	}
	value, wrong := sane[F](load, most)
	x.columns.load[dimension][i] = value
	return bad + wrong
}

// sane returns v, or NaN where it is missing or nonsense; the latter counts.
func sane[F Number](v, most float64) (F, int) {
	switch {
	case math.IsNaN(v):
		return F(v), 0
	case v >= 0 && v <= most && !math.IsInf(float64(F(v)), 0):
		return F(v), 0
	}
	return F(math.NaN()), 1
}
