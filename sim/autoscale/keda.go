package autoscale

import (
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/behavior"
)

// The names of KEDA's fallback behaviors.
const (
	fallbackStatic  = "static"
	fallbackCurrent = "currentReplicas"
	fallbackHigher  = "currentReplicasIfHigher"
	fallbackLower   = "currentReplicasIfLower"
)

// Trigger is one trigger. Its sum is divided by the threshold (AverageValue), or by the threshold
// times the number of ready pods (Value).
type Trigger struct {
	Threshold, Activation float64
	Value                 bool
	Ready                 int
	// Sum is nil if it cannot be read.
	Sum *float64
	// Resource is set for a cpu or memory trigger: the HPA reads it itself, and it neither
	// activates nor falls back.
	Resource *Metric
}

// Fallback is the block `fallback`. It may lower the number.
type Fallback struct {
	FailureThreshold, Replicas int
	Behavior                   string
}

// KEDA is one ScaledObject with its operator's state.
type KEDA struct {
	HPA
	// Idle is idleReplicaCount; nil: none. Cooldown 0 means 300 s.
	Idle            *int
	Cooldown        time.Duration
	PollingInterval time.Duration
	Fallback        *Fallback
	failures        []int
	active, polled  time.Time
}

// Validate returns an error that is trimtab.ErrInvalid.
func (k *KEDA) Validate() error {
	switch f := k.Fallback; {
	case k.Cooldown < 0 || k.PollingInterval < 0:
		return trimtab.Invalidf("cooldownPeriod %v, pollingInterval %v: want 0 or more", k.Cooldown, k.PollingInterval)
	case k.Idle != nil && (*k.Idle < 0 || *k.Idle >= k.Min):
		return trimtab.Invalidf("idleReplicaCount %d: want 0 to less than minReplicaCount %d", *k.Idle, k.Min)
	case f != nil && (f.FailureThreshold < 0 || f.Replicas < 0):
		return trimtab.Invalidf("fallback: failureThreshold %d, replicas %d: want 0 or more", f.FailureThreshold, f.Replicas)
	case f != nil && f.Behavior != "" && f.Behavior != fallbackStatic && f.Behavior != fallbackCurrent && f.Behavior != fallbackHigher && f.Behavior != fallbackLower:
		return trimtab.Invalidf("fallback: behavior %.40q: want static, currentReplicas, currentReplicasIfHigher or currentReplicasIfLower", f.Behavior)
	}
	return k.HPA.Validate()
}

// off returns the number of replicas while no trigger is active; false: the number never goes below
// the minimum.
func (k *KEDA) off() (int, bool) {
	if k.Idle != nil {
		return *k.Idle, true
	}
	return 0, k.Min == 0
}

// Step returns the number to set now.
func (k *KEDA) Step(now time.Time, current int, triggers []Trigger) int {
	if k.active.IsZero() {
		k.active = now
	}
	if off, can := k.off(); can {
		if to, done := k.activate(now, current, off, triggers); done {
			return to
		}
	}
	h := k.HPA
	h.Min = max(h.Min, 1) // the HPA that KEDA creates has at least 1
	to := h.Step(now, current, k.metrics(current, triggers, behavior.Due(now, h.looked, false)))
	h.Min = k.Min
	k.HPA = h
	return to
}

// activate computes KEDA's own part: the change between the number without active triggers and the
// minimum.
func (k *KEDA) activate(now time.Time, current, off int, triggers []Trigger) (to int, done bool) {
	every := k.PollingInterval
	if every == 0 {
		every = 30 * time.Second
	}
	if !k.polled.IsZero() && now.Sub(k.polled) < every {
		return current, current <= off
	}
	k.polled = now
	active, failed := false, false
	for _, t := range triggers {
		if t.Resource != nil {
			continue
		}
		failed = failed || t.Sum == nil
		active = active || t.Sum != nil && *t.Sum > t.Activation
	}
	if active {
		k.active = now
	}
	wait := k.Cooldown
	if wait == 0 {
		wait = 300 * time.Second
	}
	switch {
	case active && current <= off:
		return max(k.Min, 1), true
	case current <= off:
		return current, true
	case !active && !failed && now.Sub(k.active) >= wait:
		return off, true
	}
	return current, false
}

// metrics returns what the HPA reads. A trigger that failed more often than its threshold gives the
// fallback's number.
func (k *KEDA) metrics(current int, triggers []Trigger, look bool) []Metric {
	if len(k.failures) != len(triggers) {
		k.failures = make([]int, len(triggers))
	}
	out := make([]Metric, len(triggers))
	for i, t := range triggers {
		if t.Resource != nil {
			out[i] = *t.Resource
			continue
		}
		out[i] = Metric{Type: External, Target: thousandths(t.Threshold), Ready: t.Ready}
		if t.Value {
			out[i].Type = Value
		}
		if t.Sum != nil {
			sum := thousandths(*t.Sum)
			k.failures[i], out[i].Sum = 0, &sum
			continue
		}
		if look {
			k.failures[i]++
		}
		if f := k.Fallback; f != nil && k.failures[i] > f.FailureThreshold {
			sum := t.Threshold * float64(f.replicas(current))
			out[i].Sum = &sum
		}
	}
	return out
}

// thousandths truncates an amount to thousandths, as KEDA's metrics server does.
func thousandths(v float64) float64 { return math.Trunc(v*1000) / 1000 }

func (f *Fallback) replicas(current int) int {
	switch f.Behavior {
	case fallbackCurrent:
		return current
	case fallbackHigher:
		return max(current, f.Replicas)
	case fallbackLower:
		return min(current, f.Replicas)
	}
	return f.Replicas
}
