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
	if code := Main(t.Context(), []string{"import", "slo", "--kubernetes", "shop", "--kubeconfig", server.Kubeconfig()}, &out, &out); code == exitDone || !strings.Contains(out.String(), "ServiceLevelObjective shop/cart:") || !strings.Contains(out.String(), "name: checkout") {
		t.Errorf("a bad object is not told by name, or hurts the others: code %d: %s", code, out.String())
	}
	out.Reset()
	if code := Main(t.Context(), []string{"import", "slo"}, &out, &out); code == exitDone || !strings.Contains(out.String(), "--kubernetes=NAMESPACE") {
		t.Errorf("code %d: %s", code, out.String())
	}
	if got := server.Writes(); len(got) != 0 {
		t.Errorf("it wrote %q", got)
	}
}

func TestObjectivesThatOpenSLOKeepsInTheClusterAreImportedWithTheirIndicators(t *testing.T) {
	server := kubetest.New(t)
	server.Put("/apis/openslo.com/v1/namespaces/shop/slos/cart", `{"apiVersion": "openslo.com/v1", "kind": "SLO", "metadata": {"name": "cart", "namespace": "shop"},
		"spec": {"service": "cart", "indicatorRef": "errors", "budgetingMethod": "Occurrences", "objectives": [{"target": 0.99}]}}`)
	server.Put("/apis/openslo.com/v1/namespaces/shop/slis/errors", `{"apiVersion": "openslo.com/v1", "kind": "SLI", "metadata": {"name": "errors", "namespace": "shop"},
		"spec": {"ratioMetric": {"counter": true, "bad": {"metricSource": {"type": "Prometheus", "spec": {"query": "cart_errors"}}}, "total": {"metricSource": {"type": "Prometheus", "spec": {"query": "cart_total"}}}}}}`)
	var out bytes.Buffer
	if code := Main(t.Context(), []string{"import", "slo", "--kubernetes", "shop", "--kubeconfig", server.Kubeconfig()}, &out, &out); code != exitDone {
		t.Fatalf("code %d: %s", code, out.String())
	}
	for _, want := range []string{"SLO shop/cart", "name: cart", "performance: 0.99", "cart_errors[1m]"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, out.String())
		}
	}
}
