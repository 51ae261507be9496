package overload

import (
	"math"
	"time"

	"github.com/trimtab/trimtab/planner/policy"
)

const (
	// jumps is by what factor a report may lie above what was wanted in an overload: while
	// queues are long, loads have spikes.
	jumps = 1.5
	// averaged is the time, in seconds, over which what a workload wants is averaged, inTime
	// that of one that meets its SLO: no queue hides what it wants.
	averaged, inTime = 20.0, 5.0
)

// Turn is what is kept of one workload from round to round. The zero Turn is that of a workload
// of which nothing is known and nothing was decided.
type Turn struct {
	// Wants is what its requests cost, in cores, averaged; 0: not known. At is its time.
	Wants float64   `json:"wants,omitempty"`
	At    time.Time `json:"at,omitzero"`
	// Held is what it wanted when it was given up; 0: it was not, or met its SLO since.
	Held float64 `json:"held,omitempty"`
	// Rank is when it is served, from 1; 0: it is not. Slice is its share, in units; 0: none
	// was decided.
	Rank  int `json:"place,omitempty"`
	Slice int `json:"slice,omitempty"`
	// Capped: the share is a limit, too.
	Capped bool `json:"capped,omitempty"`
	// Served is when it last had half of what its SLO asks for; Barred until when it is not
	// served, since it could not use a share.
	Served time.Time `json:"served,omitzero"`
	Barred time.Time `json:"barred,omitzero"`
	// InTime is since when its reports meet its SLO; zero: they do not.
	InTime time.Time `json:"in_time,omitzero"`
	// LateSince is since when its reports miss its SLO; zero: they do not.
	LateSince time.Time `json:"late_since,omitzero"`
	// FreeSince is since when nothing stops it by the kernel's counts; zero: something does, or
	// nothing is counted. FreeAt is when nothing had stopped it for some time last: it had no queue
	// then.
	FreeSince time.Time `json:"free_since,omitzero"`
	FreeAt    time.Time `json:"free_at,omitzero"`
	// Reports is how many came since the last choice.
	Reports int `json:"reports,omitempty"`
	// now is what the requests of the latest report cost, hidden what those cost that are guessed
	// to have come beside, and late what works off those that wait, in cores.
	now, hidden, late float64
}

// End takes back all that was decided of the workload: what it wants stays known.
func (t *Turn) End() {
	t.Held, t.Rank, t.Slice, t.Capped, t.Barred = 0, 0, 0, false, time.Time{}
}

// Report is what one report tells of a workload.
type Report struct {
	Time time.Time
	// Performance is what was measured; nil: missing. SLO is what is asked for.
	Performance *float64
	SLO         float64
	// Costs is what its requests cost, in cores: cost · load; negative or NaN: unknown.
	Costs float64
	// Late is what works off the requests that wait, in cores. Hidden is the part by which
	// more arrives than was answered, guessed where nobody knows what waits.
	Late, Hidden float64
}

// Take enters a report.
func (t *Turn) Take(r Report) {
	t.Reports++
	if r.Performance != nil && *r.Performance >= r.SLO/2 {
		t.Served = r.Time
	}
	in := r.Performance != nil && *r.Performance >= r.SLO
	switch {
	case !in:
		if t.InTime = (time.Time{}); t.LateSince.IsZero() {
			t.LateSince = r.Time
		}
	case t.InTime.IsZero():
		t.InTime = r.Time
		fallthrough
	default:
		t.Held, t.LateSince = 0, time.Time{}
	}
	if !(r.Costs >= 0) || t.Slice > 0 && !t.FreeSince.IsZero() {
		return
	}
	over := averaged
	if in {
		over = inTime
	}
	t.now = r.Costs
	if t.Slice > 0 && t.Wants > 0 {
		t.now = math.Min(t.now, jumps*t.Wants)
		if t.Rank > 0 && t.InTime.IsZero() {
			t.now = math.Min(t.now, t.Wants) // its answers are those to a queue, too
		}
	}
	t.learn(r.Time, t.now, over)
	t.hidden, t.late = t.now*r.Hidden, r.Late
}

// count enters what the kernel counts: what was used in the last seconds, in cores, < 0: unknown,
// and whether something stopped the workload meanwhile. One that nothing stops uses what it wants,
// which is known earlier than by its reports.
func (t *Turn) count(now time.Time, used float64, stopped bool) {
	switch {
	case stopped || used < 0:
		t.FreeSince = time.Time{}
	case t.FreeSince.IsZero():
		t.FreeSince = now
	case now.Sub(t.FreeSince) >= frees:
		if t.FreeAt, t.Served = now, now; t.Slice > 0 {
			t.learn(now, used, inTime)
			t.hidden, t.late = 0, 0
		}
	}
}

// learn takes what was wanted at a time, in cores, into the average over so many seconds.
func (t *Turn) learn(at time.Time, now, over float64) {
	keep := 0.0
	if since := at.Sub(t.At).Seconds(); !t.At.IsZero() && since < 4*averaged {
		keep = math.Exp(-math.Max(since, 0) / over)
	}
	t.now, t.Wants, t.At = now, keep*t.Wants+(1-keep)*now, at
}

// Valid reports whether the turn is one that Take and Decide can make.
func (t *Turn) Valid() bool {
	return t.Wants >= 0 && t.Wants < 1e15 && t.Held >= 0 && t.Held < 1e15 && t.Slice >= 0 && t.Slice <= policy.MaxUnits && t.Rank >= 0 && t.Reports >= 0
}
