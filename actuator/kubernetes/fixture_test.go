package kubernetes_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/kubernetes"
	"github.com/trimtab/trimtab/internal/kube"
	"github.com/trimtab/trimtab/internal/kube/kubetest"
)

const (
	burstable  = `{"requests":{"cpu":"100m","memory":"64Mi"},"limits":{"cpu":"500m","memory":"128Mi"}}`
	equal      = `{"requests":{"cpu":"500m","memory":"128Mi"},"limits":{"cpu":"500m","memory":"128Mi"}}`
	podsAt     = "shop/Deployment/checkout/app/*"
	workloadAt = "shop/Deployment/checkout/*"
)

// cluster is a server with what trimtab sees of it.
type cluster struct {
	*kubetest.Server
	t      *testing.T
	view   *kube.Cluster
	pods   actuator.Kind
	scales actuator.Kind
	// rules are those of the workload; they are asked when a knob is opened.
	rules  *kubernetes.Options
	config kube.Config
}

// open starts a server with so many pods and watches it.
func open(t *testing.T, pods int, resources string) *cluster {
	t.Helper()
	s := kubetest.New(t)
	s.Shop(pods, resources)
	return watch(t, s)
}

func watch(t *testing.T, s *kubetest.Server) *cluster { return watchAs(t, s, "somebody") }

func watchAs(t *testing.T, s *kubetest.Server, user string) *cluster {
	t.Helper()
	config := kube.Config{Kubeconfig: s.KubeconfigOf(user)}
	client, err := kube.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	view := kube.Watch(t.Context(), client, []string{"shop"}, nil, kube.DaemonSet, kube.Rollout)
	t.Cleanup(func() {
		if err := view.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := view.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server says what it has", func() bool { return !isStale(view.Resizable()) })
	rules := &kubernetes.Options{}
	of := kubernetes.Cluster{Config: config, Watched: func() (*kube.Cluster, error) { return view, nil }, Rules: func(kube.Ref) kubernetes.Options { return *rules }}
	return &cluster{s, t, view, kubernetes.Pods(of), kubernetes.Scales(of), rules, config}
}

func isStale(err error) bool { return err != nil && strings.Contains(err.Error(), "did not tell yet") }

// eventually waits for what another goroutine brings about.
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

// limit opens the knob of the first pod.
func (c *cluster) limit(resource string) actuator.Knob {
	c.t.Helper()
	return c.knob(c.pods, actuator.Location{Path: podsAt}, resource)
}

// scale opens the knob of the Deployment.
func (c *cluster) scale() actuator.Knob {
	c.t.Helper()
	return c.knob(c.scales, actuator.Location{Path: workloadAt}, trimtab.Replicas)
}

func (c *cluster) knob(kind actuator.Kind, at actuator.Location, resource string) actuator.Knob {
	c.t.Helper()
	found, err := kind.Find(c.t.Context(), at)
	if err != nil || len(found) == 0 {
		c.t.Fatalf("find %s: %v, %v", at.Path, found, err)
	}
	k, err := kind.Open(at.Instance(found[0].Name), resource)
	if err != nil {
		c.t.Fatal(err)
	}
	return k
}

func read(t *testing.T, k actuator.Knob) float64 {
	t.Helper()
	v, err := k.Read(t.Context())
	if err != nil {
		t.Fatalf("read %s: %v", k, err)
	}
	return v.Value
}

func effective(t *testing.T, k actuator.Knob) float64 {
	t.Helper()
	v, err := k.Traits().Effective(t.Context())
	if err != nil {
		t.Fatalf("what is in force of %s: %v", k, err)
	}
	return v.Value
}

func write(ctx context.Context, k actuator.Knob, v float64) error {
	return k.Write(ctx, trimtab.Units(v))
}

// patches counts the writes to a subresource.
func (c *cluster) patches(sub string) int { return c.Requests()["PATCH "+sub] }

// seenLimit is a limit whose writes are waited for at the watch: the one that reads it
// there is in another process otherwise, and sees it a moment later.
type seenLimit struct {
	*kubernetes.Limit
	c *cluster
}

func (s seenLimit) Write(ctx context.Context, a trimtab.Amount) error {
	return s.c.seen(s.Limit.Write(ctx, a))
}

// seenRequest is the same of a request.
type seenRequest struct {
	*kubernetes.Request
	c *cluster
}

func (s seenRequest) Write(ctx context.Context, a trimtab.Amount) error {
	return s.c.seen(s.Request.Write(ctx, a))
}

// seen waits until the watch has told of a write to the first pod that succeeded.
func (c *cluster) seen(err error) error {
	if err == nil {
		version := kubetest.Sub(c.Get(kubetest.PodPath(0)), "metadata")["resourceVersion"]
		eventually(c.t, "the write is seen", func() bool {
			p, err := c.view.PodOf("shop", "checkout-7d9f-aa", "")
			return err == nil && p.ResourceVersion == version
		})
	}
	return err
}

// seenScale is the same of a number of pods.
type seenScale struct {
	*kubernetes.Scale
	c *cluster
}

func (s seenScale) Write(ctx context.Context, a trimtab.Amount) error {
	err := s.Scale.Write(ctx, a)
	if err == nil {
		version := kubetest.Sub(s.c.Get(kubetest.Deployment), "metadata")["resourceVersion"]
		eventually(s.c.t, "the write is seen", func() bool {
			w, err := s.c.view.WorkloadOf(checkout)
			return err == nil && w.ResourceVersion == version
		})
	}
	return err
}

func (c *cluster) reopenLimit(undo []byte) (actuator.Knob, error) {
	k, err := new(kubernetes.Reopener).Limit(undo)
	if err != nil {
		return nil, err
	}
	if r, ok := k.(*kubernetes.Request); ok {
		return seenRequest{r, c}, nil
	}
	return seenLimit{k.(*kubernetes.Limit), c}, nil
}

func (c *cluster) reopenScale(undo []byte) (actuator.Knob, error) {
	k, err := new(kubernetes.Reopener).Scale(undo)
	if err != nil {
		return nil, err
	}
	return seenScale{k, c}, nil
}
