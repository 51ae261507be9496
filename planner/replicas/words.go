package replicas

import (
	"github.com/trimtab/trimtab"
)

// The behaviors of KEDA's fallback.
const (
	Static                  = "static"
	CurrentReplicas         = "currentReplicas"
	CurrentReplicasIfHigher = "currentReplicasIfHigher"
	CurrentReplicasIfLower  = "currentReplicasIfLower"
	ScalingModifiers        = "scalingModifiers"
)

// Fallback is KEDA's fallback for a metric that cannot be read.
type Fallback struct {
	FailureThreshold int    `json:"failureThreshold"`
	Replicas         int    `json:"replicas"`
	Behavior         string `json:"behavior,omitempty"`
}

// Accept returns an error that is trimtab.ErrInvalid if the fallback would lower a workload with
// current replicas while input is missing.
func (f *Fallback) Accept(current int) error {
	switch {
	case f == nil:
		return nil
	case f.FailureThreshold < 0 || f.Replicas < 0:
		return trimtab.Invalidf("fallback: failureThreshold %d, replicas %d: want 0 or more", f.FailureThreshold, f.Replicas)
	}
	switch f.Behavior {
	case "", Static:
		if f.Replicas < current {
			return trimtab.Invalidf("fallback: replicas %d, %d now: lowers on missing input, which trimtab never does; use currentReplicasIfHigher", f.Replicas, current)
		}
	case CurrentReplicas, CurrentReplicasIfHigher:
	case CurrentReplicasIfLower:
		return trimtab.Invalidf("fallback: behavior currentReplicasIfLower: lowers on missing input, which trimtab never does; use currentReplicasIfHigher")
	case ScalingModifiers:
		return trimtab.Invalidf("fallback: behavior scalingModifiers: formulas are not read; use currentReplicasIfHigher, and objective or utility for the formula")
	default:
		return trimtab.Invalidf("fallback: behavior %.40q: want static, currentReplicas or currentReplicasIfHigher", f.Behavior)
	}
	return nil
}

// HoldRounds returns after how many rounds without input the fallback applies: KEDA waits for more
// than failureThreshold failures.
func (f *Fallback) HoldRounds() int { return f.FailureThreshold + 1 }

// replicas returns the number of replicas after that many failures in a row, at least the current
// one.
func (f *Fallback) replicas(current, failures int) int {
	if f == nil || failures < f.HoldRounds() || f.Behavior == CurrentReplicas {
		return current
	}
	return max(current, f.Replicas)
}
