package kubernetes

import (
	"context"
	"fmt"
	"math"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/kube"
)

// This file has what is special to memory, and requests that follow a limit.

// turned is a container as a limit of it is read or written.
type turned struct {
	*kube.Container
	limit *Limit
	pod   *kube.Pod
}

func containerOf(l *Limit, p *kube.Pod, c *kube.Container) turned { return turned{c, l, p} }

// usedMargin is the least distance of a memory limit from what is in use, as a part of that. The
// kubelet compares them once more before it lowers the limit, by a reading of its own.
const usedMargin = 0.05

// inUse returns the least that a limit may be lowered to because so much is in use, or why it may not
// be lowered at all. CPU is never in use so.
func (t turned) inUse() (least float64, why string) {
	if t.limit.at.Resource != trimtab.Memory {
		return 0, ""
	}
	if w, err := t.limit.from.watched(); err != nil || w == nil || !w.LowersMemory() {
		return 0, "a memory limit of a running container can be lowered from Kubernetes 1.34 on"
	}
	if s := t.pod.StatusOf(t.Name); s == nil || s.State.Running == nil {
		return 0, "the container does not run"
	}
	used, ok := t.limit.from.workingSet(t.pod, t.Name)
	if !ok {
		return 0, "memory is not lowered: what is in use is not known"
	}
	return t.limit.roundUp(used * (1 + usedMargin)), ""
}

// notBelow returns why the limit must not be lowered to v; "": it may be.
func (t turned) notBelow(v float64) string {
	least, why := t.inUse()
	if why == "" && v < least {
		why = fmt.Sprintf("%s is in use, with a margin of %.0f%%", trimtab.AmountOf(trimtab.Memory, trimtab.Units(least)), 100*usedMargin)
	}
	return why
}

// allowMemory returns an error if the node has no room for a raise of a memory limit: for the request
// that moves with it.
func (t turned) allowMemory(v float64) error {
	request := float64(t.Resources.Requests[trimtab.Memory])
	switch {
	case tied(t.pod, t.Container):
		return t.limit.fits(t.pod, v-request, v)
	case t.follows():
		return t.limit.fits(t.pod, t.following(v)-request, v)
	}
	return nil
}

// follows reports whether the request of a container moves with its limit, in a pod that need not.
func (t turned) follows() bool {
	return t.limit.rules.Follow && !t.limit.at.Request && !tied(t.pod, t.Container) && !ofPod(t.pod, t.limit.at.Resource) &&
		t.Resources.Requests[t.limit.at.Resource] > 0 && t.Resources.Limits[t.limit.at.Resource] > 0
}

// following returns the request beside a limit: in the ratio of the workload's template, or if that is
// not known, of the present values. The pod keeps its QoS class.
func (t turned) following(limit float64) float64 {
	resource := t.limit.at.Resource
	of := t.Resources
	if w, err := t.limit.from.workload(context.Background(), t.limit.at.Workload); err == nil {
		template := &kube.Pod{Spec: w.Spec.Template.Spec}
		if c := template.Container(t.Name); c != nil && c.Resources.Requests[resource] > 0 && c.Resources.Limits[resource] > 0 {
			of = c.Resources
		}
	}
	request := t.limit.roundUp(limit * math.Min(1, float64(of.Requests[resource])/float64(of.Limits[resource])))
	if wouldBeGuaranteed(t.pod, t.Name, resource) {
		request = math.Min(request, limit-1/steps(resource, false))
	}
	return math.Max(math.Min(request, limit), 1/steps(resource, false))
}

// beside returns the request that a restore sets beside the limit found; 0: none is to be set.
func beside(l *Limit, found trimtab.Amount) float64 {
	if l.seen == nil || found.Unlimited {
		return 0
	}
	t := turned{l.at.own(l.seen), l, l.seen}
	if t.Container == nil || !t.follows() {
		return 0
	}
	if found.Equal(l.found, 1e-9) {
		return float64(t.Resources.Requests[l.at.Resource])
	}
	return t.following(found.Value)
}
