package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
)

// together gathers the actions of a plan on the same resource of the same
// workload, in the order of the first of each.
func together(actions []trimtab.Action) [][]*trimtab.Action {
	type which struct{ workload, resource string }
	at := make(map[which]int, len(actions))
	out := make([][]*trimtab.Action, 0, len(actions))
	for i := range actions {
		a := &actions[i]
		key := which{a.Workload, a.Resource}
		n, known := at[key]
		if !known {
			n = len(out)
			at[key] = n
			out = append(out, nil)
		}
		out[n] = append(out[n], a)
	}
	return out
}

// mergeActions joins the actions on several instances of a workload into one. That
// action names no host. Its amounts are those of the whole workload by the plan, or the
// sums over the instances if the plan has none; its reason is that of the first action
// that a constraint limited.
func mergeActions(its []*trimtab.Action) (a trimtab.Action, moves []Move) {
	if len(its) == 1 && its[0].Of == nil {
		return *its[0], nil
	}
	its = slices.SortedFunc(slices.Values(its), func(a, b *trimtab.Action) int { return a.Compare(b.KnobID) })
	a = *its[0]
	if n := slices.IndexFunc(its, func(a *trimtab.Action) bool { return a.Why.Binding.Kind != codes.BindingNone }); n > 0 {
		a = *its[n]
	}
	a.Host, a.Instance, a.Envelope = "", "", nil
	a.Expect, a.Set = trimtab.Amount{}, trimtab.Amount{}
	for _, one := range its {
		a.Expect, a.Set = sum(a.Expect, one.Expect), sum(a.Set, one.Set)
		moves = append(moves, Move{Host: one.Host, Instance: one.Instance, Expect: one.Expect, Set: one.Set, Binding: one.Why.Binding})
	}
	if a.Of != nil && !a.Expect.Unlimited {
		a.Expect, a.Set = trimtab.Units(a.Of.From), trimtab.Units(a.Of.To)
	}
	a.Expect.Value, a.Set.Value = round9(a.Expect.Value), round9(a.Set.Value)
	return a, moves
}

// slimMoves returns moves with strings that are shared.
func (w *words) slimMoves(moves []Move) []Move {
	for i := range moves {
		m := &moves[i]
		m.Host, m.Instance = w.one(m.Host), w.one(m.Instance)
		m.Binding = trimtab.Binding{Kind: codes.BindingKind(w.one(string(m.Binding.Kind))), Detail: w.one(m.Binding.Detail)}
	}
	return moves
}

// hosts returns the hosts of the decision, each once.
func (d *Decision) hosts() []string {
	if len(d.Moves) == 0 {
		return []string{d.Action.Host}
	}
	var out []string
	for i := range d.Moves { // they are in order
		if n := len(out); n == 0 || out[n-1] != d.Moves[i].Host {
			out = append(out, d.Moves[i].Host)
		}
	}
	return out
}

// answer records the result for one knob. It returns false if the decision has no such knob.
func (d *Decision) answer(r *trimtab.Result, took trimtab.Seconds) bool {
	if len(d.Moves) == 0 {
		if d.Action.KnobID != r.KnobID {
			return false
		}
		d.Result, d.Took = clone(r, d.Action.KnobID), took
		return true
	}
	if r.Workload != d.Action.Workload || r.Resource != d.Action.Resource || r.Pool != d.Action.Pool {
		return false
	}
	at, known := slices.BinarySearchFunc(d.Moves, r, func(m Move, r *trimtab.Result) int {
		return cmp.Or(strings.Compare(m.Host, r.Host), strings.Compare(m.Instance, r.Instance))
	})
	if !known {
		return false
	}
	m := &d.Moves[at]
	m.Status, m.Found, m.Reason = r.Status, r.Found, brief(r.Reason)
	d.Took = max(d.Took, took)
	d.Result = d.summed()
	return true
}

// worst is the order in which the statuses of several instances speak for all.
func worst(s trimtab.Status) int {
	return slices.Index([]trimtab.Status{trimtab.Failed, trimtab.Refused, trimtab.Pending, trimtab.Written, trimtab.Recommended, trimtab.Equal}, s)
}

// summed returns the combined result of all answered moves.
func (d *Decision) summed() *trimtab.Result {
	out := &trimtab.Result{KnobID: d.Action.KnobID, Before: d.Action.Expect, Asked: d.Action.Set, Known: true}
	answered, same, reason := 0, 0, ""
	for i := range d.Moves {
		m := &d.Moves[i]
		if m.Status == "" {
			continue
		}
		answered++
		out.Found = sum(out.Found, m.Found)
		switch {
		case out.Status == "" || worst(m.Status) < worst(out.Status):
			out.Status, same, reason = m.Status, 1, m.Reason
		case m.Status == out.Status:
			same++
		}
	}
	out.Found.Value = round9(out.Found.Value)
	var parts []string
	if same < answered {
		parts = append(parts, fmt.Sprintf("%d of %d instances", same, answered))
	}
	if reason != "" {
		parts = append(parts, reason)
	}
	if n := len(d.Moves) - answered; n > 0 {
		parts = append(parts, Count(n, "instance")+" without an answer yet")
	}
	out.Reason = strings.Join(parts, "; ")
	return out
}

// Each describes what a decision does with each of several instances: "3 instances on 2 hosts, 0.5
// -> 0.7 each". "": it changes only one.
func (d *Decision) Each() string { return Each(d.Moves, d.Action.Resource) }

// Each says what is done with every one of several instances, each alike or from
// the least to the most.
func Each(moves []Move, resource string) string {
	if len(moves) == 0 {
		return ""
	}
	hosts := map[string]bool{}
	from, to := [2]trimtab.Amount{moves[0].Expect, moves[0].Expect}, [2]trimtab.Amount{moves[0].Set, moves[0].Set}
	for i := range moves {
		m := &moves[i]
		hosts[m.Host] = true
		from, to = widened(from, m.Expect), widened(to, m.Set)
	}
	return fmt.Sprintf("%s, %s -> %s each", Spread(len(moves), len(hosts)), span(from, resource), span(to, resource))
}

func widened(r [2]trimtab.Amount, a trimtab.Amount) [2]trimtab.Amount {
	if a.Less(r[0]) {
		r[0] = a
	}
	if r[1].Less(a) {
		r[1] = a
	}
	return r
}

// span formats the amounts of instances: "0.5", or "0.5 to 0.7".
func span(r [2]trimtab.Amount, resource string) string {
	if r[0] == r[1] {
		return AmountIn(r[0], resource)
	}
	return AmountIn(r[0], resource) + " to " + AmountIn(r[1], resource)
}

// Moved are the decisions of a plan, those on several instances of a workload in
// one.
func Moved(p *trimtab.Plan) []Decision {
	var out []Decision
	for _, its := range together(p.Actions) {
		a, moves := mergeActions(its)
		out = append(out, Decision{Plan: p.ID(), Epoch: p.Epoch, Sequence: p.Sequence, Step: p.Step, Time: p.Time, Cause: &p.Cause, Action: a, Moves: moves})
	}
	return out
}
