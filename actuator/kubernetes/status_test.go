package kubernetes_test

import (
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/kube/kubetest"
)

func TestTheStatusTellsWhatTheSchedulerReserves(t *testing.T) {
	c := open(t, 1, burstable)
	l := c.limit(trimtab.CPU)
	reserved := func() *float64 { return l.Traits().Status(t.Context()).Reserved }
	if v := reserved(); v == nil || *v != 0.1 {
		t.Fatalf("%v, want the request of 100m", v)
	}
	// While a resize down is pending, the node still counts what it has accepted.
	c.Edit(kubetest.PodPath(0), func(o kubetest.Object) {
		kubetest.Sub(o, "status")["containerStatuses"].([]any)[0].(kubetest.Object)["allocatedResources"] = kubetest.Object{"cpu": "400m"}
	})
	c.sync()
	if v := reserved(); v == nil || *v != 0.4 {
		t.Errorf("%v, want the 400m that the node has accepted", v)
	}
	c.Edit(kubetest.PodPath(0), func(o kubetest.Object) {
		container := kubetest.Sub(o, "spec")["containers"].([]any)[0].(kubetest.Object)
		delete(kubetest.Sub(container, "resources"), "requests")
		kubetest.Bump(o)
	})
	c.sync()
	if v := reserved(); v != nil {
		t.Errorf("%v, want nothing without a request", *v)
	}
}
