//go:build integration

package kubernetes_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/kubernetes"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/kube"
	"github.com/trimtab/trimtab/internal/kube/kubetest"
)

// entryOf is an entry of a journal.
func entryOf(key string) hostfs.Entry { return hostfs.Entry{Key: key, Value: []byte("1")} }

// real is a real control plane as the user trimtab sees it, who has the rights of
// deploy/kubernetes/rbac-act.yaml and no others.
type real struct {
	*kubetest.Real
	t    *testing.T
	view *kube.Cluster
	of   kubernetes.Cluster
}

func startReal(t *testing.T, prepare func(*kubetest.Real)) *real {
	t.Helper()
	r := &real{Real: kubetest.StartReal(t, "trimtab"), t: t}
	prepare(r.Real)
	r.Rights()
	config := kube.Config{Kubeconfig: r.Kubeconfig("trimtab")}
	client, err := kube.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	r.view = kube.Watch(t.Context(), client, []string{"shop"}, nil)
	t.Cleanup(func() { _ = r.view.Close() })
	if err := r.view.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if missing := r.view.Missing(); len(missing) > 0 {
		t.Fatalf("with the rights of deploy/kubernetes it cannot see %v", missing)
	}
	eventually(t, "the server says whether it resizes", func() bool { return r.view.Resizable() == nil })
	r.of = kubernetes.Cluster{Config: config, Watched: func() (*kube.Cluster, error) { return r.view, nil }}
	return r
}

// cluster is what the helpers of the tests in memory need.
func (r *real) cluster() *cluster {
	return &cluster{t: r.t, view: r.view, pods: kubernetes.Pods(r.of), scales: kubernetes.Scales(r.of)}
}

// runs opens an actuator that restores at its end.
func (r *real) runs(change func(*actuator.Config)) *actuator.Actuator {
	return r.cluster().runs(func(config *actuator.Config) {
		config.KeepOnStop = false
		if change != nil {
			change(config)
		}
	})
}

func (r *real) knobs() (limit, scale actuator.Knob) {
	c := r.cluster()
	return c.limit(trimtab.CPU), c.scale()
}

