package local

import (
	"math"
	"time"

	"github.com/trimtab/trimtab"
)

// The rule's constants; see doc.go.
const (
	smooth        = 10.0 // ticks over which the mean follows the demand
	eta           = 0.05 // step of the running quantile
	mostOver      = 0.3  // as much of a period counts for it
	firstHeadroom = 0.3
	leastHeadroom = -0.5
	mostHeadroom  = 2.0
	risesOver     = 1.1 // of what is set
	fallsUnder    = 0.82
	// answered is the part of the backlog that a rise is to work off in a period: the
	// write itself refills the period, which works off the rest.
	answered = 0.3
)

// group is what the loop knows of one control group.
type group struct {
	name     string
	envelope trimtab.Envelope

	// Counters of the last fresh reading, and when that was.
	used, stalled float64
	at            time.Duration
	known         bool

	mean, backlog, headroom float64
	begun                   bool
	silent                  int

	// held is the most that may be in force, written what trimtab wrote last.
	held, written float64
	wrote         bool
	foreign, gone bool

	loanSince, headroomSince time.Duration
	borrows, isShort         bool
	askedAt                  time.Duration
	asked                    bool

	sums sums
}

// sums count what a group got since it is known; a new plan does not end them.
type sums struct {
	// granted is the quota over time, in core-seconds, lent and borrowed how far it was below and
	// above the target, and stood for how long the group was throttled.
	granted, lent, borrowed, stood float64
	writes                         int
}

// newGroup counts on the target being set: a plan sets it first.
func newGroup(g *Group) group {
	return group{name: g.Name, envelope: g.Envelope, headroom: firstHeadroom, held: g.Envelope.Target}
}

// find takes the quota that was read. One that trimtab did not write, outside the envelope, is
// foreign.
func (g *group) find(set float64) {
	switch {
	case math.IsNaN(set) || set < 0:
		return // held is the larger value already, if something was written since it was read
	case g.wrote && near(set, g.written):
		g.foreign = false
	default:
		e := &g.envelope
		g.foreign = set < e.Floor*(1-slack) || set > e.Ceiling*(1+slack)
	}
	g.held = set
}

// near reports whether two quotas are the same but for rounding.
func near(a, b float64) bool { return math.Abs(a-b) <= slack*math.Max(a, b)+1e-5 }

// observe reads the counters, and reports whether they are usable: from the second fresh reading
// on, if both grew by no more than the host can give.
func (g *group) observe(r *Reading, at time.Duration, capacity float64) bool {
	if r.State != Fresh || !usable(r.Used) || !usable(r.Stalled) {
		return false
	}
	used, stalled, elapsed := r.Used-g.used, r.Stalled-g.stalled, (at - g.at).Seconds()
	was := g.known
	g.used, g.stalled, g.at, g.known = r.Used, r.Stalled, at, true
	if !was || used < 0 || stalled < 0 || elapsed <= 0 || used > 2*capacity*(elapsed+period) {
		g.backlog = 0
		return false
	}
	phi := math.Min(1, stalled/elapsed)
	g.sums.stood += phi * elapsed
	g.follow(used, phi, elapsed)
	return true
}

// follow is the demand observer and the running quantile.
func (g *group) follow(used, phi, elapsed float64) {
	d := math.Max(0, used-g.backlog) / (math.Max(0.1, 1-phi) * elapsed)
	g.backlog = math.Min(d*phi, g.envelope.Most()) * elapsed
	if !g.begun {
		g.mean, g.begun = d, true
	}
	g.mean += (d - g.mean) / smooth
	w := math.Min(float64(g.envelope.Budget)/period, 0.99)
	over := math.Min(mostOver, math.Max(0, phi-w)/(1-w))
	g.headroom = math.Min(mostHeadroom, math.Max(leastHeadroom, g.headroom+eta*(over-g.envelope.Late)))
}

// wants is the rule's quota.
func (g *group) wants() float64 {
	return math.Min(g.envelope.Most(), math.Max(g.envelope.Least(), g.mean*(1+g.headroom)+answered*g.backlog/period))
}

// write notes what is written; in force is, until it was read back, the larger value.
func (g *group) write(i int, set float64) Write {
	g.written, g.wrote = set, true
	g.sums.writes++
	g.held = math.Max(g.held, set)
	return Write{Group: i, Set: set, Burst: math.Min(g.envelope.Burst, set)}
}

// account adds up what it had since the last tick.
func (g *group) account(elapsed float64) {
	if g.gone || !usable(g.held) {
		return
	}
	g.sums.granted += g.held * elapsed
	if over := g.held - g.envelope.Target; over > 0 {
		g.sums.borrowed += over * elapsed
	} else {
		g.sums.lent -= over * elapsed
	}
}

// asks reports whether the group may ask for a round now, at most once in asksEvery.
func (g *group) asks(now time.Duration) bool {
	if g.asked && now-g.askedAt < asksEvery {
		return false
	}
	g.asked, g.askedAt = true, now
	return true
}
