package kubernetes_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/knobtest"
	"github.com/trimtab/trimtab/internal/kube"
	"github.com/trimtab/trimtab/internal/kube/kubetest"
)

// checkout is the workload of kubetest.Shop.
var checkout = kube.Ref{Namespace: "shop", Kind: kube.Deployment, Name: "checkout"} //nolint:gochecknoglobals // a name

func TestALimitMeetsTheContractOfKnobs(t *testing.T) {
	knobtest.Run(t, func(t *testing.T) knobtest.Fixture { return contract(t, open(t, 1, burstable), 0.11) })
}

// contract is the fixture of the limit, or the request, on CPU of the one pod of c.
func contract(t *testing.T, c *cluster, least float64) knobtest.Fixture {
	most := trimtab.Units(8)
	return knobtest.Fixture{
		Knob: c.limit(trimtab.CPU), Reopen: c.reopenLimit, Least: least, Most: 4, Unlimited: &most,
		Vanish: func() {
			c.Delete(kubetest.PodPath(0))
			eventually(t, "the pod is gone", func() bool {
				_, err := c.view.PodOf("shop", "checkout-7d9f-aa", "")
				return errors.Is(err, os.ErrNotExist)
			})
		},
		TakeEffect: func() {
			c.Kubelet(kubetest.PodPath(0))
			eventually(t, "the kubelet's word is there", func() bool {
				p, err := c.view.PodOf("shop", "checkout-7d9f-aa", "")
				return err == nil && p.Status.ObservedGeneration == p.Generation
			})
		},
	}
}

func TestTheNumberOfPodsMeetsTheContractOfKnobs(t *testing.T) {
	knobtest.Run(t, func(t *testing.T) knobtest.Fixture {
		c := open(t, 3, burstable)
		most := trimtab.Units(10_000)
		return knobtest.Fixture{
			Knob: c.scale(), Reopen: c.reopenScale, Least: 1, Most: 9, Unlimited: &most,
			Vanish: func() {
				c.Delete(kubetest.Deployment)
				eventually(t, "the workload is gone", func() bool {
					found, err := c.scales.Find(t.Context(), actuator.Location{Path: workloadAt})
					return err == nil && len(found) == 0
				})
			},
			TakeEffect: func() {
				c.Settle()
				version := kubetest.Sub(c.Get(kubetest.Deployment), "metadata")["resourceVersion"]
				eventually(t, "the controller's word is there", func() bool {
					w, err := c.view.WorkloadOf(checkout)
					return err == nil && w.ResourceVersion == version
				})
			},
		}
	})
}

func TestAResizeIsOnePatchOfOneContainerThatCarriesUIDAndVersion(t *testing.T) {
	c := open(t, 2, burstable)
	k := c.limit(trimtab.CPU)
	if err := write(t.Context(), k, 0.8); err != nil {
		t.Fatal(err)
	}
	if got := read(t, k); got != 0.8 {
		t.Errorf("read %v", got)
	}
	if got := effective(t, k); got != 0.5 {
		t.Errorf("in force is %v before the kubelet did anything", got)
	}
	if got := c.Writes(); len(got) != 1 || got[0] != "PATCH "+kubetest.PodPath(0)+"/resize" {
		t.Errorf("writes %q", got)
	}
	app := kubetest.Container(c.Get(kubetest.PodPath(0)), "app")
	if limit, request := kubetest.Sub(app, "resources", "limits")["cpu"], kubetest.Sub(app, "resources", "requests")["cpu"]; limit != "800m" || request != "100m" {
		t.Errorf("limit %v, request %v: the request of a Burstable pod stays", limit, request)
	}
	c.Kubelet(kubetest.PodPath(0))
	eventually(t, "the limit is in force", func() bool { return effective(t, k) == 0.8 })
}

func TestAnOutcomeIsWrittenOnlyWhenTheKubeletIsDone(t *testing.T) {
	c := open(t, 1, burstable)
	k := c.limit(trimtab.CPU)
	if err := write(t.Context(), k, 0.8); err != nil {
		t.Fatal(err)
	}
	// The limit is there, but the condition says that the kubelet is not done.
	c.Kubelet(kubetest.PodPath(0))
	c.Edit(kubetest.PodPath(0), func(o kubetest.Object) {
		kubetest.Sub(o, "status")["conditions"] = []any{kubetest.Object{"type": "PodResizeInProgress", "status": "True"}}
	})
	eventually(t, "the condition is seen", func() bool {
		p, err := c.view.PodOf("shop", "checkout-7d9f-aa", "")
		return err == nil && p.Condition("PodResizeInProgress") != nil
	})
	if got := effective(t, k); got != 0.5 {
		t.Errorf("in force is %v while the kubelet is at it", got)
	}
}

