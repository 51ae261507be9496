package kubernetes_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/kubernetes"
	"github.com/trimtab/trimtab/internal/kube/kubetest"
)

// This file has sentences about limits and numbers of pods under an actuator.

const firstPod = "checkout-7d9f-aa"

// runs opens an actuator of the limits and the number of the Deployment.
func (c *cluster) runs(change func(*actuator.Config)) *actuator.Actuator {
	c.t.Helper()
	a, err := c.opens(change)
	if err != nil {
		c.t.Fatal(err)
	}
	return a
}

func (c *cluster) opens(change func(*actuator.Config)) (*actuator.Actuator, error) {
	c.t.Helper()
	target := func(resource string, most float64) []actuator.Target {
		return []actuator.Target{{KnobID: trimtab.KnobID{Workload: "checkout", Resource: resource}, Min: 0.05, Max: most, Mode: trimtab.Act}}
	}
	config := actuator.Config{
		Host: "h", Pool: "p", Dir: c.t.TempDir(), KeepOnStop: true,
		Reopen: actuator.AnyOf([]actuator.Kind{c.pods, c.scales}),
		Finders: []actuator.Finder{
			c.pods.Finder(actuator.Location{Path: podsAt}, podsAt, target(trimtab.CPU, 6)),
			c.scales.Finder(actuator.Location{Path: workloadAt}, workloadAt, target(trimtab.Replicas, 20)),
		},
	}
	if change != nil {
		change(&config)
	}
	a, err := actuator.Open(c.t.Context(), config)
	if err != nil {
		return nil, err
	}
	c.t.Cleanup(func() { _ = a.Close(context.Background()) })
	return a, nil
}

// order is a plan of one action.
type order struct {
	instance, resource string
	from, to           float64
}

var sequence atomic.Uint64 //nolint:gochecknoglobals // plans of one test follow each other

// asks makes the next plan of an epoch, of 100 cores and pods.
func asks(epoch uint64, all ...order) *trimtab.Plan {
	p := plan("", 0, 0)
	p.Epoch, p.Sequence, p.Actions, p.Lease = epoch, sequence.Add(1), nil, 600
	for _, o := range all {
		p.Actions = append(p.Actions, trimtab.Action{
			KnobID: trimtab.KnobID{Pool: "p", Host: "h", Workload: "checkout", Instance: o.instance, Resource: o.resource},
			Set:    trimtab.Units(o.to), Expect: trimtab.Units(o.from), Mode: trimtab.Act,
		})
	}
	return p
}

// asksAll is asks of a pool of several resources.
func asksAll(all ...order) *trimtab.Plan {
	p := asks(1, all...)
	p.Resource, p.Capacities = trimtab.CPU, map[string]float64{trimtab.CPU: 100, trimtab.Memory: 1 << 40, trimtab.Replicas: 100}
	return p
}

// withMemory adds the memory limits of the pods to their CPU limits.
func (c *cluster) withMemory(config *actuator.Config) {
	like := append(slices.Clone(config.Finders[0].Like), actuator.Target{KnobID: trimtab.KnobID{Workload: "checkout", Resource: trimtab.Memory}, Min: 1 << 20, Max: 1 << 30, Mode: trimtab.Act})
	config.Finders[0] = c.pods.Finder(actuator.Location{Path: podsAt}, podsAt, like)
}

// both are a change of the first pod's limit and one of the number.
var both = map[string]order{ //nolint:gochecknoglobals // a table
	trimtab.CPU:      {firstPod, trimtab.CPU, 0.5, 1},
	trimtab.Replicas: {"checkout", trimtab.Replicas, 3, 4},
}

