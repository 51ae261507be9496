package reason

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/allocation"
	"github.com/trimtab/trimtab/planner/issue"
	"github.com/trimtab/trimtab/planner/measured"
)

// Round is the part of a round that reasons need. Next is the time of the next round.
type Round struct {
	Now, Next time.Time
	Objective string
	// Several: the pool shares more than one resource.
	Several bool
	// Expect returns the performance that the objective expects, given a band and the number of
	// reports; nil: the mean.
	Expect func(b trimtab.Band, reports int) float64
	All    []*allocation.Allocation
}

// Of returns why a workload gets its amount.
func (r Round) Of(s *allocation.Allocation) trimtab.Reason {
	set, what := s.Step.Set, ""
	if r.Several {
		what = s.Resource.Name + " "
	}
	show := func(v trimtab.Amount) string { return trimtab.AmountOf(s.Resource.Name, v) }
	why := trimtab.Reason{NextCheck: r.Next, Binding: s.Aim.Binding}
	if e := s.Estimate; e != nil {
		why.Inputs, why.Model = e.InputsAt(r.Now), e.Model
	}
	switch {
	case s.Notes.Limit > 0:
		return r.limit(s, why)
	case s.Notes.Recalled != "":
		why.Binding = trimtab.Binding{Kind: codes.BindingCapacity, Detail: s.Notes.Recalled}
		why.Summary = fmt.Sprintf("%s%s from %s to %s: %s", what, verbOf(s, "lowered"), show(s.Has()), show(trimtab.Units(set)), s.Notes.Recalled)
		return why
	case s.Aim.Kept != "" && s.Status.Free && !s.Aim.ByHost:
		why.Summary = what + s.Aim.Kept
		return why
	case s.Aim.ByHost && s.Status.Free:
		why.Summary = what + OfShare(s, show)
		return why
	case s.Notes.Evens:
		why.Summary = OfLevels(s, what)
		return why
	case !s.Status.Free && s.Has() == trimtab.Units(set):
		why.Binding = trimtab.Binding{Kind: codes.BindingNone}
		why.Summary = fmt.Sprintf("%skeeps its share of %s; the limit that an overload put on it is lifted, because nothing is known of it now: %s", what, show(s.Has()), s.Status.Held.Text)
		return why
	case !s.Status.Free:
		why.Binding = trimtab.Binding{Kind: codes.BindingDefault}
		why.Summary = fmt.Sprintf("%s%s from %s to %s, towards its declared default, because nothing is known of it: %s%s",
			what, verbOf(s, "raised"), show(s.Has()), show(trimtab.Units(set)), s.Status.Held.Text, s.Loan.Because(false))
		return why
	}
	target := float64(s.Aim.Units) * s.Resource.Unit
	why.Target = &target
	b := s.Curve.Eval(set)
	expected := b.Mean
	part, admits := s.Overload.Answers(set)
	switch {
	case admits: // its curve is that of a queue that grows
		b = trimtab.Band{Lower: part.Lower * s.SLO, Mean: part.Mean * s.SLO, Upper: part.Upper * s.SLO}
		expected = b.Mean
		why.Bounds = &b
	case r.Expect != nil:
		expected = r.Expect(b, s.Estimate.Reports)
		fallthrough
	default:
		why.Bounds = &b
	}
	utility := s.UtilityOf(expected)
	why.Utility = &utility
	why.Alternatives = s.Aim.Solution.Of(s.Aim.At, s.Now, set, stoppedBy(s).String())
	if s.Range.Need.Mean >= 0 && !s.Starves() { // its curve does not show what waits
		d := float64(s.Range.Need.Mean) * s.Resource.Unit
		why.Demand = &d
	}
	switch {
	case s.Step.Binding.Kind != "":
		why.Binding = s.Step.Binding
	case set != target:
		why.Binding = stoppedBy(s)
	case why.Binding.Kind == "":
		why.Binding.Kind = codes.BindingNone
	}
	why.Summary = what + r.moveOf(s, set, target, b)
	return clusterReason(s, why)
}

// moveOf describes the move of a workload, the target of the objective, and the expected
// performance b after the move.
func (r Round) moveOf(s *allocation.Allocation, set, target float64, b trimtab.Band) string {
	show := func(v float64) string { return trimtab.AmountOf(s.Resource.Name, trimtab.Units(v)) }
	verb, where := "raised", "where"
	if set < s.Now {
		verb = "lowered"
	}
	if set != target {
		where = "and at " + show(set)
	}
	text := fmt.Sprintf("%s from %s to %s: %s wants %s, %s ", verbOf(s, verb), trimtab.AmountOf(s.Resource.Name, s.Has()), show(set), r.Objective, show(target), where)
	if said := answersOf(s, set); said != "" {
		text += said
	} else {
		text += fmt.Sprintf("performance is expected to be %.3g (%.3g to %.3g) for an SLO of %.3g", b.Mean, b.Lower, b.Upper, s.SLO)
	}
	text += s.Loan.Because(verb == "lowered")
	for _, more := range []string{starvationOf(s), takesBackOf(s, set), earlyOf(s, set)} {
		if more != "" {
			text += "; " + more
		}
	}
	return text
}

