package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Autoscaler is one HorizontalPodAutoscaler, ScaledObject or VerticalPodAutoscaler of a
// manifest, in its own words.
type Autoscaler struct {
	// Kind is one of those three, Namespace and Name are the object's, Target is the name
	// of what it scales.
	Kind, Namespace, Name, Target string
	Min, Max                      int
	Behavior                      *Behavior
	Metrics                       []Metric
	// Idle is idleReplicaCount, nil where it is left out. Cooldown and Polling are 0
	// where they are.
	Idle              *int
	Cooldown, Polling time.Duration
	// UpdateMode is that of a VPA, MinAllowed and MaxAllowed are cores, 0: none.
	// MinReplicas is 0 where it is left out.
	UpdateMode             string
	MinAllowed, MaxAllowed float64
	MinReplicas            int
	// Notes say what of the object is not played.
	Notes []string
}

// Metric is one that an autoscaler follows.
type Metric struct {
	// CPU tells that it is CPU; else it is taken for the load in requests per second.
	CPU bool
	// Type is Utilization (percent of requests), AverageValue, or Value.
	Type string
	// External tells that the sum is divided by the number of pods, not each read.
	External          bool
	Value, Activation float64
}

// The kinds of autoscalers.
const (
	KindHPA          = "HorizontalPodAutoscaler"
	KindScaledObject = "ScaledObject"
	KindVPA          = "VerticalPodAutoscaler"
)

// String names the object: "HorizontalPodAutoscaler shop/checkout".
func (a *Autoscaler) String() string {
	return a.Kind + " " + strings.TrimPrefix(a.Namespace+"/"+a.Name, "/")
}

// ReadAutoscalers reads the objects of one kind of a manifest; others are left out. The
// error is [Errors]. It never panics.
func ReadAutoscalers(filename string, data []byte, kind string) ([]Autoscaler, error) {
	m, documents := openManifest(filename, data, "name a file with a "+kind)
	var out []Autoscaler
	for _, o := range objects(documents) {
		if o.kind == kind && len(out) < maxObjectives {
			out = append(out, o.autoscaler(kind))
		}
	}
	if len(out) == 0 && len(m.errs) == 0 {
		m.report(position{1, 1}, "the file has no "+kind, "name the file with its manifest")
	}
	if len(m.errs) > 0 {
		return nil, m.errs.ordered()
	}
	return out, nil
}

func (x item) autoscaler(kind string) Autoscaler {
	a := Autoscaler{Kind: kind, Namespace: x.get("metadata", "namespace").text(), Name: x.get("metadata", "name").text(), Min: 1, Max: 100}
	spec := x.get("spec")
	target := spec.get("scaleTargetRef")
	if kind == KindVPA {
		target = spec.get("targetRef")
	}
	a.Target = target.get("name").text()
	if a.Target == "" {
		target.fail(a.String()+" has no target", "write "+lastOf(target.path)+": {apiVersion: apps/v1, kind: Deployment, name: NAME}")
	}
	switch kind {
	case KindHPA:
		spec.get("minReplicas").whole(&a.Min, 0, 10_000)
		spec.get("maxReplicas").whole(&a.Max, max(a.Min, 1), 10_000)
		a.Behavior = spec.get("behavior").behavior()
		for _, m := range spec.get("metrics").items() {
			m.metric(&a)
		}
		if len(a.Metrics) == 0 {
			a.Metrics = []Metric{{CPU: true, Type: "Utilization", Value: 80}}
			a.Notes = append(a.Notes, "no metric of it can be replayed: CPU at 80% of requests is taken, as where an HPA names none")
		}
	case KindScaledObject:
		x.scaledObject(&a)
	case KindVPA:
		x.vpa(&a)
	}
	return a
}

// whole reads a number within bounds where there is one.
func (x item) whole(to *int, least, most int) {
	if !x.has() {
		return
	}
	v, ok := x.number()
	if ok && !(v >= float64(least) && v <= float64(most) && v == math.Trunc(v)) {
		x.fail(fmt.Sprintf("%s is %s, want a whole number from %d to %d", lastOf(x.path), clip(x.text()), least, most), "write one as the API server takes it")
		return
	}
	if ok {
		*to = int(v)
	}
}