// foreign sets a value as somebody else does, and waits until the watch shows it.
func (c *cluster) foreign(resource string, v float64) {
	c.t.Helper()
	if resource == trimtab.Replicas {
		c.Edit(kubetest.Deployment, func(o kubetest.Object) {
			kubetest.Sub(o, "spec")["replicas"] = v
			kubetest.Bump(o)
		})
		eventually(c.t, "the number is seen", func() bool {
			w, err := c.view.WorkloadOf(checkout)
			return err == nil && float64(w.Replicas()) == v
		})
		return
	}
	c.Edit(kubetest.PodPath(0), func(o kubetest.Object) {
		kubetest.Sub(kubetest.Container(o, "app"), "resources", "limits")["cpu"] = fmt.Sprintf("%.0fm", v*1000)
		kubetest.Bump(o)
	})
	eventually(c.t, "the limit is seen", func() bool {
		p, err := c.view.PodOf("shop", firstPod, "")
		return err == nil && float64(p.Spec.Containers[0].Resources.Limits["cpu"]) == v
	})
}

// settle does what controllers and kubelets do.
func (c *cluster) settle() {
	c.Settle()
	for i := range 3 {
		c.Kubelet(kubetest.PodPath(i))
	}
	pod := kubetest.Sub(c.Get(kubetest.PodPath(2)), "metadata")["resourceVersion"]
	deployment := kubetest.Sub(c.Get(kubetest.Deployment), "metadata")["resourceVersion"]
	eventually(c.t, "all is seen", func() bool {
		p, err := c.view.PodOf("shop", "checkout-7d9f-ac", "")
		w, gone := c.view.WorkloadOf(checkout)
		return err == nil && gone == nil && p.ResourceVersion == pod && w.ResourceVersion == deployment
	})
}

func statusOf(o *trimtab.Outcome) trimtab.Status {
	if len(o.Results) != 1 {
		return trimtab.Status("no result: " + o.Refused)
	}
	return o.Results[0].Status
}

func stateOf(a *actuator.Actuator, resource, instance string) trimtab.KnobState {
	for _, k := range a.Holding().Targets {
		if k.Resource == resource && k.Instance == instance {
			return k
		}
	}
	return trimtab.KnobState{}
}

// Item 3 of the acceptance list.
func TestAfterSomebodyElseChangedAValueItIsNotWrittenForTheHoldAndASecondTimeWithinTheHourIsOnlyRecommended(t *testing.T) {
	t.Parallel()
	for resource, o := range both {
		t.Run(resource, func(t *testing.T) {
			c := open(t, 3, burstable)
			hold := 300 * time.Millisecond
			a := c.runs(func(config *actuator.Config) { config.ForeignHold = hold })
			if got := statusOf(a.Handle(t.Context(), asks(1, o))); got != trimtab.Pending {
				t.Fatalf("status %v", got)
			}
			c.settle()
			writes := len(c.Writes())
			c.foreign(resource, 2)
			began := time.Now()
			a.Tick(t.Context())
			o.from, o.to = 2, 3
			if got := a.Handle(t.Context(), asks(1, o)); time.Since(began) < hold && (statusOf(got) != trimtab.Refused || !strings.Contains(got.Results[0].Reason, "changed by somebody else")) {
				t.Errorf("within the hold: %+v", got)
			}
			if n := len(c.Writes()); time.Since(began) < hold && n != writes {
				t.Errorf("writes %q", c.Writes()[writes:])
			}
			c.settle()
			eventually(t, "the hold is over", func() bool { a.Tick(t.Context()); return stateOf(a, o.resource, o.instance).Problem == "" })
			if k := stateOf(a, o.resource, o.instance); k.Baseline != trimtab.Units(2) {
				t.Errorf("baseline %v, want what was found", k.Baseline)
			}
			if got := a.Handle(t.Context(), asks(1, o)); statusOf(got) != trimtab.Pending {
				t.Fatalf("after the hold: %+v", got)
			}
			c.settle()
			c.foreign(resource, 5)
			a.Tick(t.Context())
			if k := stateOf(a, o.resource, o.instance); !strings.Contains(k.ReadOnly, "a person, a GitOps tool or another controller has changed it twice") {
				t.Errorf("the second time: %+v", k)
			}
			writes = len(c.Writes())
			o.from, o.to = 5, 6
			if got := a.Handle(t.Context(), asks(1, o)); statusOf(got) != trimtab.Refused || len(c.Writes()) != writes {
				t.Errorf("after the second time: %+v, writes %q", got, c.Writes()[writes:])
			}
		})
	}
}

