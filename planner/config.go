package planner

import (
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/guard"
)

// Config says what one planner plans for. Zero fields take the default named
// with them; [New] refuses what Validate refuses.
type Config struct {
	// Pool names the pool; Resource is the one its knobs turn: "cpu", "workers".
	Pool, Resource string
	// Capacity is what the pool shares and Unit the size of one step of an
	// allocation, both in the resource's unit, > 0. At most 2^20 units.
	Capacity, Unit float64
	// Step is B of Cilantro 4.1.2: an allocation moves at most that many
	// units in a round. Default 10.
	Step int
	// Round is the time between rounds, Lease how long a plan holds without
	// another. Defaults 30 s and three rounds. Lease must exceed Round.
	Round, Lease time.Duration
	// Confirm is how long the grows of a plan wait for its shrinks' outcomes.
	// Default 5 s, at most half the lease.
	Confirm time.Duration
	// StaleAfter is the age at which an estimate proves nothing any more.
	// Default two rounds, at least 10 s.
	StaleAfter time.Duration
	// HoldRounds is after how many rounds without usable input a declared
	// Default may raise a workload. Default 3.
	HoldRounds int
	// AlertGap is the least time between two rounds that alerts of one group
	// start. Default 10 s.
	AlertGap time.Duration
	// Policy answers the rounds.
	Policy Policy
	// Beta weighs the certain demand against exploration (Cilantro, equation
	// 6), in (0, 1]. Default 3/4.
	Beta float64
	// Guard bounds every step after the policy; see its package.
	Guard guard.Config
	// Workloads may come in any order. Their names are unique.
	Workloads []WorkloadConfig
	// Groups give weights and guarantees to groups that workloads name. In any
	// order, their paths are unique.
	Groups []GroupConfig
	// Stop, when not nil, is handed to the policy: see [Problem].
	Stop func() bool
}

// GroupConfig declares one group of workloads; see [Group].
type GroupConfig struct {
	// Path names it from the root down, parts joined by "/": "shop/web".
	Path string
	// Weight is the weight of its entitlement among its siblings. Default 1.
	Weight float64
	// Guarantee is what its members get before anybody is served by weight, as
	// far as they demand it, in the resource's unit.
	Guarantee float64
}

// WorkloadConfig declares one workload.
type WorkloadConfig struct {
	Name string
	// Group is the path of the group that it belongs to; "": the root.
	Group string
	// Guarantee is what it gets before anybody is served by weight, as far as
	// it demands it, in the resource's unit.
	Guarantee float64
	Mode  trimtab.Mode
	Class trimtab.Class
	// Weight is the weight of its entitlement. Default 1.
	Weight float64
	// Min and Max bound the allocation, in the resource's unit. A Max of 0 is
	// the capacity; a larger one is cut to it.
	Min, Max float64
	// Default is what the workload may be raised to when nothing is known of
	// it for HoldRounds rounds; 0: it holds.
	Default float64
	// SLO is the performance asked for, > 0.
	SLO float64
	// Utility maps a performance >= 0 to [0, 1], not decreasing; nil: Linear.
	Utility func(performance float64) float64
}

// Linear returns the utility m = min(1, performance/slo) (Cilantro, figure 4a).
func Linear(slo float64) func(float64) float64 {
	return func(p float64) float64 { return math.Min(1, p/slo) }
}

// Quadratic returns m squared: even small violations hurt (figure 4b).
func Quadratic(slo float64) func(float64) float64 {
	return func(p float64) float64 { m := math.Min(1, p/slo); return m * m }
}

// SquareRoot returns the root of m: small violations hardly hurt (figure 4c).
func SquareRoot(slo float64) func(float64) float64 {
	return func(p float64) float64 { return math.Sqrt(math.Min(1, p/slo)) }
}

// maxUnits bounds a problem, so that the solvers' integers cannot overflow.
const maxUnits = 1 << 20

