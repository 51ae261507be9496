package kubernetes_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/kubernetes"
	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/internal/kube"
	"github.com/trimtab/trimtab/internal/kube/kubetest"
	"github.com/trimtab/trimtab/quantity"
)

const withMemory = `{"requests":{"memory":"64Mi"},"limits":{"memory":"128Mi"}}`

// shop is a Deployment of two pods whose memory is read.
type shop struct {
	*kubetest.Server
	t       *testing.T
	cluster *kube.Cluster
	targets []kubernetes.Target
}

func memoryOf(t *testing.T) *shop {
	t.Helper()
	s := kubetest.New(t)
	s.Shop(2, withMemory)
	client, err := kube.Open(kube.Config{Kubeconfig: s.Kubeconfig()})
	if err != nil {
		t.Fatal(err)
	}
	c := kube.Watch(t.Context(), client, []string{"shop"}, nil)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &shop{s, t, c, []kubernetes.Target{{Workload: "checkout", Ref: kube.Ref{Namespace: "shop", Kind: kube.Deployment, Name: "checkout"}}}}
}

func nameOf(i int) string {
	path := kubetest.PodPath(i)
	return path[strings.LastIndex(path, "/")+1:]
}

// end has the container of a pod end; id names it.
func (s *shop) end(i int, id, reason string, code int, at time.Time) {
	s.Edit(kubetest.PodPath(i), func(o kubetest.Object) {
		of := kubetest.Sub(o, "status")["containerStatuses"].([]any)[0].(kubetest.Object)
		of["lastState"] = kubetest.Object{"terminated": kubetest.Object{"containerID": id, "reason": reason, "exitCode": code, "finishedAt": at.UTC().Format(time.RFC3339)}}
	})
}

// sink keeps samples as text.
type sink struct {
	mu  sync.Mutex
	all []string
}

func (b *sink) Publish(_ context.Context, v trimtab.Value) error {
	s := v.(*trimtab.Sample)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, strings.TrimSpace(fmt.Sprintf("%s %s %s %.0f %s", s.Workload, s.Instance, s.Quantity, s.Value, s.Missing)))
	return s.Validate()
}

