package kubernetes_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/knobtest"
	"github.com/trimtab/trimtab/actuator/kubernetes"
	"github.com/trimtab/trimtab/internal/kube/kubetest"
)

// openEnded is a container without a CPU limit.
const openEnded = `{"requests":{"cpu":"500m","memory":"64Mi"},"limits":{"memory":"128Mi"}}`

// 100m, one core and ten were read in the sources named in weight.go; the others were computed by these.
func TestARequestIsAWeightOfThePodByTheLineAndOfTheContainerByTheCurve(t *testing.T) {
	for cores, want := range map[float64][3]uint64{
		0.001: {2, 1, 1}, 0.01: {10, 1, 4}, 0.1: {102, 4, 17}, 0.5: {512, 20, 59}, 1: {1024, 39, 100}, 10: {10240, 391, 639},
		256: {262144, 10000, 10000}, 1000: {262144, 10000, 10000},
	} {
		shares := kubernetes.SharesOf(cores)
		if got := [3]uint64{shares, kubernetes.PodWeight(shares), kubernetes.ContainerWeight(shares)}; got != want {
			t.Errorf("%v cores: shares, pod and container %v, want %v", cores, got, want)
		}
	}
	for shares := uint64(2); shares < 262144; shares++ {
		if a, b := kubernetes.PodWeight(shares), kubernetes.PodWeight(shares+1); b < a {
			t.Fatalf("the line falls at %d", shares)
		}
		if a, b := kubernetes.ContainerWeight(shares), kubernetes.ContainerWeight(shares+1); b < a || a < 1 || b > 10000 {
			t.Fatalf("the curve falls at %d", shares)
		}
	}
}

func TestARequestMeetsTheContractOfKnobs(t *testing.T) {
	knobtest.Run(t, func(t *testing.T) knobtest.Fixture { return contract(t, weighing(t, 1, openEnded), 0.01) })
}

// weighing is a cluster whose workload shares CPU by weight.
func weighing(t *testing.T, pods int, resources string) *cluster {
	c := open(t, pods, resources)
	c.rules.Weighs = true
	return c
}

func (c *cluster) cpuOf(i int) (request, limit any) {
	app := kubetest.Container(c.Get(kubetest.PodPath(i)), "app")
	return kubetest.Sub(app, "resources", "requests")["cpu"], kubetest.Sub(app, "resources", "limits")["cpu"]
}

func TestWhatIsSetOfAContainerGoesByItsLimitItsClassAndTheCap(t *testing.T) {
	for name, test := range map[string]struct {
		resources string
		rules     kubernetes.Options
		// request and limit are as they are after a write of 0.4 to one that begins with 500m.
		request, limit any
		refused        string
	}{
		"no limit":                              {resources: openEnded, request: "500m", refused: "has no cpu limit"},
		"no limit, never":                       {resources: openEnded, rules: kubernetes.Options{Weighs: true}, request: "400m"},
		"no limit, and one may be added":        {resources: strings.Replace(openEnded, "500m", "300m", 1), rules: kubernetes.Options{AddLimits: true}, request: "300m", limit: "400m"},
		"a limit":                               {resources: burstable, request: "100m", limit: "400m"},
		"a limit, never":                        {resources: burstable, rules: kubernetes.Options{Weighs: true}, request: "400m", limit: "500m"},
		"Guaranteed":                            {resources: equal, request: "400m", limit: "400m"},
		"Guaranteed, never":                     {resources: equal, rules: kubernetes.Options{Weighs: true}, request: "400m", limit: "400m"},
		"no request of CPU, and no limit":       {resources: `{"requests":{"memory":"64Mi"}}`, rules: kubernetes.Options{Weighs: true}, refused: "has no cpu request"},
		"BestEffort":                            {resources: `{}`, refused: "BestEffort"},
		"a limit that would make it Guaranteed": {resources: `{"requests":{"cpu":"100m","memory":"128Mi"},"limits":{"cpu":"400m","memory":"128Mi"}}`, rules: kubernetes.Options{Weighs: true}, request: "100m", limit: "400m", refused: "QoS class"},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, 1, test.resources)
			*c.rules = test.rules
			err := write(t.Context(), c.limit(trimtab.CPU), 0.4)
			if test.refused == "" && err != nil || test.refused != "" && (!errors.Is(err, trimtab.ErrRefused) || !strings.Contains(err.Error(), test.refused)) {
				t.Errorf("write: %v, want %q", err, test.refused)
			}
			if request, limit := c.cpuOf(0); request != test.request || limit != test.limit {
				t.Errorf("request %v, limit %v, want %v, %v", request, limit, test.request, test.limit)
			}
		})
	}
}

