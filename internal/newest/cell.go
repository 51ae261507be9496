package newest

import "time"

const (
	// Ahead is how far the clock of a sender may be ahead of this process. A value from further
	// ahead does not keep later ones out.
	Ahead = time.Minute
	// Skew is how far the clock of a host may be behind. A report that is older was kept by the bus
	// for a host that is gone.
	Skew = 10 * time.Minute
)

// ReportedAt returns the time from which the age of a value counts: its own time, and that of its arrival
// if its own is in the future, or less than behind before it arrived.
func ReportedAt(own, arrived time.Time, behind time.Duration) time.Time {
	if arrived.Sub(own) > behind {
		return own
	}
	return arrived
}

// Cell has the newest value of one sender. The zero value has none.
type Cell[T any] struct {
	Value        T
	own, arrived time.Time
}

// Update replaces the value by one of the time own that arrives at now, unless that is older. It
// reports whether it did.
func (c *Cell[T]) Update(v T, own, now time.Time) bool {
	if own.Before(c.own) && c.own.Sub(now) <= Ahead {
		return false
	}
	*c = Cell[T]{v, own, now}
	return true
}

// Age returns the age of the value at now.
func (c *Cell[T]) Age(now time.Time) time.Duration { return now.Sub(ReportedAt(c.own, c.arrived, 0)) }

// Fresh returns the value, or the zero value if it is older than most.
func (c *Cell[T]) Fresh(now time.Time, most time.Duration) (v T) {
	if c.arrived.IsZero() || c.Age(now) > most {
		return v
	}
	return c.Value
}