func TestARealAPIServerResizesScalesAndRefusesAsTheKnobsExpect(t *testing.T) {
	r := startReal(t, func(r *kubetest.Real) { r.Shop(3, burstable) })
	t.Run("AResizeIsAsked", func(t *testing.T) {
		limit, _ := r.knobs()
		if err := write(t.Context(), limit, 0.8); err != nil {
			t.Fatal(err)
		}
		if got, in := read(t, limit), effective(t, limit); got != 0.8 || in != 0.5 {
			t.Errorf("asked %v, in force %v", got, in)
		}
		r.Run(3)
		eventually(t, "the limit is in force", func() bool { return effective(t, limit) == 0.8 })
		if err := write(t.Context(), limit, 0.5); err != nil {
			t.Fatal(err)
		}
		r.Run(3)
	})
	t.Run("AValueThatWouldChangeTheClassIsRefusedByTheServer", func(t *testing.T) {
		client := r.view.Client
		pod := r.Pods()[0]
		name := fmt.Sprint(kubetest.Sub(pod, "metadata")["name"])
		p, err := client.Pod(t.Context(), "shop", name)
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Resize(t.Context(), &p.Meta, "app", map[string]string{"cpu": "500m", "memory": "128Mi"}, nil)
		if !errors.Is(err, trimtab.ErrRefused) || !strings.Contains(err.Error(), "QOS") {
			t.Errorf("resize: %v", err)
		}
		p.UID = "0f8fad5b-d9cb-469f-a165-70867728950e"
		if _, err = client.Resize(t.Context(), &p.Meta, "app", nil, map[string]string{"cpu": "600m"}); !errors.Is(err, trimtab.ErrStale) {
			t.Errorf("resize of another uid: %v", err)
		}
	})
	r.changesAndRestores(t)
	t.Run("ReplicasAreSetByScaleAndBookedUnderTrimtab", func(t *testing.T) {
		_, scale := r.knobs()
		if err := write(t.Context(), scale, 4); err != nil {
			t.Fatal(err)
		}
		r.Run(4)
		eventually(t, "four pods are available", func() bool { return effective(t, scale) == 4 })
		booked := r.Kubectl("-n", checkout.Namespace, "get", "deployment", checkout.Name, "-o", "jsonpath={.metadata.managedFields[?(@.subresource=='scale')].manager}", "--show-managed-fields")
		if strings.TrimSpace(booked) != kube.FieldManager {
			t.Errorf("replicas are booked under %q", booked)
		}
	})
	t.Run("AnHPABarsReplicasAndIsNamed", func(t *testing.T) {
		_, scale := r.knobs()
		r.Apply("apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: h, namespace: shop}\nspec: {minReplicas: 2, maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: checkout}, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]}\n")
		eventually(t, "the HPA is seen", func() bool { return scale.MayWrite(t.Context()) != nil })
		if err := write(t.Context(), scale, 5); !errors.Is(err, trimtab.ErrRefused) || !strings.Contains(err.Error(), "HorizontalPodAutoscaler shop/h") {
			t.Errorf("write: %v", err)
		}
		r.Kubectl("-n", "shop", "delete", "hpa", "h")
		eventually(t, "the HPA is gone", func() bool { return scale.MayWrite(t.Context()) == nil })
	})
	t.Run("WhatAnotherChangedGetsNoWrite", func(t *testing.T) {
		_, scale := r.knobs()
		at, err := r.view.Client.Workload(t.Context(), checkout)
		if err != nil {
			t.Fatal(err)
		}
		read(t, scale)
		r.Kubectl("-n", "shop", "scale", "deployment", "checkout", "--replicas=3")
		if _, err := r.view.Client.SetReplicas(t.Context(), checkout, &at.Meta, 7); !errors.Is(err, trimtab.ErrStale) {
			t.Errorf("with the old version: %v", err)
		}
		r.Run(3)
	})
	t.Run("AControllerThatSetAValueLastIsNamed", func(t *testing.T) {
		limit, scale := r.knobs()
		pod := fmt.Sprint(kubetest.Sub(r.Pods()[0], "metadata")["name"])
		for _, test := range []struct {
			knob actuator.Knob
			args []string
			back string
		}{
			{scale, []string{"deployment", "checkout", "--subresource=scale", "-p", `{"spec":{"replicas":4}}`}, `{"spec":{"replicas":3}}`},
			{limit, []string{"pod", pod, "--subresource=resize", "-p", `{"spec":{"containers":[{"name":"app","resources":{"limits":{"cpu":"700m"}}}]}}`}, `{"spec":{"containers":[{"name":"app","resources":{"limits":{"cpu":"500m"}}}]}}`},
		} {
			patch := append([]string{"-n", "shop", "patch"}, test.args...)
			r.Kubectl(append(patch, "--field-manager=acme")...)
			eventually(t, "the controller is seen", func() bool {
				err := test.knob.MayWrite(t.Context())
				return err != nil && strings.HasPrefix(err.Error(), "controller acme sets its ")
			})
			patch[len(patch)-1] = test.back
			r.Kubectl(patch...)
			eventually(t, "a person took it back", func() bool { return test.knob.MayWrite(t.Context()) == nil })
		}
		r.Run(3)
	})
	t.Run("TheRightsAllowNothingElse", func(t *testing.T) {
		for _, right := range []kube.Right{
			{Verb: "patch", Resource: "pods", Namespace: "shop"}, {Verb: "delete", Resource: "pods", Namespace: "shop"}, {Verb: "create", Resource: "pods", Namespace: "shop"},
			{Verb: "patch", Group: "apps", Resource: "deployments", Namespace: "shop"}, {Verb: "get", Resource: "secrets", Namespace: "shop"},
			{Verb: "create", Resource: "pods", Subresource: "exec", Namespace: "shop"}, {Verb: "patch", Resource: "pods", Subresource: "resize", Namespace: "kube-system"},
		} {
			if allowed, err := r.view.Client.Allowed(t.Context(), right); err != nil || allowed {
				t.Errorf("may %s: %v, %v", right, allowed, err)
			}
		}
	})
	t.Run("ADeploymentMadeAgainUnderItsNameGetsNoWrite", func(t *testing.T) {
		_, scale := r.knobs()
		r.Kubectl("-n", "shop", "delete", "deployment", "checkout", "--wait=true")
		r.Shop(3, burstable)
		eventually(t, "the other one is seen", func() bool { _, err := scale.Read(t.Context()); return err != nil })
		if err := write(t.Context(), scale, 5); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("write: %v", err)
		}
	})
	t.Run("TheJournalIsTheFenceBetweenTwo", func(t *testing.T) {
		open := func() *kubernetes.Journal {
			j, err := kubernetes.OpenJournal(t.Context(), r.view.Client, "trimtab", "default")
			if err != nil {
				t.Fatal(err)
			}
			return j
		}
		first, second := open(), open()
		if err := first.Append(entryOf("a")); !errors.Is(err, trimtab.ErrStale) {
			t.Errorf("the first one: %v", err)
		}
		if err := second.Append(entryOf("a")); err != nil {
			t.Errorf("the second one: %v", err)
		}
	})
	t.Run("AllPatchesWereOfScaleAndResize", func(t *testing.T) {
		for _, w := range r.Wrote("trimtab") {
			if !strings.Contains(w, "deployments/scale") && !strings.Contains(w, "pods/resize") && !strings.Contains(w, "configmaps/") && !strings.Contains(w, "selfsubjectaccessreviews") {
				t.Errorf("it did %s", w)
			}
		}
	})
}

