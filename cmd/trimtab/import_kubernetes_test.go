package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/trimtab/trimtab/internal/kube/kubetest"
)

func TestObjectivesThatSlothAndPyrraKeepInTheClusterAreImported(t *testing.T) {
	server := kubetest.New(t)
	server.Put("/apis/sloth.slok.dev/v1/namespaces/shop/prometheusservicelevels/checkout", `{"apiVersion": "sloth.slok.dev/v1", "kind": "PrometheusServiceLevel",
		"metadata": {"name": "checkout", "namespace": "shop"}, "spec": {"service": "checkout", "slos": [{"name": "availability", "objective": 99.9,
		"sli": {"events": {"errorQuery": "sum(rate(errors[{{.window}}]))", "totalQuery": "sum(rate(total[{{.window}}]))"}}, "alerting": {}}]}}`)
	server.Put("/apis/pyrra.dev/v1alpha1/namespaces/shop/servicelevelobjectives/cart", `{"apiVersion": "pyrra.dev/v1alpha1", "kind": "ServiceLevelObjective",
		"metadata": {"name": "cart", "namespace": "shop"}, "spec": {"target": "99", "window": "4w",
		"indicator": {"ratio": {"errors": {"metric": "cart_errors"}, "total": {"metric": "cart_total"}}}}}`)
	var out bytes.Buffer
	if code := Main(t.Context(), []string{"import", "slo", "--kubernetes", "shop", "--kubeconfig", server.Kubeconfig()}, &out, &out); code != exitDone {
		t.Fatalf("code %d: %s", code, out.String())
	}
	for _, want := range []string{"PrometheusServiceLevel shop/checkout", "name: checkout", "sum(rate(errors[1m]))", "name: cart", "cart_errors"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, out.String())
		}
	}
	server.Put("/apis/pyrra.dev/v1alpha1/namespaces/shop/servicelevelobjectives/cart", `{"apiVersion": "pyrra.dev/v1alpha1", "kind": "ServiceLevelObjective",
		"metadata": {"name": "cart", "namespace": "shop"}, "spec": {"target": "99", "window": "4w", "indicator": {}}}`)
	out.Reset()
	if code := Main(t.Context(), []string{"import", "slo", "--kubernetes", "shop", "--kubeconfig", server.Kubeconfig()}, &out, &out); code == exitDone || !strings.Contains(out.String(), "ServiceLevelObjective shop/cart:") {
		t.Errorf("code %d: %s", code, out.String())
	}
	out.Reset()
	if code := Main(t.Context(), []string{"import", "slo"}, &out, &out); code == exitDone || !strings.Contains(out.String(), "--kubernetes=NAMESPACE") {
		t.Errorf("code %d: %s", code, out.String())
	}
	if got := server.Writes(); len(got) != 0 {
		t.Errorf("it wrote %q", got)
	}
}
