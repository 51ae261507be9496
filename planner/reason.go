package planner

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/issue"
	"github.com/trimtab/trimtab/planner/measured"
)

// telling is what reasons are given in: a round, with its seats, at a time, and when the next one is.
type telling struct {
	now, next time.Time
	objective string
	// several: the pool shares more than one resource.
	several bool
	// expect is what the objective expects of a band and a number of reports; nil: the mean.
	expect func(b trimtab.Band, reports int) float64
	seats  []*seat
}

// reason says why a workload gets what it gets.
func (r telling) reason(s *seat) trimtab.Reason {
	set, what := s.grant.Set, ""
	if r.several {
		what = s.of.Name + " "
	}
	show := func(v trimtab.Amount) string { return trimtab.AmountOf(s.of.Name, v) }
	why := trimtab.Reason{NextCheck: r.next, Binding: s.binding}
	if e := s.estimate; e != nil {
		why.Inputs, why.Model = aged(e, r.now.Sub(e.Time).Seconds()), e.Model
	}
	switch {
	case s.limit > 0:
		return r.limitReason(s, why)
	case s.recalled != "":
		why.Binding = trimtab.Binding{Kind: trimtab.BindingCapacity, Detail: s.recalled}
		why.Summary = fmt.Sprintf("%s%s from %s to %s: %s", what, verbOf(s, "lowered"), show(s.has()), show(trimtab.Units(set)), s.recalled)
		return why
	case s.kept != "" && s.free && !s.byHost:
		why.Summary = what + s.kept
		return why
	case s.byHost && s.free:
		why.Summary = what + shareOf(s, show)
		return why
	case s.evens:
		why.Summary = levelsOf(s, what)
		return why
	case !s.free && s.has() == trimtab.Units(set):
		why.Binding = trimtab.Binding{Kind: trimtab.BindingNone}
		why.Summary = fmt.Sprintf("%skeeps its share of %s; the limit that an overload put on it is lifted, because nothing is known of it now: %s", what, show(s.has()), s.held.Text)
		return why
	case !s.free:
		why.Binding = trimtab.Binding{Kind: trimtab.BindingDefault}
		why.Summary = fmt.Sprintf("%s%s from %s to %s, towards its declared default, because nothing is known of it: %s%s",
			what, verbOf(s, "raised"), show(s.has()), show(trimtab.Units(set)), s.held.Text, s.loan.Because(false))
		return why
	}
	target := float64(s.aim) * s.of.Unit
	why.Target = &target
	b := s.curve.Eval(set)
	why.Bounds = &b
	expected := b.Mean
	if r.expect != nil {
		expected = r.expect(b, s.estimate.Reports)
	}
	utility := s.clamped(expected)
	why.Utility = &utility
	why.Alternatives = s.in.Of(s.at, s.now, set, stoppedBy(s).String())
	if s.need.Mean >= 0 && !s.starves() { // what waits is in no curve
		d := float64(s.need.Mean) * s.of.Unit
		why.Demand = &d
	}
	switch {
	case s.grant.Binding.Kind != "":
		why.Binding = s.grant.Binding
	case set != target:
		why.Binding = stoppedBy(s)
	case why.Binding.Kind == "":
		why.Binding.Kind = trimtab.BindingNone
	}
	why.Summary = what + r.moveOf(s, set, target, b)
	return clusterReason(s, why)
}

// moveOf says what happens to a workload, what the objective wants, and what is expected of what
// it gets, b.
func (r telling) moveOf(s *seat, set, target float64, b trimtab.Band) string {
	show := func(v float64) string { return trimtab.AmountOf(s.of.Name, trimtab.Units(v)) }
	verb, where := "raised", "where"
	if set < s.now {
		verb = "lowered"
	}
	if set != target {
		where = "and at " + show(set)
	}
	text := fmt.Sprintf("%s from %s to %s: %s wants %s, %s performance is expected to be %.3g (%.3g to %.3g) for an SLO of %.3g%s",
		verbOf(s, verb), trimtab.AmountOf(s.of.Name, s.has()), show(set), r.objective, show(target), where, b.Mean, b.Lower, b.Upper, s.SLO, s.loan.Because(verb == "lowered"))
	for _, more := range []string{starvationOf(s), takesBackOf(s, set), earlyOf(s, set)} {
		if more != "" {
			text += "; " + more
		}
	}
	return text
}

// starvationOf says that the workload starves; "": it does not.
func starvationOf(s *seat) string {
	if s.starves() {
		return "it uses all that it has and waits"
	}
	return ""
}

