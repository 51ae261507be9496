package kube

import (
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/trimtab/trimtab"
)

// Quantity is an amount in Kubernetes notation, such as 250m or 64Mi, in its base unit.
type Quantity float64

// UnmarshalJSON reads a quantity as text or number.
func (q *Quantity) UnmarshalJSON(b []byte) error {
	text := string(b)
	if unquoted, err := strconv.Unquote(text); err == nil {
		text = unquoted
	}
	parsed, err := resource.ParseQuantity(text)
	if err != nil {
		return trimtab.Invalidf("quantity %.40q", text)
	}
	// Whole numbers and thousandths are exact, so that a written value reads back unchanged.
	if whole, ok := parsed.AsInt64(); ok {
		*q = Quantity(whole)
		return nil
	}
	if milli := parsed.MilliValue(); milli > 0 && milli < 1<<53 {
		*q = Quantity(float64(milli) / 1000)
		return nil
	}
	*q = Quantity(parsed.AsApproximateFloat64())
	return nil
}

// List is amounts by resource, such as cpu and memory.
type List map[string]Quantity

// Resources are the requests and limits of a container.
type Resources struct {
	Requests List `json:"requests,omitempty"`
	Limits   List `json:"limits,omitempty"`
}

// Meta has the fields of an object's metadata that trimtab reads.
type Meta struct {
	Namespace         string            `json:"namespace"`
	Name              string            `json:"name"`
	UID               string            `json:"uid"`
	ResourceVersion   string            `json:"resourceVersion"`
	Generation        int64             `json:"generation"`
	Labels            map[string]string `json:"labels"`
	Annotations       map[string]string `json:"annotations"`
	OwnerReferences   []Owner           `json:"ownerReferences"`
	Managers          Managers          `json:"managedFields"`
	CreationTimestamp time.Time         `json:"creationTimestamp"`
	DeletionTimestamp *time.Time        `json:"deletionTimestamp"`
}

func (m *Meta) meta() *Meta { return m }

// Owner is a reference to the object that this one belongs to.
type Owner struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
	Controller bool   `json:"controller"`
}

// controller returns the owner that manages the object.
func (m *Meta) controller() (Owner, bool) {
	if o := first(m.OwnerReferences, func(o *Owner) bool { return o.Controller }); o != nil {
		return *o, true
	}
	return Owner{}, false
}

// Condition is a condition in a status.
type Condition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	Reason             string `json:"reason"`
	Message            string `json:"message"`
	ObservedGeneration int64  `json:"observedGeneration"`
	LastTransitionTime string `json:"lastTransitionTime"`
}

// Generation is a generation of an object, as a number or, as Argo writes it, as text.
type Generation int64

// UnmarshalJSON reads a generation; text that is no number is 0: nothing was observed.
func (g *Generation) UnmarshalJSON(b []byte) error {
	n, _ := strconv.ParseInt(strings.Trim(string(b), `"`), 10, 64)
	*g = Generation(n)
	return nil
}

