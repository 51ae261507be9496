package planner

import (
	"fmt"
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/guard"
)

// seat is one resource of one workload in one round.
type seat struct {
	*workload
	dial  *dial
	entry *entry
	// resource is its index and of the resource itself; curve is the
	// performance over it.
	resource int
	of       *Resource
	curve    *trimtab.Curve
	// now is what it has, an unlimited knob counted as its maximum.
	now float64
	// lo and hi are its bounds in units.
	lo, hi int
	// free tells that the policy plans for it; held says why not.
	free bool
	held string
	// doubted says why its curve proves nothing; "": it does.
	doubted string
	// aim is the target of the policy in units, target the same in the resource's
	// unit, want the bounded step to it and grant what the guard made of it.
	aim     int
	target  float64
	want    float64
	grant   guard.Grant
	binding string
	need    Demand
	// trial says why it is moved from what the policy wants, on what kind of
	// trial, at what risk.
	trial string
	kind  trialKind
	risk  float64
	// limit is what is advised to who has none, by what it was seen to use.
	limit float64
	seen  spell
	// served tells that the aim is what it needs and a part of the head-room;
	// short, that it has less than it needs; safe is its need at the highest load
	// that is expected, in the resource's unit, 0: unknown.
	served, short bool
	safe          float64
	// solved tells that the aim is set; in is the solution that set it, where
	// the policy shares one resource, and at the place in it.
	solved bool
	in     *solution
	at     int
}

// acts reports whether what is planned for the workload is written.
func (s *seat) acts() bool { return s.Mode == trimtab.Act }

// round makes one decision and publishes its first step.
func (p *Planner) round(now time.Time, cause string) []trimtab.Value {
	p.next, p.last = now.Add(p.cfg.Round), now
	p.wanted, p.asks = "", nil // this one sees what all others would
	p.ledger.prune(now, p.cfg.Lease)
	r := &decision{planner: p, now: now, cause: cause, heldBack: map[string]string{}}
	if p.isPaused() {
		r.cause = "paused"
		for _, w := range p.workloads {
			if w.Mode != trimtab.Off {
				r.heldBack[w.Name] = "paused"
			}
		}
	} else {
		r.decide()
	}
	p.counts.rounds++
	if len(r.shrinks)+len(r.grows) > 0 {
		p.patience = 0
	}
	return p.publish(r)
}

// isPaused is what the last command said; before any, what the actuators of
// the pool say.
func (p *Planner) isPaused() bool {
	if !p.told.IsZero() {
		return p.paused
	}
	return p.ledger.paused()
}

// decision is one round on its way to a plan.
type decision struct {
	planner  *Planner
	now      time.Time
	cause    string
	applies  string
	seats    []*seat // in order of name, then of the resources
	heldBack map[string]string
	// unmoved says why those that are planned for keep what they have.
	unmoved map[string]string
	audit   *trimtab.Audit
	value   *float64
	gap     *float64
	cut     bool
	shrinks []trimtab.Action
	grows   []trimtab.Action
	advice  []trimtab.Action
}

// solution is a problem and the policy's answer.
type solution struct {
	problem *Problem
	answer  Solution
	// score is the objective; nil where it is not to be had, or too dear.
	score func(units []int) float64
}

// decide seats the workloads, solves, steps and guards.
func (r *decision) decide() {
	p := r.planner
	for _, w := range p.workloads {
		r.seats = append(r.seats, r.seat(w)...)
	}
	solve := r.solve
	if sharer, ok := p.cfg.Policy.(Sharer); ok && len(p.resources) > 1 {
		solve = func(in func(*seat) bool) { r.share(sharer, in) }
	}
	for _, in := range []func(*seat) bool{(*seat).acts, func(*seat) bool { return true }} {
		if !p.serves() || !r.serve(in) {
			solve(in)
		}
	}
	r.try()
	for i := range p.resources {
		r.guard(i)
	}
	r.advise()
	for _, s := range r.seats {
		r.act(s)
	}
	r.judge()
}

