package replicas

import (
	"github.com/trimtab/trimtab"
)

// The words of KEDA's fallback.
const (
	Static                  = "static"
	CurrentReplicas         = "currentReplicas"
	CurrentReplicasIfHigher = "currentReplicasIfHigher"
	CurrentReplicasIfLower  = "currentReplicasIfLower"
	ScalingModifiers        = "scalingModifiers"
)

// Fallback is KEDA's fallback while a metric cannot be read.
type Fallback struct {
	FailureThreshold int    `json:"failureThreshold"`
	Replicas         int    `json:"replicas"`
	Behavior         string `json:"behavior,omitempty"`
}

// Accept returns an error that is trimtab.ErrInvalid for a fallback that would lower a workload
// of that many replicas while input is missing.
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

// HoldRounds returns after how many rounds without input the fallback applies: more than
// failureThreshold failures.
func (f *Fallback) HoldRounds() int { return f.FailureThreshold + 1 }

// replicas returns the number after that many failures in a row; never fewer than now.
func (f *Fallback) replicas(current, failures int) int {
	if f == nil || failures < f.HoldRounds() || f.Behavior == CurrentReplicas {
		return current
	}
	return max(current, f.Replicas)
}

// Pause is what annotations of the target forbid.
type Pause struct{ Falls, Rises bool }

// PauseOf reads KEDA's annotations on a target.
func PauseOf(annotations map[string]string) Pause {
	const prefix = "autoscaling.keda.sh/paused"
	set := func(name string) bool { v, ok := annotations[prefix+name]; return ok && v != "false" }
	all := set("") || set("-replicas")
	return Pause{Falls: all || set("-scale-in"), Rises: all || set("-scale-out")}
}

// VPA has the words of a VerticalPodAutoscaler for one container and resource.
type VPA struct {
	UpdateMode       string
	Mode             string
	ControlledValues string
	// MinAllowed and MaxAllowed in the resource's unit; 0: none.
	MinAllowed, MaxAllowed float64
	// MinReplicas is below how many living instances nothing changes; 0: 2.
	MinReplicas int
}

// Accept returns the size with the bounds of the VPA, and a warning or "". requests: the knob
// sets requests, not limits. The error is trimtab.ErrInvalid for settings that trimtab does not
// support.
func (v *VPA) Accept(s Size, requests bool) (out Size, warning string, err error) {
	if !sane(v.MinAllowed, v.MaxAllowed) || v.MaxAllowed > 0 && v.MaxAllowed < v.MinAllowed {
		return s, "", trimtab.Invalidf("resourcePolicy: minAllowed %v, maxAllowed %v: want 0 <= min <= max", v.MinAllowed, v.MaxAllowed)
	}
	switch v.UpdateMode {
	case "Off", "Initial":
		s.Barred = "updateMode " + v.UpdateMode + ": recommend only"
	case "InPlace":
	case "InPlaceOrRecreate":
		warning = "updateMode InPlaceOrRecreate: taken as InPlace; trimtab never evicts"
	case "", "Auto", "Recreate":
		return s, "", trimtab.Invalidf("updatePolicy.updateMode %.40q: trimtab does not evict; use InPlaceOrRecreate", v.UpdateMode)
	default:
		return s, "", trimtab.Invalidf("updatePolicy.updateMode %.40q: want Off, Initial, InPlaceOrRecreate or InPlace", v.UpdateMode)
	}
	switch {
	case v.ControlledValues == "RequestsOnly" && !requests:
		return s, "", trimtab.Invalidf("controlledValues RequestsOnly: the knob turns limits; use RequestsAndLimits")
	case v.ControlledValues != "" && v.ControlledValues != "RequestsOnly" && v.ControlledValues != "RequestsAndLimits":
		return s, "", trimtab.Invalidf("controlledValues %.40q: want RequestsAndLimits or RequestsOnly", v.ControlledValues)
	case v.Mode == "Off":
		s.Fixed = true
	case v.Mode != "" && v.Mode != "Auto":
		return s, "", trimtab.Invalidf("containerPolicies mode %.40q: want Auto or Off", v.Mode)
	}
	s.Min = max(s.Min, v.MinAllowed)
	if v.MaxAllowed > 0 {
		s.Max = min(s.Max, v.MaxAllowed)
	}
	if s.Max < s.Min {
		return s, "", trimtab.Invalidf("resourcePolicy: minAllowed %v, maxAllowed %v: no size is within them and the knob's bounds", v.MinAllowed, v.MaxAllowed)
	}
	return s, warning, nil
}

// TooFew reports whether nothing may change since too few instances are alive.
func (v *VPA) TooFew(alive int) bool {
	least := v.MinReplicas
	if least == 0 {
		least = 2
	}
	return alive < least
}
