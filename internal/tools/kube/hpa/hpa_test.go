package hpa

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"testing"
	"testing/synctest"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	defaults "k8s.io/kubernetes/pkg/apis/autoscaling/v2"
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
	same(t, table, out.Bytes())
}

// target is the API of one Deployment and of its metric.
type target struct {
	of *Case
	looked
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
	object := c.object(t)
	synctest.Test(t, func(t *testing.T) {
		s := &target{of: c, looked: looked{replicas: int32(c.Replicas), until: len(c.Usage), done: make(chan struct{})}}
		control(t, object, &s.looked, s)
		want = s.want
	})
	return want
}
