package replicas

import (
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/behavior"
)

// Need is the effective allocation that a workload needs, in the resource's unit.
type Need struct {
	// Round is the need at the upper bound of the load in the coming round, Start that over the
	// time that an instance takes to start.
	Round, Start float64
}

// NeedOf reads the need off a curve over effective allocation, for upper bounds of the
// load in requests per second. A bound over the start that is not known (0) counts as
// that of the round. It is false where the lower bound of the curve never meets the SLO,
// or the load makes no sense.
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

// Size is the knob of every instance: how large it is.
type Size struct {
	// Min, Max and Step (the quantum) in the resource's unit, > 0.
	Min, Max, Step float64
	// Fixed: instances cannot be resized. Barred names the owner of the size, such as a VPA; then
	// it is only recommended.
	Fixed  bool
	Barred string
	// Behavior limits changes in percent; nil: none.
	Behavior *behavior.Behavior
}

// Count is the knob of the number of instances.
type Count struct {
	// Min is >= 1 unless AllowZero.
	Min, Max int
	// Spare is how many may be lost at once while the others can still serve.
	Spare int
	// AllowZero lets the number go to zero while nothing is needed.
	AllowZero bool
	Fixed     bool
	Barred    string
	Behavior  *behavior.Behavior
}

// Instance is one running copy.
type Instance struct {
	Host string
	// InForce and Asked are its size in force and as requested: the larger of both counts.
	InForce, Asked float64
	Ready          bool
	// Age counts from its creation, of one that is not ready.
	Age time.Duration
	// Terminating ones take room and serve no more.
	Terminating bool
}

func (i *Instance) held() float64 { return math.Max(i.InForce, i.Asked) }

// Limits are those that the cluster sets.
type Limits struct {
	// Disruptable is how many instances the disruption budgets let go now; nil: there are none.
	Disruptable *int
	// Pods and Amount are how many instances, and how much of the resource, the quotas of the
	// namespace still allow; nil without a quota.
	Pods   *int
	Amount *float64
}

// Workload is one workload in one round.
type Workload struct {
	Name string
	Need Need
	// Work is the part of the need that is work at the upper bound of the load in the coming
	// round, without the [Slack] of each instance; 0: unknown.
	Work float64
	// Granted is what its instances will have together until the next decision, if another part
	// decides that; 0: what it needs.
	Granted float64
	// Missing is "", or why the need is not known.
	Missing string
	// Replicas is what the target says.
	Replicas  int
	Instances []Instance
	Size      Size
	Count     Count
	Limits    Limits
	// Rollout says that two versions run.
	Rollout  bool
	Fallback *Fallback
}

// Room is what is free besides what instances hold.
type Room struct {
	// Hosts by name; nil: hosts bound nothing. A host that is not in it has no room.
	Hosts map[string]float64
	// Pool is what of the pool is free; +Inf: nothing bounds it.
	Pool float64
}

// State is kept for a workload from round to round.
type State struct {
	Count   behavior.State `json:"count"`
	Size    behavior.State `json:"size"`
	Startup Startup        `json:"startup"`
	Margin  Margin         `json:"margin"`
	Slack   Slack          `json:"slack"`
	// Failures are the rounds in a row without a need that is known.
	Failures int `json:"failures,omitempty"`
	// Retry is when more instances may be asked for, after some were given back.
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

// sane reports whether all are numbers that an amount can be.
func sane(values ...float64) bool {
	for _, v := range values {
		if !(v >= 0 && v <= 1e15) {
			return false
		}
	}
	return true
}
