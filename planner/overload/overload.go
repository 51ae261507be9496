package overload

import (
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab/planner/policy"
)

const (
	// Crumb is the part of its entitlement that a workload keeps which is not served: enough
	// for its probes.
	Crumb = 0.01
	// full and fuller are the parts of the pool that those who are served may want when one
	// more is to be, and before one is given up: while long queues are worked off, what is
	// wanted is known to about 15%.
	full, fuller = 0.93, 1.1
	// first is the part of what is left that the next in turn has, and turns how many turns
	// there are at most: a share has no more than so many steps of that size.
	first, turns = 0.9, 4
	// Sets is for how long needs must not fit before somebody is given up; where the kernel counts
	// nothing, it is a quarter of the time that reports cover, if that is longer.
	Sets = 2 * time.Second
	// fills is for how long the limit of all must be used up before somebody is given up, rests
	// after how long without it nothing is wanted that nobody has. `sim services` in 120 to 600 s,
	// tight and unequal: at 10 s and more unequal loses, at 0 s tight.
	fills, rests = 5 * time.Second, 3 * time.Second
	// used is the part of the pool that its members may use and leave enough idle for all: where no
	// limit stops them, they wait for a CPU.
	used = 0.95
	// A member that a limit stops shows that the limit of all is used up only if the members use at
	// least half of the pool together: it may have a limit of its own. Below the part idle, limits
	// of turns stop members that the pool could serve: the overload has ended, which reports over a
	// window of time tell only later.
	half, idle = 0.6, 0.3
	// Dwell is how long a choice stands at least while the overload lasts: as long as it takes
	// to work off a backlog.
	Dwell = time.Minute
	// fails is how long after a choice those who are served may be late before the others get a
	// limit: their first reports tell of the queue that they had. Where far times what the pool
	// has is wanted, they have it at once.
	fails, far = 10 * time.Second, 1.3
	// proves is how long the first in turn has to show that it can use its share, the second
	// twice as long, and Barred for how long one that cannot is not served.
	proves, Barred = time.Minute, 10 * time.Minute
	// similar is the part of what one wants that could not be served from which another is
	// taken to want as much.
	similar = 0.8
	// spares is how much more than it wants a workload is left before others have a limit.
	spares = 1.5
	// settles is for how long one that is served must be in time until what it wants is known.
	settles = 15 * time.Second
	// frees is for how long nothing must stop a member that counts as in time.
	frees = 2 * time.Second
	// ends is for how long needs must fit before an overload is over.
	ends = 8 * time.Second
)

// State is what is kept of a pool from round to round. The zero State is that of a pool whose
// needs fit.
type State struct {
	// Lasts: they did not in the last round. Since is since when they do not that did before,
	// or do that did not.
	Lasts bool
	Since time.Time
	// ChoseAt is when who is served changed last; zero: it was not decided. AskedAt is when the
	// objective was asked last. Capping: the others have a limit, since shares alone did not do,
	// or far more is wanted than the pool has.
	ChoseAt, AskedAt time.Time
	Capping          bool
	// FullSince is since when the limit of all is used up or somebody is stopped at a limit, without
	// a pause of rests, and FullAt when it was so last; zero: it is not.
	FullSince, FullAt time.Time
}

// Round is one round's question.
type Round struct {
	Now time.Time
	// Units is what the pool has for the members, Unit the size of one in cores.
	Units int
	Unit  float64
	// Policy chooses whom to serve; nil: the objective gains nothing by choosing. Groups and
	// Stop are passed on to it.
	Policy policy.Policy
	Groups []policy.Group
	Stop   func() bool
	// Members are in order of name.
	Members []Member
}

// Member is one workload of a round. Of the embedded one, Demand is not read, and Curve for its
// load and level alone.
type Member struct {
	policy.Workload
	Turn Turn
	// Entitled and Guaranteed are its entitlement and guarantee, in cores.
	Entitled, Guaranteed float64
	// Need is what counts as wanted while it is not known what its requests cost, and Waiting
	// what works off its queue, in units.
	Need, Waiting int
	// Cost is what a request costs, in cores·s; +Inf: unknown, and then of two that could be
	// served the other is.
	Cost float64
	// Used is what it used in the last seconds, in cores, and Stopped reports whether it could not
	// go on for most of them, by the kernel's counts: a limit stopped it, its own or that of all, or
	// it waited for a CPU that others used; Used < 0: nothing is counted.
	Used    float64
	Stopped bool
	// Missed is how many reports in a row missed its SLO beyond their noise. Unknown: nobody
	// knows what would be enough for it.
	Missed  int
	Unknown bool
	// Window is how long before its time a report covers where reports overlap: as long after a
	// choice they tell of the time before it, too.
	Window time.Duration
}

