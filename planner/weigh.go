package planner

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/guard"
	"github.com/trimtab/trimtab/planner/policy"
)

// Where amounts are shares by weight below one limit, the kernel gives each workload its share
// at every instant at which it wants that, and what others leave idle besides. So there is
// nothing to decide while the needs fit: everybody has its entitlement, a fixed one. The same
// holds where they do not fit and the objective is about entitlements: who stays within its own
// is served whatever others want, and who asks for more has what they leave.
//
// An objective that sums utilities gains by serving some in full where not all can be: the
// objective itself decides whom, over what a queue makes of a share s under an overload,
//
//	performance(s) = SLO  where s >= wants / full,  0 below: the queue grows without end
//	wants          = cost of a request · requests that arrive, over the last seconds
//
// They are served by priority, one after the other: of what is left the first has most, so that
// what waits for it is worked off first, and what it does not need goes to the next at once.
// Who is not served has a crumb, and what they leave. So an error of what somebody wants costs
// the last one alone. Each change of who is served costs a whole backlog: a workload that is
// served stays served while the pool can serve it. What one wants that is not is believed to be
// no less than when it was given up, until it meets its SLO again: of who starves few requests
// are seen.
//
// Source: the domination of quotas by weights in proportion to the same amounts, for a weighted
// max-min fair scheduler; docs/operations.md, "CPU by weight".

const (
	// crumb is the part of its entitlement that a workload keeps which is not served: enough
	// for its probes.
	crumb = 0.01
	// full and fuller are the parts of the pool that those who are served may want when one
	// more is to be, and before one is given up: while long queues are worked off, what is
	// wanted is known to about 15%.
	full, fuller = 0.93, 1.1
	// first is the part of what is left that the next in turn has, and turns how many turns
	// there are at most: a share has no more than so many steps of that size.
	first, turns = 0.75, 4
	// sets is for how long needs must not fit before somebody is given up.
	sets = 2 * time.Second
	// dwell is how long a choice stands at least while the overload lasts: as long as it takes
	// to work off a backlog.
	dwell = time.Minute
	// proves is how long the first in turn has to show that it can use its share, the second
	// twice as long, and barred for how long others are served in place of a first that cannot.
	proves, barred = 30 * time.Second, 10 * time.Minute
	// spares is how much more than it wants a workload is left before others are capped.
	spares = 1.1
	// jumps is by what factor a report may lie above what was wanted in an overload.
	jumps = 1.5
	// wantsOver is the time, in seconds, over which what a workload wants is averaged.
	wantsOver = 20.0
)

// overload is what is kept of the time that needs do not fit.
type overload struct {
	// lasts: they did not in the last round. since is since when they do not that did before.
	lasts bool
	since time.Time
	// choseAt is when it was decided who is served; zero: it was not. capping: the others have
	// a limit, since shares alone did not do.
	choseAt time.Time
	capping bool
}

// turn is what is kept of a workload for the time that needs do not fit.
type turn struct {
	// Wants is what its requests cost, in cores, averaged; 0: not known. At is its time.
	Wants float64   `json:"wants,omitempty"`
	At    time.Time `json:"at,omitzero"`
	// Held is what it wanted when it was given up; 0: it was not, or met its SLO since.
	Held float64 `json:"held,omitempty"`
	// Place is when it is served, from 1; 0: it is not. Slice is its share, in units; 0: none
	// was decided.
	Place int `json:"place,omitempty"`
	Slice int `json:"slice,omitempty"`
	// Capped: the share is a limit, too.
	Capped bool `json:"capped,omitempty"`
	// Served is when it last had half of what its SLO asks for; Barred until when it is not
	// served, since it could not use a share.
	Served time.Time `json:"served,omitzero"`
	Barred time.Time `json:"barred,omitzero"`
	// now is what the requests of the latest estimate cost, late what works off those that
	// wait, in cores.
	now, late float64
}

