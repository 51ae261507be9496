// Package whatif has the question "what if the capacity, an SLO or a weight were another?" and its
// answer, as people and the API read them. Package planner/whatif computes the answer.
package whatif

import (
	"time"

	"github.com/trimtab/trimtab"
)

// Change is what a person would change in a what-if question. The zero Change asks for the
// present state.
type Change struct {
	// Capacity is that of the pool by resource, in the resource's unit.
	Capacity map[string]float64 `json:"capacity,omitempty"`
	// SLO is by workload, as a person writes it: a latency ("200ms"), a share of the
	// requests ("99%"), or a performance in the unit of the SLO ("0.95").
	SLO map[string]string `json:"slo,omitempty"`
	// Weight is by workload, or by group where no workload has that name.
	Weight map[string]float64 `json:"weight,omitempty"`
}

// Empty reports whether nothing would change.
func (c *Change) Empty() bool { return len(c.Capacity)+len(c.SLO)+len(c.Weight) == 0 }

// Answer answers a what-if question: what the objective wants for each workload now, and with the
// change.
type Answer struct {
	Time      time.Time `json:"time"`
	Pool      string    `json:"pool"`
	Objective string    `json:"objective"`
	Resource  string    `json:"resource"`
	Change    Change    `json:"change"`
	// CapacityBefore and CapacityAfter are what the pool can give out.
	CapacityBefore float64 `json:"capacity_before"`
	CapacityAfter  float64 `json:"capacity_after"`
	// ValueBefore and ValueAfter are the values of the objective. They are nil if the
	// capacity covers every need: then the objective is not solved.
	ValueBefore *float64 `json:"objective_before,omitempty"`
	ValueAfter  *float64 `json:"objective_after,omitempty"`
	// Gain, Pay and Hold count the workloads with that effect.
	Gain int `json:"gain"`
	Pay  int `json:"pay"`
	Hold int `json:"hold"`
	// Cut: a deadline cut a solution short.
	Cut bool `json:"cut,omitempty"`
	// Assumes are the assumptions that the answer rests on beside the curves.
	Assumes []string `json:"assumes"`
	// Workloads are in order of name.
	Workloads []Workload `json:"workloads"`
	// Absent maps each workload without a limit that trimtab could set to the reason.
	Absent map[string]string `json:"absent,omitempty"`
}

// Effect says what a change does to a workload.
type Effect string

// The effects: it would get more, less, as much, or is not planned for.
const (
	Gains Effect = "gains"
	Pays  Effect = "pays"
	Stays Effect = "stays"
	Holds Effect = "holds"
)

// Workload is one workload of an answer.
type Workload struct {
	Workload string `json:"workload"`
	Effect   Effect `json:"effect"`
	// Share: performance is a share of requests, in [0, 1].
	Share bool `json:"performance_is_share,omitempty"`
	// Held is the reason why the planner leaves this workload out; empty unless Effect is Holds.
	Held string `json:"held,omitempty"`
	// Now is what it has; Before what the objective wants for it without the change, and After
	// with it.
	Now    float64 `json:"now"`
	Before Outlook `json:"before"`
	After  Outlook `json:"after"`
}

// Moved returns how much more it would have with the change.
func (w *Workload) Moved() float64 { return w.After.Allocation - w.Before.Allocation }

// Outlook is what a workload would have, and the performance that its curve predicts.
type Outlook struct {
	Allocation float64 `json:"allocation"`
	SLO        float64 `json:"slo"`
	Weight     float64 `json:"weight"`
	// Performance and Utility are nil where nothing was learnt.
	Performance *trimtab.Band `json:"performance,omitempty"`
	Utility     *trimtab.Band `json:"utility,omitempty"`
	// Meets says where the SLO lies in the band of the performance.
	Meets Prospect `json:"meets_slo"`
	// Binding is the constraint that limited Allocation.
	Binding trimtab.Binding `json:"binding"`
}

// Prospect is how sure it is that an SLO is met.
type Prospect string

// The prospects, from best to worst: the SLO is at or below the lower bound, the mean, the
// upper bound of the band; above the upper bound; or there is no band.
const (
	MeetsSurely   Prospect = "yes"
	MeetsLikely   Prospect = "likely"
	MeetsUnlikely Prospect = "unlikely"
	MeetsNot      Prospect = "no"
	MeetsUnknown  Prospect = "unknown"
)

// ProspectOf compares an SLO with the confidence band of the performance.
func ProspectOf(b *trimtab.Band, slo float64) Prospect {
	switch {
	case b == nil:
		return MeetsUnknown
	case b.Lower >= slo:
		return MeetsSurely
	case b.Mean >= slo:
		return MeetsLikely
	case b.Upper >= slo:
		return MeetsUnlikely
	}
	return MeetsNot
}
