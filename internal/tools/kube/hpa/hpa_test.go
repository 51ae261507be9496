package hpa

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"testing"
	"testing/synctest"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	scalefake "k8s.io/client-go/scale/fake"
	clienttesting "k8s.io/client-go/testing"
	defaults "k8s.io/kubernetes/pkg/apis/autoscaling/v2"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
)

const table = "../../../../planner/behavior/testdata/controller.json"

func flags() *bool { return flag.Bool("update", false, "write the table") }

var update = flags()

// Case is one block and what the controller made of a course of usage, look by look, one
// every 15 s.
type Case struct {
	Name     string          `json:"name"`
	Behavior json.RawMessage `json:"behavior,omitempty"`
	Min      int             `json:"minReplicas"`
	Max      int             `json:"maxReplicas"`
	// Replicas at first.
	Replicas int `json:"replicas"`
	// Usage is in what one pod is to have: as many pods are wanted.
	Usage []float64 `json:"usage"`
	// Want is what the controller sets at each look.
	Want []int `json:"want"`
}

func TestTheTableIsWhatTheControllerDoes(t *testing.T) {
	all := cases()
	if len(all) < 60 {
		t.Fatalf("%d cases, want 60", len(all))
	}
	for i := range all {
		all[i].Want = asked(t, &all[i])
	}
	var out bytes.Buffer
	out.WriteString("[\n")
	for i := range all {
		line, err := json.Marshal(&all[i])
		if err != nil {
			t.Fatal(err)
		}
		out.Write(line)
		if i < len(all)-1 {
			out.WriteByte(',')
		}
		out.WriteByte('\n')
	}
	out.WriteString("]\n")
	if *update {
		if err := os.WriteFile(table, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	was, err := os.ReadFile(table)
	if err != nil || !bytes.Equal(was, out.Bytes()) {
		t.Errorf("the table differs from what the controller does (%v): -update writes it", err)
	}
}

// target is the API of one Deployment and of its metric.
type target struct {
	of       *Case
	replicas int32
	looks    int
	want     []int
	done     chan struct{}
}

// look begins one: the controller reads the scale first.
func (s *target) look(clienttesting.Action) (bool, runtime.Object, error) {
	if s.looks > 0 && s.looks <= len(s.of.Usage) {
		s.want = append(s.want, int(s.replicas))
	}
	if s.looks++; s.looks == len(s.of.Usage)+1 {
		close(s.done)
	}
	return true, &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "shop"}, Spec: autoscalingv1.ScaleSpec{Replicas: s.replicas},
		Status: autoscalingv1.ScaleStatus{Replicas: s.replicas, Selector: "app=shop"}}, nil
}

func (s *target) set(a clienttesting.Action) (bool, runtime.Object, error) {
	o := a.(clienttesting.UpdateAction).GetObject().(*autoscalingv1.Scale)
	s.replicas = o.Spec.Replicas
	return true, o, nil
}

// GetExternalMetric is the usage of this look, in thousandths.
func (s *target) GetExternalMetric(string, string, labels.Selector) ([]int64, time.Time, error) {
	i := min(s.looks, len(s.of.Usage)) - 1
	return []int64{int64(s.of.Usage[i]*1000 + 0.5)}, time.Now(), nil
}

func (*target) GetResourceMetric(context.Context, v1.ResourceName, string, labels.Selector, string) (metrics.PodMetricsInfo, time.Time, error) {
	panic("not asked for")
}

func (*target) GetRawMetric(string, string, labels.Selector, labels.Selector) (metrics.PodMetricsInfo, time.Time, error) {
	panic("not asked for")
}

func (*target) GetObjectMetric(string, string, *autoscalingv2.CrossVersionObjectReference, labels.Selector) (int64, time.Time, error) {
	panic("not asked for")
}

func (c *Case) object(t *testing.T) *autoscalingv2.HorizontalPodAutoscaler {
	least, one := int32(c.Min), resource.MustParse("1")
	h := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "shop", Generation: 1},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MinReplicas: &least, MaxReplicas: int32(c.Max),
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "shop"},
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
				Metric: autoscalingv2.MetricIdentifier{Name: "load"}, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: &one}}}}}}
	if c.Behavior != nil {
		h.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{}
		if err := json.Unmarshal(c.Behavior, h.Spec.Behavior); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
	}
	defaults.SetObjectDefaults_HorizontalPodAutoscaler(h)
	return h
}

// asked lets the controller look as often as there is usage.
func asked(t *testing.T, c *Case) (want []int) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &target{of: c, replicas: int32(c.Replicas), done: make(chan struct{})}
		scales := &scalefake.FakeScaleClient{}
		scales.AddReactor("get", "*", s.look)
		scales.AddReactor("update", "*", s.set)
		client := fake.NewSimpleClientset(c.object(t))
		mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "apps", Version: "v1"}})
		mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
		shared := informers.NewSharedInformerFactory(client, 0)
		controller := podautoscaler.NewHorizontalController(ctx, client.CoreV1(), scales, client.AutoscalingV2(), mapper, s,
			shared.Autoscaling().V2().HorizontalPodAutoscalers(), shared.Core().V1().Pods(), 15*time.Second, 5*time.Minute, 0.1, 5*time.Minute, 30*time.Second)
		shared.Start(ctx.Done())
		go controller.Run(ctx, 1)
		<-s.done
		want = s.want
		cancel()
		shared.Shutdown()
		time.Sleep(time.Minute) // workers and the broadcaster end
		synctest.Wait()
	})
	return want
}
