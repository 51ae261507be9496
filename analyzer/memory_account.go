package analyzer

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/workingset"
	"github.com/trimtab/trimtab/quantity"
)

// accountDays is how many days an account covers.
const accountDays = 8

// accountDay is the account of one day; Number counts days since the Unix epoch.
type accountDay struct {
	Number int64 `json:"day"`
	quantity.MemoryAccount
}

// today returns the account of the day of a time, and drops those that are too old.
func (x *memory) today(at time.Time) *quantity.MemoryAccount {
	day := at.Unix() / 86400
	if n := len(x.Days); n == 0 || x.Days[n-1].Number < day {
		x.Days = slices.DeleteFunc(x.Days, func(d accountDay) bool { return d.Number <= day-accountDays })
		x.Days = append(x.Days, accountDay{Number: day})
	}
	return &x.Days[len(x.Days)-1].MemoryAccount
}

// count adds the time since the reading before, with the use now, the limit in force, and the one that
// trimtab would have set at the last estimate.
func (x *memory) count(before, at time.Time) {
	lasted := at.Sub(before)
	if x.Limit == nil || x.Advised == 0 || !(lasted > 0 && lasted <= memoryStale) {
		return
	}
	a, s := x.today(at), lasted.Seconds()
	a.Seconds += s
	a.Over += s * math.Max(0, *x.Limit-x.Use)
	a.Under += s * math.Max(0, x.Use-*x.Limit)
	a.AdvisedOver += s * math.Max(0, x.Advised-x.Use)
	a.AdvisedUnder += s * math.Max(0, x.Use-x.Advised)
}

// countKills adds kills, under the limit in force.
func (x *memory) countKills(at time.Time, kills float64) {
	a := x.today(at)
	a.Kills += kills
	if x.Limit != nil && x.Advised > *x.Limit+x.Rise {
		a.Prevented += kills
	}
}

// account sums up the days; nil: there is nothing to account for.
func (x *memory) account() *quantity.MemoryAccount {
	var sum quantity.MemoryAccount
	for i := range x.Days {
		sum.Add(&x.Days[i].MemoryAccount)
	}
	if sum.Seconds == 0 && sum.Kills == 0 {
		return nil
	}
	return &sum
}

// validAccount checks the accounts of a state that was stored.
func (x *memory) validAccount() error {
	if len(x.Days) > accountDays {
		return trimtab.Invalidf("account of memory: %d days, limit %d", len(x.Days), accountDays)
	}
	for i := range x.Days {
		for _, v := range append(x.Days[i].Numbers(), x.Advised, x.Cache) {
			if !(v >= 0 && v <= math.MaxFloat64) {
				return trimtab.Invalidf("account of memory: %v: want a finite number >= 0", v)
			}
		}
	}
	return nil
}

// why says how the limit that trimtab advises follows from what it saw.
func why(n workingset.Need, l *workingset.Learner) string {
	text := "it has not been seen after its start yet"
	if !n.HighestAt.IsZero() {
		text = fmt.Sprintf("its highest use of the last 8 days was %s, in the hour from %s UTC, and older use is forgotten", memoryText(n.Highest), n.HighestAt.Format("2006-01-02 15:04"))
	}
	text += fmt.Sprintf("; over the last %s it was at most %s, which later use is not expected to exceed by more than %s; with the margin of %.0f%% its limit would be %s",
		span(n.Window), memoryText(n.Peak), memoryText(n.Limit-n.Peak), 100*workingset.Margin, memoryText(n.Limit*(1+workingset.Margin)))
	if l.StartPeak > 0 {
		text += fmt.Sprintf("; starts need up to %s, which counts only in the first ten minutes of a process", memoryText(l.StartPeak))
	}
	return text
}

// explain says why of the instance whose limit is furthest from what trimtab advises, and of those that
// grow without an end.
func (m *memories) explain(now time.Time, needs []quantity.MemoryNeed) {
	furthest, most := -1, -1.0
	for i := range needs {
		n := &needs[i]
		off := 0.0
		if n.Limit != nil {
			off = math.Abs(*n.Limit - n.Need*(1+workingset.Margin))
		}
		if off > most {
			furthest, most = i, off
		}
	}
	for i := range needs {
		n := &needs[i]
		x := m.of[counterKey{host: n.Host, instance: n.Instance}]
		if need, ok := x.Need(now); ok && (i == furthest || n.Growth > 0) {
			n.Why = why(need, &x.Learner)
		}
	}
}

func memoryText(v float64) string { return trimtab.AmountOf(trimtab.Memory, trimtab.Units(v)) }

// span is a window as people say it.
func span(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%.0f days", d.Hours()/24)
	case d == time.Hour:
		return "60 minutes"
	}
	return fmt.Sprintf("%.0f hours", d.Hours())
}
