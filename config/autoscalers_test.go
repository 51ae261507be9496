package config

import (
	"strings"
	"testing"
)

func TestAManifestOfEachKindIsReadInItsOwnWords(t *testing.T) {
	const text = `apiVersion: v1
kind: List
items:
- apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {name: h, namespace: shop}
  spec:
    scaleTargetRef: {kind: Deployment, name: checkout}
    maxReplicas: 9
    metrics:
    - {type: Resource, resource: {name: memory, target: {type: Utilization, averageUtilization: 50}}}
    - {type: ContainerResource, containerResource: {name: cpu, container: app, target: {type: AverageValue, averageValue: 250m}}}
    - {type: Object, object: {metric: {name: requests}, target: {type: Value, value: 2k}}}
    behavior: {scaleUp: {tolerance: "0.05", policies: [{type: Pods, value: 4, periodSeconds: 15}]}}
- apiVersion: keda.sh/v1alpha1
  kind: ScaledObject
  metadata: {name: k, namespace: shop}
  spec:
    scaleTargetRef: {name: checkout}
    minReplicaCount: 3
    idleReplicaCount: 1
    cooldownPeriod: 60
    triggers: [{type: cron, metadata: {}}, {type: cpu, metricType: Utilization, metadata: {value: "60"}}, {type: prometheus, metadata: {threshold: "40", activationThreshold: "5"}}]
- apiVersion: autoscaling.k8s.io/v1
  kind: VerticalPodAutoscaler
  metadata: {name: v, namespace: shop}
  spec:
    targetRef: {kind: Deployment, name: checkout}
    updatePolicy: {updateMode: InPlace, minReplicas: 1}
    resourcePolicy: {containerPolicies: [{containerName: app, maxAllowed: {cpu: 1500m}}]}
`
	read := func(kind string) *Autoscaler {
		t.Helper()
		got, err := ReadAutoscalers("all.yaml", []byte(text), kind)
		if err != nil || len(got) != 1 || got[0].Target != "checkout" {
			t.Fatalf("%s: %+v, %v", kind, got, err)
		}
		return &got[0]
	}
	h := read(KindHPA)
	if h.String() != "HorizontalPodAutoscaler shop/h" || h.Min != 1 || h.Max != 9 || len(h.Metrics) != 2 || h.Metrics[0] != (Metric{CPU: true, Type: "AverageValue", Value: 0.25}) ||
		h.Metrics[1] != (Metric{Type: "Value", External: true, Value: 2000}) || float64(*h.Behavior.ScaleUp.Tolerance) != 0.05 || len(h.Notes) != 2 {
		t.Errorf("%+v", h)
	}
	k := read(KindScaledObject)
	if k.Min != 3 || k.Max != 100 || *k.Idle != 1 || k.Cooldown.Seconds() != 60 || len(k.Metrics) != 2 || k.Metrics[1].Activation != 5 || len(k.Notes) != 2 {
		t.Errorf("%+v", k)
	}
	if v := read(KindVPA); v.UpdateMode != "InPlace" || v.MaxAllowed != 1.5 || v.MinReplicas != 1 {
		t.Errorf("%+v", v)
	}
}

func TestAWordOfAManifestThatTheAPIServerRefusesIsAMistakeWithItsPlace(t *testing.T) {
	hpa := "kind: HorizontalPodAutoscaler\nspec: {scaleTargetRef: {name: x}, maxReplicas: 3, "
	for text, want := range map[string]string{
		"":                       "the file is empty",
		"kind: ConfigMap":        "the file has no HorizontalPodAutoscaler",
		hpa + "minReplicas: 4}":  "maxReplicas is 3, want a whole number from 4",
		hpa + "minReplicas: -1}": "minReplicas is -1",
		"kind: HorizontalPodAutoscaler\nspec: {maxReplicas: 3}":                         "has no target",
		hpa + "metrics: [{type: Resource, resource: {name: cpu}}]}":                     "the metric has no target",
		hpa + "metrics: [{type: Cpu}]}":                                                 `unknown type "Cpu"`,
		hpa + "behavior: {scaleUp: {policies: []}}}":                                    "0 policies, want 1 to 64",
		hpa + "behavior: {scaleUp: {selectPolicy: most}}}":                              `unknown selectPolicy "most"`,
		hpa + "behavior: {scaleUp: {tolerance: much}}}":                                 "tolerance is no quantity",
		hpa + "behavior: {scaleDown: {stabilizationWindowSeconds: 3601}}}":              "stabilizationWindowSeconds is 3601",
		hpa + "behavior: {scaleDown: {policies: [{type: Pod}]}}}":                       `unknown type "Pod"`,
		hpa + "metrics: [{type: Resource, resource: {name: cpu, target: {value: 0}}}]}": "value is 0, want more",
	} {
		_, err := ReadAutoscalers("hpa.yaml", []byte(text), KindHPA)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "hpa.yaml:") {
			t.Errorf("%q: error %v, want %s with its place", text, err, want)
		}
	}
}

func FuzzManifestsAreReadOrRefused(f *testing.F) {
	f.Add([]byte("kind: ScaledObject\nspec: {scaleTargetRef: {name: x}, triggers: [{type: cpu, metadata: {value: '5'}}]}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, kind := range []string{KindHPA, KindScaledObject, KindVPA} {
			if got, err := ReadAutoscalers("f", data, kind); err == nil && len(got) == 0 {
				t.Error("neither an object nor a mistake")
			}
		}
	})
}
