package kubernetes_test

import (
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
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
