package site

import (
	"context"
	"fmt"
	"log/slog"
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

// inCluster runs the whole pipeline outside of a cluster of two pods with 500m each.
func inCluster(t *testing.T, s *kubetest.Server, mode, more string) *Site {
	t.Helper()
	return inClusterBy(t, fmt.Sprintf(kubetest.ShopFile, t.TempDir(), t.TempDir(), s.Kubeconfig(), more, mode))
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

func TestInModeRecommendTheClusterGetsNoWriteAndADeploymentGetsAdvice(t *testing.T) {
	t.Parallel()
	server := kubetest.New(t)
	server.Shop(2, kubetest.HalfCore)
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
	t.Parallel()
	server := kubetest.New(t)
	server.Shop(2, kubetest.HalfCore)
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
	t.Parallel()
	server := kubetest.New(t)
	server.Shop(2, kubetest.HalfCore)
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

func TestSpansThatNameTheirPodInAnyWayAreThoseOfItsWorkload(t *testing.T) {
	server := kubetest.New(t)
	server.Shop(2, kubetest.HalfCore)
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
		more, settled := s.cluster.nameSenders(attrs)
		all := slices.Concat(more, attrs)
		for _, want := range []trimtab.Attr{{Key: "k8s.namespace.name", Value: "shop"}, {Key: "k8s.deployment.name", Value: "checkout"}} {
			if !settled || !slices.Contains(all, want) {
				t.Errorf("%v: %v, settled %v", attrs, more, settled)
			}
		}
	}
	if more, settled := s.cluster.nameSenders([]trimtab.Attr{{Key: "service.name", Value: "pay"}}); len(more) > 0 || settled {
		t.Errorf("of another service: %v", more)
	}
	pod := s.cluster.podIn(refsOf(s.config))
	if a, b := pod("shop", "checkout-7d9f-aa"), pod("other", "checkout-7d9f-aa"); a != "checkout" || b != "" {
		t.Errorf("of a pod: %q, of one in another namespace: %q", a, b)
	}
}

func TestWithoutALimitPodsGetTheirRequestInOneStepWhereTheFileSaysSoAndTheOldOneBackAtTheEnd(t *testing.T) {
	t.Parallel()
	server := kubetest.New(t)
	server.Shop(2, `{"requests":{"cpu":"250m"}}`)
	s := inClusterBy(t, strings.Replace(fmt.Sprintf(kubetest.ShopFile, t.TempDir(), t.TempDir(), server.Kubeconfig(), "", "act"), "default: 0.8", "default: 0.8, cap: never", 1))
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
		text := strings.Replace(fmt.Sprintf(kubetest.ShopFile, t.TempDir(), t.TempDir(), "/kubeconfig", "", "act"), "default: 0.8", "default: 0.8, cap: "+cap, 1)
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

func TestWithoutMeasuredUsePodsLetGoOnlyWhereTheirMinimumIsKnownToBeEnough(t *testing.T) {
	const cluster = "kubernetes: {namespace: shop, deployment: a}"
	for workload, want := range map[string]time.Duration{
		"knob: {" + cluster + ", cpu: {min: 0.1, max: 2}}":                             5 * time.Minute,
		"knob: {" + cluster + ", cpu: {max: 2}}":                                       0,
		"knob: {" + cluster + ", cpu: {min: 0.1, max: 2}}, usage: use":                 0,
		"knob: {" + cluster + ", cpu: {max: 2, cap: never}}":                           30 * time.Minute,
		"knob: {" + cluster + ", cpu: {max: 2, cap: never}}, usage: use":               30 * time.Minute,
		"knob: {cgroup: shop.slice/a.service, cpu: {min: 0.1, max: 2}}":                0,
		"knob: {cgroup: shop.slice/a.service, cpu: {min: 0.1, max: 2, cap: never}}":    0,
		"knob: {" + cluster + ", cpu: {min: 0.1, max: 2}, replicas: {min: 1, max: 4}}": 5 * time.Minute,
	} {
		cfg, err := config.Parse("t.yaml", []byte("pool: {cpu: 8}\nprometheus: {url: http://127.0.0.1:9090}\nworkloads: [{name: a, slo: {latency: 1s, fraction: 0.9}, load: requests, "+workload+"}]\n"))
		if err != nil {
			t.Fatal(err)
		}
		if got := restAfter(&cfg.Workloads[0], &cfg.Pool); got != want {
			t.Errorf("%s: %v, want %v", workload, got, want)
		}
	}
}
