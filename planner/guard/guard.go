package guard

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
)

// Config holds the bounds. The zero value has the safe defaults.
type Config struct {
	// Disabled grants everything that fits the capacity: for experiments that reproduce a paper.
	Disabled bool
	// Fall is the largest fraction of its allocation that a workload may lose in a round, in (0,
	// 1]. Default 0.2.
	Fall float64
	// Lowered is the largest fraction of the workloads that a round may lower, in (0, 1], at
	// least one of them. Default 0.25.
	Lowered float64
	// Moved is the largest fraction of the capacity that a round may take away, in (0, 1].
	// Default 0.25.
	Moved float64
	// Band is the half width of the dead band as a fraction of the allocation, in (0, 1);
	// negative: none. Default 0.1.
	Band float64
	// Window is the time in which a workload may change direction once;
	// negative: none. Default 300 s.
	Window time.Duration
}

// Validate returns an error that is trimtab.ErrInvalid and names the field.
func (c Config) Validate() error {
	for _, v := range []float64{c.Fall, c.Lowered, c.Moved} {
		if !(v >= 0 && v <= 1) {
			return trimtab.Invalidf("guard: fall %v, lowered %v, moved %v: want numbers in (0, 1]", c.Fall, c.Lowered, c.Moved)
		}
	}
	if !(c.Band < 1) || math.IsInf(c.Band, 0) {
		return trimtab.Invalidf("guard: band %v: want a number below 1", c.Band)
	}
	return nil
}

// Reversals returns the time in which one reversal is allowed.
func (c Config) Reversals() time.Duration { return c.withDefaults().Window }

func (c Config) withDefaults() Config {
	or := func(v *float64, otherwise float64) {
		if *v == 0 {
			*v = otherwise
		}
	}
	or(&c.Fall, 0.2)
	or(&c.Lowered, 0.25)
	or(&c.Moved, 0.25)
	or(&c.Band, 0.1)
	if c.Window == 0 {
		c.Window = 300 * time.Second
	}
	return c
}

// Move is the history of a workload's moves.
type Move struct {
	// Direction is +1 after a rise, −1 after a fall, 0 before any move.
	Direction int `json:"direction"`
	// At is when it last moved, Reversed when it last changed direction.
	At       time.Time `json:"at,omitzero"`
	Reversed time.Time `json:"reversed,omitzero"`
}

// Then returns the history after a move in the given direction at time now.
func (m Move) Then(direction int, now time.Time) Move {
	if m.Direction == -direction && direction != 0 {
		m.Reversed = now
	}
	m.Direction, m.At = direction, now
	return m
}

// Workload is the move requested for one workload.
type Workload struct {
	Name string
	// Now is its allocation, Target the solver's target, Want the step towards Target that is
	// requested now, all in the resource's unit.
	Now, Target, Want float64
	// Own is how much its instances have beyond their shares of Now: it may rise by that without
	// free capacity, since its own instances give it up. 0 with one instance.
	Own float64
	// Fresh: the move is based on a fresh estimate that is not held.
	Fresh bool
	// Missing: it misses its SLO with what it has; Meets: it is expected to meet it at Target.
	Missing, Meets bool
	// Safe is the least allocation at which it is expected to meet its SLO under the highest
	// expected load, in the resource's unit. 0: unknown.
	Safe float64
	// Weighed: an objective compared Target with what it has, so that only a narrow dead band
	// applies.
	Weighed bool
	// Changed: its load, or whether it meets its SLO, differs from what was expected when it last
	// moved.
	Changed bool
	// Deficit is how much less it has than it needs, in standard errors of that need.
	Deficit float64
	// Firing: an alert on it fires.
	Firing bool
	// Harms: it is expected to miss its SLO at Target, and no workload that is now worse off than
	// it gets more.
	Harms bool
	// Advice: the action will not be written (mode recommend). The same limits apply to advice,
	// counted apart from actions.
	Advice bool
	// Lent is the part of Now that was lent for alerts that are over. It may be taken back in spite
	// of Window, but only once in a Window.
	Lent float64
	// Returned is when lent capacity was last taken back.
	Returned time.Time
	Last     Move
}

// Round is the input of one round.
type Round struct {
	Now time.Time
	// Unit is the size of a unit and Capacity that of the pool. Spare is the free part of the
	// capacity, negative if more is allocated than there is.
	Unit, Capacity, Spare float64
	// Workloads are in order of name.
	Workloads []Workload
}

// Grant is what the guard allows a workload.
type Grant struct {
	// Set is Now, or a whole number of units.
	Set float64
	// Binding says what limited the request; zero: nothing.
	Binding trimtab.Binding
}

// grain absorbs rounding: 1e-9 of a unit.
const grain = 1e-9