// changesAndRestores are the parts about what changed in between, what an end puts back,
// and what becomes of a limit without a request.
func (r *real) changesAndRestores(t *testing.T) {
	t.Run("ANumberThatWasChangedAndPutBackGetsNoWrite", func(t *testing.T) {
		_, scale := r.knobs()
		read(t, scale)
		for _, n := range []string{"5", "3"} {
			r.Kubectl("-n", "shop", "scale", "deployment", "checkout", "--replicas="+n)
		}
		if err := write(t.Context(), scale, 6); !errors.Is(err, trimtab.ErrStale) {
			t.Errorf("write: %v", err)
		}
		r.Run(3)
	})
	t.Run("ALimitThatIsPutBackWithANumberLeavesNothing", func(t *testing.T) {
		limit, scale := r.knobs()
		a := r.runs(nil)
		name := fmt.Sprint(kubetest.Sub(r.Pods()[0], "metadata")["name"])
		o := a.Handle(t.Context(), asks(1, order{name, trimtab.CPU, read(t, limit), 0.9}, order{"checkout", trimtab.Replicas, read(t, scale), 2}))
		for _, one := range o.Results {
			if one.Status != trimtab.Pending && one.Status != trimtab.Written {
				t.Errorf("%+v", one)
			}
		}
		eventually(t, "the number is asked for", func() bool { w, err := r.view.WorkloadOf(checkout); return err == nil && w.Replicas() == 2 })
		r.Run(2)
		if err := a.Close(t.Context()); err != nil {
			t.Error(err)
		}
		r.Run(3)
		for _, pod := range r.Pods() {
			if got := kubetest.Sub(kubetest.Container(pod, "app"), "resources", "limits")["cpu"]; got != "500m" {
				t.Errorf("limit %v", got)
			}
		}
	})
	t.Run("ALimitWithoutARequestBecomesTheRequestToo", func(t *testing.T) {
		r.Apply("apiVersion: v1\nkind: Pod\nmetadata: {name: plain, namespace: shop}\nspec: {nodeName: n1, terminationGracePeriodSeconds: 0, containers: [{name: app, image: none, resources: {requests: {memory: 32Mi}}}]}\n")
		var pod kubetest.Object
		if err := json.Unmarshal([]byte(r.Kubectl("-n", "shop", "get", "pod", "plain", "-o", "json")), &pod); err != nil {
			t.Fatal(err)
		}
		r.Kubelet(pod)
		p, err := r.view.Client.Pod(t.Context(), "shop", "plain")
		if err != nil {
			t.Fatal(err)
		}
		after, err := r.view.Client.Resize(t.Context(), &p.Meta, "app", nil, map[string]string{"cpu": "500m"})
		if err != nil || after.Container("app").Resources.Requests["cpu"] != 0.5 {
			t.Errorf("requests %v, %v: a container without a request may get a limit then", after, err)
		}
		r.Kubectl("-n", "shop", "delete", "pod", "plain", "--force", "--grace-period=0")
	})
}