// Item 4.
func TestEveryWriteCarriesUIDAndVersionAndAnObjectMadeAgainOrChangedInBetweenIsRefused(t *testing.T) {
	t.Parallel()
	for resource, o := range both {
		for what, change := range map[string]func(*cluster){
			"nothing": func(*cluster) {},
			"changed": func(c *cluster) { // and put back, unseen
				for _, v := range []float64{7, o.from} {
					path := kubetest.PodPath(0)
					if resource == trimtab.Replicas {
						path = kubetest.Deployment
					}
					c.Edit(path, func(obj kubetest.Object) {
						if resource == trimtab.Replicas {
							kubetest.Sub(obj, "spec")["replicas"] = v
						} else {
							kubetest.Sub(kubetest.Container(obj, "app"), "resources", "limits")["cpu"] = fmt.Sprintf("%.0fm", v*1000)
						}
						kubetest.Bump(obj)
					})
				}
			},
			"made again": func(c *cluster) {
				path := kubetest.PodPath(0)
				if resource == trimtab.Replicas {
					path = kubetest.Deployment
				}
				o := c.Get(path)
				c.Delete(path)
				delete(kubetest.Sub(o, "metadata"), "uid")
				c.PutObject(path, o)
			},
		} {
			t.Run(resource+" "+what, func(t *testing.T) {
				c := open(t, 3, burstable)
				a := c.runs(nil)
				// The watch tells nothing of what comes now.
				c.HoldWatches()
				change(c)
				got := a.Handle(t.Context(), asks(1, o))
				bodies := c.Bodies()
				for path, body := range bodies {
					if m := kubetest.Sub(body, "metadata"); m["uid"] == nil || m["resourceVersion"] == nil {
						t.Errorf("%s carries %v", path, m)
					}
				}
				if what == "nothing" {
					if statusOf(got) != trimtab.Pending || len(bodies) != 1 {
						t.Errorf("outcome %+v, %d writes", got, len(bodies))
					}
					return
				}
				if statusOf(got) != trimtab.Refused || !strings.HasPrefix(got.Results[0].Reason, "stale: ") {
					t.Errorf("outcome %+v", got)
				}
				if c.changed(resource) {
					t.Error("it was written")
				}
			})
		}
	}
}

// changed reports whether the server let a write of the knob through.
func (c *cluster) changed(resource string) bool {
	if resource == trimtab.Replicas {
		return fmt.Sprint(kubetest.Sub(c.Get(kubetest.Deployment), "spec")["replicas"]) != "3"
	}
	app := kubetest.Container(c.Get(kubetest.PodPath(0)), "app")
	return kubetest.Sub(app, "resources", "limits")["cpu"] != "500m"
}

// Item 7, for the lease that ends; `trimtab restore` and the Job restore from the journal
// alone.
func TestTheEndPutsLimitsBackAndRaisesReplicasAndLowersThemOnlyWhereDeclared(t *testing.T) {
	t.Parallel()
	for _, lower := range []bool{false, true} {
		for _, alone := range []bool{false, true} {
			for number, want := range map[float64]float64{2: 3, 5: 5} {
				t.Run(fmt.Sprint("lower ", lower, ", journal alone ", alone, ", to ", number), func(t *testing.T) {
					c := open(t, 3, burstable)
					c.rules.RestoreBaseline = lower
					var j *kubernetes.Journal
					a := c.runs(func(config *actuator.Config) {
						c.withMemory(config)
						config.KeepOnStop = alone
						config.OpenJournal = func(context.Context) (actuator.Journal, error) {
							var err error
							j, err = c.journal()
							return j, err
						}
					})
					p := asksAll(order{firstPod, trimtab.CPU, 0.5, 2}, order{firstPod, trimtab.Memory, 128 << 20, 256 << 20}, order{"checkout", trimtab.Replicas, 3, number})
					for _, r := range a.Handle(t.Context(), p).Results {
						if r.Status != trimtab.Pending && r.Status != trimtab.Written {
							t.Fatalf("%+v", r)
						}
					}
					c.settle()
					if err := a.Close(t.Context()); err != nil {
						t.Fatal(err)
					}
					if alone {
						if _, err := actuator.RestoreJournal(t.Context(), j, actuator.AnyOf([]actuator.Kind{c.pods, c.scales})); err != nil {
							t.Fatal(err)
						}
					}
					app := kubetest.Container(c.Get(kubetest.PodPath(0)), "app")
					limits := kubetest.Sub(app, "resources", "limits")
					if limits["cpu"] != "500m" || limits["memory"] != "134217728" {
						t.Errorf("limits %v", limits)
					}
					if lower {
						want = 3
					}
					if got := fmt.Sprint(kubetest.Sub(c.Get(kubetest.Deployment), "spec")["replicas"]); got != fmt.Sprint(want) {
						t.Errorf("replicas %s, want %v", got, want)
					}
				})
			}
		}
	}
}

