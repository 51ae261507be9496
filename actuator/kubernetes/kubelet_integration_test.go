//go:build integration

package kubernetes_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/kubernetes"
	"github.com/trimtab/trimtab/internal/kube"
	"github.com/trimtab/trimtab/internal/kube/kubetest"
)

// restarting is a Deployment whose containers a resize of CPU restarts.
const restarting = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: restarts, namespace: shop}
spec:
  replicas: 1
  selector: {matchLabels: {app: restarts}}
  template:
    metadata: {labels: {app: restarts}}
    spec:
      nodeName: %s
      hostNetwork: true
      terminationGracePeriodSeconds: 0
      automountServiceAccountToken: false
      tolerations: [{operator: Exists}]
      containers: [{name: app, image: "%s", imagePullPolicy: Never, resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}], resources: {requests: {cpu: 20m}, limits: {cpu: 100m}}}]
`

// A real kubelet, containerd and kernel: what is asked for is in force, what the node has
// no room for is put back or comes when there is room, memory in use is not taken away, and
// a kubelet that restarts forgets nothing.
func TestARealKubeletShowsWhatNoPlayedOneCan(t *testing.T) {
	r := startReal(t, func(r *kubetest.Real) {
		r.Node()
		r.RunHere(2, `{requests: {cpu: 300m, memory: 64Mi}, limits: {cpu: 300m, memory: 64Mi}}`)
		r.Apply(fmt.Sprintf(restarting, kubetest.NodeName, kubetest.LabImage))
	})
	rules := kubernetes.Options{DeferFor: 5 * time.Second}
	r.of.Rules = func(kube.Ref) kubernetes.Options { return rules }
	limit, _ := r.knobs()
	ahead := time.Duration(0)
	open := func(resource string) actuator.Knob {
		k := r.cluster().limit(resource)
		k.(interface{ At(func() time.Time) }).At(func() time.Time { return time.Now().Add(ahead) })
		return k
	}
	t.Run("AResizeReachesTheKernelWithoutARestart", func(t *testing.T) {
		began := time.Now()
		if err := write(t.Context(), limit, 0.5); err != nil {
			t.Fatal(err)
		}
		r.Until("the kernel has it", func() bool { return r.quota(t) == 0.5 })
		kernel := time.Since(began)
		eventually(t, "the status says so", func() bool { return effective(t, limit) == 0.5 })
		t.Logf("from the PATCH to the quota %v, to the status %v", kernel.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
		if n := r.restarts(r.first(t)); n != 0 {
			t.Errorf("%v restarts", n)
		}
	})
	most := 0.0
	t.Run("WhatIsDeferredIsPutBackWithTheKubeletsWords", func(t *testing.T) {
		most = limit.Nearest(trimtab.Unlimited()).Value
		k := open(trimtab.CPU)
		if err := write(t.Context(), k, most-0.1); err != nil {
			t.Fatal(err)
		}
		r.Until("it is hopeless", func() bool { return k.Traits().Hopeless(t.Context()) != "" })
		if why := k.Traits().Hopeless(t.Context()); !strings.Contains(why, "deferred: ") || effective(t, k) != 0.5 {
			t.Errorf("%q, in force %v", why, effective(t, k))
		}
		if err := write(t.Context(), k, 0.5); err != nil {
			t.Fatal(err)
		}
		eventually(t, "nothing is pending", func() bool { return effective(t, k) == 0.5 && k.Traits().Hopeless(t.Context()) == "" })
	})
	t.Run("WhatIsDeferredComesOnceThereIsRoom", func(t *testing.T) {
		k := open(trimtab.CPU)
		if err := write(t.Context(), k, most-0.2); err != nil {
			t.Fatal(err)
		}
		r.Until("it is deferred", func() bool {
			p, err := r.view.PodOf("shop", r.name(r.first(t)), "")
			return err == nil && p.Condition("PodResizePending") != nil
		})
		began := time.Now()
		r.Kubectl("-n", "shop", "patch", "pod", r.name(r.Pods()[1]), "--subresource=resize", "-p", `{"spec":{"containers":[{"name":"app","resources":{"requests":{"cpu":"50m"},"limits":{"cpu":"50m"}}}]}}`)
		r.Until("it is in force", func() bool { return effective(t, k) == most-0.2 })
		t.Logf("accepted %v after there was room", time.Since(began).Round(time.Millisecond))
		if err := write(t.Context(), k, 0.5); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it is back", func() bool { return effective(t, k) == 0.5 })
	})
	t.Run("MemoryInUseIsNotTakenAway", func(t *testing.T) {
		k := open(trimtab.Memory)
		read(t, k)
		undo := k.Undo()
		if err := write(t.Context(), k, 192<<20); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the memory is there", func() bool { return effective(t, k) == 192<<20 })
		r.Group(r.first(t)).Take()
		r.Until("it is in use", func() bool { return r.used(t) > 100<<20 })
		if err := k.Traits().Restore(t.Context(), undo); err != nil {
			t.Fatal(err)
		}
		r.Until("the kubelet says something", func() bool {
			p, err := r.view.PodOf("shop", r.name(r.first(t)), "")
			return err == nil && p.Condition("PodResizeInProgress") != nil && p.Condition("PodResizeInProgress").Reason == "Error"
		})
		ahead = 21 * time.Second
		why := k.Traits().Hopeless(t.Context())
		t.Log(why)
		if !strings.HasPrefix(why, "error: ") || effective(t, k) != 192<<20 || r.restarts(r.first(t)) != 0 {
			t.Errorf("%q, in force %v, %d restarts", why, effective(t, k), r.restarts(r.first(t)))
		}
		if err := write(t.Context(), k, 192<<20); err != nil {
			t.Errorf("put back: %v", err)
		}
		eventually(t, "nothing is pending", func() bool { return effective(t, k) == 192<<20 && k.Traits().Hopeless(t.Context()) == "" })
	})
	t.Run("AResizeThatRestartsIsNotMadeAndWouldRestart", func(t *testing.T) {
		at := actuator.Location{Path: "shop/Deployment/restarts/app/*"}
		k := r.cluster().knob(kubernetes.Pods(r.of), at, trimtab.CPU)
		if err := write(t.Context(), k, 0.2); !errors.Is(err, actuator.ErrReadOnly) || !strings.Contains(err.Error(), "resizePolicy") {
			t.Errorf("write: %v", err)
		}
		name := strings.TrimSpace(r.Kubectl("-n", "shop", "get", "pod", "-l", "app=restarts", "-o", "jsonpath={.items[0].metadata.name}"))
		r.Kubectl("-n", "shop", "patch", "pod", name, "--subresource=resize", "-p", `{"spec":{"containers":[{"name":"app","resources":{"limits":{"cpu":"200m"}}}]}}`)
		r.Until("somebody else's resize restarts it", func() bool {
			return strings.TrimSpace(r.Kubectl("-n", "shop", "get", "pod", name, "-o", "jsonpath={.status.containerStatuses[0].restartCount}")) == "1"
		})
	})
	t.Run("AKubeletThatRestartsForgetsNothing", func(t *testing.T) {
		k := open(trimtab.CPU)
		before := r.quota(t)
		r.RestartKubelet()
		if got := r.quota(t); got != before || effective(t, k) != before {
			t.Errorf("quota %v, in force %v, %v before", got, effective(t, k), before)
		}
		if err := write(t.Context(), k, 0.4); err != nil {
			t.Fatal(err)
		}
		r.Until("it resizes again", func() bool { return r.quota(t) == 0.4 && effective(t, k) == 0.4 })
		if n := r.restarts(r.first(t)); n != 0 {
			t.Errorf("%v restarts", n)
		}
	})
}

// first is the pod whose knob r.knobs opens.
func (r *real) first(t *testing.T) kubetest.Object {
	t.Helper()
	found, err := kubernetes.Pods(r.of).Find(t.Context(), actuator.Location{Path: podsAt})
	if err != nil || len(found) == 0 {
		t.Fatalf("find pods: %v, %v", found, err)
	}
	for _, pod := range r.Pods() {
		if r.name(pod) == found[0].Name {
			return pod
		}
	}
	t.Fatalf("no pod %s", found[0].Name)
	return nil
}

func (r *real) name(pod kubetest.Object) string {
	return fmt.Sprint(kubetest.Sub(pod, "metadata")["name"])
}

func (r *real) restarts(pod kubetest.Object) int {
	n, _ := kubetest.Sub(pod, "status")["containerStatuses"].([]any)[0].(kubetest.Object)["restartCount"].(float64)
	return int(n)
}

// file reads the first of some files in the groups of the first pod's container.
func (r *real) file(t *testing.T, names ...string) string {
	t.Helper()
	return r.Group(r.first(t)).Read(names...)
}

// quota is the kernel's CPU limit, in cores: both kinds of cgroups have periods of 100 ms.
func (r *real) quota(t *testing.T) float64 {
	t.Helper()
	first, _, _ := strings.Cut(r.file(t, "cpu.max", "cpu.cfs_quota_us"), " ")
	v, err := strconv.ParseFloat(first, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v / 100_000
}

func (r *real) used(t *testing.T) int {
	t.Helper()
	v, err := strconv.Atoi(r.file(t, "memory.current", "memory.usage_in_bytes"))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// The kernel's files of pod and container, by the formulas of weight.go: version 1 has shares in both.
func TestARealKubeletMakesWeightsOfARequest(t *testing.T) {
	r := startReal(t, func(r *kubetest.Real) {
		r.Node()
		r.RunHere(1, `{requests: {cpu: 100m, memory: 64Mi}}`)
	})
	r.of.Rules = func(kube.Ref) kubernetes.Options { return kubernetes.Options{Weighs: true} }
	request, _ := r.knobs()
	for _, cores := range []float64{0.4, 0.1} {
		read(t, request)
		began := time.Now()
		if err := write(t.Context(), request, cores); err != nil {
			t.Fatal(err)
		}
		r.Until("it is in force", func() bool { return effective(t, request) == cores })
		took, shares := time.Since(began), kubernetes.SharesOf(cores)
		own, pod := r.file(t, "cpu.weight", "cpu.shares"), r.file(t, "../cpu.weight", "../cpu.shares")
		t.Logf("%v cores after %v: container %s, pod %s", cores, took.Round(time.Millisecond), own, pod)
		if own != fmt.Sprint(shares) && own != fmt.Sprint(kubernetes.ContainerWeight(shares)) && own != fmt.Sprint(kubernetes.PodWeight(shares)) {
			t.Errorf("%v cores: the container's group has %s", cores, own)
		}
		if pod != fmt.Sprint(shares) && pod != fmt.Sprint(kubernetes.PodWeight(shares)) {
			t.Errorf("%v cores: the pod's group has %s", cores, pod)
		}
		if n := r.restarts(r.first(t)); n != 0 {
			t.Errorf("%v restarts", n)
		}
	}
}