// Verdict is what a round comes to.
type Verdict int

const (
	// Fits: needs fit, and everybody has its entitlement.
	Fits Verdict = iota
	// Shared: needs do not fit, and everybody has its entitlement.
	Shared
	// Chosen: needs do not fit, and each has the Slice of its turn.
	Chosen
)

// Decide returns what a round comes to, with the state and the turns after it, in order of the
// members, which stay as they are.
func Decide(s State, r Round) (State, Verdict, []Turn) {
	d := decision{Round: r, state: s}
	d.Members = slices.Clone(r.Members)
	// Turns outlive a restart.
	d.state.Lasts = s.Lasts || slices.ContainsFunc(r.Members, func(m Member) bool { return m.Turn.Slice > 0 })
	verdict := d.verdict()
	out := make([]Turn, len(d.Members))
	for i := range d.Members {
		out[i] = d.Members[i].Turn
	}
	return d.state, verdict, out
}

// decision is one round under way.
type decision struct {
	Round
	state State
	// counted: the kernel's counts are known of all members. usedUp: by these they use all that
	// the pool has.
	counted, usedUp bool
}

func (d *decision) verdict() Verdict {
	d.fill()
	d.state.Lasts = d.overloaded()
	switch {
	case !d.state.Lasts:
		d.state.ChoseAt, d.state.AskedAt, d.state.Capping = time.Time{}, time.Time{}, false
		for i := range d.Members {
			d.Members[i].Turn.End()
		}
		return Fits
	case d.Policy == nil:
		return Shared
	}
	d.choose()
	return Chosen
}

// overloaded reports whether the members want more than the pool has and one misses its SLO, or
// use all that it has and several miss theirs, while the limit of all is used up. An overload ends
// when nobody was stopped at a limit for some time, or when they want less than those may who are
// served and it is known what these want. All of it must last.
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
			overlap = max(overlap, m.Window) // reports of an older time must not end it
		}
		now += (m.Turn.now + m.Turn.hidden + m.Turn.late) / d.Unit
	}
	over := misses > 0 && now > float64(d.Units) || misses > 1 && d.usedUp
	if d.state.Lasts {
		over, lasts = wants > full*float64(d.Units), max(ends, overlap)
	}
	switch s := &d.state; {
	case d.counted && s.FullSince.IsZero(): // everybody has all that it has work for
		s.Since = time.Time{}
		return false
	case d.counted && s.Lasts && !d.known(): // what they want is guessed
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
	for i := 0; over && i < len(d.Members); i++ { // what is wanted now is believed at once, at most twice as much
		t := &d.Members[i].Turn
		t.Wants = math.Max(t.Wants, math.Min(t.now, 2*t.Wants))
	}
	return over
}

// known reports whether it is known what those want who are served without a limit: nothing stops
// them, or they are in time by their reports.
func (d *decision) known() bool {
	for i := range d.Members {
		if m := &d.Members[i]; m.Turn.Rank > 0 && !m.Turn.Capped && !d.free(m) && m.Turn.InTime.IsZero() {
			return false
		}
	}
	return true
}

// fill notes since when the limit of all is used up, or one is stopped at its own.
func (d *decision) fill() {
	capped, stopped, sum := false, false, 0.0
	d.counted = true
	for i := range d.Members {
		m := &d.Members[i]
		d.counted = d.counted && m.Used >= 0
		capped, stopped, sum = capped || m.Stopped && m.Turn.Capped, stopped || m.Stopped, sum+m.Used
	}
	pool := float64(d.Units) * d.Unit
	d.usedUp = d.counted && sum > used*pool
	for i := range d.Members {
		m := &d.Members[i]
		m.Turn.count(d.Now, m.Used, m.Stopped || d.usedUp)
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

// wants is what the requests of a member cost, in units, >= 1.
func (m *Member) wants(unit float64) float64 {
	want := math.Max(m.Turn.Wants, m.Turn.Held) / unit
	if !(want > 0) {
		want = float64(m.Need)
	}
	return math.Max(want, 1)
}
