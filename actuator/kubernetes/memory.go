package kubernetes

import (
	"context"
	"fmt"
	"math"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/kube"
)

// This file has what is special to memory, and requests that follow a limit.

// usedMargin is the least distance of a memory limit from what is in use, as a part of that. The
// kubelet compares them once more before it lowers the limit, by a reading of its own.
const usedMargin = 0.05

// inUse returns the least that a limit may be lowered to because so much is in use, or why it may not
// be lowered at all. CPU is never in use so.
func (l *Limit) inUse(p *kube.Pod, c *kube.Container) (least float64, why string) {
	if l.at.Resource != trimtab.Memory {
		return 0, ""
	}
	if w, err := l.from.watched(); err != nil || w == nil || !w.LowersMemory() {
		return 0, "a memory limit of a running container can be lowered from Kubernetes 1.34 on"
	}
	if s := p.StatusOf(c.Name); s == nil || s.State.Running == nil {
		return 0, "the container does not run"
	}
	used, ok := l.from.workingSet(p, c.Name)
	if !ok {
		return 0, "memory is not lowered: what is in use is not known"
	}
	return l.roundUp(used * (1 + usedMargin)), ""
}

// notBelow returns why the limit must not be lowered to v; "": it may be.
func (l *Limit) notBelow(p *kube.Pod, c *kube.Container, v float64) string {
	least, why := l.inUse(p, c)
	if why == "" && v < least {
		why = fmt.Sprintf("%s is in use, with a margin of %.0f%%", trimtab.AmountOf(trimtab.Memory, trimtab.Units(least)), 100*usedMargin)
	}
	return why
}

// allowMemory returns an error if the node has no room for a raise of a memory limit: for the request
// that moves with it.
func (l *Limit) allowMemory(p *kube.Pod, c *kube.Container, v float64) error {
	now := float64(c.Resources.Limits[trimtab.Memory])
	switch request := float64(c.Resources.Requests[trimtab.Memory]); {
	case v <= now:
		return nil
	case p.Status.QOSClass == guaranteed:
		return l.roomFor(p, now, v, v)
	case l.follows(p, c):
		return l.roomFor(p, request, math.Max(request, l.following(p, c, v)), v)
	}
	return nil
}

// follows reports whether the request of a container moves with its limit, in a pod that need not.
func (l *Limit) follows(p *kube.Pod, c *kube.Container) bool {
	return l.rules.Follow && !l.at.Request && p.Status.QOSClass != guaranteed && !ofPod(p, l.at.Resource) &&
		c.Resources.Requests[l.at.Resource] > 0 && c.Resources.Limits[l.at.Resource] > 0
}

// following returns the request beside a limit: in the ratio of the workload's template, or if that is
// not known, of the present values. The pod keeps its QoS class.
func (l *Limit) following(p *kube.Pod, c *kube.Container, limit float64) float64 {
	resource := l.at.Resource
	of := c.Resources
	if w, err := l.from.workload(context.Background(), l.at.Workload); err == nil {
		template := &kube.Pod{Spec: w.Spec.Template.Spec}
		if t := template.Container(c.Name); t != nil && t.Resources.Requests[resource] > 0 && t.Resources.Limits[resource] > 0 {
			of = t.Resources
		}
	}
	request := l.roundUp(limit * math.Min(1, float64(of.Requests[resource])/float64(of.Limits[resource])))
	if wouldBeGuaranteed(p, c.Name, resource) {
		request = math.Min(request, limit-step(resource))
	}
	return math.Max(math.Min(request, limit), step(resource))
}

// step is the smallest difference of two values.
func step(resource string) float64 {
	if resource == trimtab.Memory {
		return page
	}
	return 1.0 / tenMilli
}

// beside returns the request that a restore sets beside the limit found; 0: none is to be set.
func (l *Limit) beside(found trimtab.Amount) float64 {
	if l.seen == nil || found.Unlimited {
		return 0
	}
	c := l.seen.Container(l.at.Container)
	if c == nil || !l.follows(l.seen, c) {
		return 0
	}
	if found.Equal(l.found, 1e-9) {
		return float64(c.Resources.Requests[l.at.Resource])
	}
	return l.following(l.seen, c, found.Value)
}
