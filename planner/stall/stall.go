// Package stall keeps for how long a workload may stand still in a period of its quota
// without harm to the SLO of anybody whose requests it serves:
//
//	base    = least of what the SLOs leave it          by contributions to tails
//	budget ·= base / base of before                    when that changes by more than a tenth
//	budget ·= 0.7   where more than the error budget was late, 1.05 where less than half was
//
// All are in seconds a period of 100 ms. What was learnt from requests that were late stays
// when contributions change. The package decides no quota.
package stall

import (
	"math"
	"time"

	"github.com/trimtab/trimtab"
)

const (
	// Most is the longest budget, in seconds per period. first is the initial one without
	// contributions, least the shortest.
	Most, first, least = 0.07, 0.05, 0.01
	// falls and rises are the factors of a budget after a report in which more than the error
	// budget was late, or less than half of it.
	falls, rises = 0.7, 1.05
	// mostEntries bounds the workloads whose requests one workload is known to serve.
	mostEntries = 64
	// same is the relative difference between two bases that changes nothing.
	same = 0.1
)

// Budget is how long one workload may stall in each period of its quota. The zero Budget is
// unknown yet.
type Budget struct {
	// Seconds is the budget; 0: not known.
	Seconds float64
	// base is what contributions left when Seconds last followed them; 0: not known.
	base float64
	// entries is what they leave now, by the workload whose requests it serves.
	entries map[string]entry
	// corrected is the time of the estimate that it was last corrected by.
	corrected time.Time
}

// entry is what the SLO of one workload leaves, and when that was reported.
type entry struct {
	seconds float64
	at      time.Time
}

// Record records how much time the SLO of a workload leaves one that serves its requests.
func (b *Budget) Record(now time.Time, workload string, seconds float64) {
	if b.entries == nil {
		b.entries = map[string]entry{}
	}
	if _, known := b.entries[workload]; known || len(b.entries) < mostEntries {
		b.entries[workload] = entry{seconds, now}
	}
}

// Follow sets the budget to what contributions leave it, or changes it in proportion to them.
// Entries older than old are forgotten. earlier is the budget that an earlier planner set; 0:
// none.
func (b *Budget) Follow(now time.Time, old time.Duration, earlier float64) {
	base, told := b.leaves(now, old)
	switch {
	case b.Seconds == 0 && earlier > 0:
		b.Seconds = earlier
		if told {
			b.base = base
		}
	case b.Seconds == 0:
		b.Seconds, b.base = base, base
	case told && b.base == 0:
		b.base = base
	case told && math.Abs(base-b.base) > same*b.base:
		b.Seconds = math.Min(Most, math.Max(least, b.Seconds*base/b.base))
		b.base = base
	}
}

// leaves returns the least of what the SLOs leave; first if nothing is known.
func (b *Budget) leaves(now time.Time, old time.Duration) (seconds float64, told bool) {
	seconds = Most
	for workload, e := range b.entries {
		if now.Sub(e.at) > old {
			delete(b.entries, workload)
			continue
		}
		seconds, told = math.Min(seconds, e.seconds), true
	}
	if !told {
		return first, false
	}
	return math.Max(least, seconds), true
}

// Correct adapts the budget to how many requests were late, once for each report; nil: there is
// none.
func (b *Budget) Correct(e *trimtab.Estimate, slo float64) {
	if e == nil || e.Performance == nil || e.Hold != nil || slo >= 1 || !e.Time.After(b.corrected) {
		return
	}
	b.corrected = e.Time
	switch late := (1 - *e.Performance) / (1 - slo); {
	case late > 1:
		b.Seconds = math.Max(least, b.Seconds*falls)
	case late < 0.5:
		b.Seconds = math.Min(Most, b.Seconds*rises)
	}
}
