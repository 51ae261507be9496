// Package newest is the read model of the console and the exporters: the newest estimate of each
// workload, the newest holding of each host and the newest plan of each pool. The planner's ledger
// uses its [Lives].
//
// A [Model] takes the bus's values and answers by workload; the console, which keeps a past beside
// the newest, has the parts: a [Cell] for each estimate, [Hosts], a [Plan]. All have one rule of
// age, [Made]:
//
//	made = arrival                      if arrival - time of the value <= behind
//	     = time of the value            else
//	age  = now - made
//
// where behind is 0, and [Skew] for reports of hosts, whose clocks are their own. The caller
// passes the age up to which a value counts. Values replace older ones: estimates in the order of their times,
// holdings in the order in which they arrive, plans in that of their [Position].
//
// [Hosts.Given] sums what the knobs of a workload have in force:
//
//	given(workload, host, resource) = Σ min(set or in effect, limit above)  over its instances there
//
// [Lives] tells whether two agents speak for one host.
//
// The package is pure: messages are its only input, and the time at which they came is an
// argument. It judges nothing: an amount without a limit, or of a knob that cannot be read,
// is unknown, and so is a sum with it.
package newest

import (
	"cmp"
	"fmt"

	"github.com/trimtab/trimtab"
)

// Position is the position of a plan's step in the order of its pool's steps.
type Position struct {
	Epoch, Sequence uint64
	Step            int
}

// At returns the position of a step.
func At(epoch, sequence uint64, step int) Position { return Position{epoch, sequence, step} }

// PositionOf returns the position of a plan, which is before all of its steps.
func PositionOf(p *trimtab.Plan) Position { return Position{p.Epoch, p.Sequence, 0} }

// Compare orders positions: by the term of the leader, then in the order of its plans.
func (p Position) Compare(q Position) int {
	return cmp.Or(cmp.Compare(p.Epoch, q.Epoch), cmp.Compare(p.Sequence, q.Sequence), cmp.Compare(p.Step, q.Step))
}

// String writes it as term, number and step: "3-17-1".
func (p Position) String() string { return fmt.Sprintf("%d-%d-%d", p.Epoch, p.Sequence, p.Step) }