func TestARequestStaysBelowItsLimitAndTheClassAsItIs(t *testing.T) {
	c := weighing(t, 1, `{"requests":{"cpu":"100m","memory":"128Mi"},"limits":{"cpu":"500m","memory":"128Mi"}}`)
	k := c.limit(trimtab.CPU)
	read(t, k)
	if got := k.Nearest(trimtab.Units(3)).Value; got != 0.49 {
		t.Errorf("nearest to 3 is %v, want 10m below the limit: the pod would be Guaranteed", got)
	}
	for v, refused := range map[float64]bool{0.5: true, 0.6: true, 0.49: false} {
		if err := write(t.Context(), k, v); errors.Is(err, trimtab.ErrRefused) != refused {
			t.Errorf("%v: %v", v, err)
		}
	}
}

func TestARequestIsInForceOnceTheNodeKeepsItAndAtItsEndTheOldOneComesBack(t *testing.T) {
	for _, alone := range []bool{false, true} {
		c := weighing(t, 1, openEnded)
		before := c.limit(trimtab.CPU)
		read(t, before)
		undo := before.Undo()
		a := c.runs(func(config *actuator.Config) { config.KeepOnStop = alone })
		if got := statusOf(a.Handle(t.Context(), asks(1, order{firstPod, trimtab.CPU, 0.5, 2}))); got != trimtab.Pending {
			t.Fatalf("status %v", got)
		}
		if k := stateOf(a, trimtab.CPU, firstPod); k.InForce() != trimtab.Units(0.5) || !k.Shared || !k.Reserves || k.Capped || k.Baseline != trimtab.Units(0.5) {
			t.Errorf("%+v", k)
		}
		c.Kubelet(kubetest.PodPath(0))
		c.sync()
		if got := statusOf(a.Handle(t.Context(), asks(1, order{firstPod, trimtab.CPU, 2, 2}))); got != trimtab.Equal {
			t.Errorf("status %v", got)
		}
		if alone {
			k, err := c.pods.Reopen(undo)
			if err != nil {
				t.Fatal(err)
			}
			if err := k.Traits().Restore(t.Context(), undo); err != nil {
				t.Fatal(err)
			}
		} else if err := a.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if request, limit := c.cpuOf(0); request != "500m" || limit != nil {
			t.Errorf("alone %v: request %v, limit %v", alone, request, limit)
		}
		if n := c.patches("resize"); n != 2 {
			t.Errorf("%d patches", n)
		}
	}
}

func TestARequestThatTheNodeRefusesIsPutBackNamedAndAskedForAgainLaterAndLater(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		condition kubetest.Object
		waits     []time.Duration
	}{
		"deferred":   {kubetest.Object{"type": "PodResizePending", "reason": "Deferred", "message": "Node didn't have enough resource: cpu"}, []time.Duration{5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 40 * time.Minute, time.Hour, time.Hour}},
		"infeasible": {kubetest.Object{"type": "PodResizePending", "reason": "Infeasible", "message": "Node didn't have enough capacity: cpu"}, []time.Duration{time.Hour, time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			c := weighing(t, 1, openEnded)
			pass := c.later()
			k := c.limit(trimtab.CPU)
			for i, wait := range test.waits {
				read(t, k)
				if err := write(t.Context(), k, 4); err != nil {
					t.Fatalf("try %d: %v", i, err)
				}
				c.conditions(kubetest.Object{"type": test.condition["type"], "reason": test.condition["reason"], "message": test.condition["message"]})
				pass(61 * time.Second)
				for range 3 { // one refusal, however often it is looked at
					k.Traits().Hopeless(t.Context())
				}
				if why := k.Traits().Hopeless(t.Context()); !strings.Contains(why, name+": ") || !strings.Contains(why, "didn't have enough") {
					t.Fatalf("hopeless: %q", why)
				}
				if err := write(t.Context(), k, 0.5); err != nil {
					t.Fatal(err)
				}
				c.Kubelet(kubetest.PodPath(0))
				c.sync()
				pass(wait - time.Second)
				n := c.patches("resize")
				if err := write(t.Context(), k, 4); !errors.Is(err, trimtab.ErrRefused) || !strings.Contains(err.Error(), "had no room for a request of 4") || c.patches("resize") != n {
					t.Errorf("%v after try %d: %v", wait-time.Second, i, err)
				}
				read(t, k)
				if st := k.Traits().Status(t.Context()); st.Most != 0.5 || !strings.Contains(st.By, "didn't have enough") {
					t.Errorf("the planner is told %v by %q", st.Most, st.By)
				}
				pass(2 * time.Second)
			}
			if err := write(t.Context(), k, 4); err != nil {
				t.Fatal(err)
			}
			c.Kubelet(kubetest.PodPath(0))
			c.sync()
			if got := effective(t, k); got != 4 {
				t.Errorf("in force %v", got)
			}
		})
	}
}

