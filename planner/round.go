package planner

import (
	"fmt"
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/guard"
)

// seat is one workload in one round.
type seat struct {
	*workload
	entry *entry
	// now is what it has, an unlimited knob counted as its maximum.
	now float64
	// lo and hi are its bounds in units.
	lo, hi int
	// free tells that the policy plans for it; held says why not.
	free bool
	held string
	// aim is the target of the policy in units, want the bounded step to it
	// and grant what the guard made of it, in the resource's unit.
	aim     int
	want    float64
	grant   guard.Grant
	binding string
	need    Demand
	// in is the solution that set the aim, and at the place in it.
	in *solution
	at int
}

// acts reports whether what is planned for the workload is written.
func (s *seat) acts() bool { return s.Mode == trimtab.Act }

// round makes one decision and publishes its first step.
func (p *Planner) round(now time.Time, cause string) []trimtab.Value {
	p.next = now.Add(p.cfg.Round)
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
	return p.publish(r)
}

// isPaused is what the last command said; before any, what the actuators say.
func (p *Planner) isPaused() bool {
	if !p.told.IsZero() {
		return p.paused
	}
	for _, h := range p.ledger.hosts {
		if h.paused {
			return true
		}
	}
	return false
}

// decision is one round on its way to a plan.
type decision struct {
	planner  *Planner
	now      time.Time
	cause    string
	applies  string
	seats    []*seat
	heldBack map[string]string
	value    *float64
	cut      bool
	shrinks  []trimtab.Action
	grows    []trimtab.Action
	advice   []trimtab.Action
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
		if s := r.seat(w); s != nil {
			r.seats = append(r.seats, s)
		}
	}
	r.solve(func(s *seat) bool { return s.acts() })
	r.solve(func(s *seat) bool { return true })
	r.guard()
	for _, s := range r.seats {
		r.act(s)
	}
}

// seat looks at one workload; nil when it is off.
func (r *decision) seat(w *workload) *seat {
	if w.Mode == trimtab.Off || w.released {
		if w.released {
			r.heldBack[w.Name] = "released"
		}
		return nil
	}
	s := &seat{workload: w}
	if w.fresh.IsZero() {
		w.fresh = r.now
	}
	s.entry, s.held = r.knob(w)
	if s.entry == nil {
		r.heldBack[w.Name] = s.held
		return nil
	}
	u := r.planner.cfg.Unit
	most := r.planner.most(s.entry)
	s.now = bounded(s.entry.held.Now, most)
	if w.loan != nil && w.loan.Base < 0 {
		w.loan.Base = s.now
	}
	s.lo, s.hi = upUnits(max(w.Min, s.entry.held.Min), u), downUnits(most, u)
	doubt := r.doubt(w)
	if doubt == "" {
		w.fresh = r.now
	}
	switch {
	case s.held != "":
	case doubt != "":
		s.held = doubt
	case s.lo > s.hi:
		s.held = fmt.Sprintf("no whole unit of %v between %v and %v", u, max(w.Min, s.entry.held.Min), most)
	default:
		s.free = true
		r.demand(s)
	}
	s.grant = guard.Grant{Set: s.now}
	if s.held != "" {
		r.heldBack[w.Name] = s.held
	}
	return s
}

// knob finds the one knob of a workload, or says why there is none to turn.
func (r *decision) knob(w *workload) (*entry, string) {
	var found *entry
	held := "no actuator has its knob"
	for _, e := range r.planner.ledger.of(w.Name) {
		switch {
		case e.gone && found == nil:
			held = fmt.Sprintf("host %s no longer has its knob", e.host)
		case e.gone:
		case found != nil:
			return nil, fmt.Sprintf("hosts %s and %s both have its knob", found.host, e.host)
		default:
			found = e
		}
	}
	switch {
	case found == nil:
		return nil, held
	case found.held.Problem != "":
		return found, "knob: " + found.held.Problem
	case r.now.Sub(r.planner.ledger.host(found.host).heard) > r.planner.cfg.Lease:
		return found, fmt.Sprintf("host %s was not heard of for %v", found.host, r.now.Sub(r.planner.ledger.host(found.host).heard).Round(time.Second))
	}
	return found, ""
}

// doubt returns why the estimate of a workload proves nothing, or "".
func (r *decision) doubt(w *workload) string {
	e := w.estimate
	switch {
	case e == nil:
		return "no estimate"
	case e.Hold != "":
		return "estimate: " + e.Hold
	case e.Validate() != nil:
		return "estimate: not a number"
	case r.now.Sub(e.Time) > r.planner.cfg.StaleAfter:
		return fmt.Sprintf("estimate: %v old", r.now.Sub(e.Time).Round(time.Second))
	case e.Time.Sub(r.now) > r.planner.cfg.StaleAfter:
		return "estimate: from the future: check the clocks"
	case e.Curve == nil:
		return "estimate: nothing learnt yet"
	}
	return ""
}

// demand updates the recommended demand (equation 6).
func (r *decision) demand(s *seat) {
	c := r.planner.cfg
	s.need = DemandOf(s.estimate.Curve, s.SLO, c.Unit, s.lo, s.hi)
	before := s.workload.demand
	if !s.knowsDemand {
		before = int(math.Round(s.now / c.Unit))
	}
	s.workload.demand = min(max(s.need.Recommend(c.Beta, before, c.Step), s.lo), s.hi)
	s.knowsDemand = true
}

