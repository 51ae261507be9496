//go:build integration

package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	tell "github.com/trimtab/trimtab/exporters/kubernetes"
	"github.com/trimtab/trimtab/internal/kube"
	"github.com/trimtab/trimtab/internal/kube/kubetest"
	"github.com/trimtab/trimtab/internal/metric"
)

// startCase is a value of the ConfigMap and what a pod that is made then has.
type startCase struct {
	owner, resources string
	data             string
	// limits and requests are those of the container app.
	limits, requests string
}

const (
	burstable  = `{"requests":{"cpu":"200m","memory":"64Mi"},"limits":{"cpu":"500m","memory":"128Mi"}}`
	guaranteed = `{"requests":{"cpu":"500m","memory":"128Mi"},"limits":{"cpu":"500m","memory":"128Mi"}}`
)

// startCases are what the guard of the policy is tried with. What is left out leaves the
// pod as its template says.
var startCases = map[string]startCase{
	"learnt":                        {"", burstable, `{"shop.Deployment.checkout.app.cpu":"800m","shop.Deployment.checkout.app.memory":"268435456"}`, "800m 268435456", "200m 64Mi"},
	"lower, over the request":       {"", burstable, `{"shop.Deployment.checkout.app.cpu":"300m"}`, "300m 128Mi", "200m 64Mi"},
	"under the request":             {"", burstable, `{"shop.Deployment.checkout.app.cpu":"100m"}`, "500m 128Mi", "200m 64Mi"},
	"memory under the request":      {"", burstable, `{"shop.Deployment.checkout.app.memory":"1Mi"}`, "500m 128Mi", "200m 64Mi"},
	"the request":                   {"", burstable, `{"shop.Deployment.checkout.app.cpu":"200m"}`, "500m 128Mi", "200m 64Mi"},
	"far over the limit":            {"", burstable, `{"shop.Deployment.checkout.app.cpu":"11"}`, "500m 128Mi", "200m 64Mi"},
	"huge":                          {"", burstable, `{"shop.Deployment.checkout.app.cpu":"1e300"}`, "500m 128Mi", "200m 64Mi"},
	"nonsense":                      {"", burstable, `{"shop.Deployment.checkout.app.cpu":"a lot"}`, "500m 128Mi", "200m 64Mi"},
	"empty":                         {"", burstable, `{"shop.Deployment.checkout.app.cpu":""}`, "500m 128Mi", "200m 64Mi"},
	"negative":                      {"", burstable, `{"shop.Deployment.checkout.app.cpu":"-1"}`, "500m 128Mi", "200m 64Mi"},
	"zero":                          {"", burstable, `{"shop.Deployment.checkout.app.cpu":"0"}`, "500m 128Mi", "200m 64Mi"},
	"no data":                       {"", burstable, `{}`, "500m 128Mi", "200m 64Mi"},
	"of another workload":           {"", burstable, `{"shop.Deployment.checkout-2.app.cpu":"800m","shop.StatefulSet.checkout.app.cpu":"800m"}`, "500m 128Mi", "200m 64Mi"},
	"Guaranteed stays Guaranteed":   {"", guaranteed, `{"shop.Deployment.checkout.app.cpu":"250m","shop.Deployment.checkout.app.memory":"268435456"}`, "250m 268435456", "250m 268435456"},
	"a pod of a StatefulSet":        {`[{"apiVersion":"apps/v1","kind":"StatefulSet","name":"checkout","uid":"u","controller":true}]`, burstable, `{"shop.StatefulSet.checkout.app.cpu":"800m"}`, "800m 128Mi", "200m 64Mi"},
	"a pod of nobody":               {`[]`, burstable, `{"shop.Deployment.checkout.app.cpu":"800m"}`, "500m 128Mi", "200m 64Mi"},
	"a pod of somebody else":        {`[{"apiVersion":"x/v1","kind":"X","name":"checkout-abc","uid":"u","controller":true}]`, burstable, `{"shop.Deployment.checkout.app.cpu":"800m"}`, "500m 128Mi", "200m 64Mi"},
	"no limit, and none is added":   {"", `{"requests":{"cpu":"200m","memory":"64Mi"}}`, `{"shop.Deployment.checkout.app.cpu":"800m"}`, "<nil> <nil>", "200m 64Mi"},
	"BestEffort":                    {"", `{}`, `{"shop.Deployment.checkout.app.cpu":"800m"}`, "<nil> <nil>", "<nil> <nil>"},
	"limit alone, which is request": {"", `{"limits":{"cpu":"500m"}}`, `{"shop.Deployment.checkout.app.cpu":"400m"}`, "500m <nil>", "500m <nil>"},
}