func TestARequestForWhichTheNodeIsKnownToHaveNoRoomIsNotAskedFor(t *testing.T) {
	c := weighing(t, 3, `{"requests":{"cpu":"2","memory":"64Mi"}}`)
	k := c.limit(trimtab.CPU)
	read(t, k)
	if err := write(t.Context(), k, 4.5); !errors.Is(err, trimtab.ErrRefused) || !strings.Contains(err.Error(), "node n1 has room for 2000m more") {
		t.Errorf("%v", err)
	}
	if n := c.patches("resize"); n != 0 {
		t.Errorf("%d patches", n)
	}
	if err := write(t.Context(), k, 4); err != nil {
		t.Errorf("all that there is: %v", err)
	}
	c.Edit(kubetest.PodPath(1), func(o kubetest.Object) {
		kubetest.Sub(o, "spec")["initContainers"] = []any{kubetest.Parse(t, `{"name":"proxy","restartPolicy":"Always","resources":{"requests":{"cpu":"500m"}}}`)}
		kubetest.Bump(o)
	})
	c.sync()
	k = c.limit(trimtab.CPU)
	read(t, k)
	if err := write(t.Context(), k, 4.2); !errors.Is(err, trimtab.ErrRefused) || !strings.Contains(err.Error(), "has room for 0m more") {
		t.Errorf("beside a sidecar that goes on: %v", err)
	}
}

func TestARequestStaysAboveWhatALimitRangeAllowsBesideItsLimit(t *testing.T) {
	t.Parallel()
	c := weighing(t, 1, `{"requests":{"cpu":"1","memory":"64Mi"},"limits":{"cpu":"2"}}`)
	c.Put("/api/v1/namespaces/shop/limitranges/r", `{"spec":{"limits":[{"type":"Container","maxLimitRequestRatio":{"cpu":"4"}}]}}`)
	k := c.limit(trimtab.CPU)
	eventually(t, "the floor is half a core", func() bool {
		f, err := k.Traits().Floor(t.Context())
		return err == nil && f.Value == 0.5
	})
}

// The file says another cap after a restart: the request is no baseline of the limit.
func TestWhereTheLimitIsTurnedNextTheRequestIsPutBackFirst(t *testing.T) {
	c := weighing(t, 1, burstable)
	dir, locks := t.TempDir(), t.TempDir()
	here := func(config *actuator.Config) { config.Dir, config.LockDir = dir, locks }
	a := c.runs(here)
	a.Handle(t.Context(), asks(1, order{firstPod, trimtab.CPU, 0.1, 0.3}))
	if request, _ := c.cpuOf(0); request != "300m" {
		t.Fatalf("request %v", request)
	}
	c.Kubelet(kubetest.PodPath(0))
	if err := a.Close(t.Context()); err != nil { // it leaves what it set
		t.Fatal(err)
	}
	c.sync()
	c.rules.Weighs = false
	a = c.runs(here)
	if request, limit := c.cpuOf(0); request != "100m" || limit != "500m" {
		t.Errorf("request %v and limit %v, want both as the site set them", request, limit)
	}
	c.Kubelet(kubetest.PodPath(0))
	c.sync()
	a.Tick(t.Context())
	if k := stateOf(a, trimtab.CPU, firstPod); k.Baseline != trimtab.Units(0.5) || k.Problem != "" || k.Shared {
		t.Errorf("the limit: %+v", k)
	}
	a.Handle(t.Context(), asks(2, order{firstPod, trimtab.CPU, 0.5, 1}))
	if request, limit := c.cpuOf(0); request != "100m" || limit != "1000m" {
		t.Errorf("then request %v and limit %v", request, limit)
	}
}

