package kubernetes

import (
	"context"
	"math"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/kube"
)

// Status returns the pod's node, whether it serves, and the bounds of LimitRanges and quotas.
func (l *Limit) Status(ctx context.Context) *trimtab.KnobStatus {
	p, own, err := l.container(ctx)
	if err != nil {
		return nil
	}
	c, err := l.from.watched()
	if err != nil || c == nil {
		return nil
	}
	out := &trimtab.KnobStatus{Node: p.Spec.NodeName, Rollout: l.mustNotFall(ctx) != "", Reserved: reserved(p, own, l.at.Resource)}
	switch {
	case p.DeletionTimestamp != nil:
		out.Phase = trimtab.Ending
	case !serves(p):
		out.Phase = trimtab.Unready
	}
	resource, limit := l.at.Resource, float64(l.of(&own.Resources)[l.at.Resource])
	if has, err := c.Allocatable(p.Spec.NodeName, resource); err == nil {
		out.Has = has
	}
	if most, by := l.bound(); !math.IsInf(most, 1) {
		out.Most, out.By = math.Max(most, limit), by
	}
	full, why := l.full.bars(l.now(), l)
	if by := l.from.policies().bars(l.now(), p, resource); by != "" {
		why = by
	}
	if why != "" {
		out.Most, out.By = limit, why
		if full && limit >= l.full.from && l.before != nil && !l.before.Unlimited {
			out.Most = math.Min(limit, l.before.Value) // the pending request will be taken back
		}
	}
	if _, why := containerOf(l, p, own).inUse(); why != "" {
		out.Note = why
	}
	names := []string{"limits." + resource, "requests." + resource, resource}
	switch {
	case l.at.Request:
		names, out.Note = names[1:], noteOf(p, own)
	case !tied(p, own):
		names = names[:1]
	}
	for _, name := range names {
		left, by, err := c.Left(l.at.Namespace, name)
		if err == nil && !math.IsInf(left, 1) && (out.Left == nil || left < *out.Left) {
			out.Left, out.LeftBy = &left, by
		}
	}
	return out
}

// reserved returns the request of a container, or the one that its node has accepted if that is larger,
// as while a resize is pending; nil: it has none.
func reserved(p *kube.Pod, own *kube.Container, resource string) *float64 {
	v, ok := own.Resources.Requests[resource]
	if !ok {
		return nil
	}
	if s := p.StatusOf(own.Name); s != nil {
		v = max(v, s.Allocated[resource])
	}
	out := float64(v)
	return &out
}

// serves reports whether a pod takes load. A pod without a status does not; if its readiness is
// unknown, it does when it runs.
func serves(p *kube.Pod) bool {
	if p.Condition("Ready") == nil {
		return p.Status.Phase == "Running"
	}
	return p.Ready()
}

// Status returns the resources with which one more pod starts, and how many more pods the quotas
// allow.
func (s *Scale) Status(ctx context.Context) *trimtab.KnobStatus {
	w, err := s.workload(ctx)
	if err != nil {
		return nil
	}
	c, err := s.from.watched()
	if err != nil || c == nil {
		return nil
	}
	own := s.wrote != nil && int64(w.Status.ObservedGeneration) < w.Generation // not observed yet: our change
	out := &trimtab.KnobStatus{Starts: map[string]float64{}, Rollout: !own && c.Rollout(w) != "", Note: s.leaving.note(s)}
	asks := map[string]float64{"pods": 1, "count/pods": 1}
	for _, resource := range []string{trimtab.CPU, trimtab.Memory} {
		limit, limited := templated(w, resource, func(r *kube.Resources) kube.List { return r.Limits })
		if limited && s.rules.StartValues {
			limit = math.Max(limit, largest(c, s.ref, resource))
		}
		if limited {
			out.Starts[resource], asks["limits."+resource] = limit, limit
		}
		request, requested := templated(w, resource, func(r *kube.Resources) kube.List { return r.Requests })
		if request > 0 {
			asks["requests."+resource], asks[resource] = request, request
		}
		if resource == trimtab.CPU && requested && s.rules.Weighs {
			out.Starts[resource] = request // the request is what trimtab sets
		}
	}
	now := float64(s.replicas(w))
	for name, each := range asks {
		left, by, err := c.Left(s.ref.Namespace, name)
		if err != nil || math.IsInf(left, 1) || !(each > 0) {
			continue
		}
		// Requested pods that do not exist yet will also take from the quota.
		more := math.Floor(left/each+1e-9) - math.Max(0, now-float64(w.Status.Replicas))
		if most := now + math.Max(0, more); out.Most == 0 || most < out.Most || most == out.Most && by < out.By {
			out.Most, out.By = most, by
		}
	}
	if w.Annotations["autoscaling.keda.sh/paused-scale-out"] == "true" {
		out.Most, out.By = now, "its annotation autoscaling.keda.sh/paused-scale-out"
	}
	return out
}

// largest returns the largest amount of a resource in any pod of the workload; 0: unknown.
func largest(c *kube.Cluster, r kube.Ref, resource string) (most float64) {
	pods, err := c.PodsOf(r)
	if err != nil {
		return 0
	}
	for _, p := range pods {
		sum := 0.0
		for i := range p.Spec.Containers {
			sum += float64(p.Spec.Containers[i].Resources.Limits[resource])
		}
		most = math.Max(most, sum)
	}
	return most
}

// templated returns what the template's pod has of a resource as a whole, or the sum over its
// containers; all is false if a container requests none.
func templated(w *kube.Workload, resource string, of func(*kube.Resources) kube.List) (sum float64, all bool) {
	if whole := w.Spec.Template.Spec.Resources; whole != nil {
		if v, ok := of(whole)[resource]; ok {
			return float64(v), true
		}
	}
	containers := w.Spec.Template.Spec.Containers
	all = len(containers) > 0
	for i := range containers {
		v, ok := of(&containers[i].Resources)[resource]
		sum, all = sum+float64(v), all && ok
	}
	return sum, all
}
