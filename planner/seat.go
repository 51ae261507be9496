package planner

import (
	"fmt"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/guard"
	"github.com/trimtab/trimtab/planner/policy"
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
	held trimtab.Held
	// doubted says why its curve proves nothing; "": it does.
	doubted string
	// aim is the target of the policy in units, target the same in the resource's
	// unit, want the bounded step to it and grant what the guard made of it.
	aim     int
	target  float64
	want    float64
	grant   guard.Grant
	binding trimtab.Binding
	need    policy.Demand
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
	// lack is how much it has less than it needs, in standard errors of its load.
	lack float64
	// solved tells that the aim is set; in is the solution that set it, where
	// the policy shares one resource, and at the place in it.
	solved bool
	// recalled says why what it borrowed is taken back; "": it is not.
	recalled string
	in       *solution
	at       int
}

// acts reports whether what is planned for the workload is written.
func (s *seat) acts() bool { return s.Mode == trimtab.Act }

// about names a resource in a reason, where there is more than one.
func (r *decision) about(resource int) string {
	if len(r.planner.resources) == 1 {
		return ""
	}
	return " of " + r.planner.resources[resource].Name
}

// draw sets the curve that the seat is planned by.
func (s *seat) draw(p *Planner) {
	e := s.estimate
	if e == nil {
		return
	}
	if s.resource > 0 {
		s.curve = e.Curves[s.of.Name]
		return
	}
	s.curve = p.planned(e)
	if b := e.Backlog; b != nil && p.serves() && s.curve != nil && *b > 0 {
		s.curve = behind(s.curve, *b/drain)
	}
}

// seatOf looks at the knob of one resource; entry is nil when there is none. Its
// curve is not drawn yet.
func (r *decision) seatOf(w *workload, resource int) *seat {
	p, d := r.planner, w.dials[resource]
	s := &seat{workload: w, dial: d, resource: resource, of: &p.resources[resource]}
	s.entry, s.held = r.knob(w, resource)
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
	s.lo, s.hi = policy.UpUnits(least, u), policy.DownUnits(most, u)
	if s.firing() && !p.cfg.Guard.Disabled {
		// The guard would not lower it: what others get is planned without that.
		s.lo = min(max(s.lo, policy.DownUnits(s.now, u)), s.hi)
	}
	if w.estimate != nil && standsIn(w.estimate) {
		s.keep()
	}
	if s.held.Code == "" && s.lo > s.hi {
		s.held = trimtab.Held{Code: trimtab.HeldRange, Text: fmt.Sprintf("no whole unit of %v%s between %v and %v", u, r.about(resource), least, most)}
	}
	s.grant = guard.Grant{Set: s.now}
	return s
}

// knob finds the one knob of a resource of a workload, or says why there is
// none to turn. A host that declares the knob and cannot turn it, such as a
// standby without the cgroup, or that is silent for a lease, does not stand in
// the way of one that can.
func (r *decision) knob(w *workload, resource int) (*entry, trimtab.Held) {
	var found *entry
	held := trimtab.Held{Code: trimtab.HeldNoKnob, Text: "no actuator has its knob" + r.about(resource)}
	for _, e := range r.planner.ledger.of(w.Name, r.planner.resources[resource].Name) {
		switch {
		case e.gone && found == nil:
			held.Text = fmt.Sprintf("host %s no longer has its knob%s", e.Host, r.about(resource))
		case e.gone:
		case found == nil || r.unfit(e) < r.unfit(found):
			found = e
		case r.unfit(e) == r.unfit(found) && e.held.Problem == "":
			return nil, trimtab.Held{Code: trimtab.HeldHosts, Text: fmt.Sprintf("hosts %s and %s both have its knob%s", found.Host, e.Host, r.about(resource))}
		}
	}
	switch {
	case found == nil:
		return nil, held
	case found.held.Problem != "":
		return found, trimtab.Held{Code: trimtab.HeldKnob, Text: "knob" + r.about(resource) + ": " + found.held.Problem}
	case r.planner.ledger.lost(found.Host, r.now), r.unfit(found) > 0:
		return found, trimtab.Held{Code: trimtab.HeldSilent, Text: fmt.Sprintf("host %s was not heard of for %v", found.Host, r.now.Sub(r.planner.ledger.host(found.Host).heard).Round(time.Second))}
	}
	return found, trimtab.Held{}
}

// unfit ranks the knobs that several hosts have of one workload: 0 can be turned,
// 1 was not heard of for a lease, 2 has a problem.
func (r *decision) unfit(e *entry) int {
	switch {
	case e.held.Problem != "":
		return 2
	case r.now.Sub(r.planner.ledger.host(e.Host).heard) > r.planner.cfg.Lease:
		return 1
	}
	return 0
}

// doubt returns why the estimate of a workload proves nothing; the zero Held: it
// does.
func (r *decision) doubt(w *workload) trimtab.Held {
	e := w.estimate
	switch {
	case e == nil:
		return trimtab.Held{Code: trimtab.HeldNoEstimate, Text: "no estimate"}
	case e.Hold != nil && !standsIn(e):
		return byEstimate(e, "")
	case e.Validate() != nil:
		return trimtab.Held{Code: trimtab.HeldInvalid, Text: "estimate: not a number"}
	case r.now.Sub(e.Time) > r.planner.cfg.StaleAfter:
		return trimtab.Held{Code: trimtab.HeldOld, Text: fmt.Sprintf("estimate: %v old", r.now.Sub(e.Time).Round(time.Second))}
	case e.Time.Sub(r.now) > r.planner.cfg.StaleAfter:
		return trimtab.Held{Code: trimtab.HeldOld, Text: "estimate: from the future: check the clocks"}
	}
	return trimtab.Held{}
}

// byEstimate is the hold of an estimate as that of a plan, with what there is to
// add.
func byEstimate(e *trimtab.Estimate, more string) trimtab.Held {
	h := *e.Hold
	if h.Code == "" {
		h.Code = trimtab.HeldOther // whatever it is: an empty code is that of nobody held
	}
	h.Text = "estimate: " + h.Text + more
	return h
}

// standsIn reports whether a declared fallback makes the curve while input is
// missing.
func standsIn(e *trimtab.Estimate) bool { return e.Hold != nil && e.Fallback != "" && e.Curve != nil }

// keep makes what the seat has its least: what stands in for missing input may
// raise, not lower.
func (s *seat) keep() {
	floor := policy.UpUnits(s.now, s.of.Unit)
	if s.held.Code == "" && (floor > s.hi || s.entry.held.Now.Unlimited) {
		s.held = byEstimate(s.estimate, ": it has its maximum")
	}
	s.lo = max(s.lo, min(s.hi, floor))
}

// planned returns the curve of an estimate at the load that the policy plans
// for, between the load's mean and its upper bound: see [trimtab.Curve.At].
func (p *Planner) planned(e *trimtab.Estimate) *trimtab.Curve {
	cautious, ok := p.cfg.Policy.(policy.Cautious)
	c, l := e.Curve, e.Load
	if !ok || c == nil || l == nil || !(l.Upper > 0) || c.Load != l.Upper || !(l.Mean < l.Upper) {
		return c
	}
	load := l.Mean + cautious.Caution()*(l.Upper-l.Mean)
	if !(load > 0) || load >= l.Upper {
		return c
	}
	return c.At(load)
}
