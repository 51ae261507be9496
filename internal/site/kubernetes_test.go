package site

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator/kinds"
	"github.com/trimtab/trimtab/agent/knobs"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/kube/kubetest"
)

// clusterFile is a Deployment of which nothing is known, and a default that may raise it.
const clusterFile = `
pool: {cpu: 6, unit: 0.01, step: 1}
objective: egalitarian
round: 1s
lease: 10s
guard: {dead_band: 0.02, reversal_window: 0s}
analyzer: {report_interval: 500ms, partitions: 1}
actuator: {lock_dir: %q}
storage: {path: %q}
web: {listen_address: "127.0.0.1:0"}
otlp: {grpc: "off", http: "off"}
jaeger: {grpc: "off"}
kubernetes: {kubeconfig: %q%s}
workloads:
  - name: checkout
    slo: {latency: 100ms, fraction: 0.95}
    match: {kubernetes: {namespace: shop, deployment: checkout}}
    knob: {cpu: {min: 0.1, max: 2, default: 0.8}}
    mode: %s
`

// inCluster runs the whole pipeline outside of a cluster of two pods with 500m each.
func inCluster(t *testing.T, s *kubetest.Server, mode, more string) *Site {
	t.Helper()
	return inClusterBy(t, fmt.Sprintf(clusterFile, t.TempDir(), t.TempDir(), s.Kubeconfig(), more, mode))
}

