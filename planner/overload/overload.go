package overload

import (
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab/planner/policy"
)

const (
	// Crumb is the fraction of its entitlement that a workload which is not served keeps: enough
	// for its probes.
	Crumb = 0.01
	// full is the fraction of the pool that the served members may want when one more is to join,
	// fuller the fraction above which one is given up. They differ because demands are known only
	// to about 15% while long queues are worked off.
	full, fuller = 0.93, 1.1
	// first is the fraction of the remaining pool that the next rank gets. turns is the number of
	// different ranks; all later members share the last.
	first, turns = 0.9, 4
	// Sets is for how long needs must not fit before a workload is given up. Without the kernel's
	// counts it is a quarter of the reports' window, if that is longer.
	Sets = 2 * time.Second
	// fills is for how long the common limit must be used up before a workload is given up. After
	// rests without that, all demands count as satisfied. Tuned with `sim services`, scenarios
	// tight and unequal of 120 to 600 s: with 10 s and more unequal gets worse, with 0 s tight.
	fills, rests = 5 * time.Second, 3 * time.Second
	// used is the fraction of the pool from which on it counts as used up: members that no limit
	// stops then wait for a CPU.
	used = 0.95
	// A member that is stopped by a limit shows that the common limit is used up only if the
	// members together use the fraction half of the pool: it may have a limit of its own. If they
	// use less than the fraction idle, the caps of an overload stop members that the pool could
	// serve: the overload has ended, though reports over a window show that only later.
	half, idle = 0.6, 0.3
	// Dwell is the least time between two choices during an overload: about the time to work off a
	// backlog.
	Dwell = time.Minute
	// fails is how long after a choice served members may be late before the others get a limit:
	// the first reports still describe the old queue. If the members want far times what the pool
	// has, the others get a limit at once.
	fails, far = 10 * time.Second, 1.3
	// proves is the time in which the first by rank must be served well enough; the
	// second has twice that, and so on. A member that is not is not served for the time Exclusion.
	proves, Exclusion = time.Minute, 10 * time.Minute
	// similar is the fraction of a member's demand from which on another member counts as wanting
	// as much.
	similar = 0.8
	// spares is the multiple of its demand that each served member is left with when the caps of
	// the others are computed.
	spares = 1.5
	// settles is for how long a served member must meet its SLO until its demand counts as known.
	settles = 15 * time.Second
	// frees is for how long nothing must have stopped a member for it to count as free of queues.
	frees = 2 * time.Second
	// ends is for how long needs must fit before an overload ends.
	ends = 8 * time.Second
)

// State is what Decide keeps of a pool between rounds. The zero State is that of a pool whose needs
// fit.
type State struct {
	// Lasts: needs did not fit in the last round. Since is when that began to look different; zero:
	// it does not.
	Lasts bool
	Since time.Time
	// ChoseAt is when the set or order of served members changed last; zero: nothing was chosen.
	// AskedAt is when the objective was asked last. Capping: the other members have a limit,
	// because weights alone were not enough or far more is wanted than the pool has.
	ChoseAt, AskedAt time.Time
	Capping          bool
	// FullSince is since when the common limit is used up or a member is stopped at a limit, with
	// pauses shorter than rests; FullAt is when that was last seen. Zero: it is not used up.
	FullSince, FullAt time.Time
}

// Round is the input of one round.
type Round struct {
	Now time.Time
	// Units is the capacity for the members, in units of Unit cores.
	Units int
	Unit  float64
	// Policy chooses whom to serve; nil: the objective gains nothing by choosing, and all get their
	// entitlements. Weighs divides the pool among members that are served in part; nil: the
	// entitlements do. Groups and Stop are passed on to both.
	Policy, Weighs policy.Policy
	Groups         []policy.Group
	Stop           func() bool
	// Members are in order of name.
	Members []Member
}

// Member is one workload of a round. Of the embedded Workload, Demand is not read, and of Curve
// only load and level.
type Member struct {
	policy.Workload
	State WorkloadState
	// Entitled is its entitlement, in cores.
	Entitled float64
	// Need is its assumed demand while the cost of its requests is unknown, Waiting the amount
	// that works off its queue, both in units.
	Need, Waiting int
	// Cost is the cost of one request, in core seconds; +Inf if unknown. Of two members that could
	// be served, the cheaper is preferred.
	Cost float64
	// Used is its CPU use in the last seconds, in cores, < 0 if the kernel counts nothing. Stopped
	// reports whether it could not run for most of that time: a limit stopped it, its own or the
	// common one, or it waited for a CPU that others used.
	Used    float64
	Stopped bool
	// Limited: what is before it can limit its requests in service, and refuses the others.
	Limited bool
	// Missed is how many reports in a row missed its SLO beyond their noise. Unknown: no allocation
	// is known to be enough for it.
	Missed  int
	Unknown bool
	// Window is the time that one report covers, if reports overlap. For that long after a choice,
	// reports also cover the time before it.
	Window time.Duration
}

// Verdict is the result of a round.
type Verdict int

const (
	// Fits: needs fit, and every member has its entitlement.
	Fits Verdict = iota
	// Shared: needs do not fit, and every member has its entitlement.
	Shared
	// Chosen: needs do not fit, and every member has the Slice of its State.
	Chosen
	// Admitted: needs do not fit, and every member gets the Slice of its State. A gate must refuse
	// those requests of a member with a Partial State that the Slice cannot serve.
	Admitted
)

