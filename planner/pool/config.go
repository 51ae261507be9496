// Package pool has what one planner plans for: what a pool shares, among whom, and within what
// bounds. [Config.Validate] refuses what no planner can plan for, and [Config.WithDefaults] fills
// what was left out.
//
// The package plans nothing and reads no file.
package pool

import (
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/concurrency"
	"github.com/trimtab/trimtab/planner/envelope"
	"github.com/trimtab/trimtab/planner/guard"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/sizing"
)

// Config configures the planning of one pool. Zero fields have the default named with them. A
// planner refuses what Validate refuses.
type Config struct {
	// Pool names the pool; Resource is the one its knobs turn: "cpu", "workers".
	Pool, Resource string
	// Capacity is the amount that the pool shares and Unit the size of one step of an allocation,
	// both in the resource's unit, > 0. At most 2^20 units.
	Capacity, Unit float64
	// Step is B of Cilantro 4.1.2: an allocation moves at most that many
	// units in a round. Default 10.
	Step int
	// Round is the time between rounds, Lease how long a plan is valid without another. Defaults
	// 30 s and three rounds. Lease must exceed Round.
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
	// Urgent is the least time between two rounds that a workload with less than
	// it needs starts before their time. 0: none is started.
	Urgent time.Duration
	// AlertGap is the least time between two rounds that alerts of one group
	// start. Default 10 s.
	AlertGap time.Duration
	// AlertHold is how long an alert that is not repeated, and whose sender gives no earlier end,
	// keeps its workload from being lowered. Default 5 h: Alertmanager repeats firing alerts
	// every 4 h by default.
	AlertHold time.Duration
	// Policy answers the rounds.
	Policy policy.Policy
	// Beta weighs the certain demand against exploration (Cilantro, equation
	// 6), in (0, 1]. Default 3/4.
	Beta float64
	// Guard bounds every step after the policy; see its package.
	Guard guard.Config
	// Fast gives hosts envelopes within which they move quotas of CPU time by themselves;
	// nil: none.
	Fast *envelope.Rules
	// Shared: several hosts have knobs of the pool; then the capacity that each of them reports
	// bounds it, even while only one has reported.
	Shared bool
	// Others are resources that are pooled beside the first. They need a policy that shares
	// several: [policy.Traits].Share.
	Others []Resource
	// Workloads may come in any order. Their names are unique.
	Workloads []Workload
	// Groups give weights and guarantees to groups that workloads name. In any
	// order, their paths are unique.
	Groups []Group
	// Stop, when not nil, is handed to the policy: see [policy.Problem].
	Stop func() bool
}

// Resource is one further resource of a pool.
type Resource struct {
	// Name is what knobs and curves call it: "memory", "llc".
	Name string
	// Capacity is the amount that the pool shares and Unit the size of one step of an allocation,
	// both in the resource's unit, > 0. At most 2^20 units.
	Capacity, Unit float64
	// Step bounds the move of one round, in units. Default 10.
	Step int
}

// Bounds are those of one workload on one further resource, in its unit, with the meaning that
// they have in [Workload].
type Bounds struct {
	Min, Max, Default, Guarantee float64
}

// Admit limits the requests to a workload: how many are in service at once, or are admitted per
// second.
type Admit struct {
	// Max is the most that one limit may be, and what none counts as. Value, if not 0, is the
	// declared sum of all its limits; else they are derived.
	Max, Value float64
	// Declared has the declared limits of single instances, which are for a class of requests and do
	// not count in Value.
	Declared map[string]float64
	// Within is the latency of the SLO if what enforces a derived limit keeps it as it is; 0: its own
	// rule lowers a limit that is too high.
	Within trimtab.Seconds
}

func (a *Admit) valid() bool {
	ok := a.Within >= 0 && a.Within <= math.MaxFloat64 && a.Max > 0 && a.Max <= math.MaxInt32 && a.Value >= 0 && a.Value <= math.MaxInt32
	for _, v := range a.Declared {
		ok = ok && v > 0 && v <= math.MaxInt32
	}
	return ok
}

