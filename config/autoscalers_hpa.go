package config

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// hpa reads a HorizontalPodAutoscaler of any version, by the rules of the API server of
// Kubernetes 1.37 (pkg/apis/autoscaling/validation).
func (x *object) hpa(a *Autoscaler) {
	spec, old := x.get("spec"), false
	switch _, version, _ := strings.Cut(x.version, "/"); x.version {
	case "", "autoscaling/v2":
	case "autoscaling/v1":
		old = true
	case "autoscaling/v2beta1", "autoscaling/v2beta2":
		old = version == "v2beta1"
		a.Notes = append(a.Notes, "no API server since Kubernetes 1.26 serves "+x.version+": it is read as autoscaling/v2 has it")
	default:
		x.get("apiVersion").fail(fmt.Sprintf("apiVersion %q has no %s", clip(x.version), KindHPA), "write autoscaling/v2 or autoscaling/v1")
		return
	}
	has := []string{"scaleTargetRef", "minReplicas", "maxReplicas", "metrics", "behavior"}
	if x.version == "autoscaling/v1" {
		has = append(has[:3], "targetCPUUtilizationPercentage")
	}
	for _, e := range x.m.entries(spec.node, 0) {
		if key := keyText(e.Key); !slices.Contains(has, key) {
			spec.get(key).fail(fmt.Sprintf("%s is no field of spec in %s", clip(key), cmp.Or(x.version, "autoscaling/v2")), "kubectl refuses it: that version has "+strings.Join(has, ", "))
		}
	}
	least, most := spec.get("minReplicas"), spec.get("maxReplicas")
	least.whole(&a.Min, 0, 10_000)
	if !most.has() {
		most.fail(a.String()+" has no maxReplicas", "write the most pods that it may ask for")
	}
	most.whole(&a.Max, max(a.Min, 1), 10_000)
	metrics, block := spec.get("metrics").items(), spec.get("behavior")
	if x.version == "autoscaling/v1" {
		const prefix = "autoscaling.alpha.kubernetes.io/"
		if text := x.get("metadata", "annotations", prefix+"metrics"); text.has() {
			inner := text.embedded()
			metrics = inner.items()
			defer text.tellOf(inner)
		}
		if text := x.get("metadata", "annotations", prefix+"behavior"); text.has() {
			block = text.embedded()
			defer text.tellOf(block)
		}
	}
	a.Behavior = block.behavior()
	named := len(metrics) // of which some have nothing in a recording
	sums := false
	for _, m := range metrics {
		m.metric(a, old)
		sums = sums || slices.Contains([]string{"Object", "External"}, m.get("type").text())
	}
	if cpu := spec.get("targetCPUUtilizationPercentage"); cpu.has() && x.version == "autoscaling/v1" {
		named++
		percent := 0
		cpu.whole(&percent, 1, 1<<31-1)
		a.Metrics = append(a.Metrics, Metric{CPU: true, Type: "Utilization", Value: float64(percent)})
	}
	switch {
	case a.Min == 0 && least.has() && !sums:
		least.fail("minReplicas is 0, and no metric is of the type Object or External", "write 1: without pods, nothing else can be measured that would bring one back")
	case named == 0:
		a.Metrics = []Metric{{CPU: true, Type: "Utilization", Value: 80}}
		a.Notes = append(a.Notes, "it names no metric: CPU at 80% of requests, as the API server fills in")
	case len(a.Metrics) == 0 && len(x.m.errs) == 0:
		spec.get("metrics").fail("no metric of "+a.String()+" can be replayed", "a recording has CPU and load: name a metric of one of them")
	}
}

// embedded reads JSON that is the text of an annotation, in which old versions keep what
// they have no field for. Keys begin with small letters in what is returned.
func (x item) embedded() item {
	text := regexp.MustCompile(`"[A-Z][A-Za-z]*":`).ReplaceAllStringFunc(x.text(), func(key string) string {
		return `"` + strings.ToLower(key[1:2]) + key[2:]
	})
	m, documents := openManifest(x.m.file, []byte(text), "")
	if len(m.errs) > 0 || len(documents) != 1 {
		x.fail(lastOf(x.path)+" is no JSON", "leave the annotation out, and write autoscaling/v2")
		return item{m: x.m, path: x.path}
	}
	return documents[0]
}

