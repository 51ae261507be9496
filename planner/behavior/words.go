package behavior

import (
	"math"
	"time"

	"github.com/trimtab/trimtab"
)

// Defaults of the controller's flags, and its timer.
const (
	DefaultTolerance  = 0.1
	DefaultDownWindow = 300 * time.Second
	SyncPeriod        = 15 * time.Second
)

// The words of a policy.
const (
	Pods     = "Pods"
	Percent  = "Percent"
	Max      = "Max"
	Min      = "Min"
	Disabled = "Disabled"
)

// Bounds of the numbers in a behavior block: the longest window and period, in seconds,
// as the API server has them.
const (
	maxWindow, maxPeriod = 3600, 1800
	// maxReplicas is what a number of replicas can be.
	maxReplicas = math.MaxInt32
	// maxPolicies bounds what a block can cost; the controller has no bound.
	maxPolicies = 64
)

// Policy bounds the change within a period.
type Policy struct {
	Type          string `json:"type"`
	Value         int    `json:"value"`
	PeriodSeconds int    `json:"periodSeconds"`
}

// Rules are those of one direction.
type Rules struct {
	// Window is nil where the controller's flag counts (down), or 0 (up).
	Window *int `json:"stabilizationWindowSeconds,omitempty"`
	// Select is Max, Min or Disabled; "": Max.
	Select string `json:"selectPolicy,omitempty"`
	// Policies are those by default where nil. None at all are an error.
	Policies []Policy `json:"policies,omitempty"`
	// Tolerance is nil where the controller's flag counts.
	Tolerance *float64 `json:"tolerance,omitempty"`
}

// Behavior is the block. A nil block is not the same as an empty one: see [State.Step].
type Behavior struct {
	Up   *Rules `json:"scaleUp,omitempty"`
	Down *Rules `json:"scaleDown,omitempty"`
}

// Bounds are minReplicas and maxReplicas.
type Bounds struct{ Min, Max int }

// Validate returns an error that is trimtab.ErrInvalid, in the words of the block.
func (b *Behavior) Validate() error {
	if b == nil {
		return nil
	}
	if err := b.Up.validate("scaleUp"); err != nil {
		return err
	}
	return b.Down.validate("scaleDown")
}

func (r *Rules) validate(name string) error {
	switch {
	case r == nil:
		return nil
	case r.Window != nil && (*r.Window < 0 || *r.Window > maxWindow):
		return trimtab.Invalidf("behavior.%s.stabilizationWindowSeconds %d: want 0 to %d", name, *r.Window, maxWindow)
	case r.Select != "" && r.Select != Max && r.Select != Min && r.Select != Disabled:
		return trimtab.Invalidf("behavior.%s.selectPolicy %.40q: want Max, Min or Disabled", name, r.Select)
	case r.Policies != nil && len(r.Policies) == 0:
		return trimtab.Invalidf("behavior.%s.policies: empty: want at least one policy, or leave it out", name)
	case len(r.Policies) > maxPolicies:
		return trimtab.Invalidf("behavior.%s.policies: %d, limit %d", name, len(r.Policies), maxPolicies)
	case r.Tolerance != nil && !(*r.Tolerance >= 0 && *r.Tolerance <= math.MaxFloat64):
		return trimtab.Invalidf("behavior.%s.tolerance %v: want a number >= 0", name, *r.Tolerance)
	}
	for i, p := range r.Policies {
		switch {
		case p.Type != Pods && p.Type != Percent:
			return trimtab.Invalidf("behavior.%s.policies[%d].type %.40q: want Pods or Percent", name, i, p.Type)
		case p.Value < 1 || p.Value > maxReplicas:
			return trimtab.Invalidf("behavior.%s.policies[%d].value %d: want 1 or more", name, i, p.Value)
		case p.PeriodSeconds < 1 || p.PeriodSeconds > maxPeriod:
			return trimtab.Invalidf("behavior.%s.policies[%d].periodSeconds %d: want 1 to %d", name, i, p.PeriodSeconds, maxPeriod)
		}
	}
	return nil
}

// ForSize checks that the block can limit a size, such as cores of an instance: a number of pods
// only limits replicas.
func (b *Behavior) ForSize() error {
	if err := b.Validate(); err != nil || b == nil {
		return err
	}
	for name, r := range map[string]*Rules{"scaleUp": b.Up, "scaleDown": b.Down} {
		if r == nil {
			continue
		}
		for i, p := range r.Policies {
			if p.Type == Pods {
				return trimtab.Invalidf("behavior.%s.policies[%d]: type Pods: a number of pods limits replicas; want Percent for a size", name, i)
			}
		}
	}
	return nil
}

// filled returns the rules of both directions without gaps.
func (b *Behavior) filled() (up, down Rules) {
	none, wait := 0, int(DefaultDownWindow/time.Second)
	up = Rules{Window: &none, Select: Max, Policies: []Policy{{Pods, 4, 15}, {Percent, 100, 15}}}
	down = Rules{Window: &wait, Select: Max, Policies: []Policy{{Percent, 100, 15}}}
	fill := func(to, from *Rules) {
		if from == nil {
			return
		}
		if from.Window != nil {
			to.Window = from.Window
		}
		if from.Select != "" {
			to.Select = from.Select
		}
		if from.Policies != nil {
			to.Policies = from.Policies
		}
	}
	fill(&up, b.Up)
	fill(&down, b.Down)
	return up, down
}

// Tolerance is how far usage may be from its target before anything changes.
type Tolerance struct{ Up, Down float64 }

// Tolerance returns that of the block, which may be nil.
func (b *Behavior) Tolerance() Tolerance {
	t := Tolerance{DefaultTolerance, DefaultTolerance}
	if b == nil {
		return t
	}
	if b.Up != nil && b.Up.Tolerance != nil {
		t.Up = *b.Up.Tolerance
	}
	if b.Down != nil && b.Down.Tolerance != nil {
		t.Down = *b.Down.Tolerance
	}
	return t
}

// Holds reports whether a ratio of usage to target is within the tolerance, so that nothing
// changes.
func (t Tolerance) Holds(ratio float64) bool { return 1-t.Down <= ratio && ratio <= 1+t.Up }

// Reading is the recommendation of one metric.
type Reading struct {
	Replicas int
	// Missing says that the metric could not be read.
	Missing bool
}

// Combine returns the largest number that a metric recommends. It is false where
// nothing may change: no metric could be read, or one could not and the others would
// lower the number.
func Combine(current int, readings []Reading) (wanted int, ok bool) {
	missing, most := 0, -1
	for _, r := range readings {
		if r.Missing {
			missing++
			continue
		}
		most = max(most, r.Replicas)
	}
	if most < 0 || missing > 0 && most < current {
		return current, false
	}
	return most, true
}

// Due reports whether the controller looks again: every 15 s, and at once where the
// object is new or was changed.
func Due(now, last time.Time, changed bool) bool {
	return changed || last.IsZero() || now.Sub(last) >= SyncPeriod
}
