package actuator

import (
	"fmt"

	"github.com/trimtab/trimtab"
)

// limit holds the moves to Config.Limits: a cut that is too deep is made less
// deep, cuts of too many targets are refused.
func (a *Actuator) limit(moves []*move) []*move {
	allowed := len(a.knobs)
	if share := a.config.Limits.Share; share > 0 {
		allowed = max(1, int(share*float64(len(a.knobs))))
	}
	kept := moves[:0]
	for _, m := range moves {
		if !m.goal.Less(m.result.Before) {
			kept = append(kept, m)
			continue
		}
		if allowed == 0 {
			refuse(m.result, fmt.Sprintf("limit: more than %v of the targets lowered by one plan", a.config.Limits.Share))
			continue
		}
		a.soften(m)
		if !m.goal.Less(m.result.Before) {
			m.result.Status = trimtab.Equal
			continue
		}
		allowed--
		kept = append(kept, m)
	}
	return kept
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