// newPod has the server make a pod of the Deployment, or says why it would not.
func newPod(r *kubetest.Real, c startCase) (limits, requests string, err error) {
	owner := c.owner
	if owner == "" {
		owner = `[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"checkout-abc","uid":"u","controller":true}]`
	}
	out, err := r.Try(fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"new","namespace":"shop","labels":{"pod-template-hash":"abc"},"ownerReferences":%s},
"spec":{"containers":[{"name":"side","image":"none","resources":%[2]s},{"name":"app","image":"none","resources":%[2]s}]}}`, owner, c.resources), "create", "--dry-run=server", "-o", "json", "-f", "-")
	if err != nil {
		return "", "", err
	}
	var pod kubetest.Object
	if err := json.Unmarshal([]byte(out), &pod); err != nil {
		return "", "", err
	}
	text := func(part string) string {
		of := kubetest.Sub(kubetest.Container(pod, "app"), "resources", part)
		return fmt.Sprint(of["cpu"], " ", of["memory"])
	}
	side := kubetest.Sub(kubetest.Container(pod, "side"), "resources", "limits")["cpu"]
	if side != nil && side != "500m" {
		return "", "", fmt.Errorf("the other container has %v", side)
	}
	return text("limits"), text("requests"), nil
}

func TestARealAPIServerIsToldWhatTrimtabDoesAndAdvises(t *testing.T) {
	r := kubetest.StartReal(t)
	r.Shop(1, burstable)
	t.Run("NewPodsHaveTheLearntValueFromTheStartAndNoValueKeepsAPodFromBeingMade", func(t *testing.T) { startValues(t, r) })
	t.Run("AVPAThatNamesTrimtabIsRecommendedForAndAStaleRecommendationStays", func(t *testing.T) { recommended(t, r) })
}

func startValues(t *testing.T, r *kubetest.Real) {
	// A mistake in the policy must not hide behind the failure policy.
	chart := strings.Replace(rendered(t, "--no-hooks", "--set", "mode=act,namespaces={shop},startValues.enabled=true"), "failurePolicy: Ignore", "failurePolicy: Fail", 1)
	r.Apply(chart)
	const name = "trimtab-start-values-default"
	set := func(data string) {
		patch, err := json.Marshal([]any{map[string]any{"op": "add", "path": "/data", "value": json.RawMessage(data)}})
		if err != nil {
			t.Fatal(err)
		}
		r.Kubectl("-n", "trimtab", "patch", "configmap", name, "--type=json", "-p", string(patch))
	}
	settled := func(c startCase) (limits, requests string, err error) {
		set(c.data)
		// The server sees a policy and its parameters by watches of its own.
		for range 50 {
			if limits, requests, err = newPod(r, c); err == nil && limits == c.limits {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		return limits, requests, err
	}
	if limits, _, err := settled(startCases["learnt"]); err != nil || limits != startCases["learnt"].limits {
		t.Fatalf("the policy does not come into force: %s, %v", limits, err)
	}
	for what, c := range startCases {
		if limits, requests, err := settled(c); err != nil || limits != c.limits || requests != c.requests {
			t.Errorf("%s: limits %s, requests %s, %v, want %s and %s", what, limits, requests, err, c.limits, c.requests)
		}
	}
	t.Run("TheExporterWritesThemWithTheRightsOfTheChartAndTakesThemBack", func(t *testing.T) { startsByExporter(t, r, set, name) })
	r.Kubectl("-n", "trimtab", "delete", "configmap", name)
	if limits, _, err := settledWithout(r); err != nil || limits != "500m 128Mi" {
		t.Errorf("without the ConfigMap: %s, %v", limits, err)
	}
}

// settledWithout makes a pod once the ConfigMap is gone.
func settledWithout(r *kubetest.Real) (limits, requests string, err error) {
	for range 50 {
		if limits, requests, err = newPod(r, startCase{resources: burstable}); err == nil && limits == "500m 128Mi" {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	return limits, requests, err
}

// clusterOfChart is the cluster with the rights that the chart gives.
func clusterOfChart(t *testing.T, r *kubetest.Real) *kube.Cluster {
	t.Helper()
	client, err := kube.Open(kube.Config{Kubeconfig: r.Account("trimtab", "trimtab")})
	if err != nil {
		t.Fatal(err)
	}
	cluster := kube.Watch(t.Context(), client, []string{"shop"}, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = cluster.Close() })
	if err := cluster.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return cluster
}

// teller tells the cluster of the Deployment.
func teller(t *testing.T, r *kubetest.Real, change func(*tell.Config)) *tell.Exporter {
	t.Helper()
	cluster := clusterOfChart(t, r)
	c := tell.Config{Pool: "default", Round: time.Second, Resource: trimtab.CPU, Events: tell.Changes, Metrics: metric.NewSet(),
		Watched:   func() (*kube.Cluster, error) { return cluster, nil },
		Workloads: []tell.Workload{{Name: "checkout", Mode: trimtab.Act, SLO: 0.95, Ref: kube.Ref{Namespace: "shop", Kind: kube.Deployment, Name: "checkout"}}}}
	change(&c)
	e, err := tell.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func startsByExporter(t *testing.T, r *kubetest.Real, set func(string), name string) {
	set(`{"shop.Deployment.gone.app.cpu":"1"}`)
	e := teller(t, r, func(c *tell.Config) { c.StartValues = "trimtab" })
	e.Observe(&trimtab.Holding{Pool: "default", Host: "h", Time: time.Now(), LeaseLeft: 10, Targets: []trimtab.KnobState{{
		KnobID: trimtab.KnobID{Workload: "checkout", Resource: trimtab.CPU, Host: "h"}, Now: trimtab.Units(0.7), Status: &trimtab.KnobStatus{}}}})
	e.Step(t.Context())
	data := func() string {
		return strings.TrimSpace(r.Kubectl("-n", "trimtab", "get", "configmap", name, "-o", "jsonpath={.data}"))
	}
	if got := data(); got != `{"shop.Deployment.checkout.app.cpu":"700m"}` {
		t.Errorf("it wrote %s", got)
	}
	r.Until("a pod that is made begins with it", func() bool {
		limits, _, err := newPod(r, startCase{resources: burstable})
		return err == nil && limits == "700m 128Mi"
	})
	e.Observe(&trimtab.Outcome{Pool: "default", Host: "h", Epoch: 3, Sequence: 17, Step: 1, Time: time.Now(), Results: []trimtab.Result{{
		KnobID: trimtab.KnobID{Workload: "checkout", Resource: trimtab.CPU, Host: "h"}, Status: trimtab.Written, Before: trimtab.Units(0.5), Asked: trimtab.Units(0.7), Found: trimtab.Units(0.7), Known: true}}})
	e.Step(t.Context())
	if got := r.Kubectl("-n", "shop", "describe", "deployment", "checkout"); !strings.Contains(got, "trimtab raised the cpu limit of 1 pod from 500m to 700m") {
		t.Errorf("kubectl describe says\n%s", got)
	}
	if err := e.End(); err != nil {
		t.Fatal(err)
	}
	if got := data(); got != "" && got != "{}" {
		t.Errorf("at the end there is %s", got)
	}
}

func recommended(t *testing.T, r *kubetest.Real) {
	crd := filepath.Join(kubetest.Tools(t), "vpa-crd.yaml")
	if _, err := os.Stat(crd); err != nil {
		t.Skipf("no kind VerticalPodAutoscaler: run make kube-tools: %v", err)
	}
	r.Kubectl("apply", "--server-side", "-f", crd)
	r.Kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd/verticalpodautoscalers.autoscaling.k8s.io")
	r.Apply(`{"apiVersion":"autoscaling.k8s.io/v1","kind":"VerticalPodAutoscaler","metadata":{"name":"v","namespace":"shop"},"spec":{"targetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"checkout"},"recommenders":[{"name":"trimtab"}],
"resourcePolicy":{"containerPolicies":[{"containerName":"*","maxAllowed":{"cpu":"350m"},"controlledResources":["cpu"]}]}}}`)
	r.Apply(rendered(t, "--no-hooks", "--set", "mode=recommend,namespaces={shop},vpa.recommender=trimtab"))
	e := teller(t, r, func(c *tell.Config) { c.Recommender = "trimtab" })
	status := func() (v struct {
		Status struct {
			Recommendation struct {
				ContainerRecommendations []map[string]any
			}
			Conditions []struct{ Type, Status, Reason string }
		}
	}) {
		if err := json.Unmarshal([]byte(r.Kubectl("-n", "shop", "get", "vpa", "v", "-o", "json")), &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	say := func(hold *trimtab.Held) {
		e.Observe(&trimtab.Estimate{Workload: "checkout", Time: time.Now(), Hold: hold, Load: &trimtab.LoadForecast{Upper: 10}, Curve: &trimtab.Curve{Load: 10, Level: 0.9, Knots: []trimtab.Knot{
			{Allocation: 0.5, Band: trimtab.Band{Lower: 0.2, Mean: 0.5, Upper: 0.95}}, {Allocation: 0.8, Band: trimtab.Band{Lower: 0.7, Mean: 0.95, Upper: 1}}, {Allocation: 1, Band: trimtab.Band{Lower: 0.95, Mean: 1, Upper: 1}}}}})
		e.Step(t.Context())
	}
	// One pod; its limit is 2.5 times its request.
	want := "[map[containerName:app lowerBound:map[cpu:200m] target:map[cpu:320m] uncappedTarget:map[cpu:320m] upperBound:map[cpu:350m]]]"
	r.Until("the recommendation is there", func() bool {
		say(nil)
		return fmt.Sprint(status().Status.Recommendation.ContainerRecommendations) == want
	})
	if got := status().Status.Conditions; len(got) != 1 || got[0].Type != "RecommendationProvided" || got[0].Status != "True" {
		t.Errorf("conditions %v", got)
	}
	// Another process has no time to wait for, and nothing fresh to say.
	e = teller(t, r, func(c *tell.Config) { c.Recommender = "trimtab" })
	r.Until("a condition says that nothing is fresh", func() bool {
		say(&trimtab.Held{Text: "performance is missing"})
		return strings.Contains(fmt.Sprint(status().Status.Conditions), "{LowConfidence True NoFreshAdvice}")
	})
	if got := fmt.Sprint(status().Status.Recommendation.ContainerRecommendations); got != want {
		t.Errorf("the recommendation was %s and is %s", want, got)
	}
}
