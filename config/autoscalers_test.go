package config

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestWhatOfAnAutoscalerIsNotPlayedIsToldByItsCause(t *testing.T) {
	for want, c := range map[string][2]string{
		"its evictionRequirements are not played": {KindVPA, `{apiVersion: autoscaling.k8s.io/v1, kind: VerticalPodAutoscaler, metadata: {name: a}, spec: {targetRef: {kind: Deployment, name: shop},
  updatePolicy: {updateMode: Recreate, evictionRequirements: [{resources: [cpu], changeRequirement: TargetHigherThanRequests}]}}}`},
		"its trigger aws-sqs-queue is left out: it has no threshold that requests per second could be held against": {KindScaledObject, `{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: a}, spec: {scaleTargetRef: {name: shop},
  triggers: [{type: aws-sqs-queue, metadata: {queueLength: "5"}}, {type: prometheus, metadata: {threshold: "5"}}]}}`},
	} {
		all, err := ReadAutoscalers("a.yaml", []byte(c[1]), c[0])
		if err != nil || len(all) != 1 || !strings.Contains(strings.Join(all[0].Notes, "\n"), want) {
			t.Errorf("%v, %+v, want %s", err, all, want)
		}
	}
}

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
    triggers: [{type: memory, metadata: {}}, {type: cpu, metricType: Utilization, metadata: {value: "60"}}, {type: prometheus, metadata: {threshold: "40", activationThreshold: "5"}}]
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
	hpa := "kind: HorizontalPodAutoscaler\nspec: {scaleTargetRef: {kind: Deployment, name: x}, maxReplicas: 3, "
	for text, want := range map[string]string{
		"":                      "the file is empty",
		"kind: ConfigMap":       "the file has no HorizontalPodAutoscaler",
		hpa + "minReplicas: 4}": "maxReplicas is 3, want a whole number from 4",
		hpa + "minReplicas: 0}": "minReplicas is 0, and no metric is of the type Object or External",
		hpa + "metrics: [{type: Pods, pods: {metric: {name: x}, target: {type: Value, value: 3}}}]}":                          "the metric has no target",
		hpa + "metrics: [{type: External, external: {metric: {name: x}, target: {type: Value, value: 3, averageValue: 1}}}]}": "the target has both averageValue and value",
		hpa + "metrics: [{type: Resource, resource: {name: cpu, target: {averageUtilization: 50}}}]}":                         `the target is of the type ""`,
		hpa + "metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 0}}}]}":       "averageUtilization is 0",
		hpa + "metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 12.5}}}]}":    "averageUtilization is 12.5",
		hpa + "metrics: [{type: Resource, resource: {name: cpu, target: {type: AverageValue, averageValue: 0}}}]}":            "averageValue is 0, want more",
		hpa + "metrics: [{type: Resource, resource: {name: cpu, target: {type: AverageValue, averageValue: 1.5cores}}}]}":     "averageValue is no quantity",
		hpa + "metrics: [{type: Resource}]}": "a metric of the type Resource has no resource",
		hpa + "metrics: [{type: Resource, resource: {name: memory, target: {type: Utilization, averageUtilization: 50}}}]}":                                                                                         "no metric of HorizontalPodAutoscaler  can be replayed",
		"kind: HorizontalPodAutoscaler\nspec: {scaleTargetRef: {kind: Deployment, name: x}}":                                                                                                                        "has no maxReplicas",
		"kind: HorizontalPodAutoscaler\nspec: {scaleTargetRef: {name: x}, maxReplicas: 3}":                                                                                                                          "has a target without a kind",
		"apiVersion: apps/v1\nkind: HorizontalPodAutoscaler\nspec: {scaleTargetRef: {kind: Deployment, name: x}, maxReplicas: 3}":                                                                                   `apiVersion "apps/v1" has no HorizontalPodAutoscaler`,
		"apiVersion: autoscaling/v1\nkind: HorizontalPodAutoscaler\nmetadata: {annotations: {autoscaling.alpha.kubernetes.io/metrics: '[{']}}\nspec: {scaleTargetRef: {kind: Deployment, name: x}, maxReplicas: 3}": "YAML",
		hpa + "minReplicas: -1}":                                                                           "minReplicas is -1",
		"kind: HorizontalPodAutoscaler\nspec: {maxReplicas: 3}":                                            "has no target",
		hpa + "metrics: [{type: Resource, resource: {name: cpu}}]}":                                        "the metric has no target",
		hpa + "metrics: [{type: Cpu}]}":                                                                    `unknown type "Cpu"`,
		hpa + "behavior: {scaleUp: {policies: []}}}":                                                       "0 policies, want 1 to 64",
		hpa + "behavior: {scaleUp: {selectPolicy: most}}}":                                                 `unknown selectPolicy "most"`,
		hpa + "behavior: {scaleUp: {tolerance: much}}}":                                                    "tolerance is no quantity",
		hpa + "behavior: {scaleDown: {stabilizationWindowSeconds: 3601}}}":                                 "stabilizationWindowSeconds is 3601",
		hpa + "behavior: {scaleDown: {policies: [{type: Pod}]}}}":                                          `unknown type "Pod"`,
		hpa + "metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, value: 0}}}]}": "the metric has no target",
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

// oneOf reads the only object of a text.
func oneOf(t *testing.T, kind, text string) *Autoscaler {
	t.Helper()
	got, err := ReadAutoscalers("x", []byte(text), kind)
	if err != nil || len(got) != 1 {
		t.Fatalf("%d objects, %v, of\n%s", len(got), err, text)
	}
	return &got[0]
}

const hpaHead = "kind: HorizontalPodAutoscaler\nmetadata: {name: h}\nspec:\n  scaleTargetRef: {kind: Deployment, name: x}\n  maxReplicas: 9\n"

func TestAnHPAOfEachVersionHasItsTargets(t *testing.T) {
	cpu := func(v float64) Metric { return Metric{CPU: true, Type: "Utilization", Value: v} }
	for text, want := range map[string][]Metric{
		"apiVersion: autoscaling/v1\n" + hpaHead + "  targetCPUUtilizationPercentage: 40\n": {cpu(40)},
		"apiVersion: autoscaling/v1\n" + hpaHead:                                            {cpu(80)},
		"apiVersion: autoscaling/v2\n" + hpaHead + "  metrics: []\n":                        {cpu(80)},
		"apiVersion: autoscaling/v2beta2\n" + hpaHead + "  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 55}}}]\n": {cpu(55)},
		"apiVersion: autoscaling/v2beta1\n" + hpaHead + "  metrics: [{type: Resource, resource: {name: cpu, targetAverageUtilization: 55}}, {type: External, external: {metricName: q, targetValue: 1k}}, {type: Pods, pods: {metricName: rps, targetAverageValue: 100}}]\n": {
			cpu(55), {Type: "Value", External: true, Value: 1000}, {Type: "AverageValue", Value: 100}},
		"apiVersion: autoscaling/v1\n" + strings.Replace(hpaHead, "{name: h}", `{name: h, annotations: {autoscaling.alpha.kubernetes.io/metrics: '[{"type":"Object","object":{"target":{"kind":"Service","name":"s"},"metricName":"rps","targetValue":"2k"}}]', autoscaling.alpha.kubernetes.io/behavior: '{"ScaleUp":{"StabilizationWindowSeconds":7,"SelectPolicy":"Max","Policies":[{"Type":"Pods","Value":4,"PeriodSeconds":15}]}}'}}`, 1) + "  targetCPUUtilizationPercentage: 30\n": {
			{Type: "Value", External: true, Value: 2000}, cpu(30)},
		"apiVersion: autoscaling/v2\n" + hpaHead + "  minReplicas: 0\n  metrics: [{type: External, external: {metric: {name: q}, target: {type: AverageValue, averageValue: 1.5}}}]\n": {{Type: "AverageValue", External: true, Value: 1.5}},
	} {
		a := oneOf(t, KindHPA, text)
		if !slices.Equal(a.Metrics, want) || a.Max != 9 {
			t.Errorf("%+v, want %+v, of\n%s", a, want, text)
		}
		if strings.Contains(text, "ScaleUp") && (a.Behavior == nil || *a.Behavior.ScaleUp.Window != 7 || a.Behavior.ScaleUp.Policies[0].Value != 4) {
			t.Errorf("%+v", a.Behavior)
		}
	}
}

func TestAMistakeWithinAnAnnotationIsWhereTheAnnotationIs(t *testing.T) {
	_, err := ReadAutoscalers("x", []byte("apiVersion: autoscaling/v1\nkind: HorizontalPodAutoscaler\nmetadata:\n  annotations:\n    autoscaling.alpha.kubernetes.io/metrics: '[{\"type\":\"Cpu\"}]'\nspec: {scaleTargetRef: {kind: Deployment, name: x}, maxReplicas: 3}\n"), KindHPA)
	if err == nil || !strings.Contains(err.Error(), `x:5:46: unknown type "Cpu" of a metric`) {
		t.Error(err)
	}
}

func TestAListOfTheRawAPIIsTakenApart(t *testing.T) {
	a := oneOf(t, KindHPA, `{"kind":"HorizontalPodAutoscalerList","apiVersion":"autoscaling/v1","items":[{"metadata":{"name":"a"},"spec":{"scaleTargetRef":{"kind":"Deployment","name":"x"},"maxReplicas":6,"targetCPUUtilizationPercentage":35}}]}`)
	if a.Name != "a" || a.Metrics[0].Value != 35 {
		t.Errorf("%+v", a)
	}
}

const kedaHead = "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: k}\nspec:\n  scaleTargetRef: {name: x}\n"

func TestAScaledObjectIsReadAsKEDADoes(t *testing.T) {
	a := oneOf(t, KindScaledObject, kedaHead+"  cooldownPeriod: 0\n  triggers: [{type: prometheus, metricType: Value, metadata: {threshold: '100', activationThreshold: '5'}}]\n")
	if a.Cooldown == nil || *a.Cooldown != 0 || len(a.Metrics) != 1 || a.Metrics[0] != (Metric{Type: "Value", External: true, Value: 100, Activation: 5}) {
		t.Errorf("%+v", a)
	}
	a = oneOf(t, KindScaledObject, kedaHead+"  minReplicaCount: 2\n  triggers: [{type: cpu, metadata: {type: AverageValue, value: 500m}}]\n")
	if a.Metrics[0] != (Metric{CPU: true, Type: "AverageValue", Value: 0.5}) || len(a.Notes) != 1 || a.Cooldown != nil {
		t.Errorf("%+v", a)
	}
	a = oneOf(t, KindScaledObject, kedaHead+"  triggers: [{type: cron, metadata: {timezone: Europe/Berlin, start: 0 8 * * 1-5, end: 0 18 * * 1-5, desiredReplicas: '10'}}, {type: cpu, metricType: Utilization, metadata: {value: '60'}}]\n")
	if len(a.Metrics) != 2 || a.Metrics[0].Value != 10 {
		t.Fatalf("%+v", a)
	}
	for text, within := range map[string]bool{"2026-03-02T07:30:00Z": true, "2026-03-02T06:30:00Z": false, "2026-03-02T16:59:00Z": true, "2026-03-02T17:00:00Z": false, "2026-03-01T12:00:00Z": false} {
		at, _ := time.Parse(time.RFC3339, text)
		if got := a.Metrics[0].Cron.Within(at); got != within {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestAScaledObjectThatKEDARefusesIsAMistakeWithItsPlace(t *testing.T) {
	cpu := "  triggers: [{type: cpu, metricType: Utilization, metadata: {value: '60'}}]\n"
	for text, want := range map[string]string{
		"  minReplicaCount: 0\n" + cpu: "x:6:20: minReplicaCount is 0",
		cpu:                            "triggers on cpu and memory alone",
		"  minReplicaCount: 1\n" + strings.Replace(cpu, "'60'", "500m", 1):                                               "value is no number",
		"  minReplicaCount: 1\n" + strings.Replace(cpu, "Utilization", "Value", 1):                                       `metricType "Value" of a trigger cpu`,
		"  minReplicaCount: 1\n" + strings.Replace(cpu, "metricType: Utilization, ", "", 1):                              `metricType "" of a trigger cpu`,
		"  minReplicaCount: 1\n" + strings.Replace(cpu, "value: '60'", "", 1):                                            "the trigger cpu has no value",
		"  minReplicaCount: 1\n  idleReplicaCount: 1\n" + cpu:                                                            "idleReplicaCount 1 is not less",
		"  minReplicaCount: 101\n" + cpu:                                                                                 "maxReplicaCount",
		"  minReplicaCount: 1\n  pollingInterval: 0\n" + cpu:                                                             "pollingInterval is 0",
		"  triggers: [{type: prometheus, metricType: Utilization, metadata: {threshold: '1'}}]\n":                        `metricType "Utilization" of a trigger prometheus`,
		"  triggers: [{type: cron, metadata: {start: 0 8 * *}}]\n":                                                       "start of a trigger cron",
		"  triggers: [{type: cron, metadata: {start: 0 8 * * *, end: 0 9 * * *, timezone: Mars, desiredReplicas: 1}}]\n": `timezone "Mars"`,
	} {
		if _, err := ReadAutoscalers("x", []byte(kedaHead+text), KindScaledObject); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestTheContainerPolicyOfTheWorkloadItselfCounts(t *testing.T) {
	head := "apiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\nmetadata: {name: v}\nspec:\n  targetRef: {kind: Deployment, name: basket}\n  resourcePolicy:\n    containerPolicies:\n"
	for text, want := range map[string]Autoscaler{
		"    - {containerName: istio-proxy, mode: 'Off'}\n":                                                                     {},
		"    - {containerName: '*', mode: 'Off'}\n":                                                                             {UpdateMode: "Off"},
		"    - {containerName: '*', mode: 'Off'}\n    - {containerName: basket, maxAllowed: {cpu: 2}}\n":                        {MaxAllowed: 2},
		"    - {containerName: basket, mode: 'Off'}\n    - {containerName: '*', maxAllowed: {cpu: 2}}\n":                        {UpdateMode: "Off"},
		"    - {containerName: '*', controlledResources: [memory]}\n":                                                           {LeavesCPU: true},
		"    - {containerName: '*', controlledResources: []}\n":                                                                 {LeavesCPU: true},
		"    - {containerName: '*', controlledResources: [cpu], minAllowed: {cpu: 100m}}\n":                                     {MinAllowed: 0.1},
		"    - {containerName: istio-proxy, controlledResources: [memory]}\n    - {containerName: app, minAllowed: {cpu: 1}}\n": {MinAllowed: 1},
	} {
		a := oneOf(t, KindVPA, head+text)
		if a.UpdateMode != want.UpdateMode || a.LeavesCPU != want.LeavesCPU || a.MinAllowed != want.MinAllowed || a.MaxAllowed != want.MaxAllowed {
			t.Errorf("%+v, want %+v, of\n%s", a, want, text)
		}
	}
	for text, want := range map[string]string{
		"    - {mode: Auto}\n":                                                      "has no containerName",
		"    - {containerName: a, mode: On}\n":                                      `unknown mode "On"`,
		"    - {containerName: a, controlledResources: [disk]}\n":                   `controlledResources has "disk"`,
		"    - {containerName: a, minAllowed: {cpu: 2}, maxAllowed: {cpu: 500m}}\n": "maxAllowed is 500m, less than minAllowed 2",
		"    - {containerName: a}\n  updatePolicy: {minReplicas: 1}\n":              "updatePolicy has no updateMode",
		"    - {containerName: a}\n  updatePolicy: {updateMode: Sometimes}\n":       `unknown updateMode "Sometimes"`,
	} {
		if _, err := ReadAutoscalers("x", []byte(head+text), KindVPA); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"    - {containerName: app, mode: 'Off'}\n":                           "container app, which it leaves alone, is taken for one beside",
		"    - {containerName: '*'}\n  updatePolicy: {updateMode: Initial}\n": "Initial sets the size of new pods alone",
	} {
		if a := oneOf(t, KindVPA, head+text); len(a.Notes) != 1 || !strings.Contains(a.Notes[0], want) || a.UpdateMode == "Off" {
			t.Errorf("%+v, want %s", a, want)
		}
	}
	if a := oneOf(t, KindVPA, head+"    - {containerName: '*'}\n  updatePolicy: {updateMode: InPlace}\n"); len(a.Notes) != 1 || !strings.Contains(a.Notes[0], "feature gate InPlace") {
		t.Errorf("%+v", a)
	}
}

func TestWhatTheAPIServerTakesForAnotherTypeIsAMistake(t *testing.T) {
	const vpa = "apiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\nmetadata: {name: v}\nspec:\n  targetRef: {kind: Deployment, name: basket}\n"
	metrics := func(value string) string {
		return "  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: " + value + "}}}]\n"
	}
	keda := kedaHead + "  minReplicaCount: 1\n  triggers: [{type: prometheus, metadata: {threshold: "
	for _, c := range []struct{ kind, text, want string }{
		{KindVPA, vpa + "  updatePolicy: {updateMode: Off}\n", "x:6:30: updateMode is Off without quotes"},
		{KindVPA, vpa + "  updatePolicy: {updateMode: False}\n", "x:6:30: updateMode is False without quotes"},
		{KindVPA, vpa + "  updatePolicy: {updateMode: 'Off'}\n", ""},
		{KindVPA, vpa + "  updatePolicy: {updateMode: Auto, minReplicas: '2'}\n", "minReplicas is a text in quotes"},
		{KindVPA, vpa + "  resourcePolicy: {containerPolicies: [{containerName: istio-proxy, mode: off}]}\n", "mode is off without quotes"},
		{KindVPA, strings.Replace(vpa, "basket", "no", 1), "name is no without quotes"},
		{KindVPA, strings.Replace(vpa, "basket", "123", 1), "name is 123 without quotes"},
		{KindVPA, strings.Replace(vpa, "autoscaling.k8s.io", "autoscaling", 1), `apiVersion "autoscaling/v1" has no VerticalPodAutoscaler`},
		{KindHPA, hpaHead + "  minReplicas: '2'\n" + metrics("60"), "minReplicas is a text in quotes"},
		{KindHPA, hpaHead + metrics("'60'"), "averageUtilization is a text in quotes"},
		{KindHPA, hpaHead + "  targetCPUUtilizationPercentage: 40\n", "targetCPUUtilizationPercentage is no field of spec in autoscaling/v2"},
		{KindHPA, "apiVersion: autoscaling/v1\n" + hpaHead + metrics("60"), "metrics is no field of spec in autoscaling/v1"},
		{KindScaledObject, keda + "100}}]\n", "threshold is 100 without quotes"},
		{KindScaledObject, keda + "'100', activationThreshold: 5}}]\n", "activationThreshold is 5 without quotes"},
		{KindScaledObject, keda + "'100', ignoreNullValues: false}}]\n", "ignoreNullValues is false without quotes"},
		{KindScaledObject, keda + "'100', ignoreNullValues: 'false'}}]\n", ""},
		{KindScaledObject, kedaHead + "  minReplicaCount: '1'\n  triggers: [{type: prometheus, metadata: {threshold: '1'}}]\n", "minReplicaCount is a text in quotes"},
		{KindScaledObject, kedaHead + "  minReplicaCount: 1\n  triggers: [{type: cpu, metricType: AverageValue, metadata: {type: Utilization, value: '60'}}]\n", "both metricType and metadata.type"},
		{KindScaledObject, strings.Replace(keda, "keda.sh", "keda.k8s.io", 1) + "'1'}}]\n", `apiVersion "keda.k8s.io/v1alpha1" has no ScaledObject`},
	} {
		if _, err := ReadAutoscalers("x", []byte(c.text), c.kind); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.text, err, c.want)
		}
	}
	if a := oneOf(t, KindHPA, hpaHead+"  minReplicas: 010\n"+metrics("60")); a.Min != 8 {
		t.Errorf("010 is %d, want 8 as YAML has it", a.Min)
	}
}

func TestAScaledObjectIsNeverPutToSleepByWhatIsLeftOut(t *testing.T) {
	const triggers = "  triggers: [{type: cpu, metricType: Utilization, metadata: {value: '60'}}, {type: kafka, metadata: {lagThreshold: '50'}}]\n"
	a := oneOf(t, KindScaledObject, kedaHead+triggers)
	if b := oneOf(t, KindScaledObject, kedaHead+"  idleReplicaCount: 0\n  minReplicaCount: 3\n"+triggers); a.Min != 1 || b.Min != 3 || b.Idle != nil || !strings.Contains(a.Notes[len(a.Notes)-1], "always awake") {
		t.Errorf("%+v\n%+v", a, b)
	}
}

func TestAQuantityIsReadAsKubernetesDoes(t *testing.T) {
	for text, want := range map[string]float64{"0.5": 0.5, "500m": 0.5, "2k": 2000, "1Gi": 1 << 30, "1e3": 1000, "1E3": 1000, "12e-1": 1.2, "100u": 1e-4, "1P": 1e15, ".5": 0.5, "5.": 5, "0": 0, "+3": 3, "5n": 5e-9} {
		if got, ok := quantityOf(text); !ok || math.Abs(got-want) > 1e-12*want {
			t.Errorf("%s: %v, %v, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "-1", "1.5cores", "1 k", "1K", "1kb", "NaN", "0x10", "1e9999999999", "1e999999999", strings.Repeat("9", 100)} {
		if got, ok := quantityOf(text); ok {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestSmallInputsOfAutoscalersHaveTheirRightAnswers(t *testing.T) {
	dir := "../../shared/cases/"
	if _, err := os.Stat(dir); err != nil {
		t.Skip("the folder of small inputs is not here")
	}
	read := func(name, kind string) ([]Autoscaler, error) {
		data, err := os.ReadFile(dir + name)
		if err != nil {
			t.Fatal(err)
		}
		return ReadAutoscalers(name, data, kind)
	}
	for _, c := range []struct {
		name, kind string
		right      func(a *Autoscaler) bool
	}{
		{"03-hpa-v1.yaml", KindHPA, func(a *Autoscaler) bool { return a.Metrics[0].Value == 40 && len(a.Notes) == 0 }},
		{"05-keda-cpu-metadata-type.yaml", KindScaledObject, func(a *Autoscaler) bool { return a.Metrics[0].Value == 0.5 && a.Metrics[0].Type == "AverageValue" }},
		{"06-vpa-memory-only.yaml", KindVPA, func(a *Autoscaler) bool { return a.LeavesCPU }},
		{"07-vpa-sidecar-off.yaml", KindVPA, func(a *Autoscaler) bool { return a.UpdateMode == "Auto" && !a.LeavesCPU }},
		{"50-hpa-list-raw.json", KindHPA, func(a *Autoscaler) bool { return a.Name == "basket" && a.Metrics[0].Value == 60 }},
	} {
		if got, err := read(c.name, c.kind); err != nil || len(got) != 1 || !c.right(&got[0]) {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
	if _, err := read("08-keda-cpu-min0.yaml", KindScaledObject); err == nil || !strings.Contains(err.Error(), "08-keda-cpu-min0.yaml:6:20: minReplicaCount is 0") {
		t.Error(err)
	}
}