// solve asks the policy about the free workloads that are in; all others keep
// what they may hold. It sets the aim of those that were not asked about yet.
func (r *decision) solve(in func(*seat) bool) {
	p := r.planner
	var asked []*seat
	left, fresh := p.cfg.Capacity, false
	mine := map[*entry]bool{}
	for _, s := range r.seats {
		if s.free && in(s) {
			asked = append(asked, s)
			mine[s.entry] = true
			fresh = fresh || s.in == nil
		}
	}
	if !fresh {
		return
	}
	for _, e := range p.ledger.sorted() {
		if !mine[e] {
			left -= e.believed(p.most(e), r.now)
		}
	}
	prob := &Problem{Units: max(0, downUnits(left, p.cfg.Unit)), Unit: p.cfg.Unit, Stop: p.cfg.Stop}
	for _, s := range asked {
		prob.Workloads = append(prob.Workloads, Workload{
			Name: s.Name, Weight: s.Weight, Min: s.lo, Max: s.hi,
			Current: int(math.Round(s.now / p.cfg.Unit)), Curve: s.estimate.Curve,
			SLO: s.SLO, Utility: s.Utility, Demand: s.workload.demand,
		})
	}
	answer, err := p.cfg.Policy.Solve(prob)
	if err != nil {
		p.counts.unsolved++
		for _, s := range asked {
			if s.in == nil {
				s.free, s.held = false, err.Error()
				r.heldBack[s.Name] = s.held
			}
		}
		return
	}
	sol := &solution{problem: prob, answer: answer}
	if sc, ok := p.cfg.Policy.(Scorer); ok && len(asked) <= maxExplained {
		sol.score = sc.Scorer(prob)
	}
	for i, s := range asked {
		if s.in == nil {
			s.in, s.at, s.aim, s.binding = sol, i, answer.Units[i], answer.Binding[i]
		}
	}
	r.value, r.cut = &answer.Value, r.cut || answer.Cut
}

// guard takes a step of at most B units to the aim, and bounds it.
func (r *decision) guard() {
	p := r.planner
	g := guard.Round{Now: r.now, Unit: p.cfg.Unit, Capacity: p.cfg.Capacity, Spare: p.cfg.Capacity}
	for _, e := range p.ledger.sorted() {
		g.Spare -= e.believed(p.most(e), r.now)
	}
	for _, s := range r.seats {
		s.want = s.now
		target := s.now
		if s.free {
			target = float64(s.aim) * p.cfg.Unit
			s.want = p.stepTo(s.now, s.aim)
		} else if raised := r.fallback(s); raised > s.now {
			target, s.want = raised, p.stepTo(s.now, downUnits(raised, p.cfg.Unit))
		}
		g.Workloads = append(g.Workloads, guard.Workload{
			Name: s.Name, Now: s.now, Target: target, Want: s.want, Fresh: s.free,
			Missing: s.free && s.estimate.Curve.Eval(s.now).Mean < s.SLO,
			Meets:   s.free && s.estimate.Curve.Eval(target).Mean >= s.SLO,
			Advice:  !s.acts(), Last: s.move, Lent: s.lent(s.now), Returned: s.returned,
		})
	}
	for i, grant := range p.cfg.Guard.Apply(g) {
		r.seats[i].grant = grant
	}
}

// stepTo returns the value at most B units from now towards aim units.
func (p *Planner) stepTo(now float64, aim int) float64 {
	at := now / p.cfg.Unit
	switch {
	case float64(aim) > at:
		aim = min(aim, int(math.Floor(at+float64(p.cfg.Step)+grain)))
	case float64(aim) < at:
		aim = max(aim, int(math.Ceil(at-float64(p.cfg.Step)-grain)))
	}
	return float64(aim) * p.cfg.Unit
}

// fallback returns what a workload that nothing is known of may be raised to:
// its declared default, after three rounds.
func (r *decision) fallback(s *seat) float64 {
	if s.entry.held.Problem != "" || r.now.Sub(s.fresh) < time.Duration(r.planner.cfg.HoldRounds)*r.planner.cfg.Round || s.entry.held.Now.Unlimited {
		return 0
	}
	return min(s.Default, r.planner.most(s.entry))
}

// act turns a grant into an action.
func (r *decision) act(s *seat) {
	set, now := trimtab.Units(s.grant.Set), s.entry.held.Now
	if math.Abs(s.grant.Set-s.now) < r.planner.cfg.Unit/2 {
		return // a quantised knob is where it can be
	}
	a := trimtab.Action{Target: s.Name, Host: s.entry.host, Resource: r.planner.cfg.Resource, Expect: now, Set: set, Mode: s.Mode, Why: r.reason(s)}
	switch {
	case s.Mode == trimtab.Recommend:
		r.advice = append(r.advice, a)
	case set.Less(now):
		r.shrinks = append(r.shrinks, a)
	default:
		r.grows = append(r.grows, a)
	}
}