func TestARestoreThatLowersReplicasTakesNoMoreThanBudgetsAllowAtATime(t *testing.T) {
	s := kubetest.New(t)
	s.Shop(3, burstable)
	s.Put("/apis/policy/v1/namespaces/shop/poddisruptionbudgets/b", `{"metadata":{"generation":1},"spec":{"selector":{"matchLabels":{"app":"checkout"}}},"status":{"observedGeneration":1,"disruptionsAllowed":1}}`)
	c := watch(t, s)
	c.rules.RestoreBaseline = true
	k := c.scale()
	read(t, k)
	undo := k.Undo()
	if err := write(t.Context(), k, 5); err != nil {
		t.Fatal(err)
	}
	for name, reopen := range map[string]func([]byte) (actuator.Knob, error){"alone": c.scales.Reopen, "watching": func([]byte) (actuator.Knob, error) { return c.scale(), nil }} {
		c.foreign(trimtab.Replicas, 5)
		c.settle()
		again, err := reopen(undo)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []float64{4, 3} {
			err := again.Traits().Restore(t.Context(), undo)
			if done := want == 3; (err == nil) != done || err != nil && !strings.Contains(err.Error(), "PodDisruptionBudget shop/b") {
				t.Errorf("%s: restore to %v: %v", name, want, err)
			}
			if got := fmt.Sprint(kubetest.Sub(c.Get(kubetest.Deployment), "spec")["replicas"]); got != fmt.Sprint(want) {
				t.Errorf("%s: replicas %s, want %v", name, got, want)
			}
			c.settle()
		}
	}
}

// Item 13.
func TestNoStepGoesBelowAnIntegerMinAvailableOrTakesMoreThanAnyBudgetAllows(t *testing.T) {
	budget := func(allowed int, least any) string {
		return fmt.Sprintf(`{"metadata":{"generation":2},"spec":{"minAvailable":%v,"selector":{"matchLabels":{"app":"checkout"}}},"status":{"observedGeneration":2,"disruptionsAllowed":%d}}`, least, allowed)
	}
	for name, test := range map[string]struct {
		budgets []string
		floor   float64
	}{
		"one":                   {[]string{budget(2, 1)}, 4},
		"the least of two":      {[]string{budget(2, 1), budget(1, 1)}, 5},
		"integer minAvailable":  {[]string{budget(9, 4)}, 4},
		"a share is not worked": {[]string{budget(3, `"80%"`)}, 3},
		"a status that is old":  {[]string{strings.Replace(budget(3, 1), `"observedGeneration":2`, `"observedGeneration":1`, 1)}, 6},
		"of other pods":         {[]string{strings.Replace(budget(0, 6), "checkout", "cart", 1)}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := kubetest.New(t)
			s.Shop(6, burstable)
			for i, b := range test.budgets {
				s.Put(fmt.Sprint("/apis/policy/v1/namespaces/shop/poddisruptionbudgets/b", i), b)
			}
			k := watch(t, s).scale()
			if f, err := k.Traits().Floor(t.Context()); err != nil || f.Value != test.floor {
				t.Errorf("floor %v, %v, want %v", f, err, test.floor)
			}
			if err := write(t.Context(), k, test.floor-1); test.floor > 1 && !errors.Is(err, trimtab.ErrRefused) {
				t.Errorf("one less: %v", err)
			}
			if err := write(t.Context(), k, test.floor); err != nil {
				t.Errorf("as many: %v", err)
			}
		})
	}
}

