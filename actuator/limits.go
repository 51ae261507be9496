package actuator

import (
	"fmt"

	"github.com/trimtab/trimtab"
)

// limit holds the moves to Config.Limits: a cut that is too deep is made less
// deep, cuts of too many targets are refused.
func (a *Actuator) limit(moves []*move) []*move {
	allowed := a.allowed()
	kept := moves[:0]
	for _, m := range moves {
		if !m.goal.Less(m.result.Before) {
			kept = append(kept, m)
			continue
		}
		if allowed[m.held.Resource] == 0 {
			refuse(m.result, fmt.Sprintf("limit: more than %v of the targets lowered by one plan", a.config.Limits.Share))
			continue
		}
		a.soften(m)
		if !m.goal.Less(m.result.Before) {
			m.result.Status = trimtab.Equal
			continue
		}
		allowed[m.held.Resource]--
		kept = append(kept, m)
	}
	return kept
}

// allowed returns how many knobs of each resource one plan may lower.
func (a *Actuator) allowed() map[string]int {
	n := map[string]int{}
	for _, h := range a.knobs {
		n[h.Resource]++
	}
	if share := a.config.Limits.Share; share > 0 {
		for resource, knobs := range n {
			n[resource] = max(1, int(share*float64(knobs)))
		}
	}
	return n
}

// soften makes a cut at most Limits.Fall deep.
func (a *Actuator) soften(m *move) {
	fall := a.config.Limits.Fall
	if fall <= 0 {
		return
	}
	before := m.result.Before.Value
	if m.result.Before.Unlimited {
		before = m.held.Max
	}
	if least := trimtab.Units(before * (1 - fall)); m.goal.Less(least) {
		m.goal = m.held.Knob.Nearest(least)
		m.result.Reason = fmt.Sprintf("limit: lowered to %v, not to %v: %v at a time", m.goal, m.action.Set, fall)
	}
}
