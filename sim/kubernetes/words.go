package kubernetes

import (
	"time"

	"github.com/trimtab/trimtab/planner/behavior"
	"github.com/trimtab/trimtab/sim/autoscale"
)

// Target configures one metric of an HPA, or one trigger of KEDA.
type Target struct {
	// Type is a type of sim/autoscale. Load says that the metric is requests per second; otherwise
	// it is CPU.
	Type string
	Load bool
	// Value is in percent of the request, cores, or requests per second, for each pod, or for the
	// sum if Type is Value. Activation is KEDA's activation threshold.
	Value, Activation float64
	// Within is set for KEDA's cron trigger: it requests Value pods while Within returns true.
	Within func(time.Time) bool
}

// HPAWords are the settings of a HorizontalPodAutoscaler.
type HPAWords struct {
	Min, Max int
	Behavior *behavior.Behavior
	Targets  []Target
}

// KEDAWords are the settings of a ScaledObject.
type KEDAWords struct {
	HPAWords
	// Idle is idleReplicaCount; nil: none. Cooldown is cooldownPeriod; nil: KEDA's default. A
	// PollingInterval of 0 means KEDA's default.
	Idle            *int
	Cooldown        *time.Duration
	PollingInterval time.Duration
}

// VPAWords are the settings of a VerticalPodAutoscaler. With neither InPlace nor Recreate it only
// advises.
type VPAWords struct {
	InPlace, Recreate bool
	// LeavesCPU says that it only advises on CPU because the object controls memory alone.
	LeavesCPU bool
	// Min and Max are minAllowed and maxAllowed in cores; 0: none.
	Min, Max float64
	// MinReplicas is the number of pods below which the updater changes none.
	MinReplicas int
}

// defaultUtilization is the target of an HPA without metrics, in percent.
const defaultUtilization = 80

// DefaultHPA returns the settings of an HPA without metrics.
func DefaultHPA() HPAWords {
	return HPAWords{Min: 1, Max: 100, Targets: []Target{{Type: autoscale.Utilization, Value: defaultUtilization}}}
}

// DefaultKEDA returns settings that scale by the request rate. The target is defaultUtilization of
// the rate that a pod of the given cores can serve, at the given cost of a request in core-seconds.
func DefaultKEDA(cores, cost float64) KEDAWords {
	w := KEDAWords{HPAWords: DefaultHPA()}
	w.Targets = []Target{{Type: autoscale.External, Load: true, Value: defaultUtilization / 100.0 * cores / cost}}
	return w
}

// DefaultVPA returns the settings of a VPA without a mode: it evicts pods, and does not change a
// workload with one pod.
func DefaultVPA() VPAWords { return VPAWords{Recreate: true, MinReplicas: 2} }