func TestAGuaranteedPodKeepsItsClassByOnePatchOfRequestAndLimit(t *testing.T) {
	c := open(t, 1, equal)
	k := c.limit(trimtab.CPU)
	if err := write(t.Context(), k, 0.3); err != nil {
		t.Fatal(err)
	}
	app := kubetest.Container(c.Get(kubetest.PodPath(0)), "app")
	if limit, request := kubetest.Sub(app, "resources", "limits")["cpu"], kubetest.Sub(app, "resources", "requests")["cpu"]; limit != "300m" || request != "300m" {
		t.Errorf("limit %v, request %v", limit, request)
	}
	if n := c.patches("resize"); n != 1 {
		t.Errorf("%d patches", n)
	}
}

func TestNoPatchWouldMakeABurstablePodGuaranteed(t *testing.T) {
	c := open(t, 1, `{"requests":{"cpu":"300m","memory":"128Mi"},"limits":{"cpu":"500m","memory":"128Mi"}}`)
	k := c.limit(trimtab.CPU)
	floor, err := k.Traits().Floor(t.Context())
	if err != nil || floor.Value != 0.31 {
		t.Errorf("floor %v, %v: want 10m above the request", floor, err)
	}
	if err := write(t.Context(), k, 0.3); !errors.Is(err, trimtab.ErrRefused) {
		t.Errorf("a limit that equals the request: %v", err)
	}
	if n := c.patches("resize"); n != 0 {
		t.Errorf("%d patches", n)
	}
}

func TestAContainerThatCannotBeResizedIsBarredWithTheReason(t *testing.T) {
	for name, test := range map[string]struct{ resources, want string }{
		"no limit":    {`{"requests":{"cpu":"100m"}}`, "no cpu limit"},
		"best effort": {`{}`, "BestEffort"},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, 1, test.resources)
			k := c.limit(trimtab.CPU)
			if err := k.MayWrite(t.Context()); !errors.Is(err, trimtab.ErrRefused) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("may write: %v", err)
			}
			if err := write(t.Context(), k, 1); !errors.Is(err, trimtab.ErrRefused) {
				t.Errorf("write: %v", err)
			}
			if len(c.Writes()) != 0 {
				t.Errorf("writes %q", c.Writes())
			}
		})
	}
}

func TestAClusterWithoutResizeIsToldWithTheVersionItNeeds(t *testing.T) {
	s := kubetest.New(t)
	s.NoResize()
	s.Shop(1, burstable)
	c := watch(t, s)
	if err := c.limit(trimtab.CPU).MayWrite(t.Context()); !errors.Is(err, trimtab.ErrUnsupported) || !strings.Contains(err.Error(), "1.33") {
		t.Errorf("may write: %v", err)
	}
}

func TestUnderAnotherAutoscalerNothingIsWrittenAndItIsNamed(t *testing.T) {
	t.Parallel()
	target := `{"apiVersion":"apps/v1","kind":"Deployment","name":"checkout"}`
	for name, test := range map[string]struct{ path, object, want, knob string }{
		"an HPA":                {"/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers/h", `{"spec":{"scaleTargetRef":` + target + `}}`, "HorizontalPodAutoscaler shop/h", "replicas"},
		"a paused ScaledObject": {"/apis/keda.sh/v1alpha1/namespaces/shop/scaledobjects/s", `{"metadata":{"annotations":{"autoscaling.keda.sh/paused":"true"}},"spec":{"scaleTargetRef":{"name":"checkout"}}}`, "ScaledObject shop/s", "replicas"},
		"a VPA":                 {"/apis/autoscaling.k8s.io/v1/namespaces/shop/verticalpodautoscalers/v", `{"spec":{"targetRef":` + target + `}}`, "VerticalPodAutoscaler shop/v", "cpu"},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, 2, burstable)
			k := c.scale()
			if test.knob == trimtab.CPU {
				k = c.limit(trimtab.CPU)
			}
			if err := k.MayWrite(t.Context()); err != nil {
				t.Fatal(err)
			}
			marked := c.limit(trimtab.CPU).Traits()
			mark := marked.Mark()
			c.Put(test.path, test.object)
			eventually(t, "the other one is seen", func() bool { return k.MayWrite(t.Context()) != nil })
			if marked.Mark() == mark {
				t.Error("limits were not told that something changed: a heartbeat would not look")
			}
			if err := k.MayWrite(t.Context()); !errors.Is(err, trimtab.ErrRefused) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("may write: %v, want %q named", err, test.want)
			}
			if err := write(t.Context(), k, 3); err == nil || len(c.Writes()) != 0 {
				t.Errorf("write: %v, %q", err, c.Writes())
			}
			c.Delete(test.path)
			eventually(t, "the other one is gone", func() bool { return k.MayWrite(t.Context()) == nil })
		})
	}
}