// seat looks at one workload, at each of its resources; none when it is off.
// It is planned for as a whole or not at all: who has too little of one
// resource says nothing of what it needs of another.
func (r *decision) seat(w *workload) []*seat {
	if w.Mode == trimtab.Off || w.released {
		if w.released {
			r.heldBack[w.Name] = "released"
		}
		return nil
	}
	if w.fresh.IsZero() {
		w.fresh = r.now
	}
	var seats []*seat
	doubt, held := r.doubt(w), ""
	for i, d := range w.dials {
		if d == nil {
			continue
		}
		s := r.seatOf(w, i)
		if s.held == "" && doubt == "" && s.curve == nil {
			doubt = "estimate: nothing learnt yet" + r.about(i)
		}
		if held == "" {
			held = s.held
		}
		if s.entry != nil {
			seats = append(seats, s)
		}
	}
	if doubt == "" {
		w.fresh = r.now
	}
	if held == "" {
		held = doubt
	}
	if held != "" {
		r.heldBack[w.Name] = held
	} else if standsIn(w.estimate) {
		r.heldBack[w.Name] = "estimate: " + w.estimate.Hold
	}
	distrusted := w.distrusted()
	for _, s := range seats {
		s.doubted = distrusted
		if s.free, s.held = held == "", held; s.free {
			r.demand(s)
			r.count(s)
		}
	}
	return seats
}

// about names a resource in a reason, where there is more than one.
func (r *decision) about(resource int) string {
	if len(r.planner.resources) == 1 {
		return ""
	}
	return " of " + r.planner.resources[resource].Name
}

// seatOf looks at the knob of one resource; entry is nil when there is none.
func (r *decision) seatOf(w *workload, resource int) *seat {
	p, d := r.planner, w.dials[resource]
	s := &seat{workload: w, dial: d, resource: resource, of: &p.resources[resource]}
	s.entry, s.held = r.knob(w, resource)
	if e := w.estimate; e != nil {
		s.curve = p.planned(e)
		if b := e.Backlog; b != nil && p.serves() && s.curve != nil && *b > 0 {
			s.curve = behind(s.curve, *b/drain)
		}
		if resource > 0 {
			s.curve = e.Curves[s.of.Name]
		}
	}
	if s.entry == nil {
		return s
	}
	u := s.of.Unit
	most := p.most(s.entry)
	s.now = bounded(s.entry.held.Now, most)
	if resource == 0 && w.loan != nil && w.loan.Base < 0 {
		w.loan.Base = s.now
	}
	least := max(d.Min, s.entry.held.Min)
	s.lo, s.hi = upUnits(least, u), downUnits(most, u)
	if w.estimate != nil && standsIn(w.estimate) {
		s.keep()
	}
	if s.held == "" && s.lo > s.hi {
		s.held = fmt.Sprintf("no whole unit of %v%s between %v and %v", u, r.about(resource), least, most)
	}
	s.grant = guard.Grant{Set: s.now}
	return s
}

// knob finds the one knob of a resource of a workload, or says why there is
// none to turn. A host that declares the knob and cannot turn it, such as a
// standby without the cgroup, or that is silent for a lease, does not stand in
// the way of one that can.
func (r *decision) knob(w *workload, resource int) (*entry, string) {
	var found *entry
	held := "no actuator has its knob" + r.about(resource)
	for _, e := range r.planner.ledger.of(w.Name, r.planner.resources[resource].Name) {
		switch {
		case e.gone && found == nil:
			held = fmt.Sprintf("host %s no longer has its knob%s", e.host, r.about(resource))
		case e.gone:
		case found == nil || r.unfit(e) < r.unfit(found):
			found = e
		case r.unfit(e) == r.unfit(found) && e.held.Problem == "":
			return nil, fmt.Sprintf("hosts %s and %s both have its knob%s", found.host, e.host, r.about(resource))
		}
	}
	switch {
	case found == nil:
		return nil, held
	case found.held.Problem != "":
		return found, "knob" + r.about(resource) + ": " + found.held.Problem
	case r.now.Sub(r.planner.ledger.host(found.host).heard) > r.planner.cfg.Lease:
		return found, fmt.Sprintf("host %s was not heard of for %v", found.host, r.now.Sub(r.planner.ledger.host(found.host).heard).Round(time.Second))
	}
	return found, ""
}

// unfit ranks the knobs that several hosts have of one workload: 0 can be turned,
// 1 was not heard of for a lease, 2 has a problem.
func (r *decision) unfit(e *entry) int {
	switch {
	case e.held.Problem != "":
		return 2
	case r.now.Sub(r.planner.ledger.host(e.host).heard) > r.planner.cfg.Lease:
		return 1
	}
	return 0
}

