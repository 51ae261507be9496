package config

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Autoscaler is one HorizontalPodAutoscaler, ScaledObject or VerticalPodAutoscaler of a
// manifest, in its own words.
type Autoscaler struct {
	// Kind is one of those three, Namespace and Name are the object's, Target is the name
	// of the object that it scales.
	Kind, Namespace, Name, Target string
	Min, Max                      int
	Behavior                      *Behavior
	Metrics                       []Metric
	// Idle is idleReplicaCount and Cooldown cooldownPeriod, nil where they are left out.
	// Polling is 0 where it is.
	Idle     *int
	Cooldown *time.Duration
	Polling  time.Duration
	// UpdateMode is that of a VPA, Off also if its container policy says so. LeavesCPU:
	// it controls memory alone. MinAllowed and MaxAllowed are cores, 0: none.
	// MinReplicas is 0 where it is left out.
	UpdateMode             string
	LeavesCPU              bool
	MinAllowed, MaxAllowed float64
	MinReplicas            int
	// Notes say what of the object is not played.
	Notes []string
}

// Metric is one that an autoscaler follows.
type Metric struct {
	// CPU: the metric is CPU; any other is taken for the load in requests per second.
	CPU bool
	// Type is Utilization (percent of requests), AverageValue, or Value.
	Type string
	// External: the value is the sum over all pods, divided by their number.
	External          bool
	Value, Activation float64
	// Cron is set of KEDA's trigger of that name: it asks for Value pods in its hours.
	Cron *Cron
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

func (x *object) autoscaler(kind string) Autoscaler {
	a := Autoscaler{Kind: kind, Namespace: x.get("metadata", "namespace").word(), Name: x.get("metadata", "name").word(), Min: 1, Max: 100}
	target := x.get("spec", "scaleTargetRef")
	if kind == KindVPA {
		target = x.get("spec", "targetRef")
	}
	a.Target = target.get("name").word()
	if a.Target == "" {
		target.fail(a.String()+" has no target", "write "+lastOf(target.path)+": {apiVersion: apps/v1, kind: Deployment, name: NAME}")
	} else if kind != KindScaledObject && target.get("kind").text() == "" {
		target.get("kind").fail(a.String()+" has a target without a kind", "write kind: Deployment")
	}
	group, _, _ := strings.Cut(x.version, "/")
	if of := map[string]string{KindScaledObject: "keda.sh", KindVPA: "autoscaling.k8s.io"}[kind]; of != "" && group != of && group != "" {
		x.get("apiVersion").fail(fmt.Sprintf("apiVersion %q has no %s that is read", clip(x.version), kind), "write one of "+of)
	}
	switch kind {
	case KindHPA:
		x.hpa(&a)
	case KindScaledObject:
		x.scaledObject(&a)
	case KindVPA:
		x.vpa(&a)
	}
	return a
}

// whole reads a number within bounds where there is one, which the API server does not take
// in quotes.
func (x item) whole(to *int, least, most int) {
	if isText(x.node) && !isPlain(x.node) {
		x.fail(lastOf(x.path)+" is a text in quotes, want a number", "leave the quotes out: the API server refuses it")
		return
	}
	x.digits(to, least, most)
}

// digits reads a number within bounds where there is one, in quotes or not.
func (x item) digits(to *int, least, most int) {
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
func (x item) seconds(least int) *time.Duration {
	if !x.has() {
		return nil
	}
	n := 0
	x.whole(&n, least, 1<<30)
	d := time.Duration(n) * time.Second
	return &d
}

// quantity reads an amount as Kubernetes writes it.
func (x item) quantity() (float64, bool) {
	v, ok := quantityOf(x.text())
	if !ok {
		x.fail(fmt.Sprintf("%s is no quantity", lastOf(x.path)), "write a number, such as 0.5, 500m or 2Gi")
	}
	return v, ok
}

// positive is [item.quantity], more than 0.
func (x item) positive() (float64, bool) {
	v, ok := x.quantity()
	if ok && !(v > 0) {
		x.fail(lastOf(x.path)+" is 0, want more", "write what each pod is to have")
	}
	return v, ok && v > 0
}

// quantityOf reads 0.5, 500m, 2k, 1Gi or 1e3, as Kubernetes does; never less than 0.
func quantityOf(text string) (v float64, ok bool) {
	if text = strings.TrimSpace(text); len(text) > 64 {
		return 0, false
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return 0, false
	}
	v = q.AsApproximateFloat64()
	return v, v >= 0 && v <= 1e15
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
	r := &ScalingRules{Select: x.get("selectPolicy").word()}
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
		one := ScalingPolicy{Type: p.get("type").word(), Value: 1, PeriodSeconds: 15}
		if one.Type != "Pods" && one.Type != "Percent" {
			p.get("type").fail(fmt.Sprintf("unknown type %q", clip(one.Type)), "write Pods or Percent")
		}
		p.get("value").whole(&one.Value, 1, 1<<31-1)
		p.get("periodSeconds").whole(&one.PeriodSeconds, 1, 1800)
		r.Policies = append(r.Policies, one)
	}
	return r
}
