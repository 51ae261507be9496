package replicas

import "time"

// Idle is the time that a workload has no load, by a source outside its instances. The zero Idle
// is that of a workload with load.
type Idle struct {
	// Since is when that began, Seen when it was last observed: a short gap in the observations,
	// as during a restart of the planner, counts, a long one ends it.
	Since time.Time `json:"since"`
	Seen  time.Time `json:"seen"`
	// blind is since when the load is not known, which a new process counts anew.
	blind time.Time
}

// Look records the load, if it is known. A gap longer than old since the last call ends the idle
// time.
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

// Over reports whether there has been no load for a cooldown.
func (i *Idle) Over(now time.Time, cooldown time.Duration) bool {
	return !i.Since.IsZero() && now.Sub(i.Since) >= cooldown
}

// Blind returns since when the load is not known, if that is so for a cooldown.
func (i *Idle) Blind(now time.Time, cooldown time.Duration) (since time.Time, blind bool) {
	return i.blind, !i.blind.IsZero() && now.Sub(i.blind) >= cooldown
}