// doubt returns why the estimate of a workload proves nothing, or "".
func (r *decision) doubt(w *workload) string {
	e := w.estimate
	switch {
	case e == nil:
		return "no estimate"
	case e.Hold != "" && !standsIn(e):
		return "estimate: " + e.Hold
	case e.Validate() != nil:
		return "estimate: not a number"
	case r.now.Sub(e.Time) > r.planner.cfg.StaleAfter:
		return fmt.Sprintf("estimate: %v old", r.now.Sub(e.Time).Round(time.Second))
	case e.Time.Sub(r.now) > r.planner.cfg.StaleAfter:
		return "estimate: from the future: check the clocks"
	}
	return ""
}

// standsIn reports whether a declared fallback makes the curve while input is
// missing.
func standsIn(e *trimtab.Estimate) bool { return e.Hold != "" && e.Fallback != "" && e.Curve != nil }

// keep makes what the seat has its least: what stands in for missing input may
// raise, not lower.
func (s *seat) keep() {
	floor := upUnits(s.now, s.of.Unit)
	if s.held == "" && (floor > s.hi || s.entry.held.Now.Unlimited) {
		s.held = "estimate: " + s.estimate.Hold + ": it has its maximum"
	}
	s.lo = max(s.lo, min(s.hi, floor))
}

// demand updates the recommended demand (equation 6).
func (r *decision) demand(s *seat) {
	u := s.of.Unit
	s.need = DemandOf(s.curve, s.SLO, u, s.lo, s.hi)
	before := s.dial.demand
	if !s.dial.knowsDemand {
		before = int(math.Round(s.now / u))
	}
	s.dial.demand = min(max(s.need.Recommend(r.planner.cfg.Beta, before, s.of.Step), s.lo), s.hi)
	s.dial.knowsDemand = true
}

// solve asks the policy about the free workloads that are in; all others keep
// what they may hold. It sets the aim of those that were not asked about yet.
func (r *decision) solve(in func(*seat) bool) {
	p := r.planner
	asked, mine, fresh := r.asked(in)
	if !fresh {
		return
	}
	left := p.idle(r.now, 0, mine)
	prob := &Problem{Units: max(0, downUnits(left, p.cfg.Unit)), Unit: p.cfg.Unit, Groups: p.groupsOf(), Stop: p.cfg.Stop}
	for _, s := range asked {
		prob.Workloads = append(prob.Workloads, Workload{
			Name: s.Name, Group: s.Group, Guarantee: downUnits(s.dial.Guarantee, p.cfg.Unit), Weight: s.Weight, Min: s.lo, Max: s.hi,
			Current: int(math.Round(s.now / p.cfg.Unit)), Curve: s.curve, Reports: s.estimate.Reports,
			SLO: s.SLO, Utility: s.Utility, Worth: s.Worth, Demand: r.demanded(s),
		})
	}
	answer, err := p.cfg.Policy.Solve(prob)
	if err != nil {
		r.unsolved(asked, err)
		return
	}
	sol := &solution{problem: prob, answer: answer}
	if sc, ok := p.cfg.Policy.(Scorer); ok && len(asked) <= maxExplained {
		sol.score = sc.Scorer(prob)
	}
	for i, s := range asked {
		if !s.solved {
			s.solved, s.in, s.at, s.aim, s.binding = true, sol, i, answer.Units[i], answer.Binding[i]
		}
	}
	gap := answer.Gap()
	r.value, r.gap, r.cut = &answer.Value, &gap, r.cut || answer.Cut
}

// demanded returns the demand that the policy is told: what the workload needs
// at its mean load, where the pool is planned for by need. A demand that is
// certain to be enough is of no use at a few requests per second, where no
// bound ever meets the SLO.
func (r *decision) demanded(s *seat) int {
	if r.planner.serves() && s.estimate.Cost != nil {
		return min(s.needAt(0)+s.waiting(), s.hi)
	}
	return s.dial.demand
}

