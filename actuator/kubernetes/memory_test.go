package kubernetes_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
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

func TestAMemoryLimitIsAddedByNoPlan(t *testing.T) {
	c := open(t, 1, `{"requests":{"cpu":"100m","memory":"64Mi"},"limits":{"cpu":"500m"}}`)
	a := c.runs(c.withMemory)
	p := asksAll(order{firstPod, trimtab.Memory, 0, 256 * mib})
	p.Actions[0].Expect = trimtab.Unlimited()
	o := a.Handle(t.Context(), p)
	if statusOf(o) == trimtab.Pending || statusOf(o) == trimtab.Written || !strings.Contains(o.Results[0].Reason, "no memory limit") || c.patches("resize") != 0 {
		t.Errorf("outcome %+v, %d resizes", o, c.patches("resize"))
	}
	if k := stateOf(a, trimtab.Memory, firstPod); !k.Now.Unlimited {
		t.Errorf("%+v", k)
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

func TestCPUAndMemoryOfAPodAreOneResizeAndEachIsReadBack(t *testing.T) {
	c := open(t, 3, burstable)
	eventually(t, "the version is known", c.view.LowersMemory)
	c.use(20 * mib)
	a := c.runs(c.withMemory)
	cores, bytes := 0.5, 128.0*mib
	for resizes, to := range []order{{"", "", 0.8, 192 * mib}, {"", "", 0.4, 96 * mib}} { // both rise, both fall
		o := a.Handle(t.Context(), asksAll(order{firstPod, trimtab.CPU, cores, to.from}, order{firstPod, trimtab.Memory, bytes, to.to}))
		if cores, bytes = to.from, to.to; len(o.Results) != 2 {
			t.Fatalf("outcome %+v", o)
		}
		for _, r := range o.Results {
			if r.Status != trimtab.Pending || r.Found != r.Asked || !r.Known {
				t.Errorf("%+v", r)
			}
		}
		if n := c.patches("resize"); n != resizes+1 {
			t.Errorf("%d resizes after %d plans", n, resizes+1)
		}
		c.settle()
		eventually(t, "both are in force", func() bool {
			a.Tick(t.Context())
			cpu, memory := stateOf(a, trimtab.CPU, firstPod), stateOf(a, trimtab.Memory, firstPod)
			return cpu.InForce() == trimtab.Units(cores) && memory.InForce() == trimtab.Units(bytes)
		})
	}
}

// Each of them is allowed. Both together would make the pod Guaranteed.
func TestOfCPUAndMemoryThatAreRefusedTogetherEachIsTriedAlone(t *testing.T) {
	c := open(t, 1, `{"requests":{"cpu":"100m","memory":"67108864"},"limits":{"cpu":"500m","memory":"128Mi"}}`)
	eventually(t, "the version is known", c.view.LowersMemory)
	c.use(10 * mib)
	a := c.runs(c.withMemory)
	o := a.Handle(t.Context(), asksAll(order{firstPod, trimtab.CPU, 0.5, 0.1}, order{firstPod, trimtab.Memory, 128 * mib, 64 * mib}))
	if len(o.Results) != 2 || o.Results[0].Status != trimtab.Pending || o.Results[0].Found != trimtab.Units(0.1) ||
		o.Results[1].Status != trimtab.Failed || !strings.Contains(o.Results[1].Reason, "QoS class") || o.Results[1].Found != trimtab.Units(128*mib) {
		t.Errorf("outcome %+v", o)
	}
}

// A kubelet resizes CPU and memory of a pod together or not at all.
func TestOnlyTheResourceThatAKubeletNamesIsBarredByItsRefusal(t *testing.T) {
	for message, barred := range map[string][2]bool{
		"Node didn't have enough capacity: memory, requested: 9, capacity: 8": {false, true},
		"Node didn't have enough capacity: cpu, requested: 9, capacity: 8":    {true, false},
		"In-place resize is not possible":                                     {true, true},
	} {
		c := open(t, 1, burstable)
		eventually(t, "the version is known", c.view.LowersMemory)
		c.use(10 * mib)
		limits := [2]actuator.Knob{c.limit(trimtab.CPU), c.limit(trimtab.Memory)}
		more, less := [2]float64{1, 256 * mib}, [2]float64{0.5, 128 * mib}
		set := func(to [2]float64) error {
			read(t, limits[0])
			read(t, limits[1])
			return limits[0].Traits().WriteWith(t.Context(), trimtab.Units(to[0]), limits[1], trimtab.Units(to[1]))
		}
		if err := set(more); err != nil {
			t.Fatal(err)
		}
		c.conditions(kubetest.Object{"type": "PodResizePending", "reason": "Infeasible", "message": message})
		for _, k := range limits {
			if why := k.Traits().Hopeless(t.Context()); !strings.Contains(why, message) {
				t.Errorf("%s: hopeless: %q", k, why)
			}
		}
		if err := set(less); err != nil {
			t.Fatal(err)
		}
		c.sync()
		for i, k := range limits {
			read(t, k)
			if err := write(t.Context(), k, more[i]); errors.Is(err, trimtab.ErrRefused) != barred[i] {
				t.Errorf("%q: %s: %v", message, k, err)
			}
			c.sync()
		}
	}
}

func nameOf(i int) string {
	path := kubetest.PodPath(i)
	return path[strings.LastIndex(path, "/")+1:]
}
