// Package tally counts what a planner does.
package tally

import (
	"maps"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/issue"
	"github.com/trimtab/trimtab/planner/ledger"
)

// Counts are totals since the planner was made.
type Counts struct {
	// Rounds were decided, Unsolved solved by no policy, Refused asked to be applied in vain, and
	// TakenBack are falls that are to be undone.
	Rounds, Unsolved, Refused, TakenBack uint64
	// Ignored has the values that changed nothing, by kind.
	Ignored  map[string]uint64
	plans    uint64
	actions  map[action]uint64
	verdicts map[trimtab.Judgement]uint64
	held     int
	value    *float64
	gap      *float64
}

// action is what one does.
type action struct {
	mode trimtab.Mode
	rise bool
}

// New returns the counts of a new planner.
func New() Counts {
	return Counts{Ignored: map[string]uint64{}, actions: map[action]uint64{}, verdicts: map[trimtab.Judgement]uint64{}}
}

// Plan counts a plan that goes out.
func (c *Counts) Plan(p *trimtab.Plan) {
	c.plans++
	for i := range p.Actions {
		a := &p.Actions[i]
		c.actions[action{a.Mode, a.Expect.Less(a.Set)}]++
	}
	if !p.Cause.AnswersApply() { // such a plan holds nobody: it says what is not as the command expected
		c.held = len(p.Held)
	}
	if p.Value != nil {
		c.value, c.gap = p.Value, p.Gap
	}
}

// Verdict counts a verdict on a move.
func (c *Counts) Verdict(v trimtab.Judgement) { c.verdicts[v]++ }

// Yield yields the totals of a pool, and those of who issues its plans and keeps its ledger; see
// [trimtab.Counted].
func (c *Counts) Yield(pool string, i *issue.Issuer, l *ledger.Ledger, yield func(name string, value float64, labels ...string)) {
	yield("trimtab_planner_rounds_total", float64(c.Rounds), pool)
	yield("trimtab_planner_plans_total", float64(c.plans), pool)
	yield("trimtab_planner_unsolved_total", float64(c.Unsolved), pool)
	yield("trimtab_planner_grows_dropped_total", float64(i.Dropped), pool)
	yield("trimtab_planner_grows_scaled_total", float64(i.Scaled), pool)
	yield("trimtab_planner_actions_later_total", float64(i.Later), pool)
	yield("trimtab_planner_unanswered_total", float64(i.Unanswered), pool)
	yield("trimtab_planner_applies_refused_total", float64(c.Refused), pool)
	for _, mode := range []trimtab.Mode{trimtab.Act, trimtab.Recommend} {
		for _, direction := range []string{"raise", "lower"} {
			yield("trimtab_planner_actions_total", float64(c.actions[action{mode, direction == "raise"}]), pool, string(mode), direction)
		}
	}
	for _, verdict := range []trimtab.Judgement{trimtab.AsExpected, trimtab.Better, trimtab.Worse, trimtab.Unjudged} {
		yield("trimtab_planner_verdicts_total", float64(c.verdicts[verdict]), pool, string(verdict))
	}
	yield("trimtab_planner_taken_back_total", float64(c.TakenBack), pool)
	c.Ignored["excess_knob"] = l.Excess
	for _, kind := range slices.Sorted(maps.Keys(c.Ignored)) {
		yield("trimtab_planner_ignored_total", float64(c.Ignored[kind]), pool, kind)
	}
	yield("trimtab_planner_twin_holdings_total", float64(l.Returns), pool)
	yield("trimtab_planner_held_workloads", float64(c.held), pool)
	yield("trimtab_planner_epoch", float64(i.Epoch()), pool)
	if c.value != nil {
		yield("trimtab_planner_objective_ratio", *c.value, pool)
	}
	if c.gap != nil {
		yield("trimtab_planner_gap_ratio", *c.gap, pool)
	}
}