// asked returns the free seats that are in, their knobs, and whether any of
// them has no aim yet.
func (r *decision) asked(in func(*seat) bool) (asked []*seat, mine map[*entry]bool, fresh bool) {
	mine = map[*entry]bool{}
	for _, s := range r.seats {
		if s.free && in(s) {
			asked = append(asked, s)
			mine[s.entry] = true
			fresh = fresh || !s.solved
		}
	}
	return asked, mine, fresh
}

// unsolved holds those that wait for an aim.
func (r *decision) unsolved(asked []*seat, err error) {
	r.planner.counts.unsolved++
	for _, s := range asked {
		if !s.solved {
			s.free, s.held = false, err.Error()
			r.heldBack[s.Name] = s.held
		}
	}
}

// share is solve for a policy that shares several resources at once.
func (r *decision) share(policy Sharer, in func(*seat) bool) {
	p := r.planner
	asked, mine, fresh := r.asked(in)
	if !fresh {
		return
	}
	q := &Question{Stop: p.cfg.Stop, Groups: p.groupsOf()}
	for i, of := range p.resources {
		left := p.idle(r.now, i, mine)
		q.Resources = append(q.Resources, Pooled{of.Name, of.Unit, of.Capacity / of.Unit, max(0, downUnits(left, of.Unit))})
	}
	at := make([]int, len(asked)) // the place of each seat's workload in q
	for i, s := range asked {
		if n := len(q.Workloads); n == 0 || q.Workloads[n-1].Name != s.Name {
			q.Workloads = append(q.Workloads, Claim{Name: s.Name, Group: s.Group, Weight: s.Weight, Wants: make([]Want, len(p.resources))})
		}
		at[i] = len(q.Workloads) - 1
		q.Workloads[at[i]].Wants[s.resource] = Want{Min: s.lo, Max: s.hi, Current: int(math.Round(s.now / s.of.Unit)),
			Demand: s.dial.demand, Guarantee: downUnits(s.dial.Guarantee, s.of.Unit)}
	}
	answer, err := policy.Share(q)
	if err != nil {
		r.unsolved(asked, err)
		return
	}
	for i, s := range asked {
		if !s.solved {
			s.solved, s.aim, s.binding = true, answer.Units[at[i]][s.resource], answer.Binding[at[i]][s.resource]
		}
	}
	r.value, r.cut = &answer.Value, r.cut || answer.Cut
}

// guard takes a step of at most B units of one resource to the aim, and
// bounds it.
func (r *decision) guard(resource int) {
	p, of := r.planner, &r.planner.resources[resource]
	g := guard.Round{Now: r.now, Unit: of.Unit, Capacity: of.Capacity, Spare: p.idle(r.now, resource, nil)}
	var seats []*seat
	var worst [2]float64 // the least utility of those that are to rise, by side
	worst[0], worst[1] = math.Inf(1), math.Inf(1)
	for _, s := range r.seats {
		if s.resource != resource {
			continue
		}
		seats = append(seats, s)
		s.want, s.target = s.now, s.now
		if s.free {
			s.target = float64(s.aim) * of.Unit
			s.want = of.stepTo(s.now, s.aim)
		} else if raised := r.fallback(s); raised > s.now {
			s.target, s.want = raised, of.stepTo(s.now, downUnits(raised, of.Unit))
		}
		if s.free && s.want > s.now {
			side, level := &worst[s.side()], s.utility(s.now)
			if _, counts := p.cfg.Policy.(Expecter); !counts || p.joint() {
				level = -1 // who is worse off is a matter of entitlement, or the same for all
			}
			*side = math.Min(*side, level)
		}
	}
	for _, s := range seats {
		g.Workloads = append(g.Workloads, guard.Workload{
			Name: s.Name, Now: s.now, Target: s.target, Want: s.want, Fresh: s.free,
			Missing: s.free && (s.short || s.misses() || s.curve.Eval(s.now).Mean < s.SLO),
			Meets:   s.free && (s.served || s.curve.Eval(s.target).Mean >= s.SLO),
			Harms:   s.free && !s.served && s.curve.Eval(s.target).Mean < s.SLO && worst[s.side()] >= s.utility(s.now),
			Noise:   s.noise(), Weighed: !s.served, Safe: s.proven(), Changed: s.changed(), Firing: s.firing(),
			Advice: !s.acts(), Last: s.dial.move, Lent: s.lent(resource, s.now), Returned: s.returned,
		})
	}
	for i, grant := range p.cfg.Guard.Apply(g) {
		seats[i].grant = grant
	}
}