// Apply limits the moves of a round. It is pure and keeps the order of the workloads.
func (c Config) Apply(r Round) []Grant {
	c = c.withDefaults()
	grants := make([]Grant, len(r.Workloads))
	var account [2]ledger
	for i := range r.Workloads {
		w := &r.Workloads[i]
		if a := &account[side(w)]; w.Want > w.Now && w.Missing {
			a.urgent = a.urgent || w.Changed
			a.deficit = math.Max(a.deficit, w.Deficit)
		}
	}
	for i := range r.Workloads {
		w := &r.Workloads[i]
		grants[i] = Grant{Set: w.Now}
		a := &account[side(w)]
		a.targets++
		tiny := grain * r.Unit
		switch {
		case !finite(w.Want) || !finite(w.Target) || !finite(w.Now):
			grants[i].Binding = bound("not a number")
		case w.Want > w.Now+tiny:
			c.rise(r, i, grants, a)
		case w.Want < w.Now-tiny:
			c.fall(r, i, grants, a)
		}
	}
	for s := range account {
		r.Spare = c.settle(r, grants, &account[s])
	}
	return grants
}

// ledger collects the candidates of one side: of the actions, or of the advice.
type ledger struct {
	targets int
	rises   []change
	falls   []change
	// inside has falls within the dead band, which are made only for needed rises.
	inside []change
	// urgent: a workload that misses its SLO is to get more, and that is new. Capacity that others
	// got lately may be taken for it.
	urgent bool
	// deficit is the greatest Deficit among the workloads that are to get more.
	deficit float64
}

type change struct {
	at     int
	to     float64
	amount float64
	needed bool
	// meetsSLO: the fall ends where the SLO is expected to be met.
	meetsSLO bool
}

func side(w *Workload) int {
	if w.Advice {
		return 1
	}
	return 0
}

// rise admits a rise, unless the dead band or the last reversal forbids it.
func (c Config) rise(r Round, i int, grants []Grant, a *ledger) {
	w := &r.Workloads[i]
	needed := w.Missing && w.Meets
	switch {
	case c.Disabled:
	case !needed && w.Target-w.Now <= c.band(w)*w.Now:
		grants[i].Binding = c.inBand(w)
		return
	case !w.Missing && c.reverses(w, +1, r.Now):
		grants[i].Binding = bound("one reversal in %v", c.Window)
		return
	}
	a.rises = append(a.rises, change{at: i, to: w.Want, amount: w.Want - w.Now, needed: needed})
}

// fall admits a fall, shortened to the limit per round.
func (c Config) fall(r Round, i int, grants []Grant, a *ledger) {
	w := &r.Workloads[i]
	to := math.Max(0, w.Want)
	if !w.Fresh {
		grants[i].Binding = bound("no fresh estimate, no fall")
		return
	}
	if c.Disabled {
		a.falls = append(a.falls, change{at: i, to: to, amount: w.Now - to})
		return
	}
	switch {
	case w.Firing:
		grants[i].Binding = bound("an alert on it fires")
		return
	case w.Harms:
		grants[i].Binding = bound("it would miss its SLO, and nobody who is worse off would gain")
		return
	}
	if c.reverses(w, -1, r.Now) && !w.Changed && !a.urgent && a.deficit <= c.evidence(w, r.Now) {
		if !c.returns(w, r.Now) {
			grants[i].Binding = bound("one reversal in %v", c.Window)
			return
		}
		to = math.Max(to, math.Ceil((w.Now-w.Lent)/r.Unit-grain)*r.Unit)
	}
	least := w.Now * (1 - c.Fall)
	if w.Safe > 0 {
		least = math.Min(least, w.Safe)
	}
	if least = math.Ceil(least/r.Unit-grain) * r.Unit; to < least {
		to = least
		grants[i].Binding = bound("a fall of at most %.0f%% a round", 100*c.Fall)
	}
	if to >= w.Now-grain*r.Unit {
		return
	}
	f := change{at: i, to: to, amount: w.Now - to, meetsSLO: w.Safe > 0 && to >= w.Safe-grain*r.Unit}
	if w.Now-w.Target <= c.band(w)*w.Now {
		grants[i].Binding = c.inBand(w)
		a.inside = append(a.inside, f)
		return
	}
	a.falls = append(a.falls, f)
}

// weighed is the widest dead band if an objective compared the target with what the workload has:
// such an objective makes no useless moves, and near its optimum all moves are small. Tuned with
// `trimtab-lab sim cilantro --data DIR --seeds 2 --step 10`, where 20 jobs share a pool too small
// for them: egalitarian welfare is .830 without the guard, .818 with a band of 3% and .827 with
// 0.5%, which is one unit of 200.
const weighed = 0.005

// band returns the dead band of a workload.
func (c Config) band(w *Workload) float64 {
	if w.Weighed {
		return math.Min(c.Band, weighed)
	}
	return c.Band
}

// bound returns a Binding of the guard with a text.
func bound(format string, args ...any) trimtab.Binding {
	return trimtab.Binding{Kind: codes.BindingGuard, Detail: fmt.Sprintf(format, args...)}
}

