package hpa

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"testing/synctest"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	defaults "k8s.io/kubernetes/pkg/apis/autoscaling/v2"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
)

const randomTable = "../../../../cmd/trimtab/testdata/controllers/hpa.json"

// Random is a random object and a random load, and what the controller made of it.
type Random struct {
	Object   *autoscalingv2.HorizontalPodAutoscaler `json:"object"`
	Replicas int                                    `json:"replicas"`
	// Request of a pod in thousandths of a core.
	Request int64 `json:"request"`
	// Looks have, each: the load in thousandths of a request per second, or -1 where it
	// cannot be read; pods that have been ready for long; young ones that have been ready
	// for 10 s; old ones that have been ready for 10 s; pods that start; ready ones of
	// which nothing is known; and what the first of all these use together, in thousandths
	// of a core. The usage of each pod is that over their number, the first has the rest.
	Looks [][7]int64 `json:"looks"`
	Want  []int      `json:"want"`
}

const (
	load = iota
	old
	young
	late
	starts
	unknown
	used
)

// world is what the controller of one Random sees.
type world struct {
	looked
	of  *Random
	rng *rand.Rand
	// loads are in requests per second, cost in core-seconds.
	loads []float64
	cost  float64
	// age of each pod and how long it takes to start, in looks.
	pods    []instance
	startup int
	noise   float64
}

type instance struct{ age, starts int }

// begin lets pods grow older and follow the number, and notes what there is to see.
func (w *world) begin() {
	for i := range w.pods {
		w.pods[i].age++
	}
	for len(w.pods) > int(w.replicas) {
		w.pods = w.pods[:len(w.pods)-1]
	}
	for len(w.pods) < int(w.replicas) {
		w.pods = append(w.pods, instance{0, w.rng.IntN(w.startup + 1)})
	}
	var l [7]int64
	rate := w.loads[w.looks-1]
	for _, p := range w.pods {
		of := old
		switch ready := p.age - p.starts; {
		case ready < 0:
			of = starts
		case ready < 2 && p.age < 20:
			of = young
		case ready < 2:
			of = late
		case w.rng.Float64() < w.noise:
			of = unknown
		}
		l[of]++
	}
	if ready := l[old] + l[young] + l[late] + l[unknown]; ready > 0 {
		each := math.Min(rate*w.cost/float64(ready)*(1+0.1*w.rng.NormFloat64()*w.noise), float64(w.of.Request)/1000)
		l[used] = int64(math.Max(each, 0) * 1000 * float64(l[old]+l[young]+l[late]))
	}
	l[load] = int64(rate*1000 + 0.5)
	if w.rng.Float64() < w.noise/3 {
		l[load] = -1
	}
	w.of.Looks = append(w.of.Looks, l)
}

func (w *world) now() *[7]int64 { return &w.of.Looks[len(w.of.Looks)-1] }

// each calls f for all pods of a look: of which kind it is, and the how manieth that counts.
func (w *world) each(f func(kind, i int)) {
	i := 0
	for _, kind := range []int{old, young, late, starts, unknown} {
		for range w.now()[kind] {
			f(kind, i)
			i++
		}
	}
}

func name(i int) string { return fmt.Sprintf("shop-%d", i) }

func (w *world) list() (out []*v1.Pod) {
	w.each(func(kind, i int) {
		now := time.Now()
		since := func(seconds int) metav1.Time { return metav1.NewTime(now.Add(-time.Duration(seconds) * time.Second)) }
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name(i), Namespace: "shop", Labels: map[string]string{"app": "shop"}},
			Spec: v1.PodSpec{Containers: []v1.Container{{Name: "shop", Resources: v1.ResourceRequirements{
				Requests: v1.ResourceList{v1.ResourceCPU: *resource.NewMilliQuantity(w.of.Request, resource.DecimalSI)}}}}},
			Status: v1.PodStatus{Phase: v1.PodRunning}}
		begun, ready := since(3600), since(3000)
		switch kind {
		case young:
			begun, ready = since(60), since(10)
		case late:
			begun, ready = since(400), since(10)
		case starts:
			begun, p.Status.Phase = since(5), v1.PodPending
		}
		p.Status.StartTime = &begun
		status := v1.ConditionTrue
		if kind == starts {
			status = v1.ConditionFalse
		}
		p.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: status, LastTransitionTime: ready}}
		out = append(out, p)
	})
	return out
}

