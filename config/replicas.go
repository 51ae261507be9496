package config

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

// Replicas bounds the number of pods of a workload whose size is planned with it.
type Replicas struct {
	// Least number of pods while there is load, at least 1.
	Min int `yaml:"min"`
	// Largest number of pods.
	Max int `yaml:"max"`
	// How many pods more than needed there are, so that as many may be lost at once.
	Spare int `yaml:"spare"`
	// Lets the number go to 0 once load, a query about something outside the pods, has said for cooldown that there is none. It comes back when that says that there is some; while load is missing nothing is lowered. Not beside an autoscaler.
	AllowZero bool `yaml:"allow_zero"`
	// For how long there must be no load before the number goes to 0.
	Cooldown time.Duration `yaml:"cooldown"`
	// How long a pod takes from its creation until it is ready, until trimtab has seen some start.
	Startup time.Duration `yaml:"startup"`
	// Before the number falls, sets the annotation controller.kubernetes.io/pod-deletion-cost on the pods of a Deployment that serve the least, so that they go, where it is known which those are. It needs the right to patch pods. An annotation of your own stays.
	DeletionCost bool `yaml:"deletion_cost"`
	// The block behavior of a HorizontalPodAutoscaler, obeyed as its controller does. Left out: as of an autoscaler without the block.
	Behavior *Behavior `yaml:"behavior"`
	// What to have while nothing is known of the workload, in the words of KEDA. Left out: what there is.
	Fallback *ReplicasFallback `yaml:"fallback"`
}

// Behavior bounds how fast the number of pods changes.
type Behavior struct {
	// How the number may rise. Left out: by 4 pods or 100% in 15 s, whichever is more.
	ScaleUp *ScalingRules `yaml:"scaleUp"`
	// How the number may fall. Left out: to any number, once that was enough for 300 s.
	ScaleDown *ScalingRules `yaml:"scaleDown"`
}

// ScalingRules bound changes in one direction.
type ScalingRules struct {
	// Seconds over which the lowest (up) or the highest (down) recommendation counts, 0 to 3600. Left out: 0 up, 300 down.
	Window *int `yaml:"stabilizationWindowSeconds"`
	// Max takes the policy that allows the greatest change, Min the least, Disabled none.
	Select string `yaml:"selectPolicy"`
	// Changes that are allowed within a time.
	Policies []ScalingPolicy `yaml:"policies"`
	// Share of the target within which nothing changes. It is read and has no meaning here: trimtab has no target of utilisation.
	Tolerance *Quantity `yaml:"tolerance"`
}

// Quantity is a number as Kubernetes writes it: 0.05, "0.05" or 50m.
type Quantity float64

// ScalingPolicy bounds the change within a time.
type ScalingPolicy struct {
	// Pods or Percent.
	Type string `yaml:"type"`
	// So many pods, or percent of those at the beginning of the time, at least 1.
	Value int `yaml:"value"`
	// Seconds, 1 to 1800.
	PeriodSeconds int `yaml:"periodSeconds"`
}

// ReplicasFallback gives the number of pods while no input is known.
type ReplicasFallback struct {
	// After more than so many rounds without input it counts.
	FailureThreshold int `yaml:"failureThreshold"`
	// Number of pods.
	Replicas int `yaml:"replicas"`
	// static, currentReplicas or currentReplicasIfHigher. With any of them, missing input never lowers the number.
	Behavior string `yaml:"behavior"`
}

// fill sets what was left out.
func (r *Replicas) fill() {
	if r == nil {
		return
	}
	r.Min = cmp.Or(r.Min, 1)
	r.Max = cmp.Or(r.Max, max(r.Min, 10))
	r.Startup = cmp.Or(r.Startup, time.Minute)
	if r.AllowZero {
		r.Cooldown = cmp.Or(r.Cooldown, 5*time.Minute)
	}
}

// checkReplicas checks the number of pods of a knob.
func (k *Knob) checkReplicas(v *validator, where string) {
	r, at := k.Replicas, where+".replicas"
	switch {
	case r == nil:
		return
	case k.Kubernetes == nil:
		v.fail(at, "only a workload of Kubernetes has replicas", "write kubernetes: {namespace: …, deployment: …}, or workers for a process knob")
	case k.CPU == nil:
		v.fail(at, "replicas are planned with the size of pods, which has no bounds", "write cpu: {min: …, max: …}; for the number alone, let the pool share it: pool: {resources: {replicas: …}}")
	}
	if r.DeletionCost && k.Kubernetes != nil && k.Kubernetes.StatefulSet != "" {
		v.fail(at+".deletion_cost", "a StatefulSet removes its last pods, whatever their annotations say", "remove it")
	}
	if _, twice := k.Resources[trimtab.Replicas]; twice {
		v.fail(at, "replicas are bounded twice", "remove resources.replicas")
	}
	full := *r // what was left out is set once all is checked
	full.fill()
	r = &full
	switch {
	case r.Min < 1 || v.has(at+".min") && k.Replicas.Min < 1:
		v.fail(at+".min", fmt.Sprintf("min is %d, want 1 or more", k.Replicas.Min), "trimtab leaves 0 to whoever sets it")
	case r.Max < r.Min && k.Replicas.Min > 0 && k.Replicas.Max > 0:
		v.fail(at+".max", fmt.Sprintf("max is %d, want %d to 10000", r.Max, r.Min), fmt.Sprintf("swap them: min: %d, max: %d", r.Max, r.Min))
	case r.Max < r.Min || r.Max > 10_000:
		v.fail(at+".max", fmt.Sprintf("max is %d, want %d to 10000", r.Max, r.Min), "write the largest number of pods")
	case r.Spare < 0 || r.Spare >= r.Max:
		v.fail(at+".spare", fmt.Sprintf("spare is %d, want 0 to %d", r.Spare, r.Max-1), "so many pods may be lost at once")
	}
	v.between(at+".startup", r.Startup, time.Second, time.Hour)
	if b := r.Behavior; b != nil {
		b.ScaleUp.check(v, at+".behavior.scaleUp")
		b.ScaleDown.check(v, at+".behavior.scaleDown")
	}
	r.Fallback.check(v, at+".fallback", r.Min)
}