func TestAnAutoscalerThatGoesByRequestsBarsThem(t *testing.T) {
	t.Parallel()
	hpa := `{"spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"checkout"},"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50}}}]}}`
	for _, weighs := range []bool{true, false} {
		c := open(t, 1, burstable)
		c.rules.Weighs = weighs
		c.Put("/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers/h", hpa)
		k := c.limit(trimtab.CPU)
		seen := func() bool {
			other, err := c.view.Others(checkout, "app", trimtab.CPU, true)
			return err == nil && other != ""
		}
		eventually(t, "the HPA is seen", seen)
		if err := k.MayWrite(t.Context()); errors.Is(err, actuator.ErrReadOnly) != weighs {
			t.Errorf("weighs %v: %v", weighs, err)
		}
	}
}

func TestExplainNamesTheTwoWeightsOfARequest(t *testing.T) {
	c := weighing(t, 1, openEnded)
	c.Edit(kubetest.PodPath(0), func(o kubetest.Object) {
		spec := kubetest.Sub(o, "spec")
		spec["containers"] = append(spec["containers"].([]any), kubetest.Parse(t, `{"name":"sidecar","resources":{"requests":{"cpu":"500m"}}}`))
		kubetest.Bump(o)
	})
	c.Kubelet(kubetest.PodPath(0))
	c.sync()
	note := c.limit(trimtab.CPU).Traits().Status(t.Context()).Note
	for _, want := range []string{"its request of 500m", "that of its pod counts, 39, which the kubelet writes", "its own, 59, which the runtime writes by another formula"} {
		if !strings.Contains(note, want) {
			t.Errorf("%q lacks %q", note, want)
		}
	}
	c.Edit(kubetest.PodPath(0), func(o kubetest.Object) {
		spec := kubetest.Sub(o, "spec")
		spec["containers"] = spec["containers"].([]any)[:1]
		spec["initContainers"] = []any{kubetest.Parse(t, `{"name":"proxy","restartPolicy":"Always","resources":{"requests":{"cpu":"500m"}}}`)}
		kubetest.Bump(o)
	})
	c.sync()
	if got := c.limit(trimtab.CPU).Traits().Status(t.Context()).Note; got != note {
		t.Errorf("of an init container that goes on: %q", got)
	}
	c = open(t, 1, burstable)
	if note := c.limit(trimtab.CPU).Traits().Status(t.Context()).Note; note != "" {
		t.Errorf("of a limit: %q", note)
	}
}

// What a node reads back of a request goes through a weight, and loses digits, or comes back by the
// other formula; what it keeps for the pod does not.
func TestARequestIsReadBackByWhatTheNodeKeepsAndNotByAFormula(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		keeps, reads string
		in           float64
	}{
		{"1", "1", 1}, {"1", "998m", 1}, {"1", "2537m", 1}, // the curve's 100, read by the line
		{"500m", "500m", 0.5}, {"500m", "1", 0.5}, {"1", "500m", 0.5},
	} {
		t.Run(fmt.Sprint(test.keeps, test.reads), func(t *testing.T) {
			c := weighing(t, 1, openEnded)
			k := c.limit(trimtab.CPU)
			read(t, k)
			if err := write(t.Context(), k, 1); err != nil {
				t.Fatal(err)
			}
			c.Kubelet(kubetest.PodPath(0))
			c.Edit(kubetest.PodPath(0), func(o kubetest.Object) {
				s := firstContainer(kubetest.Sub(o, "status"))
				kubetest.Sub(s, "allocatedResources")["cpu"] = test.keeps
				kubetest.Sub(s, "resources", "requests")["cpu"] = test.reads
			})
			c.sync()
			if got := effective(t, k); got != test.in {
				t.Errorf("in force %v, want %v", got, test.in)
			}
		})
	}
}
