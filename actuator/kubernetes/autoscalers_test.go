package kubernetes_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/kube/kubetest"
)

// Item 2 of the acceptance list.
func TestWithinAHeartbeatOfTheAppearanceOfAnAutoscalerItsTargetGetsNoWriteAndTheHoldingNamesIt(t *testing.T) {
	t.Parallel()
	target := `{"apiVersion":"apps/v1","kind":"Deployment","name":"checkout"}`
	for name, test := range map[string]struct{ path, object, want, resource string }{
		"an HPA":                {"/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers/h", `{"spec":{"scaleTargetRef":` + target + `}}`, "HorizontalPodAutoscaler shop/h", trimtab.Replicas},
		"a ScaledObject":        {"/apis/keda.sh/v1alpha1/namespaces/shop/scaledobjects/s", `{"spec":{"scaleTargetRef":{"name":"checkout"}}}`, "ScaledObject shop/s", trimtab.Replicas},
		"a paused ScaledObject": {"/apis/keda.sh/v1alpha1/namespaces/shop/scaledobjects/s", `{"metadata":{"annotations":{"autoscaling.keda.sh/paused":"true"}},"spec":{"scaleTargetRef":{"name":"checkout"}}}`, "ScaledObject shop/s", trimtab.Replicas},
		"a VPA":                 {"/apis/autoscaling.k8s.io/v1/namespaces/shop/verticalpodautoscalers/v", `{"spec":{"targetRef":` + target + `}}`, "VerticalPodAutoscaler shop/v", trimtab.CPU},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, 3, burstable)
			a := c.runs(nil)
			o := both[test.resource]
			a.Tick(t.Context())
			if k := stateOf(a, o.resource, o.instance); k.ReadOnly != "" || k.Problem != "" {
				t.Fatalf("before: %+v", k)
			}
			_, changes := c.view.MarkOf("shop", firstPod)
			c.Put(test.path, test.object)
			eventually(t, "the watch has it", func() bool { _, now := c.view.MarkOf("shop", firstPod); return now != changes })
			a.Tick(t.Context()) // one heartbeat
			if k := stateOf(a, o.resource, o.instance); !strings.Contains(k.ReadOnly, test.want) {
				t.Errorf("barred by %q, want %q named", k.ReadOnly, test.want)
			}
			got := a.Handle(t.Context(), asks(1, o))
			if statusOf(got) != trimtab.Refused || !strings.Contains(got.Results[0].Reason, test.want) || len(c.Writes()) != 0 {
				t.Errorf("a plan: %+v, writes %q", got, c.Writes())
			}
		})
	}
}

// booked gives an object an entry of managedFields for the number of pods, or for the CPU of the container
// app, and waits until the watch has it.
func (c *cluster) booked(path, manager, subresource string) {
	c.t.Helper()
	fields := `{"f:spec":{"f:replicas":{}}}`
	if path != kubetest.Deployment {
		fields = `{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{"f:resources":{"f:limits":{"f:cpu":{}}}}}}}`
	}
	c.Edit(path, func(o kubetest.Object) {
		entry := kubetest.Parse(c.t, fmt.Sprintf(`{"manager":%q,"subresource":%q,"fieldsV1":%s}`, manager, subresource, fields))
		kubetest.Sub(o, "metadata")["managedFields"] = []any{entry}
	})
	version := fmt.Sprint(kubetest.Sub(c.Get(path), "metadata")["resourceVersion"])
	eventually(c.t, "the entry is seen", func() bool {
		p, gone := c.view.PodOf("shop", firstPod, "")
		w, err := c.view.WorkloadOf(checkout)
		return gone == nil && err == nil && (p.ResourceVersion == version || w.ResourceVersion == version)
	})
}

func TestWhatAControllerSetLastByManagedFieldsIsOnlyRecommendedAndItIsNamed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ resource, manager, subresource, want string }{
		"a scaler with a product": {trimtab.Replicas, "datadog-cluster-agent", "scale", "DatadogPodAutoscaler sets its replicas (field manager datadog-cluster-agent)"},
		"a scaler":                {trimtab.Replicas, "acme", "scale", "controller acme sets its replicas"},
		"a resizer":               {trimtab.CPU, "acme", "resize", "controller acme sets its cpu"},
		"a person who scales":     {trimtab.Replicas, "kubectl", "scale", ""},
		"a person who resizes":    {trimtab.CPU, "kubectl-patch", "resize", ""},
		"whoever deployed it":     {trimtab.Replicas, "acme-deployer", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, 3, burstable)
			a, o, path := c.runs(nil), both[test.resource], kubetest.PodPath(0)
			if test.resource == trimtab.Replicas {
				path = kubetest.Deployment
			}
			c.booked(path, test.manager, test.subresource)
			a.Tick(t.Context())
			k, got := stateOf(a, o.resource, o.instance), a.Handle(t.Context(), asks(1, o))
			if test.want == "" {
				if k.ReadOnly != "" || statusOf(got) != trimtab.Pending {
					t.Errorf("%+v, %+v", k, got)
				}
				return
			}
			if !strings.HasPrefix(k.ReadOnly, test.want) || statusOf(got) != trimtab.Refused || len(c.Writes()) != 0 {
				t.Errorf("barred by %q, want %q; %+v, writes %q", k.ReadOnly, test.want, got, c.Writes())
			}
			c.rules.TakeOver = []string{test.manager}
			if got := c.runs(func(config *actuator.Config) { config.Host = "h2" }).Handle(t.Context(), asksOn("h2", o)); statusOf(got) != trimtab.Pending {
				t.Errorf("taken over: %+v", got)
			}
		})
	}
}

// asksOn is asks for another host.
func asksOn(host string, o order) *trimtab.Plan {
	p := asks(1, o)
	p.Actions[0].Host = host
	return p
}

func TestWhoChangedAValueThatTrimtabSetIsNamed(t *testing.T) {
	t.Parallel()
	c := open(t, 3, burstable)
	a, o := c.runs(nil), both[trimtab.Replicas]
	if got := statusOf(a.Handle(t.Context(), asks(1, o))); got != trimtab.Pending {
		t.Fatalf("status %v", got)
	}
	c.settle()
	c.foreign(trimtab.Replicas, 2)
	c.booked(kubetest.Deployment, "kubectl", "scale")
	a.Tick(t.Context())
	if k := stateOf(a, o.resource, o.instance); !strings.HasPrefix(k.Problem, "changed by somebody else (kubectl) to 2") {
		t.Errorf("%+v", k)
	}
}