// Group declares one group of workloads; see [policy.Group].
type Group struct {
	// Path names it from the root down, parts joined by "/": "shop/web".
	Path string
	// Weight is the weight of its entitlement among its siblings. Default 1.
	Weight float64
	// Guarantee is what its members get before sharing by weight begins, as far as they demand
	// it, in the resource's unit.
	Guarantee float64
	// Others are its guarantees of the further resources of the pool, by name.
	Others map[string]float64
}

// Workload declares one workload.
type Workload struct {
	Name string
	// Components are the names under which its spans tell of it (service.name).
	Components []string
	// Group is the path of the group that it belongs to; "": the root.
	Group string
	// Guarantee is what it gets before sharing by weight begins, as far as it demands it, in the
	// resource's unit.
	Guarantee float64
	Mode      trimtab.Mode
	Class     trimtab.Class
	// Host is the only one that may have instances of it; "": any host may.
	Host string
	// Weight is the weight of its entitlement. Default 1.
	Weight float64
	// Min and Max bound the allocation, in the resource's unit. A Max of 0 is
	// the capacity; a larger one is cut to it.
	Min, Max float64
	// Default is what the workload may be raised to when it had no estimate for HoldRounds
	// rounds; 0: it keeps what it has.
	Default float64
	// Others are its bounds on the further resources of the pool, by name; for missing ones it
	// has no knob.
	Others map[string]Bounds
	// Count, if not nil, says that the number of its instances is planned together with their
	// size, which is the allocation of the pool's first resource.
	Count *Count
	// Admit says what something before it can limit: [trimtab.Concurrency], the requests in service,
	// and [trimtab.Rate], the admitted requests per second.
	Admit map[string]Admit
	// Memory, if not nil, has the bounds of the memory limits of its instances, where the pool does
	// not share memory.
	Memory *sizing.Bounds
	// MemoryAlone: it has no share of the pool's first resource, and only Memory is planned.
	MemoryAlone bool
	// SLO is the performance asked for, > 0; 0 where MemoryAlone: none.
	SLO float64
	// Utility maps a performance >= 0 to [0, 1], not decreasing; nil: Linear.
	Utility func(performance float64) float64
	// Worth is what the operator's own objective counts; see [policy.Workload].
	Worth func(performance float64) float64
}

// WithDefaults fills zero fields.
func (c Config) WithDefaults() Config {
	c.Step = orInt(c.Step, 10)
	c.Round = orTime(c.Round, 30*time.Second)
	c.Lease = orTime(c.Lease, 3*c.Round)
	c.Confirm = orTime(c.Confirm, min(5*time.Second, c.Lease/2))
	c.StaleAfter = orTime(c.StaleAfter, max(2*c.Round, 10*time.Second))
	c.HoldRounds = orInt(c.HoldRounds, 3)
	c.AlertGap = orTime(c.AlertGap, 10*time.Second)
	c.AlertHold = orTime(c.AlertHold, 5*time.Hour)
	if c.Beta == 0 {
		c.Beta = 0.75
	}
	c.Others = slices.Clone(c.Others)
	for i := range c.Others {
		c.Others[i].Step = orInt(c.Others[i].Step, 10)
	}
	c.Workloads = append([]Workload(nil), c.Workloads...)
	for i := range c.Workloads {
		w := &c.Workloads[i]
		if w.Weight == 0 {
			w.Weight = 1
		}
		if w.Max == 0 || w.Max > c.Capacity {
			w.Max = c.Capacity
		}
		if w.Utility == nil {
			w.Utility = policy.Linear(w.SLO)
		}
		if w.Mode == "" {
			w.Mode = trimtab.Recommend
		}
	}
	return c
}

