package kubernetes_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/kube/kubetest"
	"github.com/trimtab/trimtab/internal/trial"
)

// This file has sentences about what a kubelet makes of a resize, and of containers
// without a limit.

// later lets the knobs that are opened from now on believe that time passes.
func (c *cluster) later() (pass func(time.Duration)) {
	var ahead atomic.Int64
	begin := time.Now() // it stands still: a busy machine would use up the seconds between two limits
	now := func() time.Time { return begin.Add(time.Duration(ahead.Load())) }
	for _, kind := range []*actuator.Kind{&c.pods, &c.scales} {
		open := kind.Open
		kind.Open = func(at actuator.Location, resource string) (actuator.Knob, error) {
			k, err := open(at, resource)
			if clock, ok := k.(interface{ At(func() time.Time) }); ok {
				clock.At(now)
			}
			return k, err
		}
	}
	return func(d time.Duration) { ahead.Add(int64(d)) }
}

// conditions are what the kubelet says of the first pod.
func (c *cluster) conditions(all ...kubetest.Object) {
	c.t.Helper()
	var list []any
	for _, one := range all {
		one["status"] = "True"
		list = append(list, one)
	}
	c.Edit(kubetest.PodPath(0), func(o kubetest.Object) { kubetest.Sub(o, "status")["conditions"] = list })
	c.sync()
}

// Item 10.
func TestWhatIsDeferredForTooLongInfeasibleOrAnErrorIsPutBackWithTheKubeletsWords(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		condition kubetest.Object
		patience  time.Duration
		want      string
		again     bool // as much may be asked for again
	}{
		"deferred":   {kubetest.Object{"type": "PodResizePending", "reason": "Deferred", "message": "Node didn't have enough resource: cpu"}, 7 * time.Second, "deferred: Node didn't have enough", true},
		"infeasible": {kubetest.Object{"type": "PodResizePending", "reason": "Infeasible", "message": "Node didn't have enough capacity: cpu"}, 0, "infeasible: Node didn't have enough capacity", false},
		"error":      {kubetest.Object{"type": "PodResizeInProgress", "reason": "Error", "message": "memory limit below usage"}, 20 * time.Second, "error: memory limit below usage", true},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, 1, burstable)
			c.rules.DeferFor = 7 * time.Second
			pass := c.later()
			a := c.runs(nil)
			if got := statusOf(a.Handle(t.Context(), asks(1, order{firstPod, trimtab.CPU, 0.5, 4}))); got != trimtab.Pending {
				t.Fatalf("status %v", got)
			}
			c.conditions(test.condition)
			if pass(test.patience - time.Second); test.patience > 0 {
				a.Tick(t.Context())
				if k := stateOf(a, trimtab.CPU, firstPod); k.Now != trimtab.Units(4) || k.InForce() != trimtab.Units(0.5) {
					t.Errorf("within its time: %+v", k)
				}
			}
			pass(2 * time.Second)
			a.Tick(t.Context())
			if k := stateOf(a, trimtab.CPU, firstPod); k.Now != trimtab.Units(0.5) || !strings.Contains(k.Problem, test.want) {
				t.Errorf("after it: %+v, want %q", k, test.want)
			}
			app := kubetest.Container(c.Get(kubetest.PodPath(0)), "app")
			if got := kubetest.Sub(app, "resources", "limits")["cpu"]; got != "500m" {
				t.Errorf("limit %v", got)
			}
			c.Kubelet(kubetest.PodPath(0))
			c.sync()
			k := c.limit(trimtab.CPU)
			for _, h := range []actuator.Knob{k} { // a knob that saw it itself
				if err := write(t.Context(), h, 4); err != nil {
					t.Fatal(err)
				}
				c.conditions(test.condition)
				pass(time.Minute)
				if h.Traits().Hopeless(t.Context()) == "" {
					t.Fatal("it is hopeful")
				}
				if err := write(t.Context(), h, 0.5); err != nil {
					t.Fatal(err)
				}
				for v, forbidden := range map[float64]bool{4: !test.again, 5: !test.again, 3: false} {
					if err := write(t.Context(), h, v); errors.Is(err, trimtab.ErrRefused) != forbidden {
						t.Errorf("%v again: %v", v, err)
					}
					if err := write(t.Context(), h, 0.5); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

// Item 11.
func TestAResizeIsWrittenOnlyWithoutConditionsWithTheGenerationObservedAndTheLimitWithin10m(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status func(pod, status kubetest.Object)
		done   bool
	}{
		"pending":                 {func(_, s kubetest.Object) { also(s, "PodResizePending", "Deferred") }, false},
		"in progress":             {func(_, s kubetest.Object) { also(s, "PodResizeInProgress", "") }, false},
		"an error":                {func(_, s kubetest.Object) { also(s, "PodResizeInProgress", "Error") }, false},
		"not observed":            {func(p, s kubetest.Object) { s["observedGeneration"] = 1 }, false},
		"nothing told of it":      {func(_, s kubetest.Object) { actual(s, "500m") }, false},
		"11m off":                 {func(_, s kubetest.Object) { actual(s, "989m") }, false},
		"10m off":                 {func(_, s kubetest.Object) { actual(s, "990m") }, true},
		"before 1.34":             {func(_, s kubetest.Object) { delete(s, "observedGeneration") }, true},
		"all of it":               {func(kubetest.Object, kubetest.Object) {}, true},
		"the request is no digit": {func(_, s kubetest.Object) { request(s, "97m") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, 1, burstable)
			a := c.runs(nil)
			if got := statusOf(a.Handle(t.Context(), asks(1, order{firstPod, trimtab.CPU, 0.5, 1}))); got != trimtab.Pending {
				t.Fatalf("status %v", got)
			}
			c.Kubelet(kubetest.PodPath(0))
			c.Edit(kubetest.PodPath(0), func(o kubetest.Object) { test.status(o, kubetest.Sub(o, "status")) })
			c.sync()
			want := trimtab.Pending
			if test.done {
				want = trimtab.Equal
			}
			if got := statusOf(a.Handle(t.Context(), asks(1, order{firstPod, trimtab.CPU, 1, 1}))); got != want {
				t.Errorf("status %v, want %v", got, want)
			}
		})
	}
}

