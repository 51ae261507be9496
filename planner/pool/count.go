package pool

import (
	"fmt"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/behavior"
	"github.com/trimtab/trimtab/planner/replicas"
)

// Count configures the planning of the number of a workload's instances.
type Count struct {
	// Min and Max bound it, >= 1. Spare is how many may fail at once while the others can still
	// serve.
	Min, Max, Spare int
	// Behavior limits changes of the number, Size those of the size, in percent; nil:
	// the defaults of a HorizontalPodAutoscaler without the block, and nothing.
	Behavior, Size *behavior.Behavior
	// Fallback is what to have while nothing is known; nil: what is there.
	Fallback *replicas.Fallback
	// AllowZero allows the number 0 once a source outside the instances has reported no load for
	// the Cooldown.
	AllowZero bool
	Cooldown  time.Duration
	// Chosen says that a fall names the instances that should leave, by their load.
	Chosen bool
	// Startup is how long a start is taken to last until some were seen; 0: a minute.
	Startup time.Duration
}

// MostReplicas is more than any pool has instances.
const MostReplicas = 1 << 20

func (w *Workload) validateCount() error {
	c := w.Count
	switch {
	case c == nil:
		return nil
	case c.Min < 1 || c.Max < c.Min || c.Max > MostReplicas || c.Spare < 0 || c.Spare >= c.Max || c.Startup < 0 || c.Cooldown < 0:
		return trimtab.Invalidf("planner: workload %s: replicas from %d to %d, %d spare, start in %v: want 1 <= min <= max, and fewer to spare", w.Name, c.Min, c.Max, c.Spare, c.Startup)
	}
	if err := c.Behavior.Validate(); err != nil {
		return fmt.Errorf("planner: workload %s: %w", w.Name, err)
	}
	if err := c.Size.ForSize(); err != nil {
		return fmt.Errorf("planner: workload %s: %w", w.Name, err)
	}
	if err := c.Fallback.Accept(0); err != nil {
		return fmt.Errorf("planner: workload %s: %w", w.Name, err)
	}
	return nil
}