// HoldFor is HoldRounds as a time.
func (c *Config) HoldFor() time.Duration { return time.Duration(c.HoldRounds) * c.Round }

// Validate returns an error that is trimtab.ErrInvalid and names the field.
func (c Config) Validate() error {
	switch {
	case c.Pool == "" || c.Resource == "":
		return trimtab.Invalidf("planner: pool %q, resource %q: both need a name", c.Pool, c.Resource)
	case !positive(c.Capacity) || !positive(c.Unit):
		return trimtab.Invalidf("planner: capacity %v, unit %v: want finite numbers > 0", c.Capacity, c.Unit)
	case c.Capacity/c.Unit > policy.MaxUnits:
		return trimtab.Invalidf("planner: capacity of %.0f units, limit %d: use a larger unit", c.Capacity/c.Unit, policy.MaxUnits)
	case c.Step < 0 || c.HoldRounds < 0 || c.Round < 0 || c.Lease < 0 || c.Confirm < 0 || c.StaleAfter < 0 || c.AlertGap < 0 || c.AlertHold < 0:
		return trimtab.Invalidf("planner: step %d, round %v, lease %v, confirm %v, stale after %v, alert gap %v: none may be negative",
			c.Step, c.Round, c.Lease, c.Confirm, c.StaleAfter, c.AlertGap)
	case c.Policy == nil:
		return trimtab.Invalidf("planner: no policy")
	case !(c.Beta >= 0 && c.Beta <= 1):
		return trimtab.Invalidf("planner: beta %v: want a number in (0, 1]", c.Beta)
	}
	if err := c.validateGroups(); err != nil {
		return err
	}
	if d := c.WithDefaults(); d.Lease <= d.Round {
		return trimtab.Invalidf("planner: lease %v must exceed the round of %v", d.Lease, d.Round)
	}
	if err := c.Guard.Validate(); err != nil {
		return err
	}
	if err := c.validateOthers(); err != nil {
		return err
	}
	return c.validateWorkloads()
}

// AllResources returns all resources of the pool, the first one first.
func (c Config) AllResources() []Resource {
	return append([]Resource{{c.Resource, c.Capacity, c.Unit, c.Step}}, c.Others...)
}

func (c Config) validateOthers() error {
	if len(c.Others) >= trimtab.MaxResources {
		return trimtab.Invalidf("planner: %d resources, limit %d", len(c.Others)+1, trimtab.MaxResources)
	}
	if len(c.Others) > 0 && c.Policy.Traits().Share == nil {
		return trimtab.Invalidf("planner: %s shares one resource, the pool has %d", c.Policy.Name(), len(c.Others)+1)
	}
	seen := map[string]bool{c.Resource: true}
	for _, r := range c.Others {
		switch {
		case r.Name == "" || len(r.Name) > 253 || seen[r.Name]:
			return trimtab.Invalidf("planner: resource %.40q: want a name of its own of 1 to 253 bytes", r.Name)
		case !positive(r.Capacity) || !positive(r.Unit) || r.Step < 0:
			return trimtab.Invalidf("planner: %s: capacity %v, unit %v, step %d: want finite numbers > 0", r.Name, r.Capacity, r.Unit, r.Step)
		case r.Capacity/r.Unit > policy.MaxUnits:
			return trimtab.Invalidf("planner: %s: capacity of %.0f units, limit %d: use a larger unit", r.Name, r.Capacity/r.Unit, policy.MaxUnits)
		}
		seen[r.Name] = true
	}
	return nil
}

