package newest

import (
	"time"

	"github.com/trimtab/trimtab"
)

// Plan is the newest plan of a pool.
type Plan struct{ Cell[*trimtab.Plan] }

// Order says how a plan stands to the newest one of its pool.
type Order int

// The orders.
const (
	// Late: it belongs before the newest, which still counts.
	Late Order = iota
	// Next: it belongs behind the newest, or is that again, or another step of it.
	Next
	// Refutes: it belongs before the newest and was made when that had been without a successor for
	// too long: the store of terms was lost, or somebody made up a term, which must not be believed
	// for ever.
	Refutes
)

// Observe replaces the newest plan by p, which arrives at now, unless p is late. most is the age to
// which a plan counts that no other one follows.
func (n *Plan) Observe(p *trimtab.Plan, now time.Time, most time.Duration) Order {
	order := Next
	if old := n.Value; old != nil && PositionOf(p).Compare(PositionOf(old)) < 0 {
		after := p.Time.After(old.Time) || old.Time.Sub(now) > Ahead
		if !after || p.Time.Sub(now) > Ahead || n.Age(ReportedAt(p.Time, now, 0)) <= most {
			return Late
		}
		order = Refutes
	}
	n.Cell = Cell[*trimtab.Plan]{p, p.Time, now}
	return order
}

// Choice is what a plan says of a resource of a workload that it changes. A workload that is held
// afterwards has no target and no demand.
type Choice struct {
	// Position is that of the plan.
	Position
	Set            trimtab.Amount
	Target, Demand *float64
	Summary        string
}
