package kube

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab/trimtab"
)

// This file has the cluster's state of one workload. Each function returns an error if that is
// unknown: missing values decide nothing.

// Workload returns a workload; the error is os.ErrNotExist if there is none.
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

// Workloads is [Client.Workloads] by what is watched.
func (w *Cluster) Workloads(namespace string, labels map[string]string) (all []*Workload, err error) {
	if err := w.fresh(deployments(), statefulsets()); err != nil {
		return nil, err
	}
	for _, kind := range []string{Deployment, StatefulSet} {
		for o := range w.tables.workloads[kind].in(namespace) {
			if selects(labels, o.Labels) {
				all = append(all, o)
			}
		}
	}
	return all, nil
}

// PodOf returns a pod; the error is os.ErrNotExist if there is none, or the pod of that name has
// another uid; uid "" matches any.
func (w *Cluster) PodOf(namespace, name, uid string) (*Pod, error) {
	if err := w.fresh(pods()); err != nil {
		return nil, err
	}
	p := w.tables.pods.get(namespace, name)
	switch {
	case p == nil || p.Over():
		return nil, fmt.Errorf("find pod %s/%s: %w", namespace, name, os.ErrNotExist)
	case uid != "" && p.UID != uid:
		return nil, fmt.Errorf("find pod %s/%s: it was replaced by another of its name: %w", namespace, name, os.ErrNotExist)
	}
	return p, nil
}

// MarkOf returns values that change whenever anything about a pod changes: its object, nil if
// there is none, and a count of changes of other objects.
func (w *Cluster) MarkOf(namespace, name string) (p *Pod, changes uint64) {
	return w.tables.pods.get(namespace, name), w.changes.Load()
}

// Took stores the answer to a write of a pod that had the generation before: the watch may be
// behind.
func (w *Cluster) Took(p *Pod, before int64) {
	slim(&p.Meta)
	w.tables.pods.put(p)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.own == nil {
		w.own = map[string]int64{}
	}
	w.own[p.UID] += max(0, p.Generation-before)
	if len(w.own) > 2*w.tables.pods.len()+100 {
		there := map[string]bool{}
		for p := range w.tables.pods.in("") {
			there[p.UID] = true
		}
		maps.DeleteFunc(w.own, func(uid string, _ int64) bool { return !there[uid] })
	}
}

// Own returns how many generations of a pod were caused by writes that [Cluster.Took] stored.
func (w *Cluster) Own(uid string) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.own[uid]
}

// Allocatable returns how much of a resource a node has for pods.
func (w *Cluster) Allocatable(node, resource string) (float64, error) {
	if err := w.fresh(nodes()); err != nil {
		return 0, err
	}
	n := w.tables.nodes.get("", node)
	if n == nil {
		return 0, fmt.Errorf("find node %s: %w", node, os.ErrNotExist)
	}
	return n.allocatable(resource)
}

func (n *Node) allocatable(resource string) (float64, error) {
	v, ok := n.Status.Allocatable[resource]
	if !ok {
		return 0, fmt.Errorf("find %s of node %s: %w", resource, n.Name, trimtab.ErrUnsupported)
	}
	return float64(v), nil
}

// Declares reports whether a node's kubelet has a feature; false, too, where it tells of none, as
// before 1.36. The error says why that is not known.
func (w *Cluster) Declares(node, feature string) (bool, error) {
	if err := w.fresh(nodes()); err != nil {
		return false, err
	}
	n := w.tables.nodes.get("", node)
	return n != nil && slices.Contains(n.Status.Declared, feature), nil
}

// AllAllocatable returns how much of a resource all nodes have together.
func (w *Cluster) AllAllocatable(resource string) (sum float64, err error) {
	if err := w.fresh(nodes()); err != nil {
		return 0, err
	}
	for n := range w.tables.nodes.in("") {
		sum += float64(n.Status.Allocatable[resource])
	}
	return sum, nil
}

// HeadroomOn returns the capacity of a node that is left for the requests of one pod: its allocatable
// amount, less the requests of the other pods.
func (w *Cluster) HeadroomOn(p *Pod, resource string) (float64, error) {
	room, err := w.Allocatable(p.Spec.NodeName, resource)
	if err != nil {
		return 0, err
	}
	for o := range w.tables.pods.in("") {
		if o.UID != p.UID && o.Spec.NodeName == p.Spec.NodeName && !o.Over() {
			room -= o.Requests(resource)
		}
	}
	return room, nil
}

// pausedFor is how long a paused rollout counts as under way.
const pausedFor = time.Hour