// of is what each pod that is read has of a sum: the first one has the rest.
func (w *world) share(sum int64) metrics.PodMetricsInfo {
	out := metrics.PodMetricsInfo{}
	n := w.now()[old] + w.now()[young] + w.now()[late]
	if n == 0 {
		return out
	}
	w.each(func(kind, i int) {
		if kind == starts || kind == unknown {
			return
		}
		v := sum / n
		if i == 0 {
			v += sum % n
		}
		out[name(i)] = metrics.PodMetric{Timestamp: time.Now(), Window: 30 * time.Second, Value: v}
	})
	return out
}

func (w *world) GetResourceMetric(context.Context, v1.ResourceName, string, labels.Selector, string) (metrics.PodMetricsInfo, time.Time, error) {
	return w.share(w.now()[used]), time.Now(), nil
}

func (w *world) GetRawMetric(string, string, labels.Selector, labels.Selector) (metrics.PodMetricsInfo, time.Time, error) {
	if w.now()[load] < 0 {
		return nil, time.Time{}, errors.New("no metrics")
	}
	return w.share(w.now()[load]), time.Now(), nil
}

func (w *world) GetExternalMetric(string, string, labels.Selector) ([]int64, time.Time, error) {
	if w.now()[load] < 0 {
		return nil, time.Time{}, errors.New("no metrics")
	}
	return []int64{w.now()[load]}, time.Now(), nil
}

func (w *world) GetObjectMetric(string, string, *autoscalingv2.CrossVersionObjectReference, labels.Selector) (int64, time.Time, error) {
	if w.now()[load] < 0 {
		return 0, time.Time{}, errors.New("no metrics")
	}
	return w.now()[load], time.Now(), nil
}

func one[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// loads are of one of several kinds: they rise and fall, jump, stand still, or end.
func loads(r *rand.Rand, looks int) []float64 {
	out := make([]float64, looks)
	peak, kind := one(r, 5.0, 60, 400, 3000), r.IntN(4)
	v, period := peak*r.Float64(), 10+r.Float64()*60
	for i := range out {
		switch kind {
		case 0:
			v = peak * (0.5 + 0.5*math.Sin(float64(i)/period*2*math.Pi))
		case 1:
			if r.Float64() < 0.08 {
				v = peak * r.Float64() * r.Float64()
			}
		case 2:
			v = math.Max(0, v*(1+0.15*r.NormFloat64()))
		case 3:
			if v = peak * float64(i%40) / 40; i%40 > 20 {
				v = 0
			}
		}
		out[i] = math.Min(v, 2*peak)
	}
	return out
}

func rules(r *rand.Rand) *autoscalingv2.HPAScalingRules {
	if r.IntN(4) == 0 {
		return nil
	}
	out := &autoscalingv2.HPAScalingRules{}
	if r.IntN(2) == 0 {
		w := one[int32](r, 0, 15, 30, 60, 120, 300, 600)
		out.StabilizationWindowSeconds = &w
	}
	if r.IntN(3) == 0 {
		tolerance := resource.MustParse(one(r, "0", "0.05", "0.1", "200m", "0.25", "0.5"))
		out.Tolerance = &tolerance
	}
	if r.IntN(2) == 0 {
		p := one(r, autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect, autoscalingv2.MaxChangePolicySelect, autoscalingv2.DisabledPolicySelect)
		out.SelectPolicy = &p
	}
	for range r.IntN(4) {
		out.Policies = append(out.Policies, autoscalingv2.HPAScalingPolicy{Type: one(r, autoscalingv2.PodsScalingPolicy, autoscalingv2.PercentScalingPolicy),
			Value: one[int32](r, 1, 2, 4, 7, 10, 50, 100, 200), PeriodSeconds: one[int32](r, 15, 30, 45, 60, 120, 300)})
	}
	return out
}

// metric is one with a target that some number of pods meets.
func metric(r *rand.Rand, peak, cost float64, request int64) autoscalingv2.MetricSpec {
	pods := 1 + r.Float64()*20
	amount := func(v float64) *resource.Quantity {
		q := resource.NewMilliQuantity(int64(math.Max(v*1000, 1)), resource.DecimalSI)
		return q
	}
	average := autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: amount(peak / pods)}
	sum := average
	if r.IntN(2) == 0 {
		sum = autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: amount(peak / pods * (1 + r.Float64()*3))}
	}
	id := autoscalingv2.MetricIdentifier{Name: "requests_per_second"}
	percent := one[int32](r, 30, 50, 60, 70, 75, 80, 90, 120)
	use := autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent}
	if r.IntN(3) == 0 {
		use = autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: amount(float64(request) / 1000 * (0.2 + 0.7*r.Float64()))}
	}
	switch r.IntN(6) {
	case 0:
		return autoscalingv2.MetricSpec{Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricSource{Metric: id, Target: average}}
	case 1:
		return autoscalingv2.MetricSpec{Type: autoscalingv2.ObjectMetricSourceType, Object: &autoscalingv2.ObjectMetricSource{Metric: id, Target: sum,
			DescribedObject: autoscalingv2.CrossVersionObjectReference{APIVersion: "networking.k8s.io/v1", Kind: "Ingress", Name: "shop"}}}
	case 2:
		return autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{Metric: id, Target: sum}}
	case 3:
		return autoscalingv2.MetricSpec{Type: autoscalingv2.ContainerResourceMetricSourceType, ContainerResource: &autoscalingv2.ContainerResourceMetricSource{Name: v1.ResourceCPU, Container: "shop", Target: use}}
	}
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{Name: v1.ResourceCPU, Target: use}}
}

