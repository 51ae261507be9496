package planner

import (
	"math"
	"time"

	"github.com/trimtab/trimtab"
)

const (
	// contributionRounds is for how many rounds contributions count that are not told again.
	contributionRounds = 20
	// mostEntries bounds the workloads whose requests one workload is known to serve.
	mostEntries = 64
	// sameStall is the relative difference between two budgets that changes nothing.
	sameStall = 0.1
)

// stall is how long one workload may hold up a request of another without harm to the
// SLO of that one.
type stall struct {
	budget float64 // s
	at     time.Time
}

// contribute takes in what each component adds to a tail: the time that its SLO leaves is
// divided among the workloads that serve its requests, and less goes to one that adds
// more (see [trimtab.Contributions.Budgets]).
func (p *Planner) contribute(now time.Time, c *trimtab.Contributions) {
	if p.cfg.Fast == nil {
		return
	}
	least := map[*workload]float64{}
	for _, b := range c.Budgets() {
		for _, w := range p.byComponent[b.Component] {
			if v, known := least[w]; !known || float64(b.Time) < v {
				least[w] = float64(b.Time)
			}
		}
	}
	for w, v := range least {
		if w.stalls == nil {
			w.stalls = map[string]stall{}
		}
		if _, known := w.stalls[c.Workload]; known || len(w.stalls) < mostEntries {
			w.stalls[c.Workload] = stall{v, now}
		}
	}
}

// stallBudget is the least of what the SLOs leave a workload whose requests it serves, in
// seconds a period; firstBudget where nothing tells.
func (p *Planner) stallBudget(now time.Time, w *workload) (budget float64, told bool) {
	budget = defaultBudget
	for entry, s := range w.stalls {
		if now.Sub(s.at) > contributionRounds*p.cfg.Round {
			delete(w.stalls, entry)
			continue
		}
		budget, told = math.Min(budget, s.budget), true
	}
	if !told {
		return firstBudget, false
	}
	return math.Max(leastBudget, budget), true
}

// rebase has the budget of a workload begin at what contributions leave it, or follow
// them in proportion: what was learnt from requests that were late stays.
func (w *workload) rebase(base float64, told bool, earlier float64) {
	switch {
	case w.budget == 0 && earlier > 0:
		w.budget = earlier // that of an earlier planner, which had its own reasons
		if told {
			w.budgetBase = base
		}
	case w.budget == 0:
		w.budget, w.budgetBase = base, base
	case told && w.budgetBase == 0:
		w.budgetBase = base
	case told && math.Abs(base-w.budgetBase) > sameStall*w.budgetBase:
		w.budget = math.Min(defaultBudget, math.Max(leastBudget, w.budget*base/w.budgetBase))
		w.budgetBase = base
	}
}