func (b *sink) has(text string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.all {
		if s == text {
			n++
		}
	}
	return n
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for !is() {
		select {
		case <-deadline:
			t.Fatalf("not within 20 s: %s", what)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// A kill before the start is history. Each later one is told once, with the limit under which it
// happened, also of a pod that is deleted with it and of one that is new.
func TestEachKillIsToldOnceAsSoonAsTheServerKnows(t *testing.T) {
	s := memoryOf(t)
	s.end(0, "old", kube.OOMKilled, 137, time.Now())
	eventually(t, "the kill before the start is seen", func() bool {
		p, err := s.cluster.PodOf("shop", nameOf(0), "")
		return err == nil && p.StatusOf("app").Ended() != nil
	})
	var got sink
	killed := make(chan string, 10)
	kills := kubernetes.Kills{Cluster: s.cluster, Targets: s.targets, Logger: slog.New(slog.DiscardHandler), Killed: func(w string) { killed <- w },
		Publish: func(ctx context.Context, v *trimtab.Sample) {
			if err := got.Publish(ctx, v); err != nil {
				t.Error(err)
			}
		}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- kills.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	kill := func(pod string) string { return "checkout " + pod + " oom_kills 1" }
	// A container of the second pod ends by itself, until Run follows; that is no kill.
	for n := 0; ; n++ {
		s.end(1, fmt.Sprint("probe", n), kube.OOMKilled, 137, time.Now())
		select {
		case <-killed:
		case <-time.After(20 * time.Millisecond):
			continue
		}
		break
	}
	eventually(t, "the second pod's kill is told", func() bool { return got.has(kill(nameOf(1))) > 0 })
	s.end(0, "first", kube.OOMKilled, 137, time.Now())
	<-killed
	eventually(t, "the kill is told", func() bool { return got.has(kill(nameOf(0))) == 1 })
	if n := got.has(fmt.Sprintf("checkout %s memory_limit %v", nameOf(0), 128<<20)); n != 1 {
		t.Errorf("the limit is told %d times: %q", n, got.all)
	}
	s.end(0, "by itself", "Error", 1, time.Now())
	s.end(0, "long ago", kube.OOMKilled, 137, time.Now().Add(-2*time.Hour))
	s.end(0, "second", kube.OOMKilled, 137, time.Now())
	<-killed
	s.Delete(kubetest.PodPath(0))
	eventually(t, "the pod is gone", func() bool { _, err := s.cluster.PodOf("shop", nameOf(0), ""); return err != nil })
	owner := kubetest.Sub(s.Get("/apis/apps/v1/namespaces/shop/replicasets/checkout-7d9f"), "metadata")["uid"]
	fresh := "/api/v1/namespaces/shop/pods/checkout-7d9f-zz"
	s.Put(fresh, fmt.Sprintf(`{"kind":"Pod","metadata":{"ownerReferences":[{"kind":"ReplicaSet","name":"checkout-7d9f","uid":%q,"controller":true}]},"spec":{"nodeName":"n1","containers":[{"name":"app","resources":%s}]},"status":{"phase":"Running","containerStatuses":[{"name":"app","state":{"terminated":{"containerID":"x","reason":"OOMKilled","exitCode":137,"finishedAt":%q}}}]}}`, owner, withMemory, time.Now().UTC().Format(time.RFC3339)))
	<-killed
	eventually(t, "the new pod's kill is told", func() bool { return got.has(kill("checkout-7d9f-zz")) == 1 })
	if got.has(kill(nameOf(0))) != 2 {
		t.Errorf("%d kills of the first pod, want 2: %q", got.has(kill(nameOf(0))), got.all)
	}
}

// What the metrics API tells is told with its time; a pod without a reading, or with one from before it
// was made, is missing, and the limit is the one in force.
func TestTheMetricsAPITellsTheWorkingSet(t *testing.T) {
	s := memoryOf(t)
	at := time.Now().UTC().Truncate(time.Second)
	usage := func(i int, at time.Time) {
		s.Put("/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods/"+nameOf(i), fmt.Sprintf(`{"timestamp":%q,"window":"15s","containers":[{"name":"app","usage":{"cpu":"10m","memory":"50Mi"}},{"name":"sidecar","usage":{"memory":"1Gi"}}]}`, at.Format(time.RFC3339)))
	}
	usage(0, at)
	s.Edit(kubetest.PodPath(1), func(o kubetest.Object) { kubetest.Sub(o, "metadata")["creationTimestamp"] = at.Format(time.RFC3339) })
	usage(1, at.Add(-time.Minute))
	eventually(t, "the pod's age is seen", func() bool {
		p, err := s.cluster.PodOf("shop", nameOf(1), "")
		return err == nil && !p.CreationTimestamp.IsZero()
	})
	u := kubernetes.UsageOf(s.cluster, nil, s.targets)
	var got sink
	p, err := poll.Open(u.Source(), poll.Config{Host: "k8s", Bus: &got})
	if err != nil {
		t.Fatal(err)
	}
	p.Round(t.Context())
	for _, want := range []string{
		fmt.Sprintf("checkout %s working_set %v", nameOf(0), 50<<20), fmt.Sprintf("checkout %s memory_limit %v", nameOf(0), 128<<20),
		fmt.Sprintf("checkout %s working_set 0 no reading yet", nameOf(1)), fmt.Sprintf("checkout %s memory_limit %v", nameOf(1), 128<<20),
	} {
		if got.has(want) != 1 {
			t.Errorf("no %q in %q", want, got.all)
		}
	}
	pod, err := s.cluster.PodOf("shop", nameOf(0), "")
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := u.WorkingSet(pod, "app", at.Add(30*time.Second)); !ok || v != 50<<20 {
		t.Errorf("after 30 s: %v, %v", v, ok)
	}
	if _, ok := u.WorkingSet(pod, "app", at.Add(2*time.Minute)); ok {
		t.Error("a reading is used after two minutes")
	}
	s.Fail(func(r *http.Request) int {
		if strings.Contains(r.URL.Path, "metrics.k8s.io") {
			return 404
		}
		return 0
	})
	p.Round(t.Context())
	if lacks := p.Unavailable(); len(lacks) != 1 || !strings.Contains(lacks[0], "metrics-server") {
		t.Errorf("without the API: %q", lacks)
	}
	if _, ok := u.WorkingSet(pod, "app", at); ok {
		t.Error("what cannot be read is known")
	}
	if got.has(fmt.Sprintf("checkout %s working_set 0 no reading yet", nameOf(0))) != 1 || u.Source().Quantities[0] != quantity.WorkingSet {
		t.Errorf("it is not missing: %q", got.all)
	}
}