// The contract, on a real server. What takes effect is played.
func TestAnActuatorRestoresOnARealAPIServer(t *testing.T) {
	r := startReal(t, func(r *kubetest.Real) { r.Shop(3, burstable) })
	pods := kubernetes.Pods(r.of)
	target := actuator.Target{KnobID: trimtab.KnobID{Workload: "checkout", Resource: trimtab.CPU}, Min: 0.1, Max: 6, Mode: trimtab.Act}
	a, err := actuator.Open(t.Context(), actuator.Config{
		Host: "h", Pool: "p", Dir: t.TempDir(), Reopen: pods.Reopen,
		Finders: []actuator.Finder{pods.Finder(actuator.Location{Path: podsAt}, podsAt, []actuator.Target{target})},
	})
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprint(kubetest.Sub(r.Pods()[0], "metadata")["name"])
	if o := a.Handle(t.Context(), plan(name, 0.5, 0.9)); len(o.Results) != 1 || o.Results[0].Status != trimtab.Pending {
		t.Fatalf("outcome %+v", o)
	}
	r.Run(3)
	if err := a.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	app := kubetest.Container(r.Pods()[0], "app")
	if got := kubetest.Sub(app, "resources", "limits")["cpu"]; got != "500m" {
		t.Errorf("limit %v after the end", got)
	}
}

// A container without a CPU limit, by the rights of deploy/kubernetes alone.
func TestARequestAloneIsSetOnARealAPIServerAndComesBack(t *testing.T) {
	r := startReal(t, func(r *kubetest.Real) { r.Shop(2, openEnded) })
	cpu := func(part string) any {
		return kubetest.Sub(kubetest.Container(r.Pods()[0], "app"), "resources", part)["cpu"]
	}
	r.of.Rules = func(kube.Ref) kubernetes.Options { return kubernetes.Options{Weighs: true} }
	request, _ := r.knobs()
	read(t, request)
	if _, ok := request.(*kubernetes.Request); !ok {
		t.Fatalf("it is a %T", request)
	}
	a := r.runs(nil)
	name := fmt.Sprint(kubetest.Sub(r.Pods()[0], "metadata")["name"])
	if o := a.Handle(t.Context(), asks(1, order{name, trimtab.CPU, 0.5, 2})); len(o.Results) != 1 || o.Results[0].Status != trimtab.Pending {
		t.Fatalf("outcome %+v", o)
	}
	if got := cpu("requests"); got != "2" || cpu("limits") != nil || r.Pods()[0]["status"].(map[string]any)["qosClass"] != "Burstable" {
		t.Errorf("request %v, limit %v", got, cpu("limits"))
	}
	r.Run(2)
	eventually(t, "it is in force", func() bool {
		a.Tick(t.Context())
		k := stateOf(a, trimtab.CPU, name)
		return k.InForce() == trimtab.Units(2)
	})
	// More than the node has is refused by the server, and tried again in a minute.
	client := r.view.Client
	p, err := client.Pod(t.Context(), "shop", name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resize(t.Context(), &p.Meta, "app", map[string]string{"cpu": "9"}, nil); !errors.Is(err, trimtab.ErrRefused) {
		t.Errorf("more than the node has: %v", err)
	}
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := cpu("requests"); got != "500m" || cpu("limits") != nil {
		t.Errorf("at the end: request %v, limit %v", got, cpu("limits"))
	}
}
