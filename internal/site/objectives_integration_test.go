//go:build integration

package site

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/kube/kubetest"
)

const slothKind = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: prometheusservicelevels.sloth.slok.dev}
spec:
  group: sloth.slok.dev
  scope: Namespaced
  names: {kind: PrometheusServiceLevel, plural: prometheusservicelevels, singular: prometheusservicelevel}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

const mayReadObjectives = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: slos, namespace: shop}
rules: [{apiGroups: [sloth.slok.dev], resources: [prometheusservicelevels], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: slos, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: slos}
subjects: [{kind: User, name: trimtab, apiGroup: rbac.authorization.k8s.io}]
`

// level makes the objective of checkout so many percent.
func level(r *kubetest.Real, percent string) {
	r.Apply(fmt.Sprintf(`
apiVersion: sloth.slok.dev/v1
kind: PrometheusServiceLevel
metadata: {name: checkout, namespace: shop}
spec:
  service: checkout
  slos: [{name: requests, objective: %s, sli: {events: {errorQuery: 'sum(rate(errors[{{.window}}]))', totalQuery: 'sum(rate(requests[{{.window}}]))'}}}]
`, percent))
}

// watchSLOs runs a trimtab that looks an objective up four times a second.
func watchSLOs(t *testing.T, r *kubetest.Real) *Site {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "trimtab.yaml")
	text := fmt.Sprintf(`
storage: {path: %q}
web: {listen_address: "127.0.0.1:0"}
otlp: {grpc: "off", http: "off"}
jaeger: {grpc: "off"}
prometheus: {url: "http://127.0.0.1:1"}
kubernetes: {kubeconfig: %q}
workloads:
  - {name: checkout, mode: off, slo: {object: PrometheusServiceLevel shop/checkout}}
`, dir, r.Kubeconfig("trimtab"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o := &Objectives{}
	load := func() (*config.Config, error) { return config.LoadWith(file, o.Objects(), o.Members()) }
	cfg, err := load()
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), cfg, Options{Host: "h", Logger: slog.New(slog.DiscardHandler), Load: load, Objectives: o})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	stop := s.process.Background(t.Context(), "test", func(ctx context.Context) error {
		s.followObjectives(ctx, 250*time.Millisecond)
		return nil
	})
	t.Cleanup(func() { _ = stop() })
	return s
}

func TestOnARealAPIServerAnSLOFollowsItsObjectAndHoldsWhileThatIsAwayOrWrong(t *testing.T) {
	r := kubetest.StartReal(t, "trimtab")
	r.Apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n---" + slothKind + "---" + mayReadObjectives)
	r.Until("the kind is there", func() bool { return strings.Contains(r.Kubectl("api-resources"), "prometheusservicelevels") })
	level(r, "99.5")
	s := watchSLOs(t, r)
	target := func() float64 { return s.Config().Workloads[0].SLO.Target() }
	if got := target(); got != 0.995 {
		t.Fatalf("the SLO is %v, want what the object says", got)
	}
	level(r, "97")
	r.Until("the SLO is what the object says now", func() bool { return target() == 0.97 })

	level(r, "100") // which no allocation keeps
	reloads := func() string { return s.objectiveTrouble() }
	r.Until("it is told that this has no meaning", func() bool { return strings.Contains(reloads(), "no meaning here") })
	if got := target(); got != 0.97 {
		t.Errorf("the SLO is %v while the object is wrong, want what it was", got)
	}
	if err := s.Reload(t.Context()); err != nil || target() != 0.97 {
		t.Errorf("a reload while the object is wrong: %v, SLO %v", err, target())
	}
	r.Kubectl("-n", "shop", "delete", "prometheusservicelevels", "checkout")
	r.Until("it is told that the object is away", func() bool {
		return strings.Contains(reloads(), "not found") || strings.Contains(reloads(), "not exist")
	})
	if got := target(); got != 0.97 {
		t.Errorf("the SLO is %v while the object is away, want what it was", got)
	}
	level(r, "96")
	r.Until("the SLO follows the object that came again", func() bool { return target() == 0.96 && reloads() == "" })
}

// objectiveTrouble is why the object of the only workload has no answer.
func (s *Site) objectiveTrouble() string {
	o := s.options.Objectives
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, why := range o.troubles {
		return why
	}
	return ""
}
