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

// Workload is what the planner keeps of one workload.
type Workload struct {
	Config
	Estimate *trimtab.Estimate
	Crew     Crew
	// Fresh is when an estimate was last good for planning; the time of the
	// first round before any was.
	Fresh time.Time
	// States are by the index of the resource; nil: it has no knob for it.
	States   []*State
	Loan     *loan.Loan // nil: no alert fires, and nothing is to be given back
	Returned time.Time
	// Turn is what is decided of it in an overload: see package overload.
	Turn     overload.Turn
	Released bool
	Use      usage.Use
	Judge    verdict.Judge
	// Stall is how long it may stand still in a period of its quota.
	Stall stall.Budget
	// Missed is how many estimates in a row missed the SLO beyond their noise.
	Missed int
	// Confidence is that at which it is left alone: see package need.
	Confidence float64
	// Number is what is kept of the number of its instances; nil: it is not planned.
	Number *Number
}

// State is what the planner keeps of one resource of one workload.
type State struct {
	pool.Bounds
	// Demand is the recommended demand in units, when known (equation 6).
	Demand      int
	knowsDemand bool
	Move        guard.Move
	// load is what was forecast when it last moved; nil: unknown.
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

// Lent returns the part of what the workload has of a resource that may be given back
// because the alerts it was lent for are over.
func (w *Workload) Lent(resource int, has float64) float64 {
	if resource > 0 {
		return 0
	}
	return w.Loan.Lent(has)
}

// Moved enters a move that is written. The first one after the end of the
// alerts settles the loan: a fall gives back, a rise is needed without them.
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

// JustLowered reports whether a plan gave it a limit that may still be carried out, for so long.
func (d *State) JustLowered(now time.Time, within time.Duration) bool {
	return d.Move.Direction < 0 && now.Sub(d.Move.At) <= within
}

// Used is the CPU time that a workload was last measured to use, in cores; false: not known.
// stale is the age at which that is forgotten.
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

// Memory is what of it outlives the process, in units of such a size.
func (d *State) Memory(unit float64) memory.Workload {
	m := memory.Workload{Unit: unit, Move: d.Move}
	if d.knowsDemand {
		m.Demand = &d.Demand
	}
	return m
}

// Restore takes demand and move back.
func (d *State) Restore(m *memory.Workload, unit float64) {
	d.Move = m.Move
	if m.Demand != nil && m.Unit == unit {
		d.Demand, d.knowsDemand = *m.Demand, true
	}
}

// Outside is what a source outside its instances says of its load; false: it says nothing, or said
// it too long ago, which is stale.
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

// fromPrometheus is the source of what a query answered.
const fromPrometheus = "prometheus"
