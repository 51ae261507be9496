package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/trimtab/trimtab/internal/kube"
)

// leaving has which pods of a [Scale] should go when its number falls. A ReplicaSet deletes pods that
// are not ready first, then those with the lowest annotation [kube.DeletionCost], which costs trimtab
// a write for each pod. The annotations are removed when the number has fallen, and at a restore.
type leaving struct {
	// next are the pods that should go at the next Write.
	next []string
	// marked says that pods may have an annotation of trimtab's, perhaps of an earlier process.
	marked bool
	// refused is why pods were not annotated.
	refused refusal
}

// Leave says which pods should go first at the next Write.
func (s *Scale) Leave(pods []string) { s.leaving.next = pods }

// mark annotates the pods that should go when the number falls by n. A pod that somebody else
// annotated is left out, and what fails keeps nothing from falling.
func (s *Scale) mark(ctx context.Context, w *kube.Workload, n int64) {
	next := s.leaving.next
	if s.leaving.next = nil; !s.rules.Choose || s.ref.Kind != kube.Deployment || n < 1 || len(next) == 0 || s.leaving.refused.still(s.now()) != nil {
		return
	}
	client, err := s.from.client()
	if err != nil {
		return
	}
	pods, err := s.from.podsOf(ctx, w)
	if err != nil {
		return
	}
	next = next[:min(int64(len(next)), n)]
	for i, name := range next {
		at := slices.IndexFunc(pods, func(p *kube.Pod) bool { return p.Name == name && p.DeletionTimestamp == nil })
		if at < 0 {
			continue
		}
		s.leaving.marked = true
		// The least loaded has the lowest cost.
		after, err := client.SetCost(ctx, pods[at], i-len(next))
		if err != nil {
			s.leaving.refused = refusal{fmt.Errorf("which pod goes is left to Kubernetes: %w", err), s.now().Add(tryAgainAfter)}
			return
		}
		s.from.took(after, after.Generation)
	}
}

// unmark removes trimtab's annotations from all pods of the workload.
func (s *Scale) unmark(ctx context.Context, w *kube.Workload) error {
	pods, err := s.from.podsOf(ctx, w)
	if err != nil {
		return err
	}
	for _, p := range pods {
		if !p.Marked() || p.DeletionTimestamp != nil {
			continue
		}
		client, broken := s.from.client()
		if broken != nil {
			return broken
		}
		after, failed := client.DropCost(ctx, p)
		switch {
		case errors.Is(failed, os.ErrNotExist):
		case failed != nil:
			err = cmp.Or(err, failed)
		default:
			s.from.took(after, after.Generation)
		}
	}
	s.leaving.marked = err != nil
	return err
}

// fallen removes the annotations once the number has fallen. What fails is tried again at the next
// look.
func (s *Scale) fallen(ctx context.Context, w *kube.Workload) {
	if s.leaving.marked && s.leaving.refused.still(s.now()) == nil {
		if err := s.unmark(ctx, w); err != nil {
			s.leaving.refused = refusal{fmt.Errorf("an annotation of a pod stays: %w", err), s.now().Add(tryAgainAfter)}
		}
	}
}

// note returns what keeps pods from being chosen; "": nothing.
func (l *leaving) note(s *Scale) string {
	if err := l.refused.still(s.now()); err != nil {
		return err.Error()
	}
	return ""
}
