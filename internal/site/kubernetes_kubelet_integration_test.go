//go:build integration

package site

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/internal/kube/kubetest"
)

// memoryFile is a Deployment of which memory alone is planned, by what its kubelet tells.
const memoryFile = `
pool: {cpu: 1}
actuator: {lock_dir: %q}
storage: {path: %q}
web: {listen_address: "127.0.0.1:0"}
otlp: {grpc: "off", http: "off"}
jaeger: {grpc: "off"}
kubernetes: {kubeconfig: %q, journal: trimtab, memory: kubelet, kubelet_ca_file: %q}
workloads:
  - name: checkout
    mode: act
    knob: {kubernetes: {namespace: shop, deployment: checkout}, memory: {min: 64MiB, max: 1GiB}}
`

// A real kubelet, containerd and kernel: a container that takes 100 MiB is killed at its limit; the limit rises by what
// the kubelet tells, and the container that follows has room for the same.
func TestOnARealKubeletWhatFollowsAKilledContainerHasRoom(t *testing.T) {
	r := kubetest.StartReal(t, "trimtab")
	r.Node()
	r.RunHere(1, `{requests: {cpu: 100m, memory: 96Mi}, limits: {cpu: 1, memory: 96Mi}}`)
	r.Rights()
	s := &shop{Real: r, t: t}
	s.open(fmt.Appendf(nil, memoryFile+brisk, t.TempDir(), t.TempDir(), r.Kubeconfig("trimtab"), r.KubeletCA()))
	var known, killed atomic.Bool
	stop, err := s.site.Bus().Subscribe(t.Context(), bus.Subscription{Kind: trimtab.KindEstimate, Key: "checkout", Handle: func(_ context.Context, d bus.Delivery) error {
		if e, ok := d.Value.(*trimtab.Estimate); ok && len(e.Memory) > 0 {
			known.Store(true)
			killed.Store(killed.Load() || e.Memory[0].Kills > 0)
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	r.Until("the kubelet tells what it uses", known.Load)
	began := time.Now()
	r.Group(r.Pods()[0]).Take()
	r.Until("the kill is told", killed.Load)
	t.Logf("the kill is in the estimate after %v", time.Since(began).Round(time.Millisecond))
	status := func() kubetest.Object {
		return kubetest.Sub(r.Pods()[0], "status")["containerStatuses"].([]any)[0].(kubetest.Object)
	}
	r.Until("a container runs with a higher limit", func() bool {
		limit := fmt.Sprint(kubetest.Sub(status(), "resources", "limits")["memory"])
		return limit != "96Mi" && kubetest.Sub(status(), "state")["running"] != nil
	})
	t.Logf("a container runs with a higher limit after %v", time.Since(began).Round(time.Millisecond))
	r.Group(r.Pods()[0]).Take()
	r.Until("it has what it takes", func() bool {
		used, err := strconv.Atoi(r.Group(r.Pods()[0]).Read("memory.current", "memory.usage_in_bytes"))
		return err == nil && used > 100<<20
	})
	if n := status()["restartCount"]; n != 1.0 {
		t.Errorf("%v restarts, want the one", n)
	}
	if !s.says("memory limit raised from 96MiB") {
		t.Error("no plan says so")
	}
}
