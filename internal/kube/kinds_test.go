package kube_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/trimtab/trimtab/internal/kube"
	"github.com/trimtab/trimtab/internal/kube/kubetest"
)

// kinds watches a server that has a DaemonSet "log" and a Rollout "cart", each with one pod.
func kinds(t *testing.T) (*kubetest.Server, *kube.Cluster) {
	t.Helper()
	s := kubetest.New(t)
	s.Put(kubetest.Node, `{"kind":"Node","apiVersion":"v1","status":{"allocatable":{"cpu":"8"}}}`)
	s.Put(log, `{"kind":"DaemonSet","apiVersion":"apps/v1","metadata":{"generation":1},"spec":{"template":{"spec":{"containers":[{"name":"app"}]}}},"status":{"observedGeneration":1,"desiredNumberScheduled":3,"updatedNumberScheduled":3}}`)
	s.Put(cart, `{"kind":"Rollout","apiVersion":"argoproj.io/v1alpha1","metadata":{"generation":3},"spec":{"replicas":2,"selector":{"matchLabels":{"app":"cart"}},"template":{"spec":{"containers":[{"name":"app"}]}}},"status":{"observedGeneration":"3","phase":"Healthy","replicas":2,"updatedReplicas":2}}`)
	uid := func(path string) any { return kubetest.Sub(s.Get(path), "metadata")["uid"] }
	const set = "/apis/apps/v1/namespaces/shop/replicasets/cart-7d9f"
	s.Put(set, fmt.Sprintf(`{"kind":"ReplicaSet","apiVersion":"apps/v1","metadata":{"ownerReferences":[{"kind":"Rollout","name":"cart","uid":%q,"controller":true}]}}`, uid(cart)))
	pod := func(name, kind, owner string, uid any) {
		s.Put("/api/v1/namespaces/shop/pods/"+name, fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"generation":1,"ownerReferences":[{"kind":%q,"name":%q,"uid":%q,"controller":true}]},"spec":{"nodeName":"n1","containers":[{"name":"app"}]}}`, kind, owner, uid))
	}
	pod("log-abcde", "DaemonSet", "log", uid(log))
	pod("cart-7d9f-aa", "ReplicaSet", "cart-7d9f", uid(set))
	client, err := kube.Open(kube.Config{Kubeconfig: s.Kubeconfig()})
	if err != nil {
		t.Fatal(err)
	}
	c := kube.Watch(t.Context(), client, []string{"shop"}, nil, kube.DaemonSet, kube.Rollout)
	t.Cleanup(func() { _ = c.Close() })
	if err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s, c
}

const (
	log  = "/apis/apps/v1/namespaces/shop/daemonsets/log"
	cart = "/apis/argoproj.io/v1alpha1/namespaces/shop/rollouts/cart"
)

func TestPodsOfADaemonSetAndOfARolloutAreThoseOfTheirWorkloadAndItsRolloutIsSeen(t *testing.T) {
	s, c := kinds(t)
	for ref, test := range map[kube.Ref]struct {
		pod, path string
		number    int64
		change    func(status kubetest.Object)
		want      string
	}{
		{Namespace: "shop", Kind: kube.DaemonSet, Name: "log"}: {"log-abcde", log, 3, func(o kubetest.Object) { o["updatedNumberScheduled"] = 1 }, "1 of 3 pods"},
		{Namespace: "shop", Kind: kube.Rollout, Name: "cart"}:  {"cart-7d9f-aa", cart, 2, func(o kubetest.Object) { o["phase"] = "Paused" }, "its phase is Paused"},
	} {
		eventually(t, "its pod is there", func() bool {
			pods, err := c.PodsOf(ref)
			return err == nil && len(pods) == 1 && pods[0].Name == test.pod
		})
		w, err := c.WorkloadOf(ref)
		if err != nil || w.Replicas() != test.number || c.Rollout(w) != "" {
			t.Fatalf("%s: %+v, %v, rollout %q", ref, w, err, c.Rollout(w))
		}
		s.Edit(test.path, func(o kubetest.Object) { test.change(kubetest.Sub(o, "status")) })
		eventually(t, "its rollout is seen", func() bool {
			w, err := c.WorkloadOf(ref)
			return err == nil && strings.Contains(c.Rollout(w), test.want)
		})
	}
}

func TestAnAutoscalerOfARolloutIsItsOwnAndOneOfADeploymentOfTheNameIsNot(t *testing.T) {
	s, c := kinds(t)
	ref := kube.Ref{Namespace: "shop", Kind: kube.Rollout, Name: "cart"}
	const at = "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers/"
	s.Put(at+"other", `{"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v2","spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"cart"}}}`)
	if by, err := c.Others(ref, "app", "replicas", false); err != nil || by != "" {
		t.Errorf("%q, %v", by, err)
	}
	s.Put(at+"cart", `{"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v2","spec":{"scaleTargetRef":{"apiVersion":"argoproj.io/v1alpha1","kind":"Rollout","name":"cart"}}}`)
	eventually(t, "its HPA is found", func() bool {
		by, err := c.Others(ref, "app", "replicas", false)
		return err == nil && strings.Contains(by, "HorizontalPodAutoscaler shop/cart")
	})
}