// take enters what an estimate tells of a workload with an SLO.
func (t *turn) take(e *trimtab.Estimate, slo float64) {
	if e.Performance != nil && *e.Performance >= slo {
		t.Held = 0
	}
	if e.Performance != nil && *e.Performance >= slo/2 {
		t.Served = e.Time
	}
	// The load of the report: what was used since tells of a backlog that is worked off.
	load := inputOf(e, trimtab.Load)
	if load < 0 && e.Load != nil {
		load = e.Load.Now
	}
	if e.Cost == nil || !(*e.Cost*load >= 0) {
		return
	}
	keep := 0.0
	if since := e.Time.Sub(t.At).Seconds(); !t.At.IsZero() && since < 4*wantsOver {
		keep = math.Exp(-math.Max(since, 0) / wantsOver)
	}
	t.now = *e.Cost * load
	if t.Slice > 0 && t.Wants > 0 { // while queues are long, loads have spikes
		t.now = math.Min(t.now, jumps*t.Wants)
	}
	t.Wants, t.At = keep*t.Wants+(1-keep)*t.now, e.Time
	switch t.late = 0; {
	case e.Backlog != nil:
		t.late = *e.Backlog / drain
	case e.Stopped > 1: // what is answered is what the limit lets through
		t.now *= 1 + math.Min(growing*float64(e.Stopped), growth)
	}
}

// end ends what was decided for an overload.
func (t *turn) end() {
	t.Held, t.Place, t.Slice, t.Capped, t.Barred = 0, 0, 0, false, time.Time{}
}

// valid reports whether it can be of a snapshot of ours.
func (t *turn) valid() bool {
	return t.Wants >= 0 && t.Wants < 1e15 && t.Held >= 0 && t.Held < 1e15 && t.Slice >= 0 && t.Slice <= policy.MaxUnits && t.Place >= 0
}

// weigh sets the aims of the free seats that are in where all of them share by weight, and
// reports whether it did.
func (r *decision) weigh(in func(*seat) bool) bool {
	asked, fresh := r.asked(in)
	if len(asked) == 0 || r.planner.cfg.Guard.Disabled || slices.ContainsFunc(asked, func(s *seat) bool { return !s.shared() || s.resource > 0 }) {
		return false
	}
	if !fresh {
		return true
	}
	if all := r.berths(asked); len(all) > 1 {
		r.shares(asked, all)
		return true
	}
	over := r.overloaded(asked)
	if r.planner.overload.lasts = over; !over {
		r.planner.overload.choseAt, r.planner.overload.capping = time.Time{}, false
		for _, s := range asked {
			s.turn.end()
		}
	}
	if !over || !r.planner.traits.Sums {
		detail := "needs fit; the kernel shares"
		if over {
			detail = "needs do not fit; the kernel shares by entitlement"
		}
		entitled := r.entitlements()
		for _, s := range asked {
			s.rest(entitled[s.Name], detail)
		}
		return true
	}
	r.choose(asked)
	return true
}

// overloaded reports whether the seats want more than the pool has, for some time, and one
// misses its SLO. An overload ends when they want less than those may who are served.
func (r *decision) overloaded(asked []*seat) bool {
	o, wants, now, misses := &r.planner.overload, 0.0, 0.0, false
	for _, s := range asked {
		if s.estimate.Cost == nil && s.unserved() {
			return false // nobody knows what would be enough
		}
		wants, misses = wants+s.wants(), misses || s.missed > 1
		now += (s.turn.now + s.turn.late) / s.of.Unit
	}
	units := float64(r.left(asked))
	if o.lasts {
		return wants > full*units
	}
	if !misses || now <= units {
		o.since = time.Time{}
		return false
	}
	if o.since.IsZero() {
		o.since = r.now
	}
	if r.now.Sub(o.since) < sets {
		return false
	}
	for _, s := range asked {
		s.turn.Wants = math.Max(s.turn.Wants, math.Min(s.turn.now, 2*s.turn.Wants))
	}
	return true
}

// left is what the pool has for the seats, in units.
func (r *decision) left(asked []*seat) int {
	return max(0, policy.DownUnits(r.idle(0, r.others(asked, 0)), r.planner.cfg.Unit))
}

// wants is what the requests of a seat cost, in units, > 0.
func (s *seat) wants() float64 {
	want := math.Max(s.turn.Wants, s.turn.Held) / s.of.Unit
	if !(want > 0) {
		want = float64(s.needAt(-1))
	}
	return math.Max(want, 1)
}

