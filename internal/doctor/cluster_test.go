package doctor

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/kube/kubetest"
	"github.com/trimtab/trimtab/internal/site"
)

func TestTheCheckOfAClusterNamesWhatIsMissing(t *testing.T) {
	server := kubetest.New(t)
	server.NoResize()
	server.Shop(2, kubetest.HalfCore)
	text := fmt.Sprintf(kubetest.ShopFile, t.TempDir(), t.TempDir(), server.Kubeconfig(), ", journal: trimtab", "act")
	cfg, err := config.Parse("cluster.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	server.Deny("patch pods/resize", "watch horizontalpodautoscalers")
	var out strings.Builder
	if err := CheckCluster(t.Context(), cfg, &out); err == nil {
		t.Error("it is said to work")
	}
	for _, want := range []string{"Kubernetes 1.37", "no pods/resize", "1.33", "patch pods/resize in namespace shop", "watch horizontalpodautoscalers.autoscaling in namespace shop"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, out.String())
		}
	}
	if got := server.Writes(); len(got) != 0 {
		t.Errorf("it wrote %q", got)
	}
}

func TestTheCheckOfAClusterNamesEachMissingRightAPIKindAndVersionInOneRun(t *testing.T) {
	for minor, want := range map[int]string{
		32: "no pods/resize: limits of running pods can be changed from Kubernetes 1.33 on, this is 1.32",
		33: "Kubernetes 1.33: a memory limit may rise and not fall again, which it may from 1.34 on",
		35: "no MutatingAdmissionPolicy: new pods can begin with start values from Kubernetes 1.36 on, this is 1.35",
	} {
		server := kubetest.New(t)
		server.Version(minor)
		server.Shop(2, kubetest.HalfCore)
		text := fmt.Sprintf(kubetest.ShopFile, t.TempDir(), t.TempDir(), server.Kubeconfig(), ", journal: trimtab", "act") +
			"exporters: {kubernetes: {start_values: trimtab, recommender: trimtab}}\n"
		cfg, err := config.Parse("cluster.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		wants := []string{want, "Kubernetes 1." + fmt.Sprint(minor)}
		denied := []string{"list pods", "watch verticalpodautoscalers", "patch pods/resize", "patch verticalpodautoscalers/status", "create events", "patch configmaps", "update configmaps", "list nodes"}
		server.Deny(denied...)
		for _, right := range denied {
			wants = append(wants, "not allowed to "+right)
		}
		var out strings.Builder
		if err := CheckCluster(t.Context(), cfg, &out); err == nil {
			t.Errorf("1.%d is said to work", minor)
		}
		for _, want := range wants {
			if !strings.Contains(out.String(), want) {
				t.Errorf("of 1.%d it does not say %q:\n%s", minor, want, out.String())
			}
		}
		if minor != 33 && strings.Contains(out.String(), "may rise and not fall") {
			t.Errorf("1.%d:\n%s", minor, out.String())
		}
	}
}

func TestTheCheckNamesTheWorkloadsOfANamespaceAndNoneOfThemIsAProblemOfTheFile(t *testing.T) {
	server := kubetest.New(t)
	server.Shop(2, kubetest.HalfCore)
	server.Put("/apis/apps/v1/namespaces/shop/statefulsets/db", `{"kind":"StatefulSet","apiVersion":"apps/v1","spec":{"template":{"spec":{"containers":[{"name":"app"}]}}}}`)
	text := fmt.Sprintf("kubernetes: {kubeconfig: %q}\npool: {cpu: 4}\nworkloads: [{match: {kubernetes: {namespace: shop}}}]\n", server.Kubeconfig())
	file := filepath.Join(t.TempDir(), "trimtab.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.LoadWith(file, nil, (&site.Objectives{}).Members())
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := CheckCluster(t.Context(), cfg, &out); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"shop/checkout is shop/Deployment/checkout, replicas: 2, by its namespace: recommended only", "shop/db: container app of shop/StatefulSet/db has no CPU limit", "good: "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, out.String())
		}
	}
}

