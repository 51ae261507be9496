package kubernetes_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/kube/kubetest"
)

// owned puts a workload and a pod of it, whose container has these resources.
func owned(s *kubetest.Server, path, workload, pod, kind, owner, resources string) {
	if workload != "" {
		s.Put(path, workload)
	}
	uid := kubetest.Sub(s.Get(path), "metadata")["uid"]
	s.Put(pod, fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"generation":1,"ownerReferences":[{"kind":%q,"name":%q,"uid":%q,"controller":true}]},"spec":{"nodeName":"n1","containers":[{"name":"app","resources":%s}]}}`, kind, owner, uid, resources))
	s.Kubelet(pod)
}

func TestThePodsOfADaemonSetAreResizedByTheirRequests(t *testing.T) {
	s := kubetest.New(t)
	s.Shop(1, burstable)
	const pod = "/api/v1/namespaces/shop/pods/log-abcde"
	owned(s, "/apis/apps/v1/namespaces/shop/daemonsets/log", `{"kind":"DaemonSet","apiVersion":"apps/v1","metadata":{"generation":1},"spec":{"template":{"spec":{"containers":[{"name":"app","resources":`+openEnded+`}]}}},"status":{"observedGeneration":1,"desiredNumberScheduled":1,"updatedNumberScheduled":1}}`,
		pod, "DaemonSet", "log", openEnded)
	c := watch(t, s)
	c.rules.Weighs = true
	k := c.knob(c.pods, actuator.Location{Path: "shop/DaemonSet/log/app/*"}, trimtab.CPU)
	if err := write(t.Context(), k, 0.4); err != nil {
		t.Fatal(err)
	}
	if got := kubetest.Sub(kubetest.Container(s.Get(pod), "app"), "resources", "requests")["cpu"]; got != "400m" {
		t.Errorf("its request is %v, want 400m", got)
	}
}

func TestARolloutIsScaledAndItsPodsAreResizedAndNothingFallsWhileItRuns(t *testing.T) {
	s := kubetest.New(t)
	s.Shop(1, burstable)
	const (
		rollout = "/apis/argoproj.io/v1alpha1/namespaces/shop/rollouts/cart"
		set     = "/apis/apps/v1/namespaces/shop/replicasets/cart-5c8"
		pod     = "/api/v1/namespaces/shop/pods/cart-5c8-aa"
	)
	s.Put(rollout, `{"kind":"Rollout","apiVersion":"argoproj.io/v1alpha1","metadata":{"generation":1},"spec":{"replicas":3,"selector":{"matchLabels":{"app":"cart"}},"template":{"spec":{"containers":[{"name":"app","resources":`+burstable+`}]}}},"status":{"observedGeneration":"1","phase":"Healthy","replicas":3,"updatedReplicas":3,"readyReplicas":3,"availableReplicas":3}}`)
	s.Put(set, fmt.Sprintf(`{"kind":"ReplicaSet","apiVersion":"apps/v1","metadata":{"ownerReferences":[{"kind":"Rollout","name":"cart","uid":%q,"controller":true}]}}`, kubetest.Sub(s.Get(rollout), "metadata")["uid"]))
	owned(s, set, "", pod, "ReplicaSet", "cart-5c8", burstable)
	c := watch(t, s)
	number := c.knob(c.scales, actuator.Location{Path: "shop/Rollout/cart/*"}, trimtab.Replicas)
	if got := read(t, number); got != 3 {
		t.Fatalf("it has %v pods", got)
	}
	if err := write(t.Context(), c.knob(c.pods, actuator.Location{Path: "shop/Rollout/cart/app/*"}, trimtab.CPU), 0.4); err != nil {
		t.Fatal(err)
	}
	if got := kubetest.Sub(kubetest.Container(s.Get(pod), "app"), "resources", "limits")["cpu"]; got != "400m" {
		t.Errorf("its limit is %v, want 400m", got)
	}
	phase := func(to string) {
		s.Edit(rollout, func(o kubetest.Object) { kubetest.Sub(o, "status")["phase"] = to })
		eventually(t, "the phase is seen", func() bool {
			status := number.Traits().Status(t.Context())
			return status != nil && status.Rollout == (to == "Paused")
		})
	}
	phase("Paused")
	if err := write(t.Context(), number, 2); !errors.Is(err, trimtab.ErrRefused) || !strings.Contains(err.Error(), "its phase is Paused") {
		t.Errorf("its number falls while it is rolled out: %v", err)
	}
	phase("Healthy")
	if err := write(t.Context(), number, 4); err != nil || kubetest.Sub(s.Get(rollout), "spec")["replicas"] != float64(4) {
		t.Errorf("%v, replicas %v", err, kubetest.Sub(s.Get(rollout), "spec")["replicas"])
	}
}
