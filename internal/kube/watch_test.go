package kube_test

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/kube"
	"github.com/trimtab/trimtab/internal/kube/kubetest"
)

const resources = `{"limits":{"cpu":"500m"}}`

var checkout = kube.Ref{Namespace: "shop", Kind: kube.Deployment, Name: "checkout"} //nolint:gochecknoglobals // a name

func watch(t *testing.T, s *kubetest.Server) *kube.Cluster {
	t.Helper()
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
	return c
}

func eventually(t *testing.T, what string, true func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for !true() {
		select {
		case <-deadline:
			t.Fatalf("not within 20 s: %s", what)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func replicas(c *kube.Cluster) int64 {
	w, err := c.WorkloadOf(checkout)
	if err != nil {
		return -1
	}
	return w.Replicas()
}

func setReplicas(s *kubetest.Server, n int) {
	s.Edit(kubetest.Deployment, func(o kubetest.Object) { kubetest.Sub(o, "spec")["replicas"] = n })
}

func TestAWatchFollowsAndIsMadeUpForWhenItEndsOrItsVersionExpired(t *testing.T) {
	s := kubetest.New(t)
	s.Shop(3, resources)
	c := watch(t, s)
	if err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if pods, err := c.PodsOf(checkout); err != nil || len(pods) != 3 {
		t.Fatalf("pods %d, %v", len(pods), err)
	}
	setReplicas(s, 4)
	eventually(t, "the change is seen", func() bool { return replicas(c) == 4 })
	s.EndWatches()
	setReplicas(s, 5)
	eventually(t, "the change after the end of the watch is seen", func() bool { return replicas(c) == 5 })
	s.Forget()
	s.EndWatches()
	setReplicas(s, 6)
	s.Delete(kubetest.PodPath(0))
	eventually(t, "the change after the version expired is seen", func() bool {
		pods, err := c.PodsOf(checkout)
		return replicas(c) == 6 && err == nil && len(pods) == 2
	})
}

func TestEachKindIsListedOnceAndThenNothingIsAskedButWhetherTheServerLives(t *testing.T) {
	s := kubetest.New(t)
	s.Shop(20, resources)
	c := watch(t, s)
	if err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := s.Requests()
	for kind, n := range before {
		if strings.HasPrefix(kind, "GET pods") && n > 2 {
			t.Errorf("%s: %d", kind, n)
		}
	}
	for range 1000 {
		if pods, err := c.PodsOf(checkout); err != nil || len(pods) != 20 {
			t.Fatalf("pods %d, %v", len(pods), err)
		}
	}
	after := s.Requests()
	for kind, n := range after {
		if kind != "GET version" && kind != "GET v1" && n > before[kind]+1 {
			t.Errorf("%s: %d, %d before", kind, n, before[kind])
		}
	}
	if len(s.Writes()) != 0 {
		t.Errorf("it wrote %q", s.Writes())
	}
}

func TestWithoutARightTheRestWorksAndTheRightIsNamed(t *testing.T) {
	s := kubetest.New(t)
	s.Shop(2, resources)
	s.Fail(func(r *http.Request) int {
		if strings.HasSuffix(r.URL.Path, "/horizontalpodautoscalers") || strings.HasSuffix(r.URL.Path, "/nodes") {
			return http.StatusForbidden
		}
		return 0
	})
	c := watch(t, s)
	if err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := replicas(c); got != 2 {
		t.Errorf("replicas %d", got)
	}
	if _, err := c.Others(checkout, "", trimtab.Replicas, false); !errors.Is(err, trimtab.ErrRefused) || !strings.Contains(err.Error(), "horizontalpodautoscalers.autoscaling") {
		t.Errorf("others: %v, want the missing right named", err)
	}
	if _, err := c.Allocatable("n1", "cpu"); !errors.Is(err, trimtab.ErrRefused) {
		t.Errorf("node: %v", err)
	}
	if missing := c.Missing(); len(missing) != 2 {
		t.Errorf("missing %v", missing)
	}
}

func TestANodeThatIsGoneIsNotThere(t *testing.T) {
	s := kubetest.New(t)
	s.Shop(1, resources)
	c := watch(t, s)
	if err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v, err := c.Allocatable("n1", "cpu"); err != nil || v != 8 {
		t.Fatalf("%v, %v", v, err)
	}
	s.Delete(kubetest.Node)
	eventually(t, "the node is gone", func() bool {
		_, err := c.Allocatable("n1", "cpu")
		return errors.Is(err, os.ErrNotExist)
	})
}

func TestAnObjectThatCannotBeReadIsLeftOutAndTheOthersStay(t *testing.T) {
	s := kubetest.New(t)
	s.Shop(2, resources)
	s.Put("/api/v1/namespaces/shop/pods/odd", `{"kind":"Pod","spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":"a lot"}}}]}}`)
	s.Put("/api/v1/namespaces/shop/pods/odder", `{"kind":"Pod","spec":{"containers":"none"}}`)
	c := watch(t, s)
	if err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if pods, err := c.PodsOf(checkout); err != nil || len(pods) != 2 {
		t.Errorf("pods %d, %v", len(pods), err)
	}
}

func TestWhatIsTooOldIsNotGivenOut(t *testing.T) {
	s := kubetest.New(t)
	s.Shop(1, resources)
	c := watch(t, s)
	if err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	kube.Age(c, kube.MaxAge+time.Second)
	if _, err := c.WorkloadOf(checkout); !errors.Is(err, trimtab.ErrStale) {
		t.Errorf("a workload of %v ago: %v", kube.MaxAge, err)
	}
	if _, err := c.PodsOf(checkout); !errors.Is(err, trimtab.ErrStale) {
		t.Errorf("pods of %v ago: %v", kube.MaxAge, err)
	}
}

func TestErrorsOfTheServerHaveTheirKinds(t *testing.T) {
	s := kubetest.New(t)
	s.Shop(1, resources)
	client, err := kube.Open(kube.Config{Kubeconfig: s.Kubeconfig()})
	if err != nil {
		t.Fatal(err)
	}
	for status, want := range map[int]error{404: os.ErrNotExist, 409: trimtab.ErrStale, 403: trimtab.ErrRefused, 422: trimtab.ErrRefused, 401: trimtab.ErrRefused} {
		s.Fail(func(*http.Request) int { return status })
		if _, err := client.Pod(t.Context(), "shop", "x"); !errors.Is(err, want) {
			t.Errorf("%d: %v", status, err)
		}
	}
	// One that says "later" is asked again.
	n := 0
	s.Fail(func(*http.Request) int {
		if n++; n == 1 {
			return http.StatusTooManyRequests
		}
		return 0
	})
	if _, err := client.Workload(t.Context(), checkout); err != nil || n != 2 {
		t.Errorf("after 429: %v, %d requests", err, n)
	}
}
