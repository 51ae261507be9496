package site

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/kube/kubetest"
)

// glance runs a trimtab whose file names a namespace and none of its workloads, and which looks ten
// times a second whether that has others.
func glance(t *testing.T, server *kubetest.Server, storage string) (s *Site, end func()) {
	t.Helper()
	text := fmt.Sprintf(kubetest.ShopFile, t.TempDir(), storage, server.Kubeconfig(), "", "recommend")
	head, _, _ := strings.Cut(text, "workloads:")
	file := filepath.Join(t.TempDir(), "trimtab.yaml")
	text = head + "workloads:\n  - match: {kubernetes: {namespace: shop, selector: {tier: web}}}\n    knob: {cpu: {min: 0.1, max: 2, default: 0.8}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o := &Objectives{}
	load := func() (*config.Config, error) { return config.LoadWith(file, o.Objects(), o.Members()) }
	cfg, err := load()
	if err != nil {
		t.Fatal(err)
	}
	s, err = Open(t.Context(), cfg, Options{Host: "h", Logger: slog.New(slog.DiscardHandler), Load: load, Objectives: o, Watchdog: []string{"true"}})
	if err != nil {
		t.Fatal(err)
	}
	stop := s.process.Background(context.WithoutCancel(t.Context()), "test", func(ctx context.Context) error {
		s.followObjectives(ctx, 100*time.Millisecond)
		return nil
	})
	end = sync.OnceFunc(func() {
		server.EndWatches()
		_ = stop()
		_ = s.Close()
	})
	t.Cleanup(end)
	return s, end
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after 30 s it is not so that %s", what)
		}
	}
}

func (s *Site) has(names ...string) func() bool {
	return func() bool {
		var all []string
		for _, w := range s.Config().Workloads {
			all = append(all, w.Name)
		}
		return slices.Equal(all, names)
	}
}

// tier labels a workload of the server.
func tier(server *kubetest.Server, path, value string) {
	server.Edit(path, func(o kubetest.Object) {
		o["metadata"].(map[string]any)["labels"] = map[string]any{"tier": value}
	})
}

func TestANamespaceIsFollowedItsSLOsAreProposedAndItGetsAdviceAndNoWrite(t *testing.T) {
	t.Parallel()
	server, storage := kubetest.New(t), t.TempDir()
	server.Shop(2, kubetest.HalfCore)
	tier(server, kubetest.Deployment, "web")
	s, end := glance(t, server, storage)
	if !s.has("shop/checkout")() || s.Config().Workloads[0].Mode != trimtab.Off {
		t.Fatalf("it begins with %+v", s.Config().Workloads)
	}

	const other = "/apis/apps/v1/namespaces/shop/deployments/cart"
	server.Put(other, `{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"generation":1,"labels":{"tier":"web"}},"spec":{"replicas":0,"template":{"spec":{"containers":[{"name":"app"},{"name":"proxy"}]}}}}`)
	eventually(t, "a workload that came is followed", s.has("shop/cart", "shop/checkout"))
	if w := s.Config().Workloads[0]; w.Knob.Kubernetes.Container != "app" {
		t.Errorf("of two containers it is %q", w.Knob.Kubernetes.Container)
	}
	tier(server, other, "batch")
	eventually(t, "a workload that is no longer selected is left", s.has("shop/checkout"))

	observe := func(length time.Duration, p95 float64) {
		upper := trimtab.Seconds(p95)
		now := time.Now()
		s.view.Observe(&trimtab.Estimate{Workload: "shop/checkout", Time: now, Model: "none", Observed: &trimtab.Observed{From: now.Add(-length), To: now, Requests: 1000, P95: upper, P95Upper: &upper}})
	}
	slo := func() config.SLO { return s.Config().Workloads[0].SLO }
	if x, _ := s.view.Explain("shop/checkout", 0, time.Now()); x.SLO != "not proposed yet" {
		t.Errorf("before that explain says of its SLO %q", x.SLO)
	}
	observe(time.Minute, 0.09)
	if s.propose(s.Config(), time.Now()) {
		t.Error("an SLO was proposed after one minute")
	}
	eventually(t, "an SLO is proposed", func() bool {
		observe(2*time.Minute, 0.09) // again, since the analyzer tells of no requests each second
		return slo().Latency == 150*time.Millisecond && slo().Proposed
	})
	if w := s.Config().Workloads[0]; w.Mode != trimtab.Recommend {
		t.Errorf("with an SLO it is in mode %s", w.Mode)
	}
	observe(3*time.Minute, 0.5)
	if s.propose(s.Config(), time.Now()) {
		t.Error("another SLO was proposed before it was observed for twice as long")
	}
	eventually(t, "explain says that its SLO is proposed, and why", func() bool {
		observe(3*time.Minute, 0.09)
		x, ok := s.view.Explain("shop/checkout", 0, time.Now())
		return ok && x.SLO == "95% under 150ms, proposed" && slices.ContainsFunc(x.Notes, func(n string) bool { return strings.HasPrefix(n, "proposed slo: {latency: 150ms") })
	})
	eventually(t, "there is advice", func() bool {
		d := s.view.LastPlan()
		return d != nil && slices.ContainsFunc(d.Actions, func(a trimtab.Action) bool { return a.Workload == "shop/checkout" && a.Mode == trimtab.Recommend })
	})

	end()
	s, _ = glance(t, server, storage)
	if got := slo(); got.Latency != 150*time.Millisecond || !got.Proposed {
		t.Errorf("after a restart the SLO is %+v", got)
	}
	server.Fail(func(*http.Request) int { return http.StatusServiceUnavailable })
	server.Delete(kubetest.Deployment)
	if s.membersChanged(t.Context(), s.Config()) {
		t.Error("while the API server fails the namespace has changed")
	}
	if got := server.Writes(); len(got) != 0 {
		t.Errorf("it wrote %q", got)
	}
}
