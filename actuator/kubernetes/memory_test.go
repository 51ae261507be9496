package kubernetes_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator/kubernetes"
	"github.com/trimtab/trimtab/internal/kube"
	"github.com/trimtab/trimtab/internal/kube/kubetest"
)

const mib = 1 << 20

// use is what the containers of a cluster use of memory; below 0: unknown.
func (c *cluster) use(bytes float64) {
	c.pods = kubernetes.Pods(kubernetes.Cluster{Config: c.config, Watched: func() (*kube.Cluster, error) { return c.view, nil }, Rules: func(kube.Ref) kubernetes.Options { return *c.rules },
		WorkingSet: func(*kube.Pod, string) (float64, bool) { return bytes, bytes >= 0 }})
}

func (c *cluster) resources(i int, kind string) string {
	spec := kubetest.Sub(c.Get(kubetest.PodPath(i)), "spec")["containers"].([]any)[0].(kubetest.Object)
	v, _ := kubetest.Sub(spec, "resources", kind)["memory"].(string)
	return v
}

func TestMemoryIsLoweredToWhatIsInUseAndAMargin(t *testing.T) {
	c := open(t, 1, burstable)
	eventually(t, "the version is known", c.view.LowersMemory)
	c.use(80 * mib)
	k := c.limit(trimtab.Memory)
	read(t, k)
	if v, err := k.Traits().Floor(t.Context()); err != nil || v.Value != 84*mib {
		t.Errorf("floor %v, %v", v, err)
	}
	if err := write(t.Context(), k, 80*mib); !errors.Is(err, trimtab.ErrRefused) || !strings.Contains(err.Error(), "in use") {
		t.Errorf("to what is in use: %v", err)
	}
	if err := write(t.Context(), k, 96*mib); err != nil {
		t.Error(err)
	}
	if got := c.resources(0, "limits"); got != "100663296" {
		t.Errorf("limit %s", got)
	}
	if got := c.resources(0, "requests"); got != "64Mi" {
		t.Errorf("the request moved to %s", got)
	}
}

func TestMemoryIsNotLoweredBySilenceNorByAnOldServer(t *testing.T) {
	for name, c := range map[string]struct {
		minor int
		used  float64
		why   string
	}{"nothing is known": {37, -1, "not known"}, "1.33": {33, 10 * mib, "1.34"}} {
		s := kubetest.New(t)
		s.Version(c.minor)
		s.Shop(1, burstable)
		of := watch(t, s)
		of.use(c.used)
		k := of.limit(trimtab.Memory)
		read(t, k)
		if v, err := k.Traits().Floor(t.Context()); err != nil || v.Value != 128*mib {
			t.Errorf("%s: floor %v, %v", name, v, err)
		}
		if err := write(t.Context(), k, 96*mib); !errors.Is(err, trimtab.ErrRefused) || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v", name, err)
		}
		if note := k.Traits().Status(t.Context()).Note; !strings.Contains(note, c.why) {
			t.Errorf("%s: status %q", name, note)
		}
		if err := write(t.Context(), k, 160*mib); err != nil {
			t.Errorf("%s: a raise: %v", name, err)
		}
	}
}

func TestARequestThatFollowsKeepsTheRatioAndComesBackExactly(t *testing.T) {
	c := open(t, 1, `{"requests":{"cpu":"100m","memory":"50M"},"limits":{"cpu":"500m","memory":"128Mi"}}`)
	eventually(t, "the version is known", c.view.LowersMemory)
	c.rules.Follow = true
	c.use(20 * mib)
	k := c.limit(trimtab.Memory)
	read(t, k)
	undo := k.Undo()
	if err := write(t.Context(), k, 32*mib); err != nil {
		t.Fatal(err)
	}
	if got := c.resources(0, "requests"); got != "12500992" { // 50 MB / 4, in whole pages
		t.Errorf("request %s beside a limit of %s", got, c.resources(0, "limits"))
	}
	c.Kubelet(kubetest.PodPath(0))
	eventually(t, "it is in force", func() bool { return effective(t, k) == 32*mib })
	if err := k.Traits().Restore(t.Context(), undo); err != nil {
		t.Fatal(err)
	}
	if limit, request := c.resources(0, "limits"), c.resources(0, "requests"); limit != "134217728" || request != "50000000" {
		t.Errorf("restored to %s and %s", limit, request)
	}
}

func TestAContainerThatWasKilledIsRaisedBeforeItStartsAgainAndNotLowered(t *testing.T) {
	c := open(t, 1, burstable)
	eventually(t, "the version is known", c.view.LowersMemory)
	c.use(10 * mib)
	k := c.limit(trimtab.Memory)
	c.Edit(kubetest.PodPath(0), func(o kubetest.Object) {
		of := kubetest.Sub(o, "status")["containerStatuses"].([]any)[0].(kubetest.Object)
		of["state"] = kubetest.Object{"waiting": kubetest.Object{"reason": "CrashLoopBackOff"}}
		of["lastState"] = kubetest.Object{"terminated": kubetest.Object{"reason": "OOMKilled", "exitCode": 137, "containerID": "a"}}
		delete(of, "resources")
	})
	eventually(t, "it is seen", func() bool {
		p, err := c.view.PodOf("shop", nameOf(0), "")
		return err == nil && p.StatusOf("app").State.Running == nil
	})
	read(t, k)
	if err := write(t.Context(), k, 100*mib); !errors.Is(err, trimtab.ErrRefused) {
		t.Errorf("lowered: %v", err)
	}
	if err := write(t.Context(), k, 160*mib); err != nil || c.resources(0, "limits") != "167772160" {
		t.Errorf("raised: %v, limit %s", err, c.resources(0, "limits"))
	}
}

func TestANodeWithoutRoomForAGuaranteedPodIsSaidBeforeAnythingIsAsked(t *testing.T) {
	c := open(t, 2, `{"requests":{"cpu":"500m","memory":"7Gi"},"limits":{"cpu":"500m","memory":"7Gi"}}`)
	k := c.limit(trimtab.Memory)
	read(t, k)
	before := c.patches("resize")
	if err := write(t.Context(), k, 10<<30); !errors.Is(err, trimtab.ErrRefused) || !strings.Contains(err.Error(), "node n1 has room for") || c.patches("resize") != before {
		t.Errorf("%v", err)
	}
	if st := k.Traits().Status(t.Context()); st.Most != 7<<30 || !strings.Contains(st.By, "had no room for a limit of 10GiB") {
		t.Errorf("status %+v", st)
	}
	if err := write(t.Context(), k, 8<<30); err != nil {
		t.Errorf("what fits: %v", err)
	}
}

func nameOf(i int) string {
	path := kubetest.PodPath(i)
	return path[strings.LastIndex(path, "/")+1:]
}