func TestTheCheckOfAClusterNamesTheSLOsOfTheFileThatAreNotThereOrHaveNoMeaning(t *testing.T) {
	server := kubetest.New(t)
	server.Shop(2, kubetest.HalfCore)
	server.Put("/apis/pyrra.dev/v1alpha1/namespaces/shop/servicelevelobjectives/bad", `{"apiVersion": "pyrra.dev/v1alpha1", "kind": "ServiceLevelObjective", "metadata": {"name": "bad", "namespace": "shop"}, "spec": {"target": "99", "indicator": {}}}`)
	server.Deny("get slos")
	text := fmt.Sprintf(kubetest.ShopFile, t.TempDir(), t.TempDir(), server.Kubeconfig(), "", "recommend")
	for name, object := range map[string]string{"gone": "ServiceLevelObjective shop/gone", "bad": "ServiceLevelObjective shop/bad", "secret": "SLO shop/secret"} {
		text += fmt.Sprintf("  - {name: %s, mode: off, slo: {object: %s}}\n", name, object)
	}
	file := filepath.Join(t.TempDir(), "trimtab.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := CheckCluster(t.Context(), cfg, &out); err == nil {
		t.Error("the check passes")
	}
	for _, want := range []string{"gone: its SLO ServiceLevelObjective shop/gone is not there", "bad: its SLO has no meaning here: ", "secret: its SLO SLO shop/secret is not there", "not allowed to get slos.openslo.com in namespace shop"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, out.String())
		}
	}
	if _, err := site.Open(t.Context(), cfg, site.Options{Host: "h", Logger: slog.New(slog.DiscardHandler)}); err == nil || !strings.Contains(err.Error(), "was not looked up") {
		t.Errorf("it runs without an SLO: %v", err)
	}
}

func TestTheCheckOfAClusterNamesAnObjectiveThatCannotBeReadAndTheOthersAreFine(t *testing.T) {
	server := kubetest.New(t)
	server.Shop(2, kubetest.HalfCore)
	for name, indicator := range map[string]string{"cart": `{}`, "pay": `{"ratio": {"errors": {"metric": "pay_errors"}, "total": {"metric": "pay_total"}}}`} {
		server.Put("/apis/pyrra.dev/v1alpha1/namespaces/shop/servicelevelobjectives/"+name, `{"apiVersion": "pyrra.dev/v1alpha1", "kind": "ServiceLevelObjective",
			"metadata": {"name": "`+name+`", "namespace": "shop"}, "spec": {"target": "99", "window": "4w", "indicator": `+indicator+`}}`)
	}
	cfg, err := config.Parse("cluster.yaml", fmt.Appendf(nil, kubetest.ShopFile, t.TempDir(), t.TempDir(), server.Kubeconfig(), "", "recommend"))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := CheckCluster(t.Context(), cfg, &out); err != nil {
		t.Errorf("a bad object of another tool is a problem of the configuration: %v", err)
	}
	for _, want := range []string{"ServiceLevelObjective shop/cart cannot be imported: ServiceLevelObjective shop/cart:", "ServiceLevelObjective shop/pay can be imported"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, out.String())
		}
	}
}

func TestTheCheckOfAClusterSaysWhatOfTheCPUIsSet(t *testing.T) {
	const both, request, none = `{"requests":{"cpu":"100m","memory":"64Mi"},"limits":{"cpu":"500m"}}`, `{"requests":{"cpu":"250m"}}`, `{"requests":{"memory":"64Mi"}}`
	set := func(request string) string {
		return "checkout: the CPU request of container app, " + request + " in its template, is set, as its weight"
	}
	for name, test := range map[string]struct {
		resources, cap, says, not string
		works                     bool
	}{
		"a limit":                 {both, "auto", "checkout is shop/Deployment/checkout", "request", true},
		"a limit, never":          {both, "never", set("100m"), "", true},
		"no usage":                {request, "never", "checkout: no `usage` query: trimtab cannot tell when the needs do not fit, and leaves requests as they are", "", true},
		"no limit":                {request, "never", set("250m"), "", true},
		"no limit, auto":          {request, "auto", "has no CPU limit in its template: a limit that is not there is not added", "", false},
		"no limit, always":        {request, "always", "has no CPU limit in its template: a limit that is not there is not added", "", false},
		"no limit and no request": {none, "never", "has no CPU request in its template: give it one", "", false},
	} {
		server := kubetest.New(t)
		server.Shop(2, test.resources)
		text := strings.Replace(fmt.Sprintf(kubetest.ShopFile, t.TempDir(), t.TempDir(), server.Kubeconfig(), "", "act"), "default: 0.8", "default: 0.8, cap: "+test.cap, 1)
		cfg, err := config.Parse("cluster.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := CheckCluster(t.Context(), cfg, &out); (err == nil) != test.works {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.Contains(out.String(), test.says) || test.not != "" && strings.Contains(out.String(), test.not) {
			t.Errorf("%s: it says\n%s", name, out.String())
		}
		level := map[bool]string{true: FoundOK, false: FoundBad}[test.works]
		for _, found := range [][]Finding{Servers(t.Context(), cfg, Location{Host: "h"}), Examine(t.Context(), cfg, Location{Host: "h"})} {
			if !slices.ContainsFunc(found, func(f Finding) bool {
				return f.Area == "kubernetes" && f.Level == level && strings.Contains(f.Text, test.says)
			}) {
				t.Errorf("%s: nothing of it in %+v", name, found)
			}
			if slices.ContainsFunc(found, func(f Finding) bool { return f.Area == "knob" && f.Level == FoundBad }) {
				t.Errorf("%s: a knob of a cluster is looked for on this host: %+v", name, found)
			}
		}
	}
}
