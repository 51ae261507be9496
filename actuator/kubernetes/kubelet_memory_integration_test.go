//go:build integration

package kubernetes_test

import (
	"fmt"
	"strings"
	"syscall"
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
		r.RunHere(1, `{requests: {cpu: 100m, memory: 64Mi}, limits: {cpu: 100m, memory: 64Mi}}`)
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
	began := time.Now()
	r.signal(t, syscall.SIGUSR1)
	r.Until("the watch of pods tells of the kill", func() bool {
		p, err := r.view.PodOf("shop", r.name(r.first(t)), "")
		return err == nil && p.StatusOf("app").Ended() != nil && p.StatusOf("app").Ended().ExitCode == 137
	})
	t.Logf("the kill was told %v after the process began to take memory", time.Since(began).Round(time.Millisecond))
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