// checkZero checks what lets a number go to 0.
func (r *Replicas) checkZero(v *validator, at string, load string) {
	switch {
	case r == nil:
	case !r.AllowZero && v.has(at+".cooldown"):
		v.fail(at+".cooldown", "cooldown has no effect without allow_zero", "remove it; how fast pods go is stabilizationWindowSeconds of behavior")
	case !r.AllowZero:
	case load == "":
		v.fail(at+".allow_zero", "nobody tells of load while there is no pod: spans come from pods", "write load: a query about what comes before the pods, such as an ingress or a queue")
	case v.has(at + ".cooldown"):
		v.between(at+".cooldown", r.Cooldown, time.Second, 24*time.Hour)
	}
}

// check looks at the rules of one direction as the API server does.
func (r *ScalingRules) check(v *validator, at string) {
	if r == nil {
		return
	}
	if r.Window != nil && (*r.Window < 0 || *r.Window > 3600) {
		v.fail(at+".stabilizationWindowSeconds", fmt.Sprintf("stabilizationWindowSeconds is %d, want 0 to 3600", *r.Window), "300 is the default on the way down")
	}
	if r.Select != "" && !slices.Contains([]string{"Max", "Min", "Disabled"}, r.Select) {
		v.fail(at+".selectPolicy", fmt.Sprintf("unknown selectPolicy %q", clip(r.Select)), suggest(r.Select, []string{"Max", "Min", "Disabled"}))
	}
	if r.Policies != nil && len(r.Policies) == 0 || len(r.Policies) > 64 {
		v.fail(at+".policies", fmt.Sprintf("%d policies, want 1 to 64", len(r.Policies)), "leave policies out for the default ones")
	}
	for i, p := range r.Policies {
		one := fmt.Sprintf("%s.policies[%d]", at, i)
		switch {
		case p.Type != "Pods" && p.Type != "Percent":
			v.fail(one+".type", fmt.Sprintf("unknown type %q", clip(p.Type)), suggest(p.Type, []string{"Pods", "Percent"}))
		case p.Value < 1 || p.Value > 1<<31-1:
			v.fail(one+".value", fmt.Sprintf("value is %d, want 1 or more", p.Value), "to forbid changes write selectPolicy: Disabled")
		case p.PeriodSeconds < 1 || p.PeriodSeconds > 1800:
			v.fail(one+".periodSeconds", fmt.Sprintf("periodSeconds is %d, want 1 to 1800", p.PeriodSeconds), "15 is the default")
		}
	}
}

// check refuses the words that would lower a workload on missing input.
func (f *ReplicasFallback) check(v *validator, at string, least int) {
	if f == nil {
		return
	}
	if (f.Behavior == "" || f.Behavior == "static") && f.Replicas < least {
		v.fail(at+".replicas", fmt.Sprintf("static replicas: %d is below min, %d, and so below what there is: it lowers on missing input, which trimtab never does", f.Replicas, least), "use behavior: currentReplicasIfHigher")
	}
	if f.FailureThreshold < 0 {
		v.fail(at+".failureThreshold", fmt.Sprintf("failureThreshold is %d, want 0 or more", f.FailureThreshold), "3 is common")
	}
	if f.Replicas < 0 || f.Replicas > 10_000 {
		v.fail(at+".replicas", fmt.Sprintf("replicas is %d, want 0 to 10000", f.Replicas), "write how many pods serve what may come")
	}
	switch f.Behavior {
	case "", "static", "currentReplicas", "currentReplicasIfHigher":
	case "currentReplicasIfLower":
		v.fail(at+".behavior", "currentReplicasIfLower lowers on missing input, which trimtab never does", "use currentReplicasIfHigher")
	case "scalingModifiers":
		v.fail(at+".behavior", "formulas of scalingModifiers are not read", "use currentReplicasIfHigher, and objective or utility for the formula")
	default:
		v.fail(at+".behavior", fmt.Sprintf("unknown behavior %q", clip(f.Behavior)), "write static, currentReplicas or currentReplicasIfHigher")
	}
}