// Rollout describes the rollout under way, or is "": during a rollout nothing is lowered or
// tried.
func (w *Cluster) Rollout(of *Workload) string {
	s, replicas := &of.Status, of.Replicas()
	switch {
	case of.Spec.Paused && w.now().Sub(since(of.Condition("Progressing"))) < pausedFor:
		return "a rollout is paused"
	case of.Generation > int64(s.ObservedGeneration):
		return "a change was not yet taken up"
	case of.Kind == DaemonSet && s.Updated < s.Desired:
		return fmt.Sprintf("a rollout runs: %d of %d pods are of the new version", s.Updated, s.Desired)
	case of.Kind == DaemonSet:
		return ""
	case of.Kind == Rollout && (s.Phase == "Progressing" || s.Phase == "Paused"):
		return "a rollout runs: its phase is " + s.Phase
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

// since returns when a condition got its present value.
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

// Others names the autoscaler that sets a resource of a workload, "" if there is none. requests
// says that the change also affects requests.
func (w *Cluster) Others(r Ref, container, resource string, requests bool) (string, error) {
	if err := w.fresh(hpas(), scaledObjects(), vpas()); err != nil {
		return "", fmt.Errorf("whether an autoscaler has %s cannot be told: %w", r, err)
	}
	named := func(kind string, m *Meta, why string) string {
		return fmt.Sprintf("%s %s/%s %s", kind, m.Namespace, m.Name, why)
	}
	if resource == trimtab.CPU || resource == trimtab.Memory {
		for h := range w.tables.hpas.in(r.Namespace) {
			if requests && h.Spec.ScaleTargetRef.is(r) && h.Utilization(resource) {
				return named("HorizontalPodAutoscaler", &h.Meta, "follows the utilisation of its requests and would answer with pods"), nil
			}
		}
		for v := range w.tables.vpas.in(r.Namespace) {
			if v.resizes(r, container, resource) {
				return named("VerticalPodAutoscaler", &v.Meta, "sets its "+resource), nil
			}
		}
		return "", nil
	}
	// A paused ScaledObject has no HPA, and still sets the number.
	for s := range w.tables.scaled.in(r.Namespace) {
		if s.Spec.ScaleTargetRef.is(r) {
			return named("ScaledObject", &s.Meta, "sets its replicas"), nil
		}
	}
	for h := range w.tables.hpas.in(r.Namespace) {
		if h.Spec.ScaleTargetRef.is(r) {
			return named("HorizontalPodAutoscaler", &h.Meta, "sets its replicas"), nil
		}
	}
	return "", nil
}

// resizes reports whether a VPA sets a resource of a container of the workload.
func (v *VPA) resizes(r Ref, container, resource string) bool {
	_, _, _, controls := v.Policy(container, resource)
	return controls && v.Spec.TargetRef.is(r) && (v.Spec.UpdatePolicy == nil || v.Spec.UpdatePolicy.UpdateMode != "Off")
}

// policy returns a VPA's policy for a container: the container's own, else the one for all others;
// nil: there is none.
func (v *VPA) policy(container string) *VPAPolicy {
	if v.Spec.ResourcePolicy == nil {
		return nil
	}
	all := v.Spec.ResourcePolicy.ContainerPolicies
	for _, name := range []string{container, "*"} {
		for i := range all {
			if all[i].ContainerName == name {
				return &all[i]
			}
		}
	}
	return nil
}

// Spared returns how many pods of a workload may be evicted at once, and the number that must stay,
// as all PodDisruptionBudgets that select them allow.
func (w *Cluster) Spared(of *Workload, labels map[string]string) (atOnce, least int64, by string, err error) {
	if err := w.fresh(budgets()); err != nil {
		return 0, 0, "", fmt.Errorf("what disruption budgets allow cannot be told: %w", err)
	}
	s := sparing{atOnce: math.MaxInt64, labels: labels}
	for b := range w.tables.budgets.in(of.Namespace) {
		s.add(b)
	}
	return s.atOnce, s.least, s.by, nil
}

// Spared is [Cluster].Spared, but reads from the server.
func (c *Client) Spared(ctx context.Context, of *Workload, labels map[string]string) (atOnce, least int64, by string, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list, err := c.of(budgets(), of.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, 0, "", kindOf(err, "list", budgets(), of.Namespace, "")
	}
	s := sparing{atOnce: math.MaxInt64, labels: labels}
	for i := range list.Items {
		b := &Budget{}
		if err := decode(&list.Items[i], b); err != nil {
			return 0, 0, "", err
		}
		s.add(b)
	}
	return s.atOnce, s.least, s.by, nil
}

// sparing has the disruptions that budgets allow for the pods with these labels.
type sparing struct {
	labels        map[string]string
	atOnce, least int64
	by            string
}

func (s *sparing) add(b *Budget) {
	if b.Spec.Selector == nil || !selects(b.Spec.Selector.MatchLabels, s.labels) {
		return
	}
	allowed := b.Status.DisruptionsAllowed
	if b.Status.ObservedGeneration < b.Generation {
		allowed = 0
	}
	if allowed < s.atOnce {
		s.atOnce, s.by = allowed, "PodDisruptionBudget "+b.Namespace+"/"+b.Name
	}
	switch n := b.Spec.MinAvailable.(type) {
	case int64:
		s.least = max(s.least, n)
	case float64:
		s.least = max(s.least, int64(n))
	}
}

// Matches reports whether a selector that is a set of labels selects the pod.
func (p *Pod) Matches(selector map[string]string) bool { return selects(selector, p.Labels) }

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

// Most returns the largest limit of a container that the LimitRanges of its namespace allow
// beside the other containers of its pod, and which LimitRange it is; +Inf if none bounds it.
func (w *Cluster) Most(p *Pod, container, resource string) (most float64, by string, err error) {
	most = math.Inf(1)
	if err := w.fresh(ranges()); err != nil {
		return most, "", fmt.Errorf("what limit ranges allow cannot be told: %w", err)
	}
	own, others, requests := 0.0, 0.0, 0.0
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		requests += float64(c.Resources.Requests[resource])
		if c.Name == container {
			own = float64(c.Resources.Requests[resource])
		} else {
			others += float64(c.Resources.Limits[resource])
		}
	}
	for r := range w.tables.ranges.in(p.Namespace) {
		for _, l := range r.Spec.Limits {
			request, beside := own, 0.0
			switch l.Type {
			case "Container":
			case "Pod":
				request, beside = requests, others
			default:
				continue
			}
			bound := math.Inf(1)
			if v, ok := l.Max[resource]; ok {
				bound = float64(v)
			}
			// The request of a Guaranteed pod goes with its limit.
			if v, ok := l.Ratio[resource]; ok && p.Status.QOSClass != "Guaranteed" {
				bound = math.Min(bound, float64(v)*request)
			}
			if bound = math.Max(0, bound-beside); bound < most {
				most, by = bound, "LimitRange "+r.Namespace+"/"+r.Name
			}
		}
	}
	return most, by, nil
}

// Least returns the smallest limit of a container that the LimitRanges of its namespace allow, and the
// smallest request beside its present limit by their ratio; 0 if none bounds it.
func (w *Cluster) Least(namespace string, c *Container, resource string) (limit, request float64, err error) {
	if err := w.fresh(ranges()); err != nil {
		return 0, 0, fmt.Errorf("what limit ranges allow cannot be told: %w", err)
	}
	for r := range w.tables.ranges.in(namespace) {
		for _, l := range r.Spec.Limits {
			if l.Type != "Container" {
				continue
			}
			limit = math.Max(limit, float64(l.Min[resource]))
			if v := float64(l.Ratio[resource]); v > 0 {
				request = math.Max(request, float64(c.Resources.Limits[resource])/v)
			}
		}
	}
	return limit, request, nil
}

// Allowed returns the bounds that VPAs of a workload set for a resource of a container,
// minAllowed and maxAllowed, and which VPA bounds it from above; 0 and +Inf if none does. They
// apply to trimtab too, also if the VPA itself only recommends.
func (w *Cluster) Allowed(r Ref, container, resource string) (least, most float64, by string, err error) {
	most = math.Inf(1)
	if err := w.fresh(vpas()); err != nil {
		return 0, most, "", fmt.Errorf("what autoscalers allow cannot be told: %w", err)
	}
	for v := range w.tables.vpas.in(r.Namespace) {
		p := v.policy(container)
		if !v.Spec.TargetRef.is(r) || p == nil || p.Mode == "Off" {
			continue
		}
		least = math.Max(least, float64(p.MinAllowed[resource]))
		if bound, ok := p.MaxAllowed[resource]; ok && float64(bound) < most {
			most, by = float64(bound), "VerticalPodAutoscaler "+v.Namespace+"/"+v.Name
		}
	}
	return math.Min(least, most), most, by, nil
}

// Left returns the rest of one name in the ResourceQuotas of a namespace, such as limits.cpu, and
// the quota that leaves least; +Inf if none bounds it.
func (w *Cluster) Left(namespace, name string) (left float64, by string, err error) {
	left = math.Inf(1)
	if err := w.fresh(quotas()); err != nil {
		return left, "", fmt.Errorf("what quotas leave cannot be told: %w", err)
	}
	for q := range w.tables.quotas.in(namespace) {
		if hard, ok := q.Status.Hard[name]; ok {
			if v := math.Max(0, float64(hard-q.Status.Used[name])); v < left {
				left, by = v, "ResourceQuota "+q.Namespace+"/"+q.Name
			}
		}
	}
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

// LowersMemory reports whether the server lowers a memory limit of a running container without a
// restart, which it does from 1.34 on; false: it does not, or its version is not known yet.
func (w *Cluster) LowersMemory() bool { return w.isAtLeast(34) }

// ResizesWholePods reports whether the server resizes pods that have resources of their own
// (spec.resources), and these, which it does from 1.36 on; false: it does not, or its version is not
// known yet.
func (w *Cluster) ResizesWholePods() bool { return w.isAtLeast(36) }

func (w *Cluster) isAtLeast(minor int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.version.Major > 1 || w.version.Major == 1 && w.version.Minor >= minor
}

// FollowPods calls seen with each watched pod as it is now, then after each change, and with the last
// state of one that was deleted, until unfollow is called. Calls may overlap, and must be short. One
// follower is possible at a time.
func (w *Cluster) FollowPods(seen func(*Pod)) (unfollow func()) {
	for _, p := range slices.Collect(w.tables.pods.in("")) {
		seen(p)
	}
	w.tables.pods.followed.Store(&seen)
	return func() { w.tables.pods.followed.CompareAndSwap(&seen, nil) }
}

// Before reports whether one version of an object is before another.
func Before(a, b string) bool { return newer(b, a) }