// joint reports whether all workloads are parts of one.
func (p *Planner) joint() bool {
	j, ok := p.cfg.Policy.(Joint)
	return ok && j.Joint()
}

// side is 0 for what is written and 1 for advice.
func (s *seat) side() int {
	if s.acts() {
		return 0
	}
	return 1
}

// utility returns the utility that is expected at an allocation.
func (s *seat) utility(allocation float64) float64 {
	return clampUnit(s.Utility(s.curve.Eval(allocation).Mean))
}

// surely is how many standard errors a performance must lie below the SLO to
// miss it beyond noise: one in twenty.
const surely = 1.645

// misses reports whether the reports miss the SLO beyond their noise: two in a
// row, since requests fail together, or one where work waits or where a report is
// of a longer time.
func (s *seat) misses() bool {
	e := s.estimate
	if e == nil || e.Backlog == nil || *e.Backlog > waits*s.now {
		return s.missed > 0
	}
	return s.missed > 1
}

// waits is how many seconds of its allocation must wait to tell of a queue.
const waits = 0.2

// missesNow reports whether one report misses the SLO beyond its noise.
func (w *workload) missesNow(e *trimtab.Estimate) bool {
	if e.Performance == nil {
		return false
	}
	margin := 0.0
	if e.Requests > 0 && w.SLO < 1 {
		margin = surely * math.Sqrt(w.SLO*(1-w.SLO)/e.Requests)
	}
	return *e.Performance < w.SLO-margin
}

// proven returns down to where a fall is proven; 0: nowhere.
func (s *seat) proven() float64 {
	if s.doubted != "" {
		return 0
	}
	return s.safe
}

// noise returns the relative standard error of a rate of as many requests as the
// latest report has; 0: unknown.
func (s *seat) noise() float64 {
	if s.estimate == nil || !(s.estimate.Requests > 0) {
		return 0
	}
	return 1 / math.Sqrt(s.estimate.Requests)
}

// firing reports whether an alert on the workload fires.
func (s *seat) firing() bool { return s.loan != nil && s.loan.Over.IsZero() }

// changed reports whether the workload is not where it was expected to be when
// it last moved: its load left the band of that forecast, or it misses its SLO.
func (s *seat) changed() bool {
	before, e := s.dial.load, s.estimate
	if before == nil && s.dial.move.Direction == 0 || s.misses() {
		return true
	}
	if before == nil || e == nil || e.Load == nil {
		return false // nobody knows
	}
	return !within(e.Load, before)
}

// stepTo returns the value at most B units from now towards aim units.
func (of *Resource) stepTo(now float64, aim int) float64 {
	at := now / of.Unit
	switch {
	case float64(aim) > at:
		aim = min(aim, int(math.Floor(at+float64(of.Step)+grain)))
	case float64(aim) < at:
		aim = max(aim, int(math.Ceil(at-float64(of.Step)-grain)))
	}
	return float64(aim) * of.Unit
}

// fallback returns what a workload that nothing is known of may be raised to:
// its declared default, after three rounds.
func (r *decision) fallback(s *seat) float64 {
	if s.entry.held.Problem != "" || r.now.Sub(s.fresh) < time.Duration(r.planner.cfg.HoldRounds)*r.planner.cfg.Round || s.entry.held.Now.Unlimited {
		return 0
	}
	return min(s.dial.Default, r.planner.most(s.entry))
}

// act turns a grant into an action.
func (r *decision) act(s *seat) {
	set, now := trimtab.Units(s.grant.Set), s.entry.held.Now
	if math.Abs(s.grant.Set-s.now) < s.of.Unit/2 {
		r.stays(s)
		return // a quantised knob is where it can be
	}
	a := trimtab.Action{Target: s.Name, Host: s.entry.host, Resource: s.of.Name, Expect: now, Set: set, Mode: s.Mode, Why: r.reason(s)}
	r.tried(s)
	switch {
	case s.Mode == trimtab.Recommend:
		r.advice = append(r.advice, a)
	case set.Less(now):
		r.shrinks = append(r.shrinks, a)
	default:
		r.grows = append(r.grows, a)
	}
}