// withDefaults fills zero fields.
func (c Config) withDefaults() Config {
	c.Step = orInt(c.Step, 10)
	c.Round = orTime(c.Round, 30*time.Second)
	c.Lease = orTime(c.Lease, 3*c.Round)
	c.Confirm = orTime(c.Confirm, min(5*time.Second, c.Lease/2))
	c.StaleAfter = orTime(c.StaleAfter, max(2*c.Round, 10*time.Second))
	c.HoldRounds = orInt(c.HoldRounds, 3)
	c.AlertGap = orTime(c.AlertGap, 10*time.Second)
	if c.Beta == 0 {
		c.Beta = 0.75
	}
	c.Workloads = append([]WorkloadConfig(nil), c.Workloads...)
	for i := range c.Workloads {
		w := &c.Workloads[i]
		if w.Weight == 0 {
			w.Weight = 1
		}
		if w.Max == 0 || w.Max > c.Capacity {
			w.Max = c.Capacity
		}
		if w.Utility == nil {
			w.Utility = Linear(w.SLO)
		}
		if w.Mode == "" {
			w.Mode = trimtab.Recommend
		}
	}
	return c
}

// Validate returns an error that is trimtab.ErrInvalid and names the field.
func (c Config) Validate() error {
	switch {
	case c.Pool == "" || c.Resource == "":
		return trimtab.Invalidf("planner: pool %q, resource %q: both need a name", c.Pool, c.Resource)
	case !positive(c.Capacity) || !positive(c.Unit):
		return trimtab.Invalidf("planner: capacity %v, unit %v: want finite numbers > 0", c.Capacity, c.Unit)
	case c.Capacity/c.Unit > maxUnits:
		return trimtab.Invalidf("planner: capacity of %.0f units, limit %d: use a larger unit", c.Capacity/c.Unit, maxUnits)
	case c.Step < 0 || c.HoldRounds < 0 || c.Round < 0 || c.Lease < 0 || c.Confirm < 0 || c.StaleAfter < 0 || c.AlertGap < 0:
		return trimtab.Invalidf("planner: step %d, round %v, lease %v, confirm %v, stale after %v, alert gap %v: none may be negative",
			c.Step, c.Round, c.Lease, c.Confirm, c.StaleAfter, c.AlertGap)
	case c.Policy == nil:
		return trimtab.Invalidf("planner: no policy")
	case !(c.Beta >= 0 && c.Beta <= 1):
		return trimtab.Invalidf("planner: beta %v: want a number in (0, 1]", c.Beta)
	}
	if d := c.withDefaults(); d.Lease <= d.Round {
		return trimtab.Invalidf("planner: lease %v must exceed the round of %v", d.Lease, d.Round)
	}
	if err := c.Guard.Validate(); err != nil {
		return err
	}
	return c.validateWorkloads()
}

func (c Config) validateWorkloads() error {
	names := make(map[string]bool, len(c.Workloads))
	for _, w := range c.Workloads {
		switch {
		case w.Name == "" || len(w.Name) > 253 || names[w.Name]:
			return trimtab.Invalidf("planner: workload %.40q: want a name of its own of 1 to 253 bytes", w.Name)
		case w.Mode != "" && w.Mode != trimtab.Off && w.Mode != trimtab.Recommend && w.Mode != trimtab.Act:
			return trimtab.Invalidf("planner: workload %s: mode %.20q", w.Name, w.Mode)
		case w.Mode != trimtab.Off && !positive(w.SLO):
			return trimtab.Invalidf("planner: workload %s: slo %v: want a finite number > 0", w.Name, w.SLO)
		case w.Weight != 0 && !positive(w.Weight):
			return trimtab.Invalidf("planner: workload %s: weight %v: want a finite number > 0", w.Name, w.Weight)
		}
		for _, v := range []float64{w.Min, w.Max, w.Default} {
			if v != 0 && !positive(v) {
				return trimtab.Invalidf("planner: workload %s: min %v, max %v, default %v: want finite numbers >= 0", w.Name, w.Min, w.Max, w.Default)
			}
		}
		if w.Max != 0 && w.Min > w.Max || w.Min > c.Capacity {
			return trimtab.Invalidf("planner: workload %s: min %v over max %v or the capacity %v", w.Name, w.Min, w.Max, c.Capacity)
		}
		names[w.Name] = true
	}
	return nil
}

func positive(v float64) bool { return v > 0 && !math.IsInf(v, 0) }

func orInt(v, otherwise int) int {
	if v == 0 {
		return otherwise
	}
	return v
}

func orTime(v, otherwise time.Duration) time.Duration {
	if v == 0 {
		return otherwise
	}
	return v
}