// seconds reads a number of seconds where there is one.
func (x item) seconds(to *time.Duration) {
	n := 0
	x.whole(&n, 0, 1<<30)
	*to = time.Duration(n) * time.Second
}

// quantity reads an amount as Kubernetes writes it.
func (x item) quantity() (float64, bool) {
	v, ok := quantityOf(x.text())
	if !ok {
		x.fail(fmt.Sprintf("%s is no quantity", lastOf(x.path)), "write a number, such as 0.5, 500m or 2Gi")
	}
	return v, ok
}

// quantityOf reads 0.5, 500m, 2k or 1Gi; never less than 0.
func quantityOf(text string) (v float64, ok bool) {
	text = strings.TrimSpace(text)
	by := 1.0
	for _, s := range []struct {
		suffix string
		by     float64
	}{{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"Ti", 1 << 40}, {"u", 1e-6}, {"m", 1e-3}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}} {
		if rest, found := strings.CutSuffix(text, s.suffix); found {
			text, by = rest, s.by
			break
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	v *= by
	return v, err == nil && v >= 0 && v <= 1e15
}

// behavior reads the block, with the bounds of the API server.
func (x item) behavior() *Behavior {
	if !x.has() {
		return nil
	}
	return &Behavior{ScaleUp: x.get("scaleUp").rules(), ScaleDown: x.get("scaleDown").rules()}
}

func (x item) rules() *ScalingRules {
	if !x.has() {
		return nil
	}
	r := &ScalingRules{Select: x.get("selectPolicy").text()}
	if w := x.get("stabilizationWindowSeconds"); w.has() {
		r.Window = new(int)
		w.whole(r.Window, 0, 3600)
	}
	if t := x.get("tolerance"); t.has() {
		v, _ := t.quantity()
		r.Tolerance = (*Quantity)(&v)
	}
	if s := r.Select; s != "" && !slices.Contains([]string{"Max", "Min", "Disabled"}, s) {
		x.get("selectPolicy").fail(fmt.Sprintf("unknown selectPolicy %q", clip(s)), "write Max, Min or Disabled")
	}
	policies := x.get("policies")
	if n := len(policies.items()); policies.has() && (n == 0 || n > 64) {
		policies.fail(fmt.Sprintf("%d policies, want 1 to 64", n), "leave policies out for the default ones")
	}
	for _, p := range policies.items() {
		one := ScalingPolicy{Type: p.get("type").text(), Value: 1, PeriodSeconds: 15}
		if one.Type != "Pods" && one.Type != "Percent" {
			p.get("type").fail(fmt.Sprintf("unknown type %q", clip(one.Type)), "write Pods or Percent")
		}
		p.get("value").whole(&one.Value, 1, 1<<31-1)
		p.get("periodSeconds").whole(&one.PeriodSeconds, 1, 1800)
		r.Policies = append(r.Policies, one)
	}
	return r
}

// metric reads one of an HPA. What is neither CPU nor memory counts as requests per
// second, since a recording has nothing else.
func (x item) metric(a *Autoscaler) {
	kind := x.get("type").text()
	source := map[string]string{"Resource": "resource", "ContainerResource": "containerResource", "Pods": "pods", "Object": "object", "External": "external"}[kind]
	if source == "" {
		x.get("type").fail(fmt.Sprintf("unknown type %q of a metric", clip(kind)), "write Resource, ContainerResource, Pods, Object or External")
		return
	}
	of := x.get(source)
	m := Metric{CPU: strings.HasSuffix(kind, "Resource"), External: kind == "External" || kind == "Object"}
	name := of.get("name").text()
	if m.CPU && name != "cpu" {
		a.Notes = append(a.Notes, fmt.Sprintf("its metric of %s is left out: a recording has none", clip(name)))
		return
	}
	if !m.CPU {
		a.Notes = append(a.Notes, fmt.Sprintf("its metric %s is taken for the load in requests per second", clip(of.get("metric", "name").text())))
	}
	target := of.get("target")
	for _, key := range []string{"averageUtilization", "averageValue", "value"} {
		if at := target.get(key); at.has() {
			m.Type = map[string]string{"averageUtilization": "Utilization", "averageValue": "AverageValue", "value": "Value"}[key]
			v, ok := at.quantity()
			if m.Value = v; ok && v <= 0 {
				at.fail(key+" is 0, want more", "write what each pod is to have")
			}
			a.Metrics = append(a.Metrics, m)
			return
		}
	}
	target.fail("the metric has no target", "write target: {type: Utilization, averageUtilization: 70}")
}

// scaledObject reads that of KEDA.
func (x item) scaledObject(a *Autoscaler) {
	spec := x.get("spec")
	a.Min = 0
	spec.get("minReplicaCount").whole(&a.Min, 0, 10_000)
	spec.get("maxReplicaCount").whole(&a.Max, max(a.Min, 1), 10_000)
	if idle := spec.get("idleReplicaCount"); idle.has() {
		a.Idle = new(int)
		idle.whole(a.Idle, 0, max(a.Min-1, 0))
	}
	spec.get("cooldownPeriod").seconds(&a.Cooldown)
	spec.get("pollingInterval").seconds(&a.Polling)
	advanced := spec.get("advanced")
	a.Behavior = advanced.get("horizontalPodAutoscalerConfig", "behavior").behavior()
	if f := advanced.get("scalingModifiers", "formula"); f.has() {
		f.fail("formulas of scalingModifiers are not read", "leave the formula out, and write one trigger")
	}
	for _, t := range spec.get("triggers").items() {
		t.trigger(a)
	}
	if len(a.Metrics) == 0 {
		spec.get("triggers").fail("no trigger of "+a.String()+" can be replayed", "write a trigger on CPU, or one with a threshold on requests per second, as prometheus has it")
	}
}

// trigger reads one: CPU, or one with a threshold.
func (x item) trigger(a *Autoscaler) {
	kind, at := x.get("type").text(), x.get("metadata")
	kindOf := x.get("metricType").text()
	switch kind {
	case "memory", "cron":
		a.Notes = append(a.Notes, "its trigger "+kind+" is left out: a recording has nothing for it")
		return
	case "cpu":
		m := Metric{CPU: true, Type: "Utilization"}
		if kindOf == "AverageValue" {
			m.Type = kindOf
		}
		if v, ok := at.get("value").quantity(); ok && v > 0 {
			m.Value = v
			a.Metrics = append(a.Metrics, m)
		}
		return
	}
	for _, key := range []string{"threshold", "targetValue", "targetQueryValue", "value"} {
		if t := at.get(key); t.has() {
			m := Metric{Type: "AverageValue", External: true}
			if kindOf == "Value" {
				m.Type = kindOf
			}
			v, ok := t.quantity()
			if m.Value = v; ok && v <= 0 {
				t.fail(key+" is 0, want more", "write what each pod is to have")
			}
			if more := at.get("activation" + strings.ToUpper(key[:1]) + key[1:]); more.has() {
				m.Activation, _ = more.quantity()
			}
			a.Metrics = append(a.Metrics, m)
			a.Notes = append(a.Notes, fmt.Sprintf("its trigger %s is taken for the load in requests per second", clip(kind)))
			return
		}
	}
	a.Notes = append(a.Notes, fmt.Sprintf("its trigger %s is left out: it has no threshold", clip(kind)))
}

// vpa reads what a VPA says of CPU.
func (x item) vpa(a *Autoscaler) {
	spec := x.get("spec")
	mode := spec.get("updatePolicy", "updateMode")
	switch a.UpdateMode = mode.text(); a.UpdateMode {
	case "", "Off", "Initial", "Recreate", "Auto", "InPlaceOrRecreate", "InPlace":
	default:
		mode.fail(fmt.Sprintf("unknown updateMode %q", clip(a.UpdateMode)), "write Off, Initial, Recreate, InPlaceOrRecreate or InPlace")
	}
	spec.get("updatePolicy", "minReplicas").whole(&a.MinReplicas, 1, 10_000)
	policies := spec.get("resourcePolicy", "containerPolicies").items()
	for _, p := range policies[:min(len(policies), 1)] {
		for key, to := range map[string]*float64{"minAllowed": &a.MinAllowed, "maxAllowed": &a.MaxAllowed} {
			if v := p.get(key, "cpu"); v.has() {
				*to, _ = v.quantity()
			}
		}
		if p.get("mode").text() == "Off" {
			a.UpdateMode = "Off"
		}
	}
	if len(policies) > 1 {
		a.Notes = append(a.Notes, "its first container policy is taken: a pod is played with one container")
	}
}
