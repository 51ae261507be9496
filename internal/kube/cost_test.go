package kube_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/kube"
	"github.com/trimtab/trimtab/internal/kube/kubetest"
)

func annotate(s *kubetest.Server, name string, value any) {
	s.Edit(kubetest.PodPath(0), func(o kubetest.Object) {
		kubetest.Sub(o, "metadata", "annotations")[name] = value
	})
}

func TestADeletionCostOfSomebodyElseIsNeverOverwrittenAndOursIsRemovedWhole(t *testing.T) {
	s := kubetest.New(t)
	s.Shop(1, resources)
	client, err := kube.Open(kube.Config{Kubeconfig: s.Kubeconfig()})
	if err != nil {
		t.Fatal(err)
	}
	pod := func() *kube.Pod {
		p, err := client.Pod(t.Context(), "shop", "checkout-7d9f-aa")
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	annotations := func() int { return len(kubetest.Sub(s.Get(kubetest.PodPath(0)), "metadata", "annotations")) }
	if p, err := client.SetCost(t.Context(), pod(), -2); err != nil || p.Annotations[kube.DeletionCost] != "-2" {
		t.Fatalf("%v, %+v", err, p)
	}
	if ours, theirs := pod().Cost(); !ours || theirs || !pod().Marked() {
		t.Errorf("ours %v, theirs %v", ours, theirs)
	}
	old := pod()
	s.Kubelet(kubetest.PodPath(0)) // another version
	if p, err := client.DropCost(t.Context(), old); err != nil || p.Marked() || annotations() != 0 {
		t.Errorf("%v: %d annotations stay", err, annotations())
	}
	// Somebody's own, which was set after the pod was read.
	old = pod()
	annotate(s, kube.DeletionCost, "7")
	if _, err := client.SetCost(t.Context(), old, -1); err != nil || pod().Annotations[kube.DeletionCost] != "7" || pod().Marked() {
		t.Errorf("%v: %+v", err, pod().Annotations)
	}
	// One that somebody set in place of trimtab's stays, and trimtab's note goes.
	s.Edit(kubetest.PodPath(0), func(o kubetest.Object) { delete(kubetest.Sub(o, "metadata", "annotations"), kube.DeletionCost) })
	if _, err := client.SetCost(t.Context(), pod(), -1); err != nil {
		t.Fatal(err)
	}
	annotate(s, kube.DeletionCost, "100")
	if _, err := client.DropCost(t.Context(), pod()); err != nil || pod().Annotations[kube.DeletionCost] != "100" || pod().Marked() {
		t.Errorf("%v: %+v", err, pod().Annotations)
	}
	n := len(s.Writes())
	if _, err := client.DropCost(t.Context(), pod()); err != nil || len(s.Writes()) != n {
		t.Errorf("nothing is to be removed: %v, %q", err, s.Writes()[n:])
	}
	s.Fail(func(r *http.Request) int {
		if r.Method == http.MethodPatch {
			return http.StatusConflict
		}
		return 0
	})
	annotate(s, kube.DeletionCost, nil)
	s.Edit(kubetest.PodPath(0), func(o kubetest.Object) { delete(kubetest.Sub(o, "metadata"), "annotations") })
	if _, err := client.SetCost(t.Context(), pod(), -1); !errors.Is(err, trimtab.ErrStale) || !strings.Contains(err.Error(), "changes all the time") {
		t.Errorf("%v", err)
	}
}
