package kube

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab/trimtab"
)

// Recommended lists the VPAs that name a recommender, in order.
func (w *Cluster) Recommended(recommender string) (all []*VPA, err error) {
	if err := w.fresh(vpas()); err != nil {
		return nil, err
	}
	for v := range w.tables.vpas.in("") {
		if slices.ContainsFunc(v.Spec.Recommenders, func(r Recommender) bool { return r.Name == recommender }) {
			all = append(all, v)
		}
	}
	slices.SortFunc(all, func(a, b *VPA) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return all, nil
}

// Of reports whether the VPA belongs to a workload.
func (v *VPA) Of(r Ref) bool { return v.Namespace == r.Namespace && v.Spec.TargetRef.is(r) }

// Policy returns a VPA's policy for a container and one of its resources: the bounds of its
// requests, and whether the limit keeps its ratio to the request; ok is false if the VPA does not
// control it.
func (v *VPA) Policy(container, resource string) (least, most float64, ratio, ok bool) {
	p := v.policy(container)
	if p == nil {
		return 0, math.Inf(1), true, true
	}
	if p.Mode == "Off" || p.ControlledResources != nil && !slices.Contains(*p.ControlledResources, resource) {
		return 0, 0, false, false
	}
	least, most = float64(p.MinAllowed[resource]), math.Inf(1)
	if bound, ok := p.MaxAllowed[resource]; ok {
		most = float64(bound)
	}
	return least, most, p.ControlledValues != "RequestsOnly", true
}

// Condition returns the condition of a type, or nil.
func (v *VPA) Condition(kind string) *Condition { return condition(v.Status.Conditions, kind) }

// Recommend writes the status of the VPA whose version is at: the recommendations, unless they are
// nil, and its conditions.
func (c *Client) Recommend(ctx context.Context, at *VPA, all []Recommendation, conditions []Condition) error {
	status := map[string]any{}
	if all != nil {
		containers := make([]any, 0, len(all))
		for i := range all {
			r := &all[i]
			containers = append(containers, map[string]any{"containerName": r.ContainerName, "target": r.Target.texts(), "lowerBound": r.LowerBound.texts(),
				"upperBound": r.UpperBound.texts(), "uncappedTarget": r.UncappedTarget.texts()})
		}
		status["recommendation"] = map[string]any{"containerRecommendations": containers}
	}
	list := make([]any, 0, len(conditions))
	for _, x := range conditions {
		list = append(list, map[string]any{"type": x.Type, "status": x.Status, "reason": x.Reason, "message": x.Message, "lastTransitionTime": x.LastTransitionTime})
	}
	status["conditions"] = list
	return c.patch(ctx, vpas(), &at.Meta, types.MergePatchType, map[string]any{"status": status}, nil, "status")
}

// texts returns amounts in Kubernetes notation: whole bytes, and thousandths of all else.
func (l List) texts() map[string]any {
	out := map[string]any{}
	for resource, v := range l {
		out[resource] = Text(resource, float64(v))
	}
	return out
}

// Text is an amount as Kubernetes writes it.
func Text(resource string, v float64) string {
	if resource == trimtab.Memory {
		return strconv.FormatFloat(math.Round(v), 'f', 0, 64)
	}
	return strconv.FormatInt(int64(math.Round(v*1000)), 10) + "m"
}
