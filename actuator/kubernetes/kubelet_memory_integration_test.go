//go:build integration

package kubernetes_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/kube"
	"github.com/trimtab/trimtab/internal/kube/kubetest"
)

// hidden is a pod in a namespace that trimtab does not watch.
const hidden = `
apiVersion: v1
kind: Pod
metadata: {name: hidden, namespace: default}
spec:
  nodeName: %s
  hostNetwork: true
  terminationGracePeriodSeconds: 0
  automountServiceAccountToken: false
  tolerations: [{operator: Exists}]
  containers: [{name: app, image: "%s", imagePullPolicy: Never, resources: {requests: {memory: 64Mi}}}]
`

// A real kubelet, containerd and kernel: memory rises and falls in place, a kill is seen and the next
// container has more, and a node without room is said.
func TestARealKubeletSizesMemoryInPlaceAndTellsOfAKill(t *testing.T) {
	r := startReal(t, func(r *kubetest.Real) {
		r.Node()
		r.RunHere(1, `{requests: {cpu: 1, memory: 64Mi}, limits: {cpu: 1, memory: 64Mi}}`) // a core, so that what takes memory is not throttled
		r.Apply(fmt.Sprintf(hidden, kubetest.NodeName, kubetest.LabImage))
	})
	r.of.WorkingSet = func(*kube.Pod, string) (float64, bool) { return float64(r.used(t)), true }
	ahead := time.Duration(0)
	k := r.cluster().limit(trimtab.Memory)
	k.(interface{ At(func() time.Time) }).At(func() time.Time { return time.Now().Add(ahead) })
	set := func(to float64) {
		t.Helper()
		read(t, k)
		began := time.Now()
		if err := write(t.Context(), k, to); err != nil {
			t.Fatal(err)
		}
		r.Until("it is in force", func() bool { return effective(t, k) == to })
		t.Logf("%v bytes in force %v after they were asked for, %d restarts", to, time.Since(began).Round(time.Millisecond), r.restarts(r.first(t)))
	}
	set(192 << 20)
	set(96 << 20)
	if n := r.restarts(r.first(t)); n != 0 {
		t.Errorf("%d restarts", n)
	}
	pod := r.first(t)
	t.Run("ItsSummaryTellsWhatAContainerUses", func(t *testing.T) { r.summary(t, pod) })
	killed, told := r.Group(pod).Killed(), make(chan time.Time, 1)
	defer r.view.FollowPods(func(p *kube.Pod) {
		if s := p.StatusOf("app"); p.Name == r.name(pod) && s != nil && s.Ended() != nil && s.Ended().Reason == kube.OOMKilled && s.Ended().ExitCode == 137 {
			select {
			case told <- time.Now():
			default: // it was told before
			}
		}
	})()
	began := time.Now()
	r.Group(pod).Take()
	select {
	case at := <-told:
		kill := <-killed
		t.Logf("the process took memory for %v until the kernel killed it, and the watch of pods told it %v after that", kill.Sub(began).Round(time.Millisecond), at.Sub(kill).Round(time.Millisecond))
	case <-time.After(time.Minute):
		t.Fatal("the watch of pods does not tell of the kill")
	}
	set(192 << 20)
	t.Run("ANodeWithoutRoomIsSaid", func(t *testing.T) {
		read(t, k)
		most := k.Nearest(trimtab.Unlimited()).Value
		if err := write(t.Context(), k, most-32<<20); err != nil { // trimtab does not know of the hidden pod
			t.Fatal(err)
		}
		ahead = 2 * time.Minute
		r.Until("the kubelet says so", func() bool { return k.Traits().Hopeless(t.Context()) != "" })
		why := k.Traits().Hopeless(t.Context())
		t.Log(why)
		if by := k.Traits().Status(t.Context()).By; !strings.HasPrefix(why, "deferred: ") || !strings.Contains(by, "had no room for a limit of") || effective(t, k) != 192<<20 {
			t.Errorf("%q, status %q, in force %v", why, by, effective(t, k))
		}
		if err := write(t.Context(), k, 192<<20); err != nil {
			t.Errorf("put back: %v", err)
		}
	})
}

// summary compares what the kubelet tells of a container with its group.
func (r *real) summary(t *testing.T, pod kubetest.Object) {
	kubelets, err := r.view.OpenKubelets(r.KubeletCA())
	if err != nil {
		t.Fatal(err)
	}
	defer kubelets.Close()
	r.Until("the kubelet tells of the container", func() bool {
		found := false
		err := r.view.NodeUsage(t.Context(), kubelets, kubetest.NodeName, func(k kube.UsageKey, u kube.Usage) {
			if k.Pod != r.name(pod) || u.WorkingSet == nil {
				return
			}
			if found = true; *u.WorkingSet > 2*float64(r.used(t))+1<<20 || time.Since(u.Time) > time.Minute {
				t.Errorf("working set %v at %v, and the group uses %d", *u.WorkingSet, u.Time, r.used(t))
			}
		})
		if err != nil {
			t.Log(err)
		}
		return found
	})
	if strangers, err := r.view.OpenKubelets(""); err == nil { // the authorities of the API server
		defer strangers.Close()
		if err := r.view.NodeUsage(t.Context(), strangers, kubetest.NodeName, func(kube.UsageKey, kube.Usage) {}); err == nil {
			t.Error("a kubelet whose certificate nobody signed is sent the token")
		}
	}
}
