package verdict

import "math"

const (
	// memory is over how many verdicts a learner is judged, few how many it takes to
	// distrust one.
	memory, few = 30, 8
	// surely is how many standard errors the share of failures must lie above what the level
	// leaves: one in twenty by chance.
	surely = 1.645
)

// Trust is how the bands of a learner did on live moves, forgetting.
type Trust struct {
	// Judged and Failed are decayed counts of verdicts, and of those outside the
	// band.
	Judged float64 `json:"judged"`
	Failed float64 `json:"failed"`
}

// Valid reports whether it is one that verdicts can lead to.
func (t Trust) Valid() bool {
	return t.Failed >= 0 && t.Failed <= t.Judged && t.Judged <= memory+1
}

// After returns the trust after one more verdict.
func (t Trust) After(failed bool) Trust {
	keep := 1 - 1.0/memory
	t.Judged, t.Failed = t.Judged*keep+1, t.Failed*keep
	if failed {
		t.Failed++
	}
	return t
}

// lost reports whether the bands fail more often than their level, beyond what
// chance does.
func (t Trust) lost(level float64) bool {
	if t.Judged < few {
		return false
	}
	p, n, miss := t.Failed/t.Judged, t.Judged, 1-level
	return p-surely*math.Sqrt(miss*(1-miss)/n) > miss
}
