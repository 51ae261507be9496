package planner

import (
	"cmp"
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
// An objective that sums utilities gains by serving some in full where not all can be: they
// share the pool in proportion to what their requests cost, and each other one has a crumb and
// what they leave. Each change of who is served costs a whole backlog, so a workload that is
// served stays served while the overload lasts, as far as the pool can serve it.
//
// Source: the domination of quotas by weights in proportion to the same amounts, for a weighted
// max-min fair scheduler; docs/operations.md, "CPU by weight".

const (
	// crumb is the part of its entitlement that a workload keeps which is not served: enough
	// for its probes.
	crumb = 0.05
	// full and fuller are the parts of the pool that what the requests of those who are served
	// cost may take when one more is to be, and before one is given up. Needs beyond that cost
	// are learnt, and noisy while queues are long.
	full, fuller = 0.92, 1
	// dwell is how long a choice stands at least while the overload lasts: as long as it takes
	// to work off a backlog, and to learn what the chosen ones really need.
	dwell = time.Minute
)

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
	over := r.overloaded(asked)
	if r.planner.overloaded = over; !over {
		r.planner.choseAt = time.Time{}
		for _, s := range asked {
			s.chosen, s.slice = false, 0
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

// overloaded reports whether the needs of the seats are more than the pool has, by the most
// hopeful reading. An overload ends when they fit by the expected one; what waits is worked off
// by what others leave.
func (r *decision) overloaded(asked []*seat) bool {
	if slices.ContainsFunc(asked, (*seat).unserved) {
		return false // nobody knows what would be enough
	}
	others := r.others(asked, 0)
	units := max(0, policy.DownUnits(r.idle(0, others), r.planner.cfg.Unit))
	fits := r.fitter(asked, others, units)
	if !r.planner.overloaded {
		need, _ := needsAt(asked, -1)
		return !fits(need, nil)
	}
	need, _ := needsAt(asked, 0)
	return !fits(need, nil)
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
	if r.planner.choseAt.IsZero() || r.now.Sub(r.planner.choseAt) >= dwell || slices.ContainsFunc(asked, (*seat).misfit) {
		r.chooseAnew(asked)
		r.planner.choseAt = r.now
	}
	for _, s := range asked {
		s.solved, s.aim = true, s.slice
		s.binding = trimtab.Binding{Kind: trimtab.BindingCapacity, Detail: s.choice()}
		if s.stays = math.Abs(float64(s.slice)*s.of.Unit-s.now) < s.of.Unit; s.stays {
			s.aim = policy.UpUnits(s.now, s.of.Unit)
		}
	}
}

// chooseAnew picks those who are served, in order, as far as the pool serves them, and what part
// of it each has.
func (r *decision) chooseAnew(asked []*seat) {
	units := float64(max(0, policy.DownUnits(r.idle(0, r.others(asked, 0)), r.planner.cfg.Unit)))
	least, rest := make(map[*seat]float64, len(asked)), 0.0
	entitled := r.entitlements()
	for _, s := range asked {
		least[s] = math.Max(float64(s.lo), math.Max(crumb*entitled[s.Name], s.dial.Guarantee)/s.of.Unit)
		rest += least[s]
	}
	order := r.order(asked)
	served, use := 0, 0.0
	for _, s := range order {
		most := full
		if s.chosen {
			most = fuller
		}
		if use+s.bareUse() > most*(units-rest+least[s]) {
			break
		}
		served, use, rest = served+1, use+s.bareUse(), rest-least[s]
	}
	for i, s := range order {
		s.chosen = i < served
		to := least[s]
		if s.chosen {
			to = (units - rest) * s.bareUse() / use
		}
		s.slice = min(max(int(math.Round(to)), s.lo, 1), s.hi)
	}
}

// misfit reports whether nothing was decided of it, or it is served with less than its requests
// cost.
func (s *seat) misfit() bool { return s.slice == 0 || s.chosen && float64(s.slice) < s.bareUse() }

// bareUse is what the requests of its mean load cost, in units, > 0.
func (s *seat) bareUse() float64 {
	e := s.estimate
	if e.Cost == nil || e.Load == nil || !(*e.Cost*e.Load.Mean > 0) {
		return math.Max(1, float64(s.needAt(-1)))
	}
	return *e.Cost * e.Load.Mean / s.of.Unit
}

// choice says what was decided of a workload.
func (s *seat) choice() string {
	if s.chosen {
		return "needs do not fit; it is served"
	}
	return "needs do not fit; it has what those leave who are served"
}

// order returns the seats in the order in which they are served: those that are already, then
// those that are worth most for what they need.
func (r *decision) order(asked []*seat) []*seat {
	worth := make(map[*seat]float64, len(asked))
	for _, s := range asked {
		need := s.needAt(0)
		worth[s] = s.utility(float64(need)*s.of.Unit) / math.Max(float64(need), 1)
	}
	out := slices.Clone(asked)
	slices.SortStableFunc(out, func(a, b *seat) int {
		if a.chosen != b.chosen {
			if a.chosen {
				return -1
			}
			return 1
		}
		if x, y := worth[a], worth[b]; math.Abs(x-y) > 0.1*math.Max(x, y) {
			return -cmp.Compare(x, y)
		}
		return cmp.Compare(a.Name, b.Name)
	})
	return out
}

// bounded takes out of a wish to the guard what is meant for quotas, where the seat has a share
// by weight: a lower share takes away only what somebody else wants.
func (s *seat) bounded(w guard.Workload) guard.Workload {
	if s.shared() && s.free {
		w.Harms, w.Safe, w.Last = false, math.Max(s.target, s.of.Unit), guard.Move{}
	}
	return w
}