// rest has a seat keep its entitlement e, or go back to it.
func (s *seat) rest(e float64, detail string) {
	s.solved, s.served = true, true
	s.binding = trimtab.Binding{Kind: trimtab.BindingIdle, Detail: detail}
	s.aim = policy.UpUnits(s.now, s.of.Unit)
	if math.Abs(e-s.now) >= s.of.Unit {
		s.aim = min(max(int(math.Round(e/s.of.Unit)), s.lo), s.hi)
		s.binding = trimtab.Binding{Kind: trimtab.BindingNeed, Detail: detail}
		return
	}
	s.stays = true
}

// choose decides who is served in an overload, and gives each its share.
func (r *decision) choose(asked []*seat) {
	o := &r.planner.overload
	since := r.now.Sub(o.choseAt)
	fresh := slices.ContainsFunc(asked, func(s *seat) bool { return s.turn.Slice == 0 })
	stuck := slices.IndexFunc(asked, func(s *seat) bool {
		return s.turn.Place > 0 && since >= time.Duration(s.turn.Place)*proves && s.turn.Served.Before(o.choseAt)
	})
	switch {
	case fresh:
		o.capping = false
		r.elect(asked)
	case stuck >= 0 && !o.capping:
		// It serves nobody in time, though it is its turn: others use the limit of all up on
		// CPUs on which it does not work.
		o.capping = true
		r.elect(asked)
	case stuck >= 0 && asked[stuck].turn.Place == 1:
		asked[stuck].turn.Barred = r.now.Add(barred)
		r.elect(asked)
	case since >= dwell:
		r.elect(asked)
	case o.capping && r.loosens(asked):
		r.divideTurns(asked)
	}
	for _, s := range asked {
		s.solved, s.aim = true, s.turn.Slice
		s.binding = trimtab.Binding{Kind: trimtab.BindingCapacity, Detail: s.choice()}
		if s.stays = math.Abs(float64(s.aim)*s.of.Unit-s.now) < s.of.Unit; s.stays {
			s.aim = policy.UpUnits(s.now, s.of.Unit)
		}
	}
}

// capped reports whether a share is to be a limit, too: of who is not served, while others are.
// By its weight alone it would use the limit of all up on CPUs on which those do not work.
func (s *seat) capped(k *instance) bool {
	return s.shared() && s.free && (s.turn.Capped || k.capped)
}

// recaps reports whether a knob is to be capped that is not, or the other way round.
func (s *seat) recaps(k *instance) bool { return k.Held.Shared && k.Held.Capped != s.capped(k) }

// elect has the objective decide who is served, in which turn, and divides the pool.
func (r *decision) elect(asked []*seat) {
	r.planner.overload.choseAt = r.now
	prob := r.problem(asked)
	for i, s := range asked {
		w, of := &prob.Workloads[i], full
		if s.turn.Place > 0 {
			of = fuller
		}
		size := s.wants() / of
		w.Curve = step(size*s.of.Unit, s.SLO, s.curve)
		w.Demand = int(math.Ceil(size))
		if w.Max = max(min(prob.Units, w.Demand), w.Min); r.now.Before(s.turn.Barred) {
			w.Max = w.Min
		}
		if w.Current = w.Min; s.turn.Place > 0 {
			w.Current = w.Max // of equal answers that which moves least
		}
	}
	answer, err := r.planner.cfg.Policy.Solve(prob)
	var served []*seat
	for i, s := range asked {
		if err == nil && answer.Units[i] >= prob.Workloads[i].Demand && !r.now.Before(s.turn.Barred) {
			served = append(served, s)
			continue
		}
		s.turn.Place, s.turn.Held = 0, math.Max(s.turn.Wants, s.turn.Held)
	}
	// Those who were served keep their turn; of the others it is the shorter queue's.
	slices.SortStableFunc(served, func(a, b *seat) int {
		place := func(s *seat) int { return cmp.Or(s.turn.Place, len(asked)+1) }
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a.waiting(), b.waiting()), cmp.Compare(a.Name, b.Name))
	})
	for i, s := range served {
		s.turn.Place = i + 1
	}
	r.divideTurns(asked)
}

