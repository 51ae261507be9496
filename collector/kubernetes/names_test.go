package kubernetes_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/kubernetes"
	"github.com/trimtab/trimtab/internal/kube"
	"github.com/trimtab/trimtab/internal/kube/kubetest"
)

const uid = "0f8fad5b-d9cb-469f-a165-70867728950e"

// cluster has checkout, and beside it checkout-api, whose name begins with the same.
func cluster(t *testing.T) (*kubetest.Server, *kubernetes.Names) {
	t.Helper()
	s := kubetest.New(t)
	s.Shop(2, `{"limits":{"cpu":"500m"}}`)
	s.Put("/apis/apps/v1/namespaces/shop/statefulsets/checkout-7d9f", `{"kind":"StatefulSet","spec":{"replicas":1}}`)
	of := kubetest.Sub(s.Get("/apis/apps/v1/namespaces/shop/statefulsets/checkout-7d9f"), "metadata")["uid"]
	s.Put("/api/v1/namespaces/shop/pods/checkout-7d9f-0", fmt.Sprintf(`{"kind":"Pod","metadata":{"labels":{"app.kubernetes.io/name":"store"},"ownerReferences":[{"kind":"StatefulSet","name":"checkout-7d9f","uid":%q,"controller":true}]},"spec":{"hostNetwork":true,"containers":[{"name":"app"}]},"status":{"podIP":"10.0.0.9"}}`, of))
	s.Edit(kubetest.PodPath(0), func(o kubetest.Object) {
		kubetest.Sub(o, "metadata")["uid"] = uid
		kubetest.Sub(o, "status")["podIP"] = "10.1.0.7"
	})
	client, err := kube.Open(kube.Config{Kubeconfig: s.Kubeconfig()})
	if err != nil {
		t.Fatal(err)
	}
	c := kube.Watch(t.Context(), client, []string{"shop"}, nil)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s, kubernetes.New(c)
}

func TestEveryNameOfAWorkloadResolvesToItAndTwoAreNeverMixed(t *testing.T) {
	_, names := cluster(t)
	checkout, set := kube.Ref{Namespace: "shop", Kind: kube.Deployment, Name: "checkout"}, kube.Ref{Namespace: "shop", Kind: kube.StatefulSet, Name: "checkout-7d9f"}
	span := func(attrs ...string) func() (kube.Ref, error) {
		var all []trimtab.Attr
		for i := 0; i < len(attrs); i += 2 {
			all = append(all, trimtab.Attr{Key: attrs[i], Value: attrs[i+1]})
		}
		return func() (kube.Ref, error) { return names.OfSpan(all) }
	}
	for name, test := range map[string]struct {
		ask  func() (kube.Ref, error)
		want kube.Ref
	}{
		"deployment":             {span("k8s.namespace.name", "shop", "k8s.deployment.name", "checkout"), checkout},
		"statefulset":            {span("k8s.namespace.name", "shop", "k8s.statefulset.name", "checkout-7d9f"), set},
		"pod uid":                {span("k8s.pod.uid", uid), checkout},
		"pod name":               {span("k8s.namespace.name", "shop", "k8s.pod.name", "checkout-7d9f-ab"), checkout},
		"the other's pod name":   {span("k8s.namespace.name", "shop", "k8s.pod.name", "checkout-7d9f-0"), set},
		"pod ip":                 {span("k8s.pod.ip", "10.1.0.7"), checkout},
		"ip of a host":           {span("k8s.pod.ip", "10.0.0.9"), kube.Ref{}},
		"service by label":       {span("service.name", "store", "k8s.namespace.name", "shop"), set},
		"service by name":        {span("service.name", "checkout", "service.namespace", "shop"), checkout},
		"service anywhere":       {span("service.name", "checkout"), kube.Ref{}},
		"a deployment elsewhere": {span("k8s.namespace.name", "other", "k8s.deployment.name", "checkout"), kube.Ref{}},
		"nothing":                {span("host.name", "h"), kube.Ref{}},
	} {
		if got, err := test.ask(); got != test.want || (err == nil) != (test.want != kube.Ref{}) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, test.want)
		}
	}
}

func TestAPodNameThatComesAgainIsAnotherPod(t *testing.T) {
	s, names := cluster(t)
	path := "/api/v1/namespaces/shop/pods/checkout-7d9f-0"
	old := kubetest.Sub(s.Get(path), "metadata")["uid"].(string)
	owner := kubetest.Sub(s.Get("/apis/apps/v1/namespaces/shop/statefulsets/checkout-7d9f"), "metadata")["uid"]
	s.Delete(path)
	s.Put(path, fmt.Sprintf(`{"kind":"Pod","metadata":{"ownerReferences":[{"kind":"StatefulSet","name":"checkout-7d9f","uid":%q,"controller":true}]}}`, owner))
	next := kubetest.Sub(s.Get(path), "metadata")["uid"].(string)
	deadline := time.After(20 * time.Second)
	for {
		_, gone := names.OfSpan([]trimtab.Attr{{Key: "k8s.pod.uid", Value: old}})
		_, err := names.OfSpan([]trimtab.Attr{{Key: "k8s.pod.uid", Value: next}})
		if gone != nil && err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("the old uid %v, the new one %v", gone, err)
		case <-time.After(2 * time.Millisecond):
		}
	}
}