// validateBounds checks the bounds of a workload on further resources.
func (c Config) validateBounds(w *Workload) error {
	for name, b := range w.Others {
		at := slices.IndexFunc(c.Others, func(r Resource) bool { return r.Name == name })
		if at < 0 {
			return trimtab.Invalidf("planner: workload %s has bounds on %.40q, which the pool does not share", w.Name, name)
		}
		for _, v := range []float64{b.Min, b.Max, b.Default, b.Guarantee} {
			if v != 0 && !positive(v) {
				return trimtab.Invalidf("planner: workload %s: %s: min %v, max %v, default %v, guarantee %v: want finite numbers >= 0",
					w.Name, name, b.Min, b.Max, b.Default, b.Guarantee)
			}
		}
		if b.Max != 0 && b.Min > b.Max || b.Min > c.Others[at].Capacity {
			return trimtab.Invalidf("planner: workload %s: %s: min %v over max %v or the capacity %v", w.Name, name, b.Min, b.Max, c.Others[at].Capacity)
		}
	}
	return nil
}

func (c Config) validateGroups() error {
	seen := make(map[string]bool, len(c.Groups))
	for _, g := range c.Groups {
		switch {
		case g.Path == "" || seen[g.Path]:
			return trimtab.Invalidf("planner: group %.40q: want a path of its own", g.Path)
		case g.Weight != 0 && !positive(g.Weight) || g.Guarantee != 0 && !positive(g.Guarantee):
			return trimtab.Invalidf("planner: group %s: weight %v, guarantee %v: want finite numbers > 0, or none", g.Path, g.Weight, g.Guarantee)
		}
		for name, v := range g.Others {
			if !positive(v) || !slices.ContainsFunc(c.Others, func(r Resource) bool { return r.Name == name }) {
				return trimtab.Invalidf("planner: group %s: guarantee %v of %.40q: want a finite number > 0 of a resource that the pool shares", g.Path, v, name)
			}
		}
		seen[g.Path] = true
	}
	return nil
}

func (c Config) validateWorkloads() error {
	names := make(map[string]bool, len(c.Workloads))
	for _, w := range c.Workloads {
		switch {
		case w.Name == "" || len(w.Name) > 253 || names[w.Name]:
			return trimtab.Invalidf("planner: workload %.40q: want a name of its own of 1 to 253 bytes", w.Name)
		case w.Mode != "" && w.Mode != trimtab.Off && w.Mode != trimtab.Recommend && w.Mode != trimtab.Act:
			return trimtab.Invalidf("planner: workload %s: mode %.20q", w.Name, w.Mode)
		case w.Mode != trimtab.Off && !positive(w.SLO) && !(w.MemoryAlone && w.SLO == 0):
			return trimtab.Invalidf("planner: workload %s: slo %v: want a finite number > 0", w.Name, w.SLO)
		case w.Weight != 0 && !positive(w.Weight):
			return trimtab.Invalidf("planner: workload %s: weight %v: want a finite number > 0", w.Name, w.Weight)
		}
		for _, v := range []float64{w.Min, w.Max, w.Default, w.Guarantee} {
			if v != 0 && !positive(v) {
				return trimtab.Invalidf("planner: workload %s: min %v, max %v, default %v: want finite numbers >= 0", w.Name, w.Min, w.Max, w.Default)
			}
		}
		if err := w.validateCount(); err != nil {
			return err
		}
		for resource, a := range w.Admit {
			if !slices.Contains(concurrency.Resources(), resource) || !a.valid() {
				return trimtab.Invalidf("planner: workload %s: limit of %s %+v: want a finite max > 0, and no negative values", w.Name, resource, a)
			}
		}
		if m := w.Memory; m != nil && (!m.Valid() || slices.ContainsFunc(c.AllResources(), func(r Resource) bool { return r.Name == trimtab.Memory })) {
			return trimtab.Invalidf("planner: workload %s: memory %+v: want 0 < min <= max, a margin of at most 10, and a pool that shares no memory", w.Name, *m)
		}
		if w.Max != 0 && w.Min > w.Max || w.Min > c.Capacity {
			return trimtab.Invalidf("planner: workload %s: min %v over max %v or the capacity %v", w.Name, w.Min, w.Max, c.Capacity)
		}
		if err := c.validateBounds(&w); err != nil {
			return err
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