// leaves is what those who are served leave, in units, by their latest reports, with a margin,
// and how many are not.
func (r *decision) leaves(asked []*seat) (units float64, others int) {
	units = float64(r.left(asked))
	for _, s := range asked {
		if s.turn.Place == 0 {
			others++
		} else {
			units -= math.Max(s.turn.now+s.turn.late, s.turn.Wants) * spares / s.of.Unit
		}
	}
	return math.Max(units, 0), others
}

// loosens reports whether those who are served leave much more than the others are capped at.
func (r *decision) loosens(asked []*seat) bool {
	has := 0.0
	for _, s := range asked {
		if s.turn.Place == 0 {
			has += float64(s.turn.Slice)
		}
	}
	leaves, others := r.leaves(asked)
	return others > 0 && leaves > 1.3*has+0.05*float64(r.left(asked))
}

// divideTurns gives each its share: those who are served by turns, the others a crumb, or, where
// shares are capped, what is left. Shares that hardly change stay.
func (r *decision) divideTurns(asked []*seat) {
	capping, entitled := r.planner.overload.capping, r.entitlements()
	rest := r.left(asked)
	more, others := 0.0, 0
	if capping {
		more, others = r.leaves(asked)
	}
	share := make(map[*seat]int, len(asked))
	served := slices.DeleteFunc(slices.Clone(asked), func(s *seat) bool { return s.turn.Place == 0 })
	slices.SortFunc(served, func(a, b *seat) int { return cmp.Compare(a.turn.Place, b.turn.Place) })
	for _, s := range asked {
		share[s] = max(s.lo, 1, int(math.Max(crumb*entitled[s.Name], s.dial.Guarantee)/s.of.Unit))
		switch {
		case len(served) == 0: // nobody can be: all are as if there were nothing to decide
			share[s] = min(max(int(entitled[s.Name]/s.of.Unit), s.lo, 1), s.hi)
		case s.turn.Place == 0 && others > 0:
			share[s] = min(max(share[s], int(more/float64(others))), s.hi)
		}
		rest -= share[s]
		s.turn.Capped = capping && s.turn.Place == 0 && len(served) > 0
	}
	n := min(turns, len(served))
	for k := range n {
		part := served[k*len(served)/n : (k+1)*len(served)/n]
		has, wants := first*float64(rest), 0.0
		if k == n-1 {
			has = float64(rest)
		}
		for _, s := range part {
			wants += s.wants()
		}
		for _, s := range part {
			more := max(min(int(math.Max(has, 0)*s.wants()/wants), s.hi-share[s]), 0)
			share[s] += more
			rest -= more
		}
	}
	if slices.ContainsFunc(asked, func(s *seat) bool {
		return math.Abs(float64(share[s]-s.turn.Slice)) > math.Max(0.25*float64(s.turn.Slice), 0.1*entitled[s.Name]/s.of.Unit)
	}) {
		for _, s := range asked {
			s.turn.Slice = share[s]
		}
	}
}

// step is a curve that reaches the SLO at a size, and nothing below.
func step(size, slo float64, like *trimtab.Curve) *trimtab.Curve {
	c := &trimtab.Curve{Level: like.Level, Load: like.Load}
	for _, k := range []struct{ at, performance float64 }{{0.999 * size, 0}, {size, slo}} {
		c.Knots = append(c.Knots, trimtab.Knot{Allocation: k.at, Band: trimtab.Band{Lower: k.performance, Mean: k.performance, Upper: k.performance}})
	}
	return c
}

// choice says what was decided of a workload.
func (s *seat) choice() string {
	if s.turn.Place > 0 {
		return fmt.Sprintf("needs do not fit; it is served, number %d in turn", s.turn.Place)
	}
	return "needs do not fit; it has what those leave who are served"
}

// bounded takes out of a wish to the guard what is meant for quotas, where the seat has a share
// by weight: a lower share takes away only what somebody else wants.
func (s *seat) bounded(w guard.Workload) guard.Workload {
	if s.shared() && s.free {
		w.Harms, w.Safe, w.Last = false, math.Max(s.target, s.of.Unit), guard.Move{}
	}
	return w
}
