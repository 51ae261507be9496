package hpa

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	scalefake "k8s.io/client-go/scale/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
)

// looked is the number of replicas of a Deployment, which the controller reads and sets.
type looked struct {
	replicas int32
	looks    int
	until    int
	want     []int
	done     chan struct{}
	// each is called at the beginning of a look, list returns the pods; both may be nil.
	each func()
	list func() []*v1.Pod
}

// look begins one: the controller reads the scale first.
func (s *looked) look(clienttesting.Action) (bool, runtime.Object, error) {
	if s.looks > 0 && s.looks <= s.until {
		s.want = append(s.want, int(s.replicas))
	}
	if s.looks++; s.looks == s.until+1 {
		close(s.done)
	}
	if s.each != nil && s.looks <= s.until {
		s.each()
	}
	return true, &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "shop"}, Spec: autoscalingv1.ScaleSpec{Replicas: s.replicas},
		Status: autoscalingv1.ScaleStatus{Replicas: s.replicas, Selector: "app=shop"}}, nil
}

func (s *looked) set(a clienttesting.Action) (bool, runtime.Object, error) {
	o := a.(clienttesting.UpdateAction).GetObject().(*autoscalingv1.Scale)
	s.replicas = o.Spec.Replicas
	return true, o, nil
}

// control lets the controller look until it is done, in a bubble of synctest.
func control(t *testing.T, object *autoscalingv2.HorizontalPodAutoscaler, s *looked, of metrics.MetricsClient) {
	ctx, cancel := context.WithCancel(t.Context())
	scales := &scalefake.FakeScaleClient{}
	scales.AddReactor("get", "*", s.look)
	scales.AddReactor("update", "*", s.set)
	client := fake.NewSimpleClientset(object)
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "apps", Version: "v1"}})
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	shared := informers.NewSharedInformerFactory(client, 0)
	var pods coreinformers.PodInformer = shared.Core().V1().Pods()
	if s.list != nil {
		pods = listed{pods, s.list}
	}
	controller := podautoscaler.NewHorizontalController(ctx, client.CoreV1(), scales, client.AutoscalingV2(), mapper, of,
		shared.Autoscaling().V2().HorizontalPodAutoscalers(), pods, 15*time.Second, 5*time.Minute, 0.1, 5*time.Minute, 30*time.Second)
	shared.Start(ctx.Done())
	go controller.Run(ctx, 1)
	<-s.done
	cancel()
	shared.Shutdown()
	time.Sleep(time.Minute) // workers and the broadcaster end
	synctest.Wait()
}

// listed is an informer that lists other pods.
type listed struct {
	coreinformers.PodInformer
	list func() []*v1.Pod
}

func (l listed) Lister() corelisters.PodLister { return lister{list: l.list} }

type lister struct {
	corelisters.PodLister
	corelisters.PodNamespaceLister
	list func() []*v1.Pod
}

func (l lister) Pods(string) corelisters.PodNamespaceLister { return l }

func (l lister) List(labels.Selector) ([]*v1.Pod, error) { return l.list(), nil }

func (l lister) Get(string) (*v1.Pod, error) { panic("not asked for") }