// Workload is an object that has pods.
type Workload struct {
	Kind string `json:"-"`
	Meta `json:"metadata"`
	Spec struct {
		Replicas *int64 `json:"replicas"`
		Paused   bool   `json:"paused"`
		Selector struct {
			MatchLabels map[string]string `json:"matchLabels"`
		} `json:"selector"`
		Template struct {
			Spec PodSpec `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration Generation `json:"observedGeneration"`
		Replicas           int64      `json:"replicas"`
		ReadyReplicas      int64      `json:"readyReplicas"`
		UpdatedReplicas    int64      `json:"updatedReplicas"`
		AvailableReplicas  int64      `json:"availableReplicas"`
		CurrentRevision    string     `json:"currentRevision"`
		UpdateRevision     string     `json:"updateRevision"`
		// Phase is that of a Rollout; Desired and Updated count the pods of a DaemonSet.
		Phase      string      `json:"phase"`
		Desired    int64       `json:"desiredNumberScheduled"`
		Updated    int64       `json:"updatedNumberScheduled"`
		Conditions []Condition `json:"conditions"`
	} `json:"status"`
}

// Replicas returns the requested number: 1 if not set, and of a DaemonSet one for each node.
func (w *Workload) Replicas() int64 {
	if w.Kind == DaemonSet {
		return w.Status.Desired
	}
	if w.Spec.Replicas == nil {
		return 1
	}
	return *w.Spec.Replicas
}

// PodSpec is the spec of a pod.
type PodSpec struct {
	NodeName       string      `json:"nodeName"`
	HostNetwork    bool        `json:"hostNetwork"`
	Containers     []Container `json:"containers"`
	InitContainers []Container `json:"initContainers"`
	Resources      *Resources  `json:"resources"`
	// Overhead is what its runtime takes in addition to its containers.
	Overhead List `json:"overhead"`
}

// Container is the specification of a container.
type Container struct {
	Name      string    `json:"name"`
	Resources Resources `json:"resources"`
	// RestartPolicy is Always for an init container that runs on beside the others.
	RestartPolicy string `json:"restartPolicy"`
	ResizePolicy  []struct {
		ResourceName  string `json:"resourceName"`
		RestartPolicy string `json:"restartPolicy"`
	} `json:"resizePolicy"`
}

// Restarts reports whether a resize of the resource restarts the container.
func (c *Container) Restarts(resource string) bool {
	for _, p := range c.ResizePolicy {
		if p.ResourceName == resource {
			return p.RestartPolicy == "RestartContainer"
		}
	}
	return false
}

// Pod is one pod.
type Pod struct {
	Meta   `json:"metadata"`
	Spec   PodSpec `json:"spec"`
	Status struct {
		Phase              string            `json:"phase"`
		QOSClass           string            `json:"qosClass"`
		PodIP              string            `json:"podIP"`
		ObservedGeneration int64             `json:"observedGeneration"`
		Conditions         []Condition       `json:"conditions"`
		ContainerStatuses  []ContainerStatus `json:"containerStatuses"`
		// Resources and Allocated are those of the pod as a whole, where its spec has any.
		Resources *Resources `json:"resources"`
		Allocated List       `json:"allocatedResources"`
	} `json:"status"`
}

// ContainerStatus is the kubelet's status of a container.
type ContainerStatus struct {
	Name      string     `json:"name"`
	Resources *Resources `json:"resources"`
	// Allocated has the requests that the node has accepted for it.
	Allocated List `json:"allocatedResources"`
	State     struct {
		Running    *struct{}   `json:"running"`
		Terminated *Terminated `json:"terminated"`
	} `json:"state"`
	// LastState is how the container before this one ended.
	LastState struct {
		Terminated *Terminated `json:"terminated"`
	} `json:"lastState"`
}

// Terminated is how a container ended.
type Terminated struct {
	ContainerID string `json:"containerID"`
	ExitCode    int64  `json:"exitCode"`
	Reason      string `json:"reason"`
	FinishedAt  string `json:"finishedAt"`
}

// OOMKilled is the reason of a container that the kernel killed for lack of memory.
const OOMKilled = "OOMKilled"

// Ended returns how the container of a name ended last; nil: it is the first one, and runs.
func (s *ContainerStatus) Ended() *Terminated {
	if s.State.Terminated != nil {
		return s.State.Terminated
	}
	return s.LastState.Terminated
}

// Over reports whether the pod has ended and uses nothing any more.
func (p *Pod) Over() bool { return p.Status.Phase == "Succeeded" || p.Status.Phase == "Failed" }

// Ready reports whether the pod serves.
func (p *Pod) Ready() bool {
	c := p.Condition("Ready")
	return c != nil && c.Status == "True" && p.DeletionTimestamp == nil
}

// Condition returns the condition of a type, or nil.
func (p *Pod) Condition(kind string) *Condition { return condition(p.Status.Conditions, kind) }

// Selects reports whether the labels of the workload's selector are those of a pod in its namespace.
func (w *Workload) Selects(p *Pod) bool {
	labels := w.Spec.Selector.MatchLabels
	return p.Namespace == w.Namespace && len(labels) > 0 && selects(labels, p.Labels)
}

// OfNode reports whether the pod belongs to its node, as those of a DaemonSet and static ones do.
func (p *Pod) OfNode() bool {
	o, ok := p.controller()
	return ok && (o.Kind == "DaemonSet" || o.Kind == "Node")
}

// Condition returns the condition of a type, or nil.
func (w *Workload) Condition(kind string) *Condition { return condition(w.Status.Conditions, kind) }

func condition(all []Condition, kind string) *Condition {
	return first(all, func(c *Condition) bool { return c.Type == kind })
}

// first returns the first element of which is is true, or nil.
func first[T any](all []T, is func(*T) bool) *T {
	for i := range all {
		if is(&all[i]) {
			return &all[i]
		}
	}
	return nil
}

// Requests returns how much of a resource the scheduler reserves for the pod: the sum over its
// containers, or its largest init container with those that keep running, or the pod's own
// request; plus the overhead.
func (p *Pod) Requests(resource string) float64 {
	if r := p.Spec.Resources; r != nil {
		if v, ok := r.Requests[resource]; ok {
			return float64(v + p.Spec.Overhead[resource])
		}
	}
	var sum, beside, most Quantity
	for i := range p.Spec.Containers {
		sum += p.Spec.Containers[i].Resources.Requests[resource]
	}
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		v := c.Resources.Requests[resource]
		if c.RestartPolicy == "Always" {
			sum, beside = sum+v, beside+v
			v = 0
		}
		most = max(most, beside+v)
	}
	return float64(max(sum, most) + p.Spec.Overhead[resource])
}

// Container returns a container of the pod by its name, or nil; "" is the only one.
func (p *Pod) Container(name string) *Container {
	if name == "" && len(p.Spec.Containers) == 1 {
		return &p.Spec.Containers[0]
	}
	return first(p.Spec.Containers, func(c *Container) bool { return c.Name == name })
}

// StatusOf returns the kubelet's status of a container, or nil.
func (p *Pod) StatusOf(container string) *ContainerStatus {
	return first(p.Status.ContainerStatuses, func(s *ContainerStatus) bool { return s.Name == container })
}

// Node is a host of the cluster.
type Node struct {
	Meta   `json:"metadata"`
	Status struct {
		Allocatable List        `json:"allocatable"`
		Conditions  []Condition `json:"conditions"`
		// Declared are features of its kubelet, from 1.36 on.
		Declared  []string `json:"declaredFeatures"`
		Addresses []struct {
			Type    string `json:"type"`
			Address string `json:"address"`
		} `json:"addresses"`
		DaemonEndpoints struct {
			Kubelet struct {
				Port int `json:"Port"`
			} `json:"kubeletEndpoint"`
		} `json:"daemonEndpoints"`
	} `json:"status"`
}

// TargetRef names the object that an autoscaler scales.
type TargetRef struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
}

// group is the API group of the reference; "" where it says none.
func (t TargetRef) group() string {
	group, _, ok := strings.Cut(t.APIVersion, "/")
	if !ok {
		return ""
	}
	return group
}

// HPA is a HorizontalPodAutoscaler.
type HPA struct {
	Meta `json:"metadata"`
	Spec struct {
		ScaleTargetRef TargetRef `json:"scaleTargetRef"`
		Metrics        []struct {
			Type              string        `json:"type"`
			Resource          *metricSource `json:"resource"`
			ContainerResource *metricSource `json:"containerResource"`
		} `json:"metrics"`
	} `json:"spec"`
	Status struct {
		DesiredReplicas int64 `json:"desiredReplicas"`
	} `json:"status"`
}

type metricSource struct {
	Name   string `json:"name"`
	Target struct {
		AverageUtilization *int64 `json:"averageUtilization"`
	} `json:"target"`
}

// Utilization reports whether the HPA follows the utilisation of requests of the
// resource: then a change of requests makes it change the number of pods.
func (h *HPA) Utilization(resource string) bool {
	for _, m := range h.Spec.Metrics {
		for _, s := range []*metricSource{m.Resource, m.ContainerResource} {
			if s != nil && s.Name == resource && s.Target.AverageUtilization != nil {
				return true
			}
		}
	}
	return false
}

// ScaledObject is KEDA's.
type ScaledObject struct {
	Meta `json:"metadata"`
	Spec struct {
		ScaleTargetRef TargetRef `json:"scaleTargetRef"`
	} `json:"spec"`
}

// VPA is a VerticalPodAutoscaler.
type VPA struct {
	Meta `json:"metadata"`
	Spec struct {
		TargetRef    TargetRef     `json:"targetRef"`
		Recommenders []Recommender `json:"recommenders"`
		UpdatePolicy *struct {
			UpdateMode string `json:"updateMode"`
		} `json:"updatePolicy"`
		ResourcePolicy *struct {
			ContainerPolicies []VPAPolicy `json:"containerPolicies"`
		} `json:"resourcePolicy"`
	} `json:"spec"`
	Status struct {
		Recommendation *struct {
			ContainerRecommendations []Recommendation `json:"containerRecommendations"`
		} `json:"recommendation"`
		Conditions []Condition `json:"conditions"`
	} `json:"status"`
}

// Recommender names a program that writes the status of a VPA.
type Recommender struct {
	Name string `json:"name"`
}

// Recommendation is a VPA's recommendation for one container, as requests.
type Recommendation struct {
	ContainerName  string `json:"containerName"`
	Target         List   `json:"target"`
	LowerBound     List   `json:"lowerBound"`
	UpperBound     List   `json:"upperBound"`
	UncappedTarget List   `json:"uncappedTarget"`
}

// VPAPolicy is a VPA's policy for one container, or with the name * for the others.
type VPAPolicy struct {
	ContainerName       string    `json:"containerName"`
	Mode                string    `json:"mode"`
	ControlledResources *[]string `json:"controlledResources"`
	ControlledValues    string    `json:"controlledValues"`
	MinAllowed          List      `json:"minAllowed"`
	MaxAllowed          List      `json:"maxAllowed"`
}

// Budget is a PodDisruptionBudget.
type Budget struct {
	Meta `json:"metadata"`
	Spec struct {
		Selector *struct {
			MatchLabels map[string]string `json:"matchLabels"`
		} `json:"selector"`
		MinAvailable any `json:"minAvailable"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration int64 `json:"observedGeneration"`
		DisruptionsAllowed int64 `json:"disruptionsAllowed"`
	} `json:"status"`
}

// Quota is a ResourceQuota.
type Quota struct {
	Meta   `json:"metadata"`
	Status struct {
		Hard List `json:"hard"`
		Used List `json:"used"`
	} `json:"status"`
}

// Range is a LimitRange.
type Range struct {
	Meta `json:"metadata"`
	Spec struct {
		Limits []struct {
			Type  string `json:"type"`
			Min   List   `json:"min"`
			Max   List   `json:"max"`
			Ratio List   `json:"maxLimitRequestRatio"`
		} `json:"limits"`
	} `json:"spec"`
}

// ReplicaSet is known for its owner alone.
type ReplicaSet struct {
	Meta `json:"metadata"`
}

// Scale is the subresource of a workload by which its number of pods is set.
type Scale struct {
	Meta `json:"metadata"`
	Spec struct {
		Replicas int64 `json:"replicas"`
	} `json:"spec"`
	Status struct {
		Replicas int64  `json:"replicas"`
		Selector string `json:"selector"`
	} `json:"status"`
}