// tellOf reports what is wrong within the text of a value where the value is.
func (x item) tellOf(inner item) {
	if inner.m == x.m {
		return
	}
	for _, e := range inner.m.errs {
		x.fail(e.Message, e.Hint)
	}
	inner.m.errs = nil
}

// metric reads a metric of an HPA; old: in the form of v1 and v2beta1. A metric that is
// neither CPU nor memory counts as requests per second, since a recording has nothing else.
func (x item) metric(a *Autoscaler, old bool) {
	kind := x.get("type").word()
	source := map[string]string{"Resource": "resource", "ContainerResource": "containerResource", "Pods": "pods", "Object": "object", "External": "external"}[kind]
	if source == "" {
		x.get("type").fail(fmt.Sprintf("unknown type %q of a metric", clip(kind)), "write Resource, ContainerResource, Pods, Object or External")
		return
	}
	of := x.get(source)
	if !of.has() {
		of.fail(fmt.Sprintf("a metric of the type %s has no %s", kind, source), fmt.Sprintf("write %s: {...} beside the type", source))
		return
	}
	m := Metric{CPU: strings.HasSuffix(kind, "Resource"), External: kind == "External" || kind == "Object"}
	name := of.get("name").word()
	target, keys := of.targets(kind, old)
	var set []string
	for _, key := range []string{"Utilization", "AverageValue", "Value"} {
		if keys[key] != "" && target.get(keys[key]).has() {
			set = append(set, key)
		}
	}
	if !target.has() {
		target.fail("the metric has no target", "write target: "+exampleTarget(kind))
		return
	}
	if asked := target.get("type"); !old && !slices.Contains([]string{"Utilization", "AverageValue", "Value"}, asked.word()) {
		asked.fail(fmt.Sprintf("the target is of the type %q", clip(asked.text())), "write Utilization, AverageValue or Value")
		return
	} else if kind == "Object" && !old && len(set) == 2 {
		set = []string{asked.text()}
	}
	switch {
	case len(set) == 0:
		target.fail("the metric has no target", "write target: "+exampleTarget(kind))
		return
	case len(set) > 1:
		target.get(keys[set[1]]).fail(fmt.Sprintf("the target has both %s and %s", keys[set[0]], keys[set[1]]), "keep one of them")
		return
	}
	m.Type = set[0]
	at, ok := target.get(keys[m.Type]), false
	if m.Type == "Utilization" {
		percent := 0
		at.whole(&percent, 1, 1<<31-1)
		m.Value, ok = float64(percent), percent > 0
	} else {
		m.Value, ok = at.positive()
	}
	switch {
	case !ok:
	case m.CPU && name != "cpu":
		a.Notes = append(a.Notes, fmt.Sprintf("its metric of %s is left out: a recording has none", clip(name)))
	default:
		if !m.CPU {
			called := of.get("metric", "name").text() + of.get("metricName").text()
			a.Notes = append(a.Notes, fmt.Sprintf("its metric %s is taken for the load in requests per second", clip(called)))
		}
		a.Metrics = append(a.Metrics, m)
	}
}

// targets returns the item with the target of a metric, and its keys by the types that a
// metric of that kind may have.
func (x item) targets(kind string, old bool) (at item, keys map[string]string) {
	switch {
	case old && kind == "Object":
		return x, map[string]string{"Value": "targetValue", "AverageValue": "averageValue"}
	case old:
		at, keys = x, map[string]string{"Utilization": "targetAverageUtilization", "AverageValue": "targetAverageValue", "Value": "targetValue"}
	default:
		at, keys = x.get("target"), map[string]string{"Utilization": "averageUtilization", "AverageValue": "averageValue", "Value": "value"}
	}
	switch kind {
	case "Resource", "ContainerResource":
		delete(keys, "Value")
	case "Pods":
		keys = map[string]string{"AverageValue": keys["AverageValue"]}
	default:
		delete(keys, "Utilization")
	}
	return at, keys
}

// exampleTarget is a target as a metric of that kind has it.
func exampleTarget(kind string) string {
	switch kind {
	case "Pods":
		return `{type: AverageValue, averageValue: "100"}`
	case "Object", "External":
		return `{type: Value, value: "100"}, or averageValue of each pod`
	}
	return "{type: Utilization, averageUtilization: 70}, or averageValue in cores"
}
