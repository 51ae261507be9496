package overload

import (
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/policy"
)

const (
	// jumps is the factor by which a report may exceed the average demand during an overload: while
	// queues are long, measured loads have spikes.
	jumps = 1.5
	// averaged is the time constant, in seconds, of the average of a demand. inTime is the one for a
	// workload that meets its SLO, or before which requests are refused: no queue hides its demand.
	averaged, inTime = 20.0, 5.0
)

// WorkloadState is what Decide keeps of one workload between rounds. The zero value means that nothing
// is known of the workload and nothing was decided.
type WorkloadState struct {
	// Wants is its average demand, the CPU that its requests need, in cores; 0: unknown. At is when
	// that was updated.
	Wants float64   `json:"wants,omitempty"`
	At    time.Time `json:"at,omitzero"`
	// Held is its demand when it was given up; 0: it was not, or it has met its SLO since.
	Held float64 `json:"held,omitempty"`
	// Rank is its place in the order of service, from 1; 0: it is not served. Slice is its share in
	// units; 0: none was decided.
	Rank  int `json:"place,omitempty"`
	Slice int `json:"slice,omitempty"`
	// Capped: its share is also a limit.
	Capped bool `json:"capped,omitempty"`
	// Admitted: its share was decided by admit (admit.go), for a demand of Asked units. Partial: its
	// share does not serve all of its requests, and a gate must refuse the rest.
	Admitted bool    `json:"admitted,omitempty"`
	Partial  bool    `json:"partial,omitempty"`
	Asked    float64 `json:"asked,omitempty"`
	// Kept is the least part of its requests that its share must be able to answer, [0, 1]; Sure: with
	// less, important ones were refused. MovedAt is when its share or Kept changed last (admit.go).
	Kept    float64   `json:"kept,omitempty"`
	Sure    bool      `json:"sure,omitempty"`
	MovedAt time.Time `json:"moved_at,omitzero"`
	// Refused and Important are averages of those of the reports while it is Admitted.
	Refused   float64 `json:"refused,omitempty"`
	Important float64 `json:"important,omitempty"`
	// Served is when it was last served well enough: its performance was at least half of its SLO,
	// or nothing stopped it. ExcludedUntil is until when it is not chosen, because it could not use its
	// share.
	Served        time.Time `json:"served,omitzero"`
	ExcludedUntil time.Time `json:"barred,omitzero"`
	// InTime is since when its reports meet its SLO; zero: they do not.
	InTime time.Time `json:"in_time,omitzero"`
	// LateSince is since when its reports miss its SLO; zero: they do not.
	LateSince time.Time `json:"late_since,omitzero"`
	// FreeSince is since when nothing stops it, by the kernel's counts; zero: something does, or
	// nothing is counted. FreeAt is when nothing had stopped it for the time frees, last: it had no
	// queue then.
	FreeSince time.Time `json:"free_since,omitzero"`
	FreeAt    time.Time `json:"free_at,omitzero"`
	// Reports is the number of reports since the last choice.
	Reports int `json:"reports,omitempty"`
	// now is the CPU that the requests of the latest report need, hidden the guess of what
	// unanswered requests need, late what works off the backlog; all in cores.
	now, hidden, late float64
}

// End forgets what was decided of the workload; its demand stays known.
func (t *WorkloadState) End() {
	t.Held, t.Rank, t.Slice, t.Capped, t.ExcludedUntil = 0, 0, 0, false, time.Time{}
	t.Admitted, t.Partial, t.Asked, t.Kept, t.Sure, t.MovedAt = false, false, 0, 0, false, time.Time{}
	t.Refused, t.Important = 0, 0
}

// Answers returns the part of its requests that an amount can answer in time, while the pool is divided
// by refusing requests; false: it is not, or the demand is unknown.
func (t *WorkloadState) Answers(amount float64) (part trimtab.Band, ok bool) {
	if !t.Admitted || !(t.Wants > 0) {
		return trimtab.Band{}, false
	}
	return Answers(amount, t.Wants), true
}

// Report is one report of a workload, as far as an overload needs it.
type Report struct {
	Time time.Time
	// Performance is the measured one, nil if missing. SLO is the performance asked for.
	Performance *float64
	SLO         float64
	// Costs is the CPU that its requests need, in cores: cost · load; negative or NaN if unknown.
	Costs float64
	// Late is the CPU that works off the waiting requests, in cores. Hidden is the fraction by
	// which arrivals exceed answers, a guess if the backlog is not measured.
	Late, Hidden float64
	// Refused is the part of its requests that were refused before it, Important the part that were
	// refused although they are of the most important class.
	Refused, Important float64
}

// Observe updates the state with a report.
func (t *WorkloadState) Observe(r Report) {
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
	t.keep(r)
	if !(r.Costs >= 0) || t.Slice > 0 && !t.FreeSince.IsZero() {
		return
	}
	over := averaged
	if in || t.Admitted {
		over = inTime
	}
	t.now = r.Costs
	if t.Slice > 0 && t.Wants > 0 {
		t.now = math.Min(t.now, jumps*t.Wants)
		if t.Rank > 0 && t.InTime.IsZero() {
			t.now = math.Min(t.now, t.Wants) // it answers requests of its queue as well as new ones
		}
	}
	t.learn(r.Time, t.now, over)
	t.hidden, t.late = t.now*r.Hidden, r.Late
}

// count updates the state with the kernel's counts: the CPU use of the last seconds in cores, < 0 if
// unknown, and whether something stopped the workload meanwhile. A workload that nothing stops uses
// what it wants, which its reports show only later.
func (t *WorkloadState) count(now time.Time, used float64, stopped bool) {
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

// learn adds a demand in cores, measured at a time, to the exponential average with time constant
// over, in seconds.
func (t *WorkloadState) learn(at time.Time, now, over float64) {
	keep := t.weight(at, over)
	t.now, t.Wants, t.At = now, keep*t.Wants+(1-keep)*now, at
}

// weight returns that of an average so far when a value of that time is added to it.
func (t *WorkloadState) weight(at time.Time, over float64) float64 {
	if since := at.Sub(t.At).Seconds(); !t.At.IsZero() && since < 4*averaged {
		return math.Exp(-math.Max(since, 0) / over)
	}
	return 0
}

// Valid reports whether the state is one that Observe and Decide can produce; a restored state may
// not be.
func (t *WorkloadState) Valid() bool {
	return t.Wants >= 0 && t.Wants < 1e15 && t.Held >= 0 && t.Held < 1e15 && t.Slice >= 0 && t.Slice <= policy.MaxUnits && t.Rank >= 0 && t.Reports >= 0 && t.Asked >= 0 && t.Asked < 1e15 && t.Kept >= 0 && t.Kept <= 1 && t.Refused >= 0 && t.Refused <= 1 && t.Important >= 0 && t.Important <= 1
}
