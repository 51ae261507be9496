package replicas

import "time"

// Idle records for how long a workload has had no load, according to a source outside its
// instances. The zero Idle is that of a workload with load.
type Idle struct {
	// Since is when the load became 0. Seen is when that was last observed: a short gap between
	// observations, as during a restart of the planner, counts as idle; a long one ends the idle
	// time.
	Since time.Time `json:"since"`
	Seen  time.Time `json:"seen"`
	// blind is since when the load is unknown. It is not saved: a new process starts anew.
	blind time.Time
}

// Look records the load, if it is known. A gap longer than old since the last observation ends the
// idle time.
func (i *Idle) Look(now time.Time, load float64, known bool, old time.Duration) {
	switch {
	case known:
		i.blind = time.Time{}
	case i.blind.IsZero():
		i.blind = now
	}
	if gap := now.Sub(i.Seen); !known || load > 0 || gap > old || gap < 0 {
		i.Since, i.Seen = time.Time{}, time.Time{}
	}
	if known && load == 0 {
		if i.Seen = now; i.Since.IsZero() {
			i.Since = now
		}
	}
}

// Over reports whether the workload has had no load for the cooldown.
func (i *Idle) Over(now time.Time, cooldown time.Duration) bool {
	return !i.Since.IsZero() && now.Sub(i.Since) >= cooldown
}

// Blind returns since when the load is unknown, and whether that has lasted for the cooldown.
func (i *Idle) Blind(now time.Time, cooldown time.Duration) (since time.Time, blind bool) {
	return i.blind, !i.blind.IsZero() && now.Sub(i.blind) >= cooldown
}