// Decide decides one round. It returns the new state of the pool, the verdict, and the new states of
// the members in their order, and leaves its inputs unchanged.
func Decide(s State, r Round) (State, Verdict, []WorkloadState) {
	d := decision{Round: r, state: s}
	d.Members = slices.Clone(r.Members)
	// Turns are restored after a restart, the state is not.
	d.state.Lasts = s.Lasts || slices.ContainsFunc(r.Members, func(m Member) bool { return m.State.Slice > 0 })
	verdict := d.verdict()
	out := make([]WorkloadState, len(d.Members))
	for i := range d.Members {
		out[i] = d.Members[i].State
	}
	return d.state, verdict, out
}

// decision is a round while it is decided.
type decision struct {
	Round
	state State
	// counted: the kernel counts the use of all members. usedUp: by these counts they use nearly
	// all of the pool.
	counted, usedUp bool
}

func (d *decision) verdict() Verdict {
	d.fill()
	d.state.Lasts = d.overloaded()
	switch {
	case !d.state.Lasts:
		d.state.ChoseAt, d.state.AskedAt, d.state.Capping = time.Time{}, time.Time{}, false
		for i := range d.Members {
			d.Members[i].State.End()
		}
		return Fits
	case d.limits():
		d.admit()
		return Admitted
	}
	if d.admitted() {
		d.forget()
	}
	if d.Policy == nil {
		return Shared
	}
	d.choose()
	return Chosen
}

// overloaded reports whether needs do not fit. An overload begins if the members want more than the
// pool has and one misses its SLO, or if they use all that it has and several miss theirs, while
// the common limit is used up. It ends if no member was stopped at a limit for some time, or if the
// members want less than the served ones may have and their demands are known. Each condition must
// hold for some time.
func (d *decision) overloaded() bool {
	wants, now, misses, lasts, overlap := 0.0, 0.0, 0, Sets, time.Duration(0)
	for i := range d.Members {
		m := &d.Members[i]
		if m.Unknown {
			return false
		}
		if wants += m.wants(d.Unit); m.Missed > 1 && !d.free(m) {
			misses++
		}
		switch {
		case !d.counted:
			lasts = max(lasts, m.Window/4)
		case !d.free(m):
			overlap = max(overlap, m.Window) // reports from before must not end it
		}
		now += (m.State.now + m.State.hidden + m.State.late) / d.Unit
	}
	over := misses > 0 && now > float64(d.Units) || misses > 1 && d.usedUp
	if d.state.Lasts {
		over, lasts = wants > full*float64(d.Units), max(ends, overlap)
	}
	switch s := &d.state; {
	case d.counted && s.FullSince.IsZero(): // no limit stops anybody: every demand is satisfied
		s.Since = time.Time{}
		return false
	case d.counted && s.Lasts && !d.known(): // their demands are a guess
		s.Since = time.Time{}
		return true
	case over == s.Lasts:
		s.Since = time.Time{}
		return over
	case s.Since.IsZero():
		s.Since = d.Now
	}
	if d.Now.Sub(d.state.Since) < lasts || !d.state.Lasts && d.counted && d.state.FullAt.Sub(d.state.FullSince) < fills {
		return d.state.Lasts
	}
	d.state.Since = time.Time{}
	for i := 0; over && i < len(d.Members); i++ { // believe the latest demand at once instead of the average, up to twice the average
		t := &d.Members[i].State
		t.Wants = math.Max(t.Wants, math.Min(t.now, 2*t.Wants))
	}
	return over
}

// known reports whether the demands of the members that are served without a limit are known:
// nothing stops them, or they meet their SLOs by their reports.
func (d *decision) known() bool {
	for i := range d.Members {
		if m := &d.Members[i]; m.State.Rank > 0 && !m.State.Capped && !d.free(m) && m.State.InTime.IsZero() {
			return false
		}
	}
	return true
}

// fill records since when the common limit is used up, or a member is stopped at its own limit.
func (d *decision) fill() {
	capped, stopped, sum := false, false, 0.0
	d.counted = true
	for i := range d.Members {
		m := &d.Members[i]
		d.counted = d.counted && m.Used >= 0
		capped, stopped, sum = capped || m.Stopped && m.State.Capped, stopped || m.Stopped, sum+m.Used
	}
	pool := float64(d.Units) * d.Unit
	d.usedUp = d.counted && sum > used*pool
	for i := range d.Members {
		m := &d.Members[i]
		m.State.count(d.Now, m.Used, m.Stopped || d.usedUp)
	}
	full := capped && sum > idle*pool || stopped && sum > half*pool || sum > used*pool
	switch s := &d.state; {
	case full && d.counted:
		if s.FullAt = d.Now; s.FullSince.IsZero() {
			s.FullSince = d.Now
		}
	case !d.counted || d.Now.Sub(s.FullAt) >= rests:
		s.FullSince, s.FullAt = time.Time{}, time.Time{}
	}
}

// wants returns a member's demand, the CPU that its requests need, in units, >= 1.
func (m *Member) wants(unit float64) float64 {
	want := math.Max(m.State.Wants, m.State.Held) / unit
	if !(want > 0) {
		want = float64(m.Need)
	}
	return math.Max(want, 1)
}

// least returns what a member has whether it is served or not, in units.
func (d *decision) least(m *Member) int {
	return max(m.Min, 1, m.Guarantee, int(Crumb*m.Entitled/d.Unit))
}
