package trimtab

import "time"

// PlausibleEpoch reports whether a pool can have reached an epoch by now. A leader's term lasts
// seconds, so no pool has had more than one leader per millisecond since 2026:
//
//	epoch ≤ max(1 000 000, milliseconds since 2026-01-01 00:00 UTC)
//
// A higher one was forged. The bound grows faster than leaders follow each other, so there is
// always a plausible epoch above any in a forged message: forged plans or holdings can make the
// planner take a new epoch, and can never leave it without one. Actuators and planners use the
// same bound; their clocks may differ by as long as the planner can wait.
func PlausibleEpoch(epoch uint64, now time.Time) bool {
	const least = 1_000_000
	elapsed := now.Sub(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)).Milliseconds()
	return epoch <= uint64(max(least, elapsed))
}