// Item 14, the server's part.
func TestARefusalOfTheServerIsTriedAgainAMinuteLaterAndNotBefore(t *testing.T) {
	for resource, o := range both {
		c := open(t, 3, burstable)
		k := c.limit(trimtab.CPU)
		if resource == trimtab.Replicas {
			k = c.scale()
		}
		now := time.Now()
		k.(interface{ At(func() time.Time) }).At(func() time.Time { return now })
		c.Fail(func(r *http.Request) int {
			if r.Method == http.MethodPatch {
				return http.StatusForbidden
			}
			return 0
		})
		for range 301 { // five minutes
			if err := write(t.Context(), k, o.to); !errors.Is(err, trimtab.ErrRefused) {
				t.Errorf("%s: %v", resource, err)
			}
			now = now.Add(time.Second)
		}
		if n := len(c.Writes()); n > 5 || n < 4 {
			t.Errorf("%s: tried %d times in five minutes", resource, n)
		}
	}
}

// checkoutVPA advises only, and bounds.
const checkoutVPA = `{"spec":{"targetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"checkout"},"updatePolicy":{"updateMode":"Off"},"resourcePolicy":{"containerPolicies":[{"containerName":"*","minAllowed":{"cpu":"300m"},"maxAllowed":{"cpu":"1500m"}}]}}}`

func TestBoundsOfTheClusterClampAndAreNamed(t *testing.T) {
	for name, test := range map[string]struct {
		path, object string
		least, most  float64
		by           string
	}{
		"LimitRange":             {"/api/v1/namespaces/shop/limitranges/r", `{"spec":{"limits":[{"type":"Container","min":{"cpu":"200m"},"max":{"cpu":"2"}}]}}`, 0.2, 2, "LimitRange shop/r"},
		"LimitRange of a pod":    {"/api/v1/namespaces/shop/limitranges/r", `{"spec":{"limits":[{"type":"Pod","max":{"cpu":"3"}}]}}`, 0.1, 3, "LimitRange shop/r"},
		"a ratio":                {"/api/v1/namespaces/shop/limitranges/r", `{"spec":{"limits":[{"type":"Container","maxLimitRequestRatio":{"cpu":"8"}}]}}`, 0.1, 0.8, "LimitRange shop/r"},
		"VerticalPodAutoscaler":  {"/apis/autoscaling.k8s.io/v1/namespaces/shop/verticalpodautoscalers/v", checkoutVPA, 0.3, 1.5, "VerticalPodAutoscaler shop/v"},
		"nothing but the node":   {"/api/v1/namespaces/shop/limitranges/r", `{"spec":{"limits":[]}}`, 0.1, 8, ""},
		"a VPA of another (job)": {"/apis/autoscaling.k8s.io/v1/namespaces/shop/verticalpodautoscalers/v", strings.Replace(checkoutVPA, "checkout", "cart", 1), 0.1, 8, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := kubetest.New(t)
			s.Shop(1, burstable)
			s.Put(test.path, test.object)
			k := watch(t, s).limit(trimtab.CPU)
			read(t, k)
			if got := k.Nearest(trimtab.Units(100)).Value; got != test.most {
				t.Errorf("most %v, want %v", got, test.most)
			}
			if f, err := k.Traits().Floor(t.Context()); err != nil || f.Value != test.least {
				t.Errorf("floor %v, %v, want %v", f, err, test.least)
			}
			standing := k.Traits().Status(t.Context())
			if standing.By != test.by || test.by != "" && standing.Most != test.most {
				t.Errorf("standing %+v", standing)
			}
		})
	}
}
