package kubernetes

import (
	"time"

	"github.com/trimtab/trimtab/planner/behavior"
	"github.com/trimtab/trimtab/sim/autoscale"
)

// Target configures one metric of an HPA, or one trigger of KEDA.
type Target struct {
	// Type is one of sim/autoscale. Load: the metric is requests per second; else it is CPU.
	Type string
	Load bool
	// Value is percent of the request, cores, or requests per second: of each pod, but
	// for the type Value. Activation is KEDA's.
	Value, Activation float64
	// Within is set of KEDA's trigger cron: Value pods are asked for while it holds.
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
	// Idle is idleReplicaCount; nil: none. Cooldown is cooldownPeriod; nil: KEDA's
	// default. A PollingInterval of 0 is KEDA's.
	Idle            *int
	Cooldown        *time.Duration
	PollingInterval time.Duration
}

// VPAWords are the settings of a VerticalPodAutoscaler. With neither InPlace nor Recreate it only
// advises.
type VPAWords struct {
	InPlace, Recreate bool
	// LeavesCPU says that it is so since the object controls memory alone.
	LeavesCPU bool
	// Min and Max are minAllowed and maxAllowed in cores; 0: none.
	Min, Max float64
	// MinReplicas is with how few pods nothing is changed.
	MinReplicas int
}

// defaultUtilization is that of an HPA that names no metric, percent.
const defaultUtilization = 80

// DefaultHPA is an HPA that names no metric.
func DefaultHPA() HPAWords {
	return HPAWords{Min: 1, Max: 100, Targets: []Target{{Type: autoscale.Utilization, Value: defaultUtilization}}}
}

// DefaultKEDA scales by the request rate: the target is defaultUtilization of what a pod of so
// many cores can serve at a cost of so many core-seconds.
func DefaultKEDA(cores, cost float64) KEDAWords {
	w := KEDAWords{HPAWords: DefaultHPA()}
	w.Targets = []Target{{Type: autoscale.External, Load: true, Value: defaultUtilization / 100.0 * cores / cost}}
	return w
}

// DefaultVPA evicts pods, as one that names no mode does; its updater leaves a workload of
// one pod alone.
func DefaultVPA() VPAWords { return VPAWords{Recreate: true, MinReplicas: 2} }
