package kube

import (
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

// This file is what the cluster says of one workload. Each function gives an error
// where that cannot be told: nobody decides on what is missing.

// Workload returns a workload; the error is os.ErrNotExist where there is none.
func (w *Cluster) WorkloadOf(r Ref) (*Workload, error) {
	of, err := ResourceOfKind(r.Kind)
	if err == nil {
		err = w.fresh(of)
	}
	if err != nil {
		return nil, err
	}
	if found := w.workload(r); found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("find workload %s: %w", r, os.ErrNotExist)
}

// PodOf returns a pod; the error is os.ErrNotExist where there is none, or another one of
// that name: uid "" is any.
func (w *Cluster) PodOf(namespace, name, uid string) (*Pod, error) {
	if err := w.fresh(pods()); err != nil {
		return nil, err
	}
	p := w.pods.get(namespace, name)
	switch {
	case p == nil || p.Over():
		return nil, fmt.Errorf("find pod %s/%s: %w", namespace, name, os.ErrNotExist)
	case uid != "" && p.UID != uid:
		return nil, fmt.Errorf("find pod %s/%s: it was replaced by another of its name: %w", namespace, name, os.ErrNotExist)
	}
	return p, nil
}

// Took takes up the answer to a write, which may be ahead of the watch.
func (w *Cluster) Took(p *Pod) { slim(&p.Meta); w.pods.put(p) }

// Allocatable returns what a node has for pods of a resource.
func (w *Cluster) Allocatable(node, resource string) (float64, error) {
	if err := w.fresh(nodes()); err != nil {
		return 0, err
	}
	n := w.nodes.get("", node)
	if n == nil {
		return 0, fmt.Errorf("find node %s: %w", node, os.ErrNotExist)
	}
	v, ok := n.Status.Allocatable[resource]
	if !ok {
		return 0, fmt.Errorf("find %s of node %s: %w", resource, node, trimtab.ErrUnsupported)
	}
	return float64(v), nil
}

// AllAllocatable returns what all nodes have together of a resource.
func (w *Cluster) AllAllocatable(resource string) (sum float64, err error) {
	if err := w.fresh(nodes()); err != nil {
		return 0, err
	}
	w.nodes.each("", func(n *Node) bool {
		sum += float64(n.Status.Allocatable[resource])
		return true
	})
	return sum, nil
}

// RoomOn returns what is left on a node for the requests of one pod: what it has, less
// what the others ask for.
func (w *Cluster) RoomOn(p *Pod, resource string) (float64, error) {
	room, err := w.Allocatable(p.Spec.NodeName, resource)
	if err != nil {
		return 0, err
	}
	w.pods.each("", func(o *Pod) bool {
		if o.UID != p.UID && o.Spec.NodeName == p.Spec.NodeName && !o.Over() {
			for i := range o.Spec.Containers {
				room -= float64(o.Spec.Containers[i].Resources.Requests[resource])
			}
		}
		return true
	})
	return room, nil
}

// pausedFor is how long a paused rollout counts as one that runs.
const pausedFor = time.Hour

// Rollout says that a new version is being rolled out, or "": then no fall, no trial.
func (w *Cluster) Rollout(of *Workload) string {
	s, replicas := &of.Status, of.Replicas()
	switch {
	case of.Spec.Paused && w.now().Sub(since(of.Condition("Progressing"))) < pausedFor:
		return "a rollout is paused"
	case of.Generation > s.ObservedGeneration:
		return "a change was not yet taken up"
	case of.Kind == StatefulSet && s.UpdateRevision != "" && s.CurrentRevision != s.UpdateRevision:
		return fmt.Sprintf("a rollout runs: revision %s is not yet everywhere", s.UpdateRevision)
	case of.Kind == StatefulSet:
		return ""
	case s.UpdatedReplicas < min(replicas, s.Replicas):
		return fmt.Sprintf("a rollout runs: %d of %d pods are of the new version", s.UpdatedReplicas, replicas)
	case s.Replicas > s.UpdatedReplicas:
		return fmt.Sprintf("a rollout runs: %d pods of the old version are left", s.Replicas-s.UpdatedReplicas)
	}
	return ""
}

// since is when a condition became what it is.
func since(c *Condition) time.Time {
	if c == nil {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, c.LastTransitionTime)
	if err != nil {
		return time.Time{}
	}
	return t
}

// Others names the autoscaler that turns a resource of a workload, "" where there is
// none. requests says that the change is one of requests, too.
func (w *Cluster) Others(r Ref, container, resource string, requests bool) (string, error) {
	if err := w.fresh(hpas(), scaledObjects(), vpas()); err != nil {
		return "", fmt.Errorf("whether an autoscaler has %s cannot be told: %w", r, err)
	}
	other := ""
	found := func(kind string, m *Meta, why string) bool {
		other = fmt.Sprintf("%s %s/%s %s", kind, m.Namespace, m.Name, why)
		return false
	}
	if resource == trimtab.CPU || resource == trimtab.Memory {
		w.vpas.each(r.Namespace, func(v *VPA) bool {
			if v.turns(r, container, resource) {
				return found("VerticalPodAutoscaler", &v.Meta, "sets its "+resource)
			}
			return true
		})
		w.hpas.each(r.Namespace, func(h *HPA) bool {
			if requests && h.Spec.ScaleTargetRef.is(r) && h.Utilization(resource) {
				return found("HorizontalPodAutoscaler", &h.Meta, "follows the utilisation of its requests and would answer with pods")
			}
			return true
		})
		return other, nil
	}
	// A paused ScaledObject has no HPA, and still sets the number.
	w.scaled.each(r.Namespace, func(s *ScaledObject) bool {
		if s.Spec.ScaleTargetRef.is(r) {
			return found("ScaledObject", &s.Meta, "sets its replicas")
		}
		return true
	})
	if other == "" {
		w.hpas.each(r.Namespace, func(h *HPA) bool {
			if h.Spec.ScaleTargetRef.is(r) {
				return found("HorizontalPodAutoscaler", &h.Meta, "sets its replicas")
			}
			return true
		})
	}
	return other, nil
}

// turns reports whether a VPA sets a resource of a container of the workload.
func (v *VPA) turns(r Ref, container, resource string) bool {
	if !v.Spec.TargetRef.is(r) || v.Spec.UpdatePolicy != nil && v.Spec.UpdatePolicy.UpdateMode == "Off" {
		return false
	}
	if v.Spec.ResourcePolicy == nil {
		return true
	}
	all := v.Spec.ResourcePolicy.ContainerPolicies
	for _, name := range []string{container, "*"} { // its own policy before that of the others
		for _, p := range all {
			if p.ContainerName == name {
				return p.Mode != "Off" && (p.ControlledResources == nil || slices.Contains(*p.ControlledResources, resource))
			}
		}
	}
	return true
}

// Spared returns how many pods of a workload may go at once, and the number below which
// none may: what every PodDisruptionBudget that selects them allows.
func (w *Cluster) Spared(of *Workload, labels map[string]string) (atOnce, least int64, by string, err error) {
	if err := w.fresh(budgets()); err != nil {
		return 0, 0, "", fmt.Errorf("what disruption budgets allow cannot be told: %w", err)
	}
	atOnce = math.MaxInt64
	w.budgets.each(of.Namespace, func(b *Budget) bool {
		if b.Spec.Selector == nil || !selects(b.Spec.Selector.MatchLabels, labels) {
			return true
		}
		allowed := b.Status.DisruptionsAllowed
		if b.Status.ObservedGeneration < b.Generation {
			allowed = 0
		}
		if allowed < atOnce {
			atOnce, by = allowed, "PodDisruptionBudget "+b.Namespace+"/"+b.Name
		}
		switch n := b.Spec.MinAvailable.(type) {
		case int64:
			least = max(least, n)
		case float64:
			least = max(least, int64(n))
		}
		return true
	})
	return atOnce, least, by, nil
}

// selects reports whether a selector that is a set of labels selects an object. One
// without labels selects all.
func selects(selector, labels map[string]string) bool {
	for name, value := range selector {
		if labels[name] != value {
			return false
		}
	}
	return true
}

// Most returns the largest limit of a container that the LimitRanges of a namespace
// allow, and by which; +Inf where none bounds it.
func (w *Cluster) Most(namespace, resource string) (most float64, by string, err error) {
	most = math.Inf(1)
	if err := w.fresh(ranges()); err != nil {
		return most, "", fmt.Errorf("what limit ranges allow cannot be told: %w", err)
	}
	w.ranges.each(namespace, func(r *Range) bool {
		for _, l := range r.Spec.Limits {
			if v, ok := l.Max[resource]; ok && (l.Type == "Container" || l.Type == "Pod") && float64(v) < most {
				most, by = float64(v), "LimitRange "+r.Namespace+"/"+r.Name
			}
		}
		return true
	})
	return most, by, nil
}

// Left returns what the ResourceQuotas of a namespace leave of one of their names, such
// as limits.cpu, and which leaves least; +Inf where none bounds it.
func (w *Cluster) Left(namespace, name string) (left float64, by string, err error) {
	left = math.Inf(1)
	if err := w.fresh(quotas()); err != nil {
		return left, "", fmt.Errorf("what quotas leave cannot be told: %w", err)
	}
	w.quotas.each(namespace, func(q *Quota) bool {
		if hard, ok := q.Status.Hard[name]; ok {
			if v := math.Max(0, float64(hard-q.Status.Used[name])); v < left {
				left, by = v, "ResourceQuota "+q.Namespace+"/"+q.Name
			}
		}
		return true
	})
	return left, by, nil
}

// Resizable says why the limits of running pods cannot be changed in this cluster; nil:
// they can. The server was asked when the watches began.
func (w *Cluster) Resizable() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.resize == nil:
		return fmt.Errorf("the API server did not tell yet whether it has pods/resize: %w", trimtab.ErrStale)
	case !*w.resize:
		return fmt.Errorf("this cluster has no pods/resize, which came with Kubernetes 1.33: %w", trimtab.ErrUnsupported)
	}
	return nil
}

// Before reports whether one version of an object is before another.
func Before(a, b string) bool { return newer(b, a) }