func also(status kubetest.Object, kind, reason string) {
	all, _ := status["conditions"].([]any)
	status["conditions"] = append(all, kubetest.Object{"type": kind, "status": "True", "reason": reason})
}

func firstContainer(status kubetest.Object) kubetest.Object {
	return status["containerStatuses"].([]any)[0].(kubetest.Object)
}

func actual(status kubetest.Object, cpu string) {
	kubetest.Sub(firstContainer(status), "resources", "limits")["cpu"] = cpu
}

func request(status kubetest.Object, cpu string) {
	kubetest.Sub(firstContainer(status), "resources", "requests")["cpu"] = cpu
}

// Item 9.
func TestAContainerWithoutALimitIsBarredAndWhereOneMayBeAddedARestoreSetsWhatTheNodeHas(t *testing.T) {
	const unlimited = `{"requests":{"cpu":"100m","memory":"64Mi"},"limits":{"memory":"128Mi"}}`
	for _, alone := range []bool{false, true} {
		c := open(t, 1, unlimited)
		if err := write(t.Context(), c.limit(trimtab.CPU), 1); !errors.Is(err, trimtab.ErrRefused) || !strings.Contains(err.Error(), "no cpu limit") {
			t.Errorf("without leave: %v", err)
		}
		c.rules.AddLimits = true
		k := c.limit(trimtab.CPU)
		if got, err := k.Read(t.Context()); err != nil || !got.Unlimited {
			t.Errorf("read %v, %v", got, err)
		}
		undo := k.Undo()
		if err := write(t.Context(), k, 1); err != nil {
			t.Fatal(err)
		}
		if got, err := k.Traits().Effective(t.Context()); err != nil || !got.Unlimited {
			t.Errorf("in force %v, %v", got, err)
		}
		c.Kubelet(kubetest.PodPath(0))
		c.sync()
		if got := effective(t, k); got != 1 {
			t.Errorf("in force %v", got)
		}
		again := k
		if alone {
			var err error
			if again, err = c.pods.Reopen(undo); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // a second time changes nothing
			if err := again.Traits().Restore(t.Context(), undo); err != nil {
				t.Fatal(err)
			}
		}
		app := kubetest.Container(c.Get(kubetest.PodPath(0)), "app")
		if limit, request := kubetest.Sub(app, "resources", "limits")["cpu"], kubetest.Sub(app, "resources", "requests")["cpu"]; limit != "8000m" || request != "100m" {
			t.Errorf("after the restore: limit %v, request %v", limit, request)
		}
		if n := c.patches("resize"); n != 2 {
			t.Errorf("%d patches", n)
		}
	}
}