func TestAVPAThatOnlyAdvisesOrOfAnotherResourceBarsNothing(t *testing.T) {
	for name, spec := range map[string]string{
		"off":              `"updatePolicy":{"updateMode":"Off"}`,
		"another resource": `"resourcePolicy":{"containerPolicies":[{"containerName":"*","controlledResources":["memory"]}]}`,
		"mode off":         `"resourcePolicy":{"containerPolicies":[{"containerName":"app","mode":"Off"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := kubetest.New(t)
			s.Shop(1, burstable)
			s.Put("/apis/autoscaling.k8s.io/v1/namespaces/shop/verticalpodautoscalers/v", `{"spec":{"targetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"checkout"},`+spec+`}}`)
			c := watch(t, s)
			if err := c.limit(trimtab.CPU).MayWrite(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWhileARolloutRunsNothingFallsAndRisesGoThrough(t *testing.T) {
	c := open(t, 4, burstable)
	n, l := c.scale(), c.limit(trimtab.CPU)
	c.Edit(kubetest.Deployment, func(o kubetest.Object) { kubetest.Sub(o, "status")["updatedReplicas"] = 2 })
	eventually(t, "the rollout is seen", func() bool {
		f, err := n.Traits().Floor(t.Context())
		return err == nil && f.Value == 4
	})
	for _, k := range []actuator.Knob{n, l} {
		if s := k.Traits().Status(t.Context()); s == nil || !s.Rollout {
			t.Errorf("%s does not tell of the rollout: %+v", k, s)
		}
	}
	for k, v := range map[actuator.Knob]float64{n: 3, l: 0.4} {
		if err := write(t.Context(), k, v); !errors.Is(err, trimtab.ErrRefused) || !strings.Contains(err.Error(), "rollout") {
			t.Errorf("a fall of %s: %v", k, err)
		}
	}
	for k, v := range map[actuator.Knob]float64{n: 5, l: 0.6} {
		if err := write(t.Context(), k, v); err != nil {
			t.Errorf("a rise of %s: %v", k, err)
		}
	}
}

func TestPauseAnnotationsOfAWorkloadHoldFallsRisesOrBoth(t *testing.T) {
	for annotation, holds := range map[string]struct{ fall, rise bool }{
		"paused": {true, true}, "paused-replicas": {true, true}, "paused-scale-in": {fall: true}, "paused-scale-out": {rise: true},
	} {
		for to, held := range map[float64]bool{3: holds.fall, 5: holds.rise} {
			s := kubetest.New(t)
			s.Shop(4, burstable)
			s.Edit(kubetest.Deployment, func(o kubetest.Object) {
				kubetest.Sub(o, "metadata", "annotations")["autoscaling.keda.sh/"+annotation] = "true"
			})
			k := watch(t, s).scale()
			err := k.MayWrite(t.Context())
			if err == nil {
				err = write(t.Context(), k, to)
			}
			if held && (!errors.Is(err, trimtab.ErrRefused) || !strings.Contains(err.Error(), "autoscaling.keda.sh/paused") || len(s.Writes()) > 0) || !held && err != nil {
				t.Errorf("%s, from 4 to %v: %v, %q; held: %v", annotation, to, err, s.Writes(), held)
			}
		}
	}
}

func TestAStepTakesNoMorePodsThanDisruptionBudgetsAllow(t *testing.T) {
	s := kubetest.New(t)
	s.Shop(6, burstable)
	s.Put("/apis/policy/v1/namespaces/shop/poddisruptionbudgets/b", `{"metadata":{"generation":1},"spec":{"minAvailable":3,"selector":{"matchLabels":{"app":"checkout"}}},"status":{"observedGeneration":1,"disruptionsAllowed":2}}`)
	k := watch(t, s).scale()
	if f, err := k.Traits().Floor(t.Context()); err != nil || f.Value != 4 {
		t.Errorf("floor %v, %v", f, err)
	}
	if err := write(t.Context(), k, 3); !errors.Is(err, trimtab.ErrRefused) || !strings.Contains(err.Error(), "PodDisruptionBudget shop/b") {
		t.Errorf("three at once: %v", err)
	}
	if err := write(t.Context(), k, 4); err != nil {
		t.Errorf("two at once: %v", err)
	}
}

func TestADeploymentMadeAgainUnderItsNameGetsNoWrite(t *testing.T) {
	c := open(t, 3, burstable)
	k := c.scale()
	before, _ := c.scales.Find(t.Context(), actuator.Location{Path: workloadAt})
	c.Delete(kubetest.Deployment)
	c.Shop(2, burstable)
	eventually(t, "the other one is seen", func() bool { _, err := k.Read(t.Context()); return err != nil })
	if err := write(t.Context(), k, 5); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("write: %v", err)
	}
	if c.patches("scale") != 0 {
		t.Error("it was scaled")
	}
	eventually(t, "it is another instance", func() bool {
		after, err := c.scales.Find(t.Context(), actuator.Location{Path: workloadAt})
		return err == nil && len(after) == 1 && after[0].ID != before[0].ID
	})
}

func TestWhatChangedInBetweenGetsNoWrite(t *testing.T) {
	c := open(t, 3, burstable)
	k := c.scale()
	read(t, k)
	c.EndWatches()
	// The watch knows nothing of it, the server does.
	c.Fail(func(r *http.Request) int {
		if r.URL.Query().Get("watch") != "" || strings.HasSuffix(r.URL.Path, "deployments") {
			return 503
		}
		return 0
	})
	c.Edit(kubetest.Deployment, func(o kubetest.Object) { kubetest.Sub(o, "spec")["replicas"] = 7 })
	if err := write(t.Context(), k, 5); !errors.Is(err, trimtab.ErrStale) {
		t.Errorf("write: %v", err)
	}
	if n := c.patches("scale"); n != 0 {
		t.Errorf("%d patches", n)
	}
}

func TestAPodIsResizedThoughItsStatusChangedInBetweenAndNotWhenItsLimitDid(t *testing.T) {
	for what, want := range map[string]error{"status": nil, "limit": trimtab.ErrStale} {
		t.Run(what, func(t *testing.T) {
			c := open(t, 1, burstable)
			k := c.limit(trimtab.CPU)
			read(t, k)
			c.EndWatches()
			c.Fail(func(r *http.Request) int {
				if r.URL.Query().Get("watch") != "" || strings.HasSuffix(r.URL.Path, "/pods") {
					return 503
				}
				return 0
			})
			c.Edit(kubetest.PodPath(0), func(o kubetest.Object) {
				if what == "status" {
					kubetest.Sub(o, "status")["message"] = "busy"
					return
				}
				first := kubetest.Sub(o, "spec")["containers"].([]any)[0].(map[string]any)
				first["resources"].(map[string]any)["limits"].(map[string]any)["cpu"] = "700m"
			})
			if err := write(t.Context(), k, 0.8); !errors.Is(err, want) {
				t.Errorf("write: %v", err)
			}
		})
	}
}

func TestWhatTheServerForbidsIsTriedOnceAMinute(t *testing.T) {
	for _, status := range []int{403, 422} {
		c := open(t, 1, burstable)
		k := c.limit(trimtab.CPU)
		c.Fail(func(r *http.Request) int {
			if r.Method == http.MethodPatch {
				return status
			}
			return 0
		})
		for range 5 {
			if err := write(t.Context(), k, 0.8); !errors.Is(err, trimtab.ErrRefused) {
				t.Errorf("%d: %v", status, err)
			}
		}
		if n := c.patches("resize"); n != 1 {
			t.Errorf("%d: tried %d times", status, n)
		}
		if err := k.MayWrite(t.Context()); !errors.Is(err, trimtab.ErrRefused) {
			t.Errorf("%d: may write: %v", status, err)
		}
	}
}

func TestAnInfeasibleResizeIsHopelessAtOnceAndNotAskedForAgain(t *testing.T) {
	c := open(t, 1, burstable)
	k := c.limit(trimtab.CPU)
	if err := write(t.Context(), k, 4); err != nil {
		t.Fatal(err)
	}
	condition := func(kind, reason string) {
		c.Edit(kubetest.PodPath(0), func(o kubetest.Object) {
			kubetest.Sub(o, "status")["conditions"] = []any{kubetest.Object{"type": kind, "status": "True", "reason": reason, "message": "Node didn't have enough capacity"}}
		})
	}
	condition("PodResizePending", "Deferred")
	eventually(t, "the condition is seen", func() bool {
		p, err := c.view.PodOf("shop", "checkout-7d9f-aa", "")
		return err == nil && p.Condition("PodResizePending") != nil
	})
	if why := k.Traits().Hopeless(t.Context()); why != "" {
		t.Errorf("deferred for no time: %q", why)
	}
	condition("PodResizePending", "Infeasible")
	eventually(t, "it is hopeless", func() bool { return k.Traits().Hopeless(t.Context()) != "" })
	if why := k.Traits().Hopeless(t.Context()); !strings.Contains(why, "infeasible") || !strings.Contains(why, "enough capacity") {
		t.Errorf("why: %q", why)
	}
	if err := write(t.Context(), k, 0.5); err != nil {
		t.Fatalf("put back: %v", err)
	}
	if err := write(t.Context(), k, 4); !errors.Is(err, trimtab.ErrRefused) {
		t.Errorf("as much again: %v", err)
	}
	if err := write(t.Context(), k, 0.6); err != nil {
		t.Errorf("less: %v", err)
	}
}

func TestARestoreRaisesReplicasAndNeverLowersThem(t *testing.T) {
	for now, want := range map[float64]float64{5: 5, 2: 3} {
		c := open(t, 3, burstable)
		k := c.scale()
		read(t, k)
		undo := k.Undo()
		if err := write(t.Context(), k, now); err != nil {
			t.Fatal(err)
		}
		other, err := c.scales.Reopen(undo)
		if err != nil {
			t.Fatal(err)
		}
		if err := other.Traits().Restore(t.Context(), undo); err != nil {
			t.Fatal(err)
		}
		if got := read(t, other); got != want {
			t.Errorf("from %v the restore of 3 went to %v, want %v", now, got, want)
		}
	}
}

func TestMemoryIsRaisedAndNeverLowered(t *testing.T) {
	c := open(t, 1, burstable)
	k := c.limit(trimtab.Memory)
	if err := write(t.Context(), k, 256<<20); err != nil {
		t.Fatal(err)
	}
	if err := write(t.Context(), k, 128<<20); !errors.Is(err, trimtab.ErrRefused) {
		t.Errorf("lowered: %v", err)
	}
	if got := read(t, k); got != 256<<20 {
		t.Errorf("memory is %v", got)
	}
}

func TestAnActuatorPutsBackWhatTheNodeCallsInfeasible(t *testing.T) {
	c := open(t, 1, burstable)
	target := actuator.Target{KnobID: trimtab.KnobID{Workload: "checkout", Resource: trimtab.CPU}, Min: 0.1, Max: 6, Mode: trimtab.Act}
	a, err := actuator.Open(t.Context(), actuator.Config{
		Host: "h", Pool: "p", Dir: t.TempDir(), Reopen: c.pods.Reopen,
		Finders: []actuator.Finder{c.pods.Finder(actuator.Location{Path: podsAt}, podsAt, []actuator.Target{target})},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close(context.Background()) }()
	outcome := a.Handle(t.Context(), plan("checkout-7d9f-aa", 0.5, 4))
	if len(outcome.Results) != 1 || outcome.Results[0].Status != trimtab.Pending {
		t.Fatalf("outcome %+v, want pending", outcome)
	}
	c.Edit(kubetest.PodPath(0), func(o kubetest.Object) {
		kubetest.Sub(o, "status")["conditions"] = []any{kubetest.Object{"type": "PodResizePending", "status": "True", "reason": "Infeasible", "message": "too much for this node"}}
	})
	eventually(t, "it is put back", func() bool {
		a.Tick(t.Context())
		k := a.Holding().Targets[0]
		return k.Now == trimtab.Units(0.5)
	})
	if k := a.Holding().Targets[0]; !strings.Contains(k.Problem, "too much for this node") {
		t.Errorf("problem %q", k.Problem)
	}
	if n := c.patches("resize"); n != 2 {
		t.Errorf("%d patches", n)
	}
}

func plan(instance string, from, to float64) *trimtab.Plan {
	now := time.Now().UTC()
	return &trimtab.Plan{
		Pool: "p", Epoch: 1, Sequence: 1, Step: 1, Last: true, Time: now, Lease: 60, Capacity: 100,
		Actions: []trimtab.Action{{
			KnobID: trimtab.KnobID{Pool: "p", Host: "h", Workload: "checkout", Instance: instance, Resource: trimtab.CPU},
			Set:    trimtab.Units(to), Expect: trimtab.Units(from), Mode: trimtab.Act,
		}},
	}
}