// random makes an object and a load.
func random(seed uint64) (*Random, *world) {
	r := rand.New(rand.NewPCG(seed, 31))
	out := &Random{Request: one[int64](r, 100, 250, 333, 500, 1000, 1700), Replicas: 1 + r.IntN(12)}
	w := &world{of: out, rng: r, loads: loads(r, 60), startup: one(r, 0, 1, 3, 8, 30), noise: one(r, 0, 0, 0.05, 0.2)}
	peak := 0.0
	for _, v := range w.loads {
		peak = math.Max(peak, v)
	}
	peak = math.Max(peak, 1)
	w.cost = float64(out.Request) / 1000 * (1 + r.Float64()*10) / peak
	least, most := int32(1+r.IntN(4)), int32(5+r.IntN(40))
	spec := autoscalingv2.HorizontalPodAutoscalerSpec{MinReplicas: &least, MaxReplicas: most,
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "shop"}}
	sums := false
	for range one(r, 1, 1, 1, 2, 3) {
		m := metric(r, peak, w.cost, out.Request)
		sums = sums || m.Object != nil || m.External != nil
		spec.Metrics = append(spec.Metrics, m)
	}
	if sums && r.IntN(3) > 0 {
		least = 0
	} else if r.IntN(5) == 0 {
		spec.MinReplicas = nil
	}
	if r.IntN(5) > 1 {
		spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: rules(r), ScaleDown: rules(r)}
	}
	out.Object = &autoscalingv2.HorizontalPodAutoscaler{TypeMeta: metav1.TypeMeta{APIVersion: "autoscaling/v2", Kind: "HorizontalPodAutoscaler"},
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "shop", Generation: 1}, Spec: spec}
	w.replicas, w.until, w.done = int32(out.Replicas), len(w.loads), make(chan struct{})
	for range out.Replicas {
		w.pods = append(w.pods, instance{age: 100})
	}
	w.looked.each, w.looked.list = w.begin, w.list
	return out, w
}

func TestTheRandomTableIsWhatTheControllerDoes(t *testing.T) {
	var out bytes.Buffer
	out.WriteString("[\n")
	// One of them sleeps until a time that it remembers from the bubble before.
	utilruntime.ErrorHandlers = nil
	for seed := range uint64(200) {
		var c *Random
		synctest.Test(t, func(t *testing.T) {
			var w *world
			c, w = random(seed)
			w.done = make(chan struct{})
			object := c.Object.DeepCopy()
			defaults.SetObjectDefaults_HorizontalPodAutoscaler(object)
			control(t, object, &w.looked, w)
			c.Want = w.want
		})
		line, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if seed > 0 {
			out.WriteString(",\n")
		}
		out.Write(line)
	}
	out.WriteString("\n]\n")
	same(t, randomTable, out.Bytes())
}

// same compares a table with the one that there is, or writes it.
func same(t *testing.T, path string, table []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, table, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	was, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(was, table) {
		t.Errorf("%s differs from what the controller does (%v): -update writes it", path, err)
	}
}
