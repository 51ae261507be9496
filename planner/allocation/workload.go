package allocation

import (
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/guard"
	"github.com/trimtab/trimtab/planner/loan"
	"github.com/trimtab/trimtab/planner/memory"
	"github.com/trimtab/trimtab/planner/overload"
	"github.com/trimtab/trimtab/planner/pool"
	"github.com/trimtab/trimtab/planner/stall"
	"github.com/trimtab/trimtab/planner/usage"
	"github.com/trimtab/trimtab/planner/verdict"
	"github.com/trimtab/trimtab/quantity"
)

// Config declares a workload.
type Config = pool.Workload

// Workload is what the planner keeps of one workload between rounds.
type Workload struct {
	Config
	Estimate *trimtab.Estimate
	// Fresh is the last time that its estimate was good enough to plan by, or before that the time
	// of the first round.
	Fresh time.Time
	// States are the states of each resource, by its index; nil: the workload has no share of it.
	States   []*State
	Loan     *loan.Loan // nil: no alert fires, and nothing is to be given back
	Returned time.Time
	// Overload is its state in an overload: see package overload.
	Overload overload.WorkloadState
	Released bool
	// Missed is how many estimates in a row missed the SLO beyond their noise.
	Missed int
	// Number is the state of the number of its instances; nil: the number is not planned.
	Number  *Number
	History History
}

// History is what is kept of a workload from earlier rounds and reports.
type History struct {
	Instances InstanceSet
	Use       usage.Use
	Judge     verdict.Judge
	// Stall is how long its quota may throttle it in one period.
	Stall stall.Budget
	// Confidence is the κ from which on it counts as having enough: see package need.
	Confidence float64
	// Sized has the last moves of memory limits that no pool shares.
	Sized map[trimtab.KnobID]guard.Move
}

// Size notes a move of such a limit.
func (h *History) Size(of trimtab.KnobID, direction int, now time.Time) {
	if h.Sized == nil {
		h.Sized = map[trimtab.KnobID]guard.Move{}
	}
	h.Sized[of] = h.Sized[of].Then(direction, now)
}

// State is what the planner keeps of one resource of one workload between rounds.
type State struct {
	pool.Bounds
	// Demand is the demand as the policy sees it, in units (Cilantro, equation 6), if knowsDemand.
	Demand      int
	knowsDemand bool
	Move        guard.Move
	// load is the forecast when it last moved; nil: unknown.
	load *trimtab.LoadForecast
}

// NewStates returns the states of a workload.
func NewStates(c *Config, resources []pool.Resource) []*State {
	states := make([]*State, len(resources))
	for i := range resources {
		if b, ok := c.BoundsOf(&resources[i], i == 0); ok {
			states[i] = &State{Bounds: b}
		}
	}
	return states
}

// Unobserved reports whether its estimate lacks what its SLO is about; without an SLO nothing is lacking.
func (w *Workload) Unobserved() bool { return w.SLO > 0 && w.Estimate.Hold != nil }

// Lent returns how much of its allocation was lent for alerts that are over, and may be taken back.
func (w *Workload) Lent(resource int, has float64) float64 {
	if resource > 0 {
		return 0
	}
	return w.Loan.Lent(has)
}

// Moved records a move. The first one after its alerts have ended settles the loan: a fall gives it
// back; a rise shows that the workload needs it without alerts as well.
func (w *Workload) Moved(resource, direction int, now time.Time) {
	d := w.States[resource]
	d.Move = d.Move.Then(direction, now)
	if w.Estimate != nil {
		d.load = w.Estimate.Load
	}
	if resource == 0 && w.Loan.IsOver() {
		if direction < 0 {
			w.Returned = now
		}
		w.Loan = nil
	}
}

// JustLowered reports whether a plan lowered it so recently (within) that a host may still carry
// that out.
func (d *State) JustLowered(now time.Time, within time.Duration) bool {
	return d.Move.Direction < 0 && now.Sub(d.Move.At) <= within
}

// Used returns the last measured CPU use of the workload, in cores, and whether it is known. An
// older measurement than stale is not.
func (w *Workload) Used(now time.Time, stale time.Duration) (cores float64, known bool) {
	e := w.Estimate
	if e == nil || e.Validate() != nil {
		return 0, false
	}
	in := inputOf(e, quantity.Usage)
	if in == nil || in.Value < 0 {
		return 0, false
	}
	age := now.Sub(e.Time) + in.Age.Duration()
	return in.Value, age <= stale && age >= -stale
}

// Memory returns the part of the state that outlives the process; of nil, an empty one. unit is the size
// of a unit.
func (d *State) Memory(unit float64) memory.Workload {
	m := memory.Workload{Unit: unit}
	if d == nil {
		return m
	}
	if m.Move = d.Move; d.knowsDemand {
		m.Demand = &d.Demand
	}
	return m
}

// Restore restores demand and last move, unless d is nil. It drops a demand in another unit.
func (d *State) Restore(m *memory.Workload, unit float64) {
	if d == nil {
		return
	}
	d.Move = m.Move
	if m.Demand != nil && m.Unit == unit {
		d.Demand, d.knowsDemand = *m.Demand, true
	}
}

// Outside returns the load in requests per second that a source outside the workload's instances
// reports; false if there is none, or it is older than stale.
func (w *Workload) Outside(now time.Time, stale time.Duration) (load float64, known bool) {
	e := w.Estimate
	if e == nil || e.Validate() != nil || now.Sub(e.Time) > stale || e.Time.Sub(now) > stale {
		return 0, false
	}
	in := inputOf(e, quantity.Load)
	if in == nil || in.Source != fromPrometheus || in.Age.Duration() > stale || in.Value < 0 {
		return 0, false
	}
	return in.Value, true
}

// fromPrometheus is the source name of inputs from a Prometheus query.
const fromPrometheus = "prometheus"
