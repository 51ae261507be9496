package planner

import (
	"maps"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
)

// counts are totals since the planner was made.
type counts struct {
	// rounds counts decided rounds, unsolved the rounds for which the policy found no solution,
	// refused the apply commands that were refused, takenBack the lowered allocations that are to
	// be undone, and plans the published plans.
	rounds, unsolved, refused, takenBack, plans uint64
	// ignored counts values that changed nothing, by kind of value.
	ignored  map[string]uint64
	actions  map[actionKind]uint64
	verdicts map[codes.Judgement]uint64
	// held is the number of held workloads in the last plan. value and gap are those of the last
	// plan that an objective was solved for.
	held       int
	value, gap *float64
}

// actionKind classifies an action.
type actionKind struct {
	mode trimtab.Mode
	rise bool
}

func newCounts() counts {
	return counts{ignored: map[string]uint64{}, actions: map[actionKind]uint64{}, verdicts: map[codes.Judgement]uint64{}}
}

// plan counts a published plan.
func (c *counts) plan(p *trimtab.Plan) {
	c.plans++
	for i := range p.Actions {
		a := &p.Actions[i]
		c.actions[actionKind{a.Mode, a.Expect.Less(a.Set)}]++
	}
	if !p.Cause.AnswersApply() { // an answer to an apply command lists deviations in Held, not held workloads
		c.held = len(p.Held)
	}
	if p.Value != nil {
		c.value, c.gap = p.Value, p.Gap
	}
}

// Counts yields the totals; see [trimtab.Counted].
func (p *Planner) Counts(yield func(name string, value float64, labels ...string)) {
	c, pool := &p.counts, p.cfg.Pool
	yield("trimtab_planner_rounds_total", float64(c.rounds), pool)
	yield("trimtab_planner_plans_total", float64(c.plans), pool)
	yield("trimtab_planner_unsolved_total", float64(c.unsolved), pool)
	yield("trimtab_planner_grows_dropped_total", float64(p.issue.Dropped), pool)
	yield("trimtab_planner_grows_scaled_total", float64(p.issue.Scaled), pool)
	yield("trimtab_planner_actions_later_total", float64(p.issue.Later), pool)
	yield("trimtab_planner_unanswered_total", float64(p.issue.Unanswered), pool)
	yield("trimtab_planner_applies_refused_total", float64(c.refused), pool)
	for _, mode := range []trimtab.Mode{trimtab.Act, trimtab.Recommend} {
		for _, direction := range []string{"raise", "lower"} {
			yield("trimtab_planner_actions_total", float64(c.actions[actionKind{mode, direction == "raise"}]), pool, string(mode), direction)
		}
	}
	for _, verdict := range []codes.Judgement{codes.AsExpected, codes.Better, codes.Worse, codes.Unjudged} {
		yield("trimtab_planner_verdicts_total", float64(c.verdicts[verdict]), pool, string(verdict))
	}
	yield("trimtab_planner_taken_back_total", float64(c.takenBack), pool)
	c.ignored["excess_knob"] = p.ledger.Excess
	for _, kind := range slices.Sorted(maps.Keys(c.ignored)) {
		yield("trimtab_planner_ignored_total", float64(c.ignored[kind]), pool, kind)
	}
	yield("trimtab_planner_twin_holdings_total", float64(p.ledger.Returns), pool)
	yield("trimtab_planner_held_workloads", float64(c.held), pool)
	yield("trimtab_planner_epoch", float64(p.issue.Epoch()), pool)
	if c.value != nil {
		yield("trimtab_planner_objective_ratio", *c.value, pool)
	}
	if c.gap != nil {
		yield("trimtab_planner_gap_ratio", *c.gap, pool)
	}
}
