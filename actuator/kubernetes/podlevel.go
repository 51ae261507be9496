package kubernetes

import (
	"fmt"
	"math"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/kube"
)

// This file has what is special to resources of a whole pod (spec.resources), in place of those of one
// of its containers. A [Limit] of them sees them as a container without a name:
//
//	Σ requests of containers  ≤  request of the pod  ≤  limit of the pod,  each limit of a container  ≤  limit of the pod
//
// Where a pod has such resources, its QoS class, and its weight on its node, go by them alone.
//
// Source: KEP-2837, KEP-5419; Kubernetes 1.37, pkg/apis/core/validation, validatePodLevelResourcesResize,
// and pkg/apis/core/v1/helper/qos, ComputePodQOS.

// hasOwn reports whether a pod has resources of its own.
func hasOwn(p *kube.Pod) bool {
	return p.Spec.Resources != nil && len(p.Spec.Resources.Requests)+len(p.Spec.Resources.Limits) > 0
}

// ofPod reports whether the pod sets a resource at pod level, in addition to its containers.
func ofPod(p *kube.Pod, resource string) bool {
	if p.Spec.Resources == nil {
		return false
	}
	_, limited := p.Spec.Resources.Limits[resource]
	_, requested := p.Spec.Resources.Requests[resource]
	return limited || requested
}

// wholePod reports whether the CPU of a container is set by that of its pod: its request, if CPU is
// shared by weight, or its limit, if the container has none.
func wholePod(p *kube.Pod, c *kube.Container, resource string, request bool) bool {
	if resource != trimtab.CPU || p.Spec.Resources == nil {
		return false
	}
	if request {
		return p.Spec.Resources.Requests[resource] > 0
	}
	return c.Resources.Limits[resource] == 0 && p.Spec.Resources.Limits[resource] > 0
}

// own returns what the knob sets of a pod, nil if the pod does not have it.
func (at *location) own(p *kube.Pod) *kube.Container {
	if !at.PodLevel {
		return p.Container(at.Container)
	}
	if p.Spec.Resources == nil {
		return nil
	}
	return &kube.Container{Resources: *p.Spec.Resources}
}

// statusOf returns what the kubelet says of that; nil: nothing.
func (at *location) statusOf(p *kube.Pod) *kube.ContainerStatus {
	if !at.PodLevel {
		return p.StatusOf(at.Container)
	}
	for i := range p.Status.ContainerStatuses {
		if s := &p.Status.ContainerStatuses[i]; s.State.Running != nil {
			return &kube.ContainerStatus{Resources: p.Status.Resources, Allocated: p.Status.Allocated, State: s.State}
		}
	}
	return nil
}

// tied reports whether the request of a container must move with its limit, for its pod to stay
// Guaranteed.
func tied(p *kube.Pod, c *kube.Container) bool {
	return p.Status.QOSClass == guaranteed && (c.Name == "" || !hasOwn(p))
}

// wouldBeGuaranteed reports whether all other limits of the pod equal its requests, so that this
// limit at its request would make it Guaranteed.
func wouldBeGuaranteed(p *kube.Pod, container, resource string) bool {
	equal := func(r *kube.Resources, resource string) bool {
		limit, ok := r.Limits[resource]
		request, has := r.Requests[resource]
		return ok && (!has || same(float64(limit), float64(request)))
	}
	if hasOwn(p) {
		other := trimtab.Memory
		if resource == trimtab.Memory {
			other = trimtab.CPU
		}
		return container == "" && equal(p.Spec.Resources, other)
	}
	for _, all := range [][]kube.Container{p.Spec.Containers, p.Spec.InitContainers} {
		for i := range all {
			for _, r := range []string{trimtab.CPU, trimtab.Memory} {
				if (all[i].Name != container || r != resource) && !equal(&all[i].Resources, r) {
					return false
				}
			}
		}
	}
	return true
}

// insideOf returns what the containers of a pod need of its own request, or limit.
func insideOf(p *kube.Pod, resource string, request bool) (least float64) {
	for i := range p.Spec.Containers {
		r := &p.Spec.Containers[i].Resources
		if request {
			least += float64(r.Requests[resource])
		} else {
			least = math.Max(least, float64(r.Limits[resource]))
		}
	}
	return least
}

// abovePod returns the limit of the whole pod, which that of a container cannot exceed; false: there
// is none.
func (at *location) abovePod(p *kube.Pod) (most float64, ok bool) {
	if at.PodLevel || at.Request || p.Spec.Resources == nil {
		return 0, false
	}
	v, ok := p.Spec.Resources.Limits[at.Resource]
	return float64(v), ok
}

// resizesWhole is the feature with which a kubelet resizes what a pod has as a whole: of a node without
// it, the server refuses such a resize.
const resizesWhole = "InPlacePodLevelResourcesVerticalScaling"

// allowPod returns why a pod with resources of its own cannot be resized; nil: it can, or has none.
func (at *location) allowPod(from facts, p *kube.Pod) error {
	w, err := from.watched()
	if err != nil || w == nil || !hasOwn(p) {
		return err
	}
	if !w.ResizesWholePods() {
		return readOnly("the pod has resources of its own (spec.resources), with which nothing of it is resized before Kubernetes 1.36")
	}
	if has, err := w.Declares(p.Spec.NodeName, resizesWhole); at.PodLevel && err == nil && !has {
		return readOnly(fmt.Sprintf("node %s does not declare %s, without which resources of a whole pod (spec.resources) are not resized", p.Spec.NodeName, resizesWhole))
	}
	return nil
}