func TestNoContainerGetsALimitThatTheServerWouldMakeItsRequest(t *testing.T) {
	c := open(t, 1, `{"requests":{"memory":"64Mi"}}`)
	c.rules.AddLimits = true
	if err := write(t.Context(), c.limit(trimtab.CPU), 1); !errors.Is(err, trimtab.ErrRefused) || len(c.Writes()) > 0 {
		t.Errorf("%v, writes %q", err, c.Writes())
	}
}

// Whatever a pod asks for and whatever a knob is set to, the server refuses no patch:
// none would change the QoS class, remove a request or a limit, or end below a request.
func TestNoPatchRemovesARequestOrALimitOrWouldChangeTheClass(t *testing.T) {
	t.Parallel()
	tr := trial.Start(t, 25)
	s := kubetest.New(t)
	s.Shop(1, burstable)
	c := watch(t, s)
	c.rules.AddLimits = true
	patched := 0
	for range tr.N {
		part := func(resource string, unit string) (request, limit string) {
			v := 50 + 10*tr.Rand.IntN(40)
			requested := v
			if tr.Rand.IntN(2) == 0 {
				requested = 10 + 10*tr.Rand.IntN(v/10)
			}
			request, limit = fmt.Sprintf("%q:\"%d%s\"", resource, requested, unit), fmt.Sprintf("%q:\"%d%s\"", resource, v, unit)
			switch tr.Rand.IntN(6) {
			case 0:
				limit = ""
			case 1:
				request, limit = "", ""
			}
			return request, limit
		}
		container := func(name string) string {
			cpu, cpus := part("cpu", "m")
			memory, memories := part("memory", "")
			join := func(a, b string) string { return strings.Trim(a+","+b, ",") }
			return fmt.Sprintf(`{"name":%q,"resources":{"requests":{%s},"limits":{%s}}}`, name, join(cpu, memory), join(cpus, memories))
		}
		containers := container("app")
		if tr.Rand.IntN(2) == 0 {
			containers += "," + container("sidecar")
		}
		c.Edit(kubetest.PodPath(0), func(o kubetest.Object) {
			kubetest.Sub(o, "spec")["containers"] = kubetest.Parse(t, `{"a":[`+containers+`]}`)["a"]
			kubetest.Bump(o)
		})
		c.Kubelet(kubetest.PodPath(0))
		c.sync()
		var bad atomic.Int64
		for range 4 {
			resource, v := trimtab.CPU, float64(tr.Rand.IntN(500))/1000
			if tr.Rand.IntN(3) == 0 {
				resource, v = trimtab.Memory, float64(tr.Rand.IntN(5000))
			}
			k := c.limit(resource)
			read(t, k)
			before := len(c.Patched())
			requests := c.patches("resize")
			err := k.Write(t.Context(), k.Nearest(trimtab.Units(v)))
			sent, through := c.patches("resize")-requests, len(c.Patched())-before
			if patched += through; sent != through {
				tr.Failf("%s to %v of %s: %v", resource, v, containers, err)
				bad.Add(1)
			}
			c.sync()
		}
		for _, body := range c.Bodies() {
			if strings.Contains(fmt.Sprint(body), "nil") {
				tr.Failf("a patch removes something: %v", body)
			}
		}
		tr.Case()
	}
	if patched == 0 {
		t.Error("nothing was patched")
	}
}

// Item 12 beside the test of the knobs alone: a rollout keeps plans from lowering, and no
// baseline from being put back.
func TestARolloutKeepsNoBaselineFromBeingPutBack(t *testing.T) {
	c := open(t, 3, burstable)
	a := c.runs(func(config *actuator.Config) { config.KeepOnStop = false })
	if got := statusOf(a.Handle(t.Context(), asks(1, order{firstPod, trimtab.CPU, 0.5, 2}))); got != trimtab.Pending {
		t.Fatal(got)
	}
	c.settle()
	c.Edit(kubetest.Deployment, func(o kubetest.Object) { kubetest.Sub(o, "status")["updatedReplicas"] = 1 })
	eventually(t, "the rollout is seen", func() bool {
		w, err := c.view.WorkloadOf(checkout)
		return err == nil && c.view.Rollout(w) != ""
	})
	if got := a.Handle(t.Context(), asks(1, order{firstPod, trimtab.CPU, 2, 1})); statusOf(got) != trimtab.Equal || !strings.Contains(got.Results[0].Reason, "in use") {
		t.Errorf("a fall: %+v", got)
	}
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c.changed(trimtab.CPU) {
		t.Error("the limit was not put back")
	}
}