func (c Config) inBand(w *Workload) trimtab.Binding {
	return bound("the target is within %.2g%% of what it has", 100*c.band(w))
}

// reverses reports whether a move in the given direction would be a second reversal within a
// Window. A fall also waits a Window after the last rise.
func (c Config) reverses(w *Workload, direction int, now time.Time) bool {
	m := w.Last
	if m.Direction != -direction || c.Window < 0 {
		return false
	}
	return c.recent(m.Reversed, now) || direction < 0 && c.recent(m.At, now)
}

// evidence returns how large the Deficit of another workload must be, in standard errors, to take back
// what a workload was given: telling right after the workload's last move, falling linearly to 0
// after a Window.
func (c Config) evidence(w *Workload, now time.Time) float64 {
	last := w.Last.At
	if w.Last.Reversed.After(last) {
		last = w.Last.Reversed
	}
	age := min(max(now.Sub(last), 0), c.Window)
	return telling * (1 - age.Seconds()/c.Window.Seconds())
}

// telling is a Deficit, in standard errors, that is probably not noise.
const telling = 1

// returns reports whether lent capacity may be taken back now.
func (c Config) returns(w *Workload, now time.Time) bool {
	return w.Lent > 0 && !c.recent(w.Returned, now)
}

// recent reports whether t is within a Window before now. A time in the future comes from before
// the clock was set back and does not count; nor does the zero time.
func (c Config) recent(t, now time.Time) bool {
	return !t.IsZero() && !t.After(now) && now.Sub(t) < c.Window
}

// settle grants falls within the limits per round, then rises within the free capacity, and returns
// the free capacity that is left.
func (c Config) settle(r Round, grants []Grant, a *ledger) float64 {
	bySize := func(x, y change) int {
		switch {
		case x.amount > y.amount:
			return -1
		case x.amount < y.amount:
			return 1
		}
		return x.at - y.at
	}
	slices.SortFunc(a.falls, bySize)
	slices.SortFunc(a.inside, bySize)
	most, budget := a.targets, math.Inf(1)
	if !c.Disabled {
		most = max(1, int(c.Lowered*float64(a.targets)+grain))
		budget = c.Moved * r.Capacity
	}
	freed, lowered := 0.0, 0
	lower := func(f change, inside bool) {
		to := f.to
		if !f.meetsSLO && f.amount > budget-freed {
			to = math.Ceil((r.Workloads[f.at].Now-(budget-freed))/r.Unit-grain) * r.Unit
		}
		switch {
		case !f.meetsSLO && lowered >= most:
			grants[f.at].Binding = bound("at most %d of %d lowered a round", most, a.targets)
		case to >= r.Workloads[f.at].Now-grain*r.Unit:
			grants[f.at].Binding = bound("at most %.0f%% of the capacity moved a round", 100*c.Moved)
		default:
			if to > f.to {
				grants[f.at].Binding = bound("at most %.0f%% of the capacity moved a round", 100*c.Moved)
			} else if inside {
				grants[f.at].Binding = bound("lowered inside the dead band for a workload that misses its SLO")
			}
			grants[f.at].Set = to
			if freed += r.Workloads[f.at].Now - to; !f.meetsSLO {
				lowered++
			}
		}
	}
	for _, f := range a.falls {
		lower(f, false)
	}
	needed := 0.0
	for _, w := range a.rises {
		if w.needed {
			needed += w.amount
		}
	}
	for _, f := range a.inside {
		if needed <= r.Spare+freed+grain*r.Unit {
			break
		}
		lower(f, true)
	}
	return c.raise(r, grants, a.rises, r.Spare+freed)
}

// raise divides the free capacity (room) among the rises, the needed ones first. Within each kind
// it divides in proportion to the requests, less what a workload's own instances give up. It
// returns what is left.
func (c Config) raise(r Round, grants []Grant, rises []change, room float64) float64 {
	for _, needed := range []bool{true, false} {
		var group []change
		var asks []float64
		for _, w := range rises {
			if w.needed == needed {
				group = append(group, w)
				asks = append(asks, math.Max(0, w.amount-r.own(w)))
			}
		}
		for i, got := range Share(asks, room, r.Unit) {
			w := group[i]
			room -= got
			got += math.Min(r.own(w), w.amount)
			switch {
			case got >= w.amount-grain*r.Unit:
				grants[w.at].Set = w.to
			case got > 0:
				grants[w.at].Set = r.Workloads[w.at].Now + got
				grants[w.at].Binding = bound("no room for more")
			default:
				grants[w.at].Binding = bound("no room")
			}
		}
	}
	return room
}

// own returns how much of a rise a workload's own instances give up, in whole units.
func (r *Round) own(w change) float64 {
	return math.Floor(math.Max(0, r.Workloads[w.at].Own)/r.Unit+grain) * r.Unit
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