func inClusterBy(t *testing.T, text string) *Site {
	t.Helper()
	cfg, err := config.Parse("cluster.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	running, err := Open(t.Context(), cfg, Options{Host: "h", Logger: slog.New(slog.DiscardHandler), Watchdog: []string{"true"}})
	if err != nil {
		t.Fatal(err)
	}
	return running
}

// plans returns the plans that have actions, as they come.
func plans(t *testing.T, s *Site) <-chan *trimtab.Plan {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("not ready: %v", s.NotReady())
			if c := s.cluster.Load(); c != nil {
				t.Logf("not told: %v", c.Missing())
			}
		}
	})
	out := make(chan *trimtab.Plan, 100)
	watch, err := s.Bus().Subscribe(t.Context(), bus.Subscription{Kind: trimtab.KindHolding, Handle: func(_ context.Context, d bus.Delivery) error {
		if h, ok := d.Value.(*trimtab.Holding); ok && t.Context().Err() == nil {
			t.Logf("holding %+v", h)
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watch)
	stop, err := s.Bus().Subscribe(t.Context(), bus.Subscription{Kind: trimtab.KindPlan, Key: "default", Handle: func(_ context.Context, d bus.Delivery) error {
		p, ok := d.Value.(*trimtab.Plan)
		if ok && len(p.Actions) == 0 && t.Context().Err() == nil {
			t.Logf("a plan without actions: held %+v, unmoved %+v", p.Held, p.Unmoved)
		}
		if ok && len(p.Actions) > 0 {
			select {
			case out <- p:
			default:
			}
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return out
}

func limitOf(s *kubetest.Server, pod int) string {
	app := kubetest.Container(s.Get(kubetest.PodPath(pod)), "app")
	return fmt.Sprint(kubetest.Sub(app, "resources", "limits")["cpu"])
}

const halfCore = `{"requests":{"cpu":"100m"},"limits":{"cpu":"500m"}}`

func TestInModeRecommendTheClusterGetsNoWriteAndADeploymentGetsAdvice(t *testing.T) {
	server := kubetest.New(t)
	server.Shop(2, halfCore)
	s := inCluster(t, server, "recommend", "")
	defer func() {
		server.EndWatches()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if got := server.Writes(); len(got) != 0 {
			t.Errorf("it wrote %q", got)
		}
	}()
	select {
	case p := <-plans(t, s):
		for _, a := range p.Actions {
			if a.Workload != "checkout" || !strings.HasPrefix(a.Instance, "checkout-7d9f-a") || a.Mode != trimtab.Recommend || !(a.Set.Value > 0.5) {
				t.Errorf("action %+v", a)
			}
		}
	case <-time.After(20 * time.Second):
		t.Fatal("no advice within 20 s")
	}
}

func TestInModeActThePodsGetWhatWasDecidedAndTheirLimitsBackAtTheEnd(t *testing.T) {
	server := kubetest.New(t)
	server.Shop(2, halfCore)
	s := inCluster(t, server, "act", ", journal: trimtab")
	deadline := time.After(30 * time.Second)
	for limitOf(server, 0) == "500m" || limitOf(server, 1) == "500m" {
		select {
		case <-deadline:
			t.Fatalf("limits are %s and %s after 30 s", limitOf(server, 0), limitOf(server, 1))
		case <-time.After(20 * time.Millisecond):
			server.Kubelet(kubetest.PodPath(0))
			server.Kubelet(kubetest.PodPath(1))
		}
	}
	if server.Get("/api/v1/namespaces/trimtab/configmaps/trimtab-journal-default") == nil {
		t.Error("there is no journal in the cluster")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for pod := range 2 {
		if got := limitOf(server, pod); got != "500m" {
			t.Errorf("pod %d has %s after the end", pod, got)
		}
	}
	for _, w := range server.Writes() {
		if !strings.HasSuffix(w, "/resize") && !strings.Contains(w, "/configmaps") && !strings.HasSuffix(w, "/events") {
			t.Errorf("it wrote %s", w)
		}
	}
}

func TestARestoreFromTheClusterPutsLimitsBackAndKeepsARunningTrimtabFromWritingAgain(t *testing.T) {
	server := kubetest.New(t)
	server.Shop(2, halfCore)
	s := inCluster(t, server, "act", ", journal: trimtab")
	defer s.Close() // its journal is lost, which it says
	within := time.After(30 * time.Second)
	for limitOf(server, 0) == "500m" || limitOf(server, 1) == "500m" {
		select {
		case <-within:
			t.Fatalf("limits are %s and %s after 30 s", limitOf(server, 0), limitOf(server, 1))
		case <-time.After(20 * time.Millisecond):
		}
	}
	if _, err := RestoreCluster(t.Context(), s.Config()); err != nil {
		t.Fatal(err)
	}
	for range 3 { // rounds of a trimtab that would raise them again
		for pod := range 2 {
			if got := limitOf(server, pod); got != "500m" {
				t.Errorf("pod %d has %s after the restore", pod, got)
			}
		}
		time.Sleep(time.Second)
	}
}

func TestTheCheckOfAClusterNamesWhatIsMissing(t *testing.T) {
	server := kubetest.New(t)
	server.NoResize()
	server.Shop(2, halfCore)
	text := fmt.Sprintf(clusterFile, t.TempDir(), t.TempDir(), server.Kubeconfig(), ", journal: trimtab", "act")
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
		server.Shop(2, halfCore)
		text := fmt.Sprintf(clusterFile, t.TempDir(), t.TempDir(), server.Kubeconfig(), ", journal: trimtab", "act") +
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

func TestTheCheckOfAClusterNamesTheSLOsOfTheFileThatAreNotThereOrHaveNoMeaning(t *testing.T) {
	server := kubetest.New(t)
	server.Shop(2, halfCore)
	server.Put("/apis/pyrra.dev/v1alpha1/namespaces/shop/servicelevelobjectives/bad", `{"apiVersion": "pyrra.dev/v1alpha1", "kind": "ServiceLevelObjective", "metadata": {"name": "bad", "namespace": "shop"}, "spec": {"target": "99", "indicator": {}}}`)
	server.Deny("get slos")
	text := fmt.Sprintf(clusterFile, t.TempDir(), t.TempDir(), server.Kubeconfig(), "", "recommend")
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
	if _, err := Open(t.Context(), cfg, Options{Host: "h", Logger: slog.New(slog.DiscardHandler)}); err == nil || !strings.Contains(err.Error(), "was not looked up") {
		t.Errorf("it runs without an SLO: %v", err)
	}
}

func TestTheCheckOfAClusterNamesAnObjectiveThatCannotBeReadAndTheOthersAreFine(t *testing.T) {
	server := kubetest.New(t)
	server.Shop(2, halfCore)
	for name, indicator := range map[string]string{"cart": `{}`, "pay": `{"ratio": {"errors": {"metric": "pay_errors"}, "total": {"metric": "pay_total"}}}`} {
		server.Put("/apis/pyrra.dev/v1alpha1/namespaces/shop/servicelevelobjectives/"+name, `{"apiVersion": "pyrra.dev/v1alpha1", "kind": "ServiceLevelObjective",
			"metadata": {"name": "`+name+`", "namespace": "shop"}, "spec": {"target": "99", "window": "4w", "indicator": `+indicator+`}}`)
	}
	cfg, err := config.Parse("cluster.yaml", fmt.Appendf(nil, clusterFile, t.TempDir(), t.TempDir(), server.Kubeconfig(), "", "recommend"))
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

func TestSpansThatNameTheirPodInAnyWayAreThoseOfItsWorkload(t *testing.T) {
	server := kubetest.New(t)
	server.Shop(2, halfCore)
	s := inCluster(t, server, "recommend", "")
	defer func() {
		server.EndWatches()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	deadline := time.After(20 * time.Second)
	for s.cluster.Load() == nil || s.cluster.Load().Ready(t.Context()) != nil {
		select {
		case <-deadline:
			t.Fatal("the cluster is not seen")
		case <-time.After(20 * time.Millisecond):
		}
	}
	uid := fmt.Sprint(kubetest.Sub(server.Get(kubetest.PodPath(0)), "metadata")["uid"])
	for _, attrs := range [][]trimtab.Attr{
		{{Key: "k8s.namespace.name", Value: "shop"}, {Key: "k8s.deployment.name", Value: "checkout"}},
		{{Key: "k8s.pod.uid", Value: uid}},
		{{Key: "k8s.namespace.name", Value: "shop"}, {Key: "k8s.pod.name", Value: "checkout-7d9f-aa"}},
		{{Key: "service.namespace", Value: "shop"}, {Key: "service.name", Value: "checkout"}},
	} {
		more, settled := s.nameSenders(attrs)
		all := slices.Concat(more, attrs)
		for _, want := range []trimtab.Attr{{Key: "k8s.namespace.name", Value: "shop"}, {Key: "k8s.deployment.name", Value: "checkout"}} {
			if !settled || !slices.Contains(all, want) {
				t.Errorf("%v: %v, settled %v", attrs, more, settled)
			}
		}
	}
	if more, settled := s.nameSenders([]trimtab.Attr{{Key: "service.name", Value: "pay"}}); len(more) > 0 || settled {
		t.Errorf("of another service: %v", more)
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
		text := strings.Replace(fmt.Sprintf(clusterFile, t.TempDir(), t.TempDir(), server.Kubeconfig(), "", "act"), "default: 0.8", "default: 0.8, cap: "+test.cap, 1)
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
		for _, found := range [][]Finding{Servers(t.Context(), cfg, Place{Host: "h"}), Examine(t.Context(), cfg, Place{Host: "h"})} {
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

func TestWithoutALimitPodsGetTheirRequestInOneStepWhereTheFileSaysSoAndTheOldOneBackAtTheEnd(t *testing.T) {
	server := kubetest.New(t)
	server.Shop(2, `{"requests":{"cpu":"250m"}}`)
	s := inClusterBy(t, strings.Replace(fmt.Sprintf(clusterFile, t.TempDir(), t.TempDir(), server.Kubeconfig(), "", "act"), "default: 0.8", "default: 0.8, cap: never", 1))
	requestOf := func(pod int) string {
		app := kubetest.Container(server.Get(kubetest.PodPath(pod)), "app")
		return fmt.Sprint(kubetest.Sub(app, "resources", "requests")["cpu"])
	}
	deadline := time.After(20 * time.Second)
	for requestOf(0) != "800m" || requestOf(1) != "800m" {
		select {
		case <-deadline:
			t.Fatalf("not raised within 20 s: %s and %s", requestOf(0), requestOf(1))
		case <-time.After(20 * time.Millisecond):
		}
	}
	if got := server.Patched(); len(got) != 2 {
		t.Errorf("in %d writes: %v", len(got), got)
	}
	for pod := range 2 {
		server.Kubelet(kubetest.PodPath(pod))
	}
	server.EndWatches()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for pod := range 2 {
		if requestOf(pod) != "250m" || limitOf(server, pod) != "<nil>" {
			t.Errorf("pod %d has a request of %s and a limit of %s at the end", pod, requestOf(pod), limitOf(server, pod))
		}
	}
}

func TestAReloadThatTurnsTheLimitInsteadOfTheRequestKeepsNeither(t *testing.T) {
	of := func(cap string) turns {
		text := strings.Replace(fmt.Sprintf(clusterFile, t.TempDir(), t.TempDir(), "/kubeconfig", "", "act"), "default: 0.8", "default: 0.8, cap: "+cap, 1)
		cfg, err := config.Parse("cluster.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		all, err := knobs.Of(kinds.All(), cfg, "h")
		if err != nil {
			t.Fatal(err)
		}
		return turns{cfg.Pool.Name, "locks", all, ""}
	}
	for caps, keeps := range map[[2]string]bool{{"auto", "never"}: false, {"never", "always"}: false, {"auto", "always"}: true, {"never", "never"}: true} {
		next := of(caps[1])
		kept, _ := of(caps[0]).kept(&next)
		if got := kept(trimtab.KnobID{Workload: "checkout", Resource: trimtab.CPU}); got != keeps {
			t.Errorf("from %v: kept %v", caps, got)
		}
	}
}