// answersOf returns how many requests an amount can answer while others are refused; "": none are to be.
func answersOf(s *allocation.Allocation, amount float64) string {
	part, admits := s.Overload.Answers(amount)
	if !admits {
		return ""
	}
	return fmt.Sprintf("%.0f to %.0f%% of its requests can be answered in time; all of them want %s", 100*part.Lower, 100*part.Upper, s.Amount(math.Round(s.Overload.Wants/s.Resource.Unit)*s.Resource.Unit))
}

// starvationOf returns a text if the workload is starved, else "".
func starvationOf(s *allocation.Allocation) string {
	if s.Starves() {
		return "it uses all that it has and waits"
	}
	return ""
}

// takesBackOf returns why a rise undoes an earlier fall; "": it does not.
func takesBackOf(s *allocation.Allocation, set float64) string {
	if _, why := s.History.Judge.Floor(); set > s.Now {
		return why
	}
	return ""
}

// earlyOf returns a text if a rise is based on the requests since the last report, not on a whole
// report; else "".
func earlyOf(s *allocation.Allocation, set float64) string {
	if e := s.Estimate; set > s.Now && measured.Early(e, s.SLO) {
		return fmt.Sprintf("acts on what has come since the last report: %.0f of %.0f requests in time", e.Newer.Under, e.Newer.Requests)
	}
	return ""
}

// verbOf returns the verb of a move. In mode recommend nothing is written, and it is conditional.
func verbOf(s *allocation.Allocation, done string) string {
	if !s.Writes() {
		return issue.WouldBe + done
	}
	return done
}

// Stays returns why a workload that is planned for keeps its amount.
func (r Round) Stays(s *allocation.Allocation) trimtab.Held {
	target := float64(s.Aim.Units) * s.Resource.Unit
	code, why := codes.StayBound, "it has "+s.Amount(s.Now)
	if s.Knobs.Unlimited() {
		why = "it has no limit, which counts as " + s.Amount(s.Now)
	}
	switch {
	case s.Starves() && s.Now > (float64(s.Range.Hi)-0.5)*s.Resource.Unit && s.State.Max < s.Resource.Capacity:
		why += ", uses all of it and waits: it may not have more"
	case s.Starves():
		why += ", uses all of it and waits: there is no more for it"
	case s.Firing():
		why += ", and keeps that while alert " + s.Loan.Name + " fires"
	case s.Aim.Served && (s.Aim.Binding.Kind == codes.BindingIdle || s.Aim.ByHost):
		if code = codes.StayThere; s.Aim.Binding.Kind == codes.BindingIdle {
			code = codes.StayIdle
		}
		why += ": " + s.Aim.Binding.Detail
		if late := measured.Late(s.Estimate, s.SLO); late != "" {
			why = "it has " + s.Amount(s.Now) + " and misses its SLO" + late
		}
	case math.Abs(target-s.Now) < s.Resource.Unit/2:
		code = codes.StayThere
		why += ", which is what " + r.Objective + " gives it"
	default:
		why += fmt.Sprintf(", %s wants %s", r.Objective, s.Amount(target))
	}
	because := strings.TrimPrefix(s.Loan.Because(false), "; ")
	if s.Firing() {
		because = "" // the text has it already
	}
	for _, more := range []string{needOf(s, code == codes.StayIdle), because, s.Step.Binding.String(), boundBy(s), r.promised(s), s.Replicas.Note, s.Notes.Without, s.Aim.Kept} {
		if more != "" && (more != s.Aim.Kept || !s.Aim.ByHost) { // else the text has it already
			why += "; " + more
		}
	}
	return trimtab.Held{Code: code, Text: why}
}

// needOf describes the need of a workload that keeps its amount. idle: what it lacks is within the
// noise.
func needOf(s *allocation.Allocation, idle bool) string {
	if said := answersOf(s, s.Now); said != "" {
		return "with that " + said
	}
	if s.Starves() {
		return "" // its curve does not show what waits
	}
	needs := float64(s.Range.Need.Mean) * s.Resource.Unit
	n := measured.Need{Amount: s.Amount(needs), Unknown: s.Range.Need.Mean < 0, More: needs > s.Now+s.Resource.Unit/2, Idle: idle, Shared: s.Shared()}
	return n.Words(s.Estimate, s.SLO)
}

// stoppedBy returns what kept a step from reaching its target.
func stoppedBy(s *allocation.Allocation) trimtab.Binding {
	if s.Step.Binding.Kind != "" {
		return s.Step.Binding
	}
	return trimtab.Binding{Kind: codes.BindingStep, Detail: fmt.Sprintf("at most %d units of %s a round", s.Resource.Step, trimtab.AmountOf(s.Resource.Name, trimtab.Units(s.Resource.Unit)))}
}

// limit returns why a workload without a limit is recommended one.
func (r Round) limit(s *allocation.Allocation, why trimtab.Reason) trimtab.Reason {
	seen := s.History.Use.Day(r.Now)
	why.Target, why.Binding.Kind = &s.Notes.Limit, codes.BindingUse
	why.Summary = seen.Why(s.Notes.Limit, s.Coming(), s.SLO)
	return why
}
