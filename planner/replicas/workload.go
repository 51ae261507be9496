package replicas

import (
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/behavior"
)

// Need is the effective allocation that a workload needs, in the resource's unit.
type Need struct {
	// Round is the need at the upper bound of the load in the coming round. Start is the need at
	// the upper bound over the time that an instance takes to start.
	Round, Start float64
}

// NeedOf reads the need off the lower bound of a curve over the effective allocation. round and
// start are upper bounds of the load in requests per second; start 0 is unknown and counts as
// round. It returns false if the lower bound of the curve never meets the SLO, or a load is
// invalid.
func NeedOf(c *trimtab.Curve, slo, round, start float64) (Need, bool) {
	if c == nil || !sane(slo, round, start) {
		return Need{}, false
	}
	at := func(load float64) float64 {
		scale, _ := c.Scale(load)
		return c.Least(scale, slo, func(b trimtab.Band) float64 { return b.Lower })
	}
	n := Need{Round: at(round), Start: at(math.Max(round, start))}
	return n, n.Round >= 0 && n.Start >= 0
}

// Size has the limits of the size of one instance.
type Size struct {
	// Min, Max and Step are in the resource's unit, > 0.
	Min, Max, Step float64
	// Fixed: instances cannot be resized. ReadOnly names another owner of the size, such as a VPA;
	// the size is then only recommended.
	Fixed    bool
	ReadOnly string
	// Behavior limits the rate of changes, in percent; nil: no limit.
	Behavior *behavior.Behavior
}

// Count has the limits of the number of instances.
type Count struct {
	// Min is at least 1 unless AllowZero is set.
	Min, Max int
	// Spare is the number of instances that may fail at once while the others still serve the load.
	Spare int
	// AllowZero allows zero instances while nothing is needed.
	AllowZero bool
	Fixed     bool
	ReadOnly  string
	Behavior  *behavior.Behavior
}

// Instance is one running copy of the workload.
type Instance struct {
	Host string
	// InForce is its size in force, Asked the requested one. The larger of both counts.
	InForce, Asked float64
	Ready          bool
	// Age is the time since its creation, if it is not ready.
	Age time.Duration
	// Terminating: it still takes capacity, but no longer serves.
	Terminating bool
}

func (i *Instance) held() float64 { return math.Max(i.InForce, i.Asked) }

// Limits are set by the cluster.
type Limits struct {
	// Disruptable is how many instances may be removed now, by the disruption budgets; nil: there
	// is no budget.
	Disruptable *int
	// Pods is how many more instances, and Amount how much more of the resource, the quotas of the
	// namespace allow; nil without a quota.
	Pods   *int
	Amount *float64
}

// Workload is one workload in one round.
type Workload struct {
	Name string
	Need Need
	// Work is the part of the need that requests use at the upper bound of the load in the coming
	// round, without the [Slack] of each instance; 0: unknown.
	Work float64
	// Granted is the total of its instances until the next decision, if another part of the planner
	// decides that; 0: it follows from the need.
	Granted float64
	// Missing says why the need is unknown; "": it is known.
	Missing string
	// Replicas is the number that is set in the cluster.
	Replicas  int
	Instances []Instance
	Size      Size
	Count     Count
	Limits    Limits
	// Rollout: two versions run.
	Rollout  bool
	Fallback *Fallback
}

// Headroom is the free capacity beyond what the instances have.
type Headroom struct {
	// Hosts is by name; nil: hosts limit nothing. A host that is not in it has no free capacity.
	Hosts map[string]float64
	// Pool is the free capacity of the pool; +Inf: it limits nothing.
	Pool float64
}

// State is kept for a workload between rounds.
type State struct {
	Count   behavior.State `json:"count"`
	Size    behavior.State `json:"size"`
	Startup Startup        `json:"startup"`
	Margin  Margin         `json:"margin"`
	Slack   Slack          `json:"slack"`
	// Failures is the number of rounds in a row in which the need was unknown.
	Failures int `json:"failures,omitempty"`
	// Retry is when instances may be added again, after some did not start.
	Retry time.Time `json:"retry,omitzero"`
}

// Validate returns an error that is trimtab.ErrInvalid.
func (w *Workload) Validate() error {
	s, c := &w.Size, &w.Count
	switch {
	case !sane(s.Min, s.Max, s.Step) || s.Step <= 0 || s.Min <= 0 || s.Max < s.Min:
		return trimtab.Invalidf("size of %.100q: min %v, max %v, step %v: want 0 < min <= max and a step > 0", w.Name, s.Min, s.Max, s.Step)
	case c.Min < 0 || c.Max < max(1, c.Min) || c.Max > math.MaxInt32 || c.Spare < 0 || c.Spare > c.Max:
		return trimtab.Invalidf("replicas of %.100q: min %d, max %d, spare %d: want 0 <= min <= max and a spare of at most max", w.Name, c.Min, c.Max, c.Spare)
	case c.Min == 0 && !c.AllowZero:
		return trimtab.Invalidf("replicas of %.100q: min 0: want 1 or more, or allow_zero", w.Name)
	}
	if err := c.Behavior.Validate(); err != nil {
		return err
	}
	return s.Behavior.ForSize()
}

// sane reports whether all values are valid amounts.
func sane(values ...float64) bool {
	for _, v := range values {
		if !(v >= 0 && v <= 1e15) {
			return false
		}
	}
	return true
}
