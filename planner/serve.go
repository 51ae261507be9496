package planner

import (
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/hosts"
	"github.com/trimtab/trimtab/planner/ledger"
	"github.com/trimtab/trimtab/planner/policy"
)

// Where the pool has enough for everybody, objectives that end at the SLO agree:
// everybody gets what it needs, and the rest is head-room. How sure a need is
// counted is the same for all, a confidence κ in [−1, 1],
//
//	need_j(κ) = min{a : p_j(a) >= SLO_j}
//	            κ >= 0: of the mean of the curve, under the mean load and κ of
//	                    the way from there to its upper bound
//	            κ < 0:  of |κ| of the way from the mean of the curve to its upper
//	                    bound, under the mean load
//	κ*        = the greatest κ with Σ_j need_j(κ) + drained backlogs <= R
//	a_j       = (need_j(κ*) + backlog_j / drain) · R / Σ      within its bounds
//
// so that nobody keeps for a load that may come, or for what is not known of it,
// what others need now. While everybody has what it needs, nobody is moved. Where
// not even the needs at the upper bounds of the curves fit, the pool is too small
// beyond doubt, and the policy decides.

// hurry starts a round early for a workload that has less than it needs, if it misses its
// SLO, its load left the band of the forecast, or the shortfall exceeds the noise of its
// load. The first early round comes at once; as long as such rounds change nothing, the
// wait for the next is Urgent, then doubles, up to a whole round.
func (p *Planner) hurry(now time.Time, w *workload) []trimtab.Value {
	if w == nil || w.estimate == nil || !p.counts.leading || p.issue.Waits() || !p.serves() || w.Mode != trimtab.Act {
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
	s.lacks()
	if s.lack <= 1 && (!s.changed() || s.now >= float64(min(s.needAt(s.confidence)+s.waiting(), s.hi))*s.of.Unit-grain) {
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

// ends reports whether neither the utility nor the operator's own worth rises
// beyond the SLO.
func (w *workload) ends() bool {
	if w.Mode == trimtab.Off {
		return true
	}
	for _, of := range []func(float64) float64{w.Utility, w.Worth} {
		if of != nil && of(16*w.SLO) > of(w.SLO)+1e-6 {
			return false
		}
	}
	return true
}

// needAt returns the need in units at confidence κ, but for its backlog.
func (s *seat) needAt(confidence float64) int {
	c := s.estimate.Curve
	load := c.Load
	if l := s.estimate.Load; l != nil && c.Load == l.Upper && l.Mean < l.Upper {
		load = l.Mean + math.Max(0, confidence)*(l.Upper-l.Mean)
	}
	return s.reaching(c, load, math.Max(0, -confidence))
}

// needUnder returns the need in units at a given load, by the mean of the curve.
func (s *seat) needUnder(load float64) int {
	c := s.estimate.Curve
	if l := s.estimate.Load; !(l != nil && c.Load == l.Upper && load > 0 && load < l.Upper) {
		load = c.Load
	}
	return s.reaching(c, load, 0)
}

// reaching returns the fewest units at which the curve, at a load and with an optimism,
// reaches the SLO.
func (s *seat) reaching(c *trimtab.Curve, load, optimism float64) int {
	scale, _ := c.Scale(load)
	floor, _ := s.judge.Floor()
	need := policy.UpUnits(math.Max(expected(c, scale, s.SLO, optimism), floor), s.of.Unit)
	if s.starves() { // with less it would starve more
		need = max(need, policy.UpUnits(s.now, s.of.Unit))
	}
	return min(max(need, s.lo), s.hi)
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

// expected returns the least allocation whose performance meets the SLO, read so
// far from the mean to the upper bound of the curve, or, where none does, the
// least that comes within 2% of the best. The curve's allocations count times
// scale: see [trimtab.Curve.Scale].
func expected(c *trimtab.Curve, scale, slo, optimism float64) float64 {
	of := func(b trimtab.Band) float64 { return b.Mean + optimism*(b.Upper-b.Mean) }
	if a := c.Least(scale, slo, of); a >= 0 {
		return a
	}
	return c.Least(scale, 0.98*of(c.Knots[len(c.Knots)-1].Band), of)
}

// serve sets the aims of the free seats that are in by their needs, and reports
// whether the pool has enough for them.
func (r *decision) serve(in func(*seat) bool) bool {
	asked, fresh := r.asked(in)
	if !fresh {
		return true
	}
	if slices.ContainsFunc(asked, (*seat).unserved) {
		return false
	}
	others := r.others(asked, 0)
	units := max(0, policy.DownUnits(r.idle(0, others), r.planner.cfg.Unit))
	fits := r.fitter(asked, others, units)
	need, total := needsAt(asked, -1)
	if !fits(need, nil) {
		return false
	}
	late := drained(need, asked, units-total)
	low, high := -1.0, 1.0
	for confidence := 1.0; high-low > 1e-3; confidence = (low + high) / 2 {
		all, _ := needsAt(asked, confidence)
		if !fits(all, late) {
			high = confidence
			continue
		}
		if need, low = all, confidence; confidence == 1 {
			break
		}
	}
	least, _ := needsAt(asked, math.Min(low, enoughLoad))
	for i := range need {
		need[i] = min(need[i]+late[i], asked[i].hi)
		least[i] = min(least[i]+late[i], asked[i].hi)
	}
	aims := headroom(need, asked, units, fits)
	short, held := false, 0
	for i, s := range asked {
		held += policy.UpUnits(s.now, s.of.Unit)
		s.safe = float64(need[i]) * s.of.Unit
		s.confidence = math.Min(low, enoughLoad)
		s.lacks()
		s.short = s.now < s.slack()*float64(least[i])*s.of.Unit-grain && (s.estimate.Reports >= fewReports || s.misses())
		short = short || s.short
	}
	for i, s := range asked {
		if s.solved {
			continue
		}
		s.solved, s.served, s.aim, s.binding = true, true, aims[i], trimtab.Binding{Kind: trimtab.BindingNeed}
		if !short && held <= units {
			s.aim, s.binding = policy.UpUnits(s.now, s.of.Unit), trimtab.Binding{Kind: trimtab.BindingIdle, Detail: "everybody has what it needs"}
			if lent := s.lent(0, s.now); lent > 0 && r.now.Sub(s.returned) >= r.planner.cfg.Guard.Reversals() {
				back := max(policy.UpUnits(s.now-lent, s.of.Unit), policy.UpUnits(s.safe, s.of.Unit))
				s.aim, s.binding = min(s.aim, back), trimtab.Binding{Kind: trimtab.BindingReturned, Detail: "what was lent is given back"}
			}
		}
	}
	return true
}

// lacks sets how much it has less than it needs under the load that was just
// measured, in standard errors of that load.
func (s *seat) lacks() {
	s.lack = 0
	l := s.estimate.Load
	if l == nil || s.now <= 0 || s.estimate.Reports < fewReports && !s.misses() {
		return
	}
	need := min(max(s.needAt(0), s.needUnder(l.Now))+s.waiting(), s.hi)
	noise := 1 / math.Sqrt(math.Max(counted*l.Now, 1))
	s.lack = math.Max(0, (s.slack()*float64(need)*s.of.Unit-grain)/s.now-1) / noise
}

// fewReports is how many reports a need must be learnt from before it may move capacity
// while every SLO is met.
const fewReports = 8

// counted is the window, in seconds, that the load of an estimate is taken to be counted
// over. The real one is 5 s while the load moves, 30 s while it stays. With 5, a service
// with 306 millicores at 27 requests/s got its rise two seconds later.
const counted = 20

// behind returns the curve of a workload that spends part of its allocation, cores, on its
// backlog: the curve shifted by cores, at most half of what the load needs.
func behind(c *trimtab.Curve, cores float64) *trimtab.Curve {
	cores = math.Min(cores, 0.5*expected(c, 1, c.Knots[len(c.Knots)-1].Mean, 0))
	out := *c
	out.Knots = slices.Clone(c.Knots)
	for i := range out.Knots {
		out.Knots[i].Allocation += cores
	}
	return &out
}

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

// enoughLoad is the κ at which a workload that has enough is left alone: between
// there and what it gets when anybody moves lies the hysteresis. By `trimtab sim
// services --seeds 20`, peaks and noise by spans: .7, .35 and 0 give 95.5, 95.3
// and 94.2% in time, and 32, 21 and 11 moves in 6 minutes in which nothing changes.
const enoughLoad = 0.35

// needsAt returns the needs at confidence κ, without backlogs, and their sum.
func needsAt(seats []*seat, confidence float64) (need []int, total int) {
	need = make([]int, len(seats))
	for i, s := range seats {
		need[i] = s.needAt(confidence)
		total += need[i]
	}
	return need, total
}

// drained shares the leftover units among the backlogs, to each at most what drains it in
// time.
func drained(need []int, seats []*seat, left int) []int {
	late, asks := make([]int, len(seats)), 0
	for i, s := range seats {
		late[i] = max(0, min(s.waiting(), s.hi-need[i]))
		asks += late[i]
	}
	if asks > left {
		for i := range late {
			late[i] = late[i] * left / asks
		}
	}
	return late
}

// fitter returns a function that reports whether needs plus shares of backlogs fit into the
// units of the pool and on each host.
func (r *decision) fitter(asked []*seat, others *ledger.Counts, units int) func(need, late []int) bool {
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

// headroom shares all units in proportion to the needs. Each workload gets at least its
// need, and no more than its upper bound.
func headroom(need []int, seats []*seat, units int, fits func(need, late []int) bool) []int {
	share := func(f float64) []int {
		aims := make([]int, len(need))
		for i, n := range need {
			aims[i] = min(max(int(math.Floor(f*float64(n)+grain)), n), max(seats[i].easy, n))
		}
		return aims
	}
	low, high := 1.0, float64(units)+1
	for range 50 {
		if f := (low + high) / 2; fits(share(f), nil) {
			low = f
		} else {
			high = f
		}
	}
	return slices.Clip(share(low))
}
