package planner

import (
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/hosts"
	"github.com/trimtab/trimtab/planner/ledger"
	"github.com/trimtab/trimtab/planner/need"
	"github.com/trimtab/trimtab/planner/policy"
)

// Where the pool has enough for everybody, all get what they need and a part of the rest (package
// need), and nobody is moved while everybody has what it needs. The policy decides otherwise.

// hurry starts a round early for a workload that has less than it needs, if it misses its
// SLO, its load left the band of the forecast, or the shortfall exceeds the noise of its
// load. The first early round comes at once; as long as such rounds change nothing, the
// wait for the next is Urgent, then doubles, up to a whole round.
func (p *Planner) hurry(now time.Time, w *workload) []trimtab.Value {
	if w == nil || w.estimate == nil || !p.leading || p.issue.Waits() || !p.serves() || w.Mode != trimtab.Act {
		return nil
	}
	if p.cfg.Urgent <= 0 || now.Sub(p.last) < max(p.patience, p.cfg.Urgent) || p.issue.Paused() {
		return nil
	}
	r := &decision{planner: p, now: now}
	if r.doubt(w).Code != "" || w.estimate.Curve == nil {
		return nil
	}
	s := r.seatOf(w, 0)
	if len(s.knobs) == 0 || s.held.Code != "" {
		return nil
	}
	if s.shared() && !s.misses() {
		return nil // it has what others leave idle, too
	}
	asks := s.asks()
	if asks.Lack() <= 1 && (!s.changed() || s.now >= float64(min(asks.At(s.confidence)+asks.Waiting, s.hi))*s.of.Unit-grain) {
		return nil
	}
	next := p.next
	p.patience = min(max(2*p.patience, p.cfg.Urgent), p.cfg.Round)
	out := p.round(now, trimtab.Cause{Kind: trimtab.CauseNeed, Workload: w.Name})
	p.next = next
	return out
}

// drain is the time, in seconds, within which a backlog is to be worked off.
const drain = 10.0

// serves reports whether the pool is planned for by need.
func (p *Planner) serves() bool {
	return p.traits.Serves && p.ends && !p.cfg.Guard.Disabled && len(p.resources) == 1
}

// asks is what is known of what the seat needs.
func (s *seat) asks() need.Workload {
	floor, _ := s.judge.Floor()
	return need.Workload{Curve: s.estimate.Curve, Load: s.estimate.Load, SLO: s.SLO, Has: s.now, Unit: s.of.Unit, Min: s.lo, Max: s.hi, Easy: s.easy,
		Least: floor, Starves: s.starves(), Waiting: s.waiting(), Enough: s.slack(), Known: s.estimate.Reports >= fewReports || s.misses()}
}

// needAt is what the seat needs at a confidence, in units, but for its backlog.
func (s *seat) needAt(confidence float64) int {
	asks := s.asks()
	return asks.At(confidence)
}

// unserved reports whether nothing is known of what would be enough: no
// allocation is expected to meet the SLO by what was seen alone. What a request
// costs tells more: with it, one that never meets its SLO lacks something else.
func (s *seat) unserved() bool {
	return s.estimate.Cost == nil && s.curve.Eval(float64(s.hi)*s.of.Unit).Mean < s.SLO
}

// waiting returns the units that drain the backlog in time. Where nobody knows
// what waits and its limit has stopped it for some time, so much is asked of it
// beyond what it had as is guessed from how long that was.
func (s *seat) waiting() int {
	e := s.estimate
	switch b := e.Backlog; {
	case s.starves() && b != nil:
		return max(policy.UpUnits(*b/drain, s.of.Unit), s.hungry())
	case s.starves():
		return s.hungry()
	case b != nil:
		return policy.UpUnits(*b/drain, s.of.Unit)
	case e.Allocation != nil && e.Stopped > 1:
		return policy.UpUnits(math.Min(growing*float64(e.Stopped), growth)**e.Allocation, s.of.Unit)
	}
	return 0
}

// growing is by what part of what it has a workload is guessed to need more for
// each second that its limit stops it, and growth the most that is guessed.
const growing, growth = 0.1, 0.5

// serve sets the aims of the free seats that are in by their needs, and reports
// whether the pool has enough for them.
func (r aiming) serve(in func(*seat) bool) bool {
	asked, fresh := r.asked(in)
	if !fresh {
		return true
	}
	if slices.ContainsFunc(asked, (*seat).unserved) {
		return false
	}
	others := r.others(asked, 0)
	units := max(0, policy.DownUnits(r.idle(0, others), r.planner.cfg.Unit))
	asks := make([]need.Workload, len(asked))
	for i, s := range asked {
		asks[i] = s.asks()
	}
	answer, enough := need.Divide(asks, units, r.fitter(asked, others, units))
	if !enough {
		return false
	}
	for i, s := range asked {
		s.safe, s.confidence = float64(answer.Need[i])*s.of.Unit, answer.Confidence
		s.short, s.lack = answer.Short[i], asks[i].Lack()
	}
	for i, s := range asked {
		if s.solved {
			continue
		}
		s.solved, s.served, s.aim, s.binding = true, true, answer.Aim[i], trimtab.Binding{Kind: trimtab.BindingNeed}
		if answer.Stays {
			s.aim, s.binding = policy.UpUnits(s.now, s.of.Unit), trimtab.Binding{Kind: trimtab.BindingIdle, Detail: contentment(asked)}
			if lent := s.lent(0, s.now); lent > 0 && r.now.Sub(s.returned) >= r.planner.cfg.Guard.Reversals() {
				back := max(policy.UpUnits(s.now-lent, s.of.Unit), policy.UpUnits(s.safe, s.of.Unit))
				s.aim, s.binding = min(s.aim, back), trimtab.Binding{Kind: trimtab.BindingReturned, Detail: "what was lent is given back"}
			}
		}
	}
	return true
}

// contentment is why nobody is moved where nobody has less than it needs by the curves.
func contentment(asked []*seat) string {
	switch { // who lacks something says what
	case slices.ContainsFunc(asked, (*seat).starves):
		return "there is no more for who waits"
	case slices.ContainsFunc(asked, func(s *seat) bool { return s.late() != "" }):
		return "nobody is expected to gain from more"
	}
	return "everybody has what it needs"
}

// fewReports is how many reports a need must be learnt from before it may move capacity
// while every SLO is met.
const fewReports = 8

// slack is the fraction of its need at which a workload counts as having enough. Without a
// measured backlog, load and need come from rates over longer windows, and their noise must
// cause no moves: 85%, tuned with `trimtab sim services`. While it misses its SLO or an
// alert fires, it is the whole need.
func (s *seat) slack() float64 {
	if s.estimate.Backlog == nil && !s.misses() && !s.firing() {
		return 0.85
	}
	return 1
}

// fitter returns a function that reports whether needs plus shares of backlogs fit into the
// units of the pool and on each host.
func (r aiming) fitter(asked []*seat, others *ledger.Counts, units int) func(need, late []int) bool {
	prob := &policy.Problem{Units: units, Unit: r.planner.cfg.Unit, Workloads: make([]policy.Workload, len(asked))}
	for i, s := range asked {
		prob.Workloads[i].Max = s.hi
	}
	r.locate(prob, asked, others)
	room := hosts.New(prob)
	return func(need, late []int) bool {
		if sum(need)+sum(late) > units || !room.Hosts() {
			return sum(need)+sum(late) <= units
		}
		left := room.Clone()
		for j, n := range need {
			left.Take(j, n)
		}
		for j, n := range late {
			left.Take(j, n)
		}
		return left.Holds()
	}
}