// takesBackOf says why a rise to set gives back what it had; "": it does not.
func takesBackOf(s *seat, set float64) string {
	if _, why := s.judge.Floor(); set > s.now {
		return why
	}
	return ""
}

// earlyOf says that a rise to set acts on a part of the requests; "": on a whole report.
func earlyOf(s *seat, set float64) string {
	if e := s.estimate; set > s.now && measured.Early(e, s.SLO) {
		return fmt.Sprintf("acts on what has come since the last report: %.0f of %.0f requests in time", e.Newer.Under, e.Newer.Requests)
	}
	return ""
}

// verbOf says what happens to a workload, or what would in mode recommend, in
// which nothing is written.
func verbOf(s *seat, done string) string {
	if !s.writes() {
		return issue.WouldBe + done
	}
	return done
}

// stays says why a workload that is planned for keeps what it has.
func (r telling) stays(s *seat) trimtab.Held {
	target := float64(s.aim) * s.of.Unit
	code, why := trimtab.StayBound, "it has "+s.amount(s.now)
	if s.knobs.Unlimited() {
		why = "it has no limit, which counts as " + s.amount(s.now)
	}
	switch {
	case s.starves() && s.now > (float64(s.hi)-0.5)*s.of.Unit && s.dial.Max < s.of.Capacity:
		why += ", uses all of it and waits: it may not have more"
	case s.starves():
		why += ", uses all of it and waits: there is no more for it"
	case s.firing():
		why += ", and keeps that while alert " + s.loan.Name + " fires"
	case s.served && (s.binding.Kind == trimtab.BindingIdle || s.byHost):
		if code = trimtab.StayThere; s.binding.Kind == trimtab.BindingIdle {
			code = trimtab.StayIdle
		}
		why += ": " + s.binding.Detail
		if late := s.late(); late != "" {
			why = "it has " + s.amount(s.now) + " and misses its SLO" + late
		}
	case math.Abs(target-s.now) < s.of.Unit/2:
		code = trimtab.StayThere
		why += ", which is what " + r.objective + " gives it"
	default:
		why += fmt.Sprintf(", %s wants %s", r.objective, s.amount(target))
	}
	because := strings.TrimPrefix(s.loan.Because(false), "; ")
	if s.firing() {
		because = "" // said
	}
	for _, more := range []string{needOf(s, code == trimtab.StayIdle), because, s.grant.Binding.String(), boundBy(s), r.promised(s), s.count.note, s.without, s.kept} {
		if more != "" && (more != s.kept || !s.byHost) { // else it is said
			why += "; " + more
		}
	}
	return trimtab.Held{Code: code, Text: why}
}

// late is as [measured.Late].
func (s *seat) late() string { return measured.Late(s.estimate, s.SLO) }

// needOf says what a workload that stays needs; idle: what is needed beyond what it has is within
// the noise.
func needOf(s *seat, idle bool) string {
	if s.starves() {
		return "" // what waits is in no curve
	}
	needs := float64(s.need.Mean) * s.of.Unit
	n := measured.Need{Amount: s.amount(needs), Unknown: s.need.Mean < 0, More: needs > s.now+s.of.Unit/2, Idle: idle, Shared: s.shared()}
	return n.Words(s.estimate, s.SLO)
}

// maxExplained bounds how many workloads a pool may have to get alternatives
// with every action: each costs time in proportion to their number.
const maxExplained = 200

// stoppedBy says what kept a step from its target.
func stoppedBy(s *seat) trimtab.Binding {
	if s.grant.Binding.Kind != "" {
		return s.grant.Binding
	}
	return trimtab.Binding{Kind: trimtab.BindingStep, Detail: fmt.Sprintf("at most %d units of %s a round", s.of.Step, trimtab.AmountOf(s.of.Name, trimtab.Units(s.of.Unit)))}
}

func sum(units []int) int {
	total := 0
	for _, u := range units {
		total += u
	}
	return total
}

// aged returns the inputs of an estimate as old as they are by now.
func aged(e *trimtab.Estimate, seconds float64) []trimtab.Input {
	in := make([]trimtab.Input, len(e.Inputs))
	copy(in, e.Inputs)
	for i := range in {
		in[i].Age = max(0, in[i].Age+trimtab.Seconds(seconds))
	}
	return in
}

// amount is an amount of the seat's resource for people, with its unit.
func (s *seat) amount(v float64) string { return amountOf(s.of.Name, v) }

// amountOf is an amount of a resource for people, with its unit.
func amountOf(resource string, v float64) string {
	r := trimtab.ResourceOf(resource)
	text := r.Text(trimtab.Units(v))
	if !r.Bytes && !r.Switch { // bytes have theirs
		text += " " + r.Unit
	}
	return text
}