// Item 15.
func TestReplicasCountWhenPodsAreAvailableAndThoseThatDoNotComeAreGivenBack(t *testing.T) {
	for name, test := range map[string]struct {
		condition string
		want      string
	}{
		"pending":         {`[]`, "4 of 6 pods are available after 3m"},
		"replica failure": {`[{"type":"ReplicaFailure","status":"True","reason":"FailedCreate","message":"exceeded quota: q"}]`, "exceeded quota: q"},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, 3, burstable)
			pass := c.later()
			a := c.runs(nil)
			if got := statusOf(a.Handle(t.Context(), asks(1, order{"checkout", trimtab.Replicas, 3, 6}))); got != trimtab.Pending {
				t.Fatalf("status %v before any pod came", got)
			}
			c.Edit(kubetest.Deployment, func(o kubetest.Object) {
				s := kubetest.Sub(o, "status")
				s["replicas"], s["updatedReplicas"], s["availableReplicas"], s["observedGeneration"] = 6, 6, 4, kubetest.Sub(o, "metadata")["generation"]
				s["conditions"] = kubetest.Parse(t, `{"a":`+test.condition+`}`)["a"]
			})
			eventually(t, "four are available", func() bool {
				a.Tick(t.Context())
				k := stateOf(a, trimtab.Replicas, "checkout")
				return k.InForce() == trimtab.Units(4)
			})
			pass(179 * time.Second)
			a.Tick(t.Context())
			if k := stateOf(a, trimtab.Replicas, "checkout"); k.Now != trimtab.Units(6) || k.Problem != "" {
				t.Errorf("within the time: %+v", k)
			}
			pass(2 * time.Second)
			a.Tick(t.Context())
			if k := stateOf(a, trimtab.Replicas, "checkout"); k.Now != trimtab.Units(4) || !strings.Contains(k.Problem, test.want) {
				t.Errorf("after it: %+v, want %q", k, test.want)
			}
		})
	}
}

func TestReplicasAreWrittenOnceThePodsAreAvailable(t *testing.T) {
	c := open(t, 3, burstable)
	a := c.runs(nil)
	if got := statusOf(a.Handle(t.Context(), asks(1, order{"checkout", trimtab.Replicas, 3, 5}))); got != trimtab.Pending {
		t.Fatalf("status %v", got)
	}
	c.settle()
	if got := statusOf(a.Handle(t.Context(), asks(1, order{"checkout", trimtab.Replicas, 5, 5}))); got != trimtab.Equal {
		t.Errorf("status %v once they are", got)
	}
}

// Item 1.2 of the specification: none runs on 0 pods unless that is allowed.
func TestANumberGoesToZeroOnlyWhereThatIsAllowedAndNoAutoscalerIsThere(t *testing.T) {
	t.Parallel()
	for _, allowed := range []bool{false, true} {
		c := open(t, 1, burstable)
		c.rules.AllowZero = allowed
		k := c.scale()
		want := 1.0
		if allowed {
			want = 0
		}
		if got := k.Nearest(trimtab.Units(0)).Value; got != want {
			t.Errorf("allowed %v: nearest to 0 is %v", allowed, got)
		}
		if f, err := k.Traits().Floor(t.Context()); err != nil || f.Value != want {
			t.Errorf("allowed %v: floor %v, %v", allowed, f, err)
		}
		if err := write(t.Context(), k, 0); err != nil {
			t.Fatal(err)
		}
		if got := read(t, k); got != want {
			t.Errorf("allowed %v: %v", allowed, got)
		}
		if allowed {
			if err := write(t.Context(), k, 2); err != nil {
				t.Errorf("back from 0: %v", err)
			}
		}
	}
	c := open(t, 1, burstable)
	c.rules.AllowZero = true
	c.Put("/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers/h", `{"spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"checkout"}}}`)
	k := c.scale()
	eventually(t, "the HPA is seen", func() bool { return k.MayWrite(t.Context()) != nil })
	if err := write(t.Context(), k, 0); !errors.Is(err, trimtab.ErrRefused) || c.Requests()[http.MethodPatch+" scale"] > 0 {
		t.Errorf("beside an HPA: %v", err)
	}
}
