package kube

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab/trimtab"
)

// DeletionCost is the annotation by which a ReplicaSet chooses the pods that it deletes, the lowest
// first, among pods that are equally ready; a pod without it has 0.
const DeletionCost = "controller.kubernetes.io/pod-deletion-cost"

// ownCost is the annotation that repeats the cost that trimtab set. A cost that differs from it is
// somebody else's.
const ownCost = "trimtab.dev/pod-deletion-cost"

// Cost returns whether trimtab set the deletion cost of the pod, and whether somebody else did.
func (m *Meta) Cost() (ours, theirs bool) {
	cost, set := m.Annotations[DeletionCost]
	own, marked := m.Annotations[ownCost]
	ours = set && marked && cost == own
	return ours, set && !ours
}

// Marked reports whether the pod has an annotation of trimtab's.
func (m *Meta) Marked() bool { return m.Annotations[ownCost] != "" }

// SetCost sets the deletion cost of a pod unless somebody else did, which is no error.
func (c *Client) SetCost(ctx context.Context, p *Pod, cost int) (*Pod, error) {
	text := strconv.Itoa(cost)
	return c.annotate(ctx, p, func(now *Pod) map[string]any {
		if _, theirs := now.Cost(); theirs || now.Annotations[DeletionCost] == text {
			return nil
		}
		return map[string]any{DeletionCost: text, ownCost: text}
	})
}

// DropCost removes the deletion cost that trimtab set, and its note where somebody else set another.
func (c *Client) DropCost(ctx context.Context, p *Pod) (*Pod, error) {
	return c.annotate(ctx, p, func(now *Pod) map[string]any {
		if ours, _ := now.Cost(); ours {
			return map[string]any{DeletionCost: nil, ownCost: nil}
		}
		if now.Marked() {
			return map[string]any{ownCost: nil}
		}
		return nil
	})
}

// annotateTries bounds the writes of one pod whose status changes meanwhile.
const annotateTries = 4

// annotate changes annotations of a pod as change says of its newest state; nil: nothing is changed.
// It returns that state.
func (c *Client) annotate(ctx context.Context, p *Pod, change func(*Pod) map[string]any) (*Pod, error) {
	for range annotateTries {
		annotations := change(p)
		if annotations == nil {
			return p, nil
		}
		after := &Pod{}
		body := map[string]any{"metadata": map[string]any{"uid": p.UID, "resourceVersion": p.ResourceVersion, "annotations": annotations}}
		err := c.send(ctx, pods(), &p.Meta, types.MergePatchType, body, after)
		if !errors.Is(err, trimtab.ErrStale) {
			return after, err
		}
		uid := p.UID
		if p, err = c.Pod(ctx, p.Namespace, p.Name); err != nil {
			return nil, err
		}
		if p.UID != uid {
			return nil, fmt.Errorf("annotate pod %s/%s: it was replaced by another of its name: %w", p.Namespace, p.Name, trimtab.ErrStale)
		}
	}
	return nil, fmt.Errorf("annotate pod %s/%s: it changes all the time: %w", p.Namespace, p.Name, trimtab.ErrStale)
}
