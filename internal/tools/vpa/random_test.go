package vpa

import (
	"bytes"
	"encoding/json"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	autoscaling "k8s.io/api/autoscaling/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	vpa "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/logic"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/model"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/updater/priority"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/utils/limitrange"
	utils "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/utils/vpa"
)

const (
	table       = "../../../cmd/trimtab/testdata/controllers/vpa.json"
	memoryTable = "../../../sim/autoscale/testdata/memory.json"
)

var update = flag.Bool("update", false, "write the table")

// Random is a random object and a random load, and what the recommender and the updater
// made of it. Amounts are thousandths of a core.
type Random struct {
	Object *vpa.VerticalPodAutoscaler `json:"object"`
	// Every is how many minutes there are between two samples of usage.
	Every int     `json:"every"`
	Usage []int64 `json:"usage"`
	// After every tenth sample: lower bound, target and upper bound, the request and the age
	// in hours of a pod, and whether it is updated. Nothing where CPU is not controlled.
	Want [][6]int64 `json:"want"`
}

func one[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func random(seed uint64) *Random {
	r := rand.New(rand.NewPCG(seed, 31))
	out := &Random{Every: one(r, 1, 5, 60, 600)}
	mean := one(r, 5.0, 80, 400, 2500, 30000)
	kind := r.IntN(3)
	for i := range 60 {
		v := mean
		switch kind {
		case 0:
			v *= math.Exp(0.5 * r.NormFloat64())
		case 1:
			v *= 1 + math.Sin(float64(i)/7)
		case 2:
			if i > 30 {
				v *= 3
			}
		}
		out.Usage = append(out.Usage, int64(v))
	}
	p := vpa.ContainerResourcePolicy{ContainerName: one(r, "shop", "*")}
	if r.IntN(3) == 0 {
		p.MinAllowed = v1.ResourceList{v1.ResourceCPU: *resource.NewMilliQuantity(int64(mean*r.Float64())+1, resource.DecimalSI)}
	}
	if r.IntN(3) == 0 {
		p.MaxAllowed = v1.ResourceList{v1.ResourceCPU: *resource.NewMilliQuantity(int64(mean*(1+r.Float64()))+1, resource.DecimalSI)}
	}
	if r.IntN(3) == 0 {
		p.ControlledResources = one(r, &[]v1.ResourceName{v1.ResourceCPU}, &[]v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory}, &[]v1.ResourceName{v1.ResourceMemory})
	}
	if r.IntN(12) == 0 {
		off := vpa.ContainerScalingModeOff
		p.Mode = &off
	}
	out.Object = &vpa.VerticalPodAutoscaler{TypeMeta: metav1.TypeMeta{APIVersion: "autoscaling.k8s.io/v1", Kind: "VerticalPodAutoscaler"},
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "shop"},
		Spec:       vpa.VerticalPodAutoscalerSpec{TargetRef: &autoscaling.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "shop"}}}
	if r.IntN(4) > 0 {
		out.Object.Spec.ResourcePolicy = &vpa.PodResourcePolicy{ContainerPolicies: []vpa.ContainerResourcePolicy{p}}
	}
	mode := one(r, vpa.UpdateModeRecreate, vpa.UpdateModeInPlaceOrRecreate)
	out.Object.Spec.UpdatePolicy = &vpa.PodUpdatePolicy{UpdateMode: &mode}
	out.ask(r)
	return out
}

// ask plays the load to a recommender with its defaults, and shows the updater a pod.
func (c *Random) ask(r *rand.Rand) {
	policy := utils.GetContainerResourcePolicy("shop", c.Object.Spec.ResourcePolicy)
	state := model.NewAggregateContainerState()
	state.UpdateFromPolicy(policy)
	recommender := byDefault()
	if *state.ScalingMode == vpa.ContainerScalingModeOff {
		return // such containers are passed over before they come to a recommender
	}
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for i, v := range c.Usage {
		now := start.Add(time.Duration(i*c.Every) * time.Minute)
		state.AddSample(&model.ContainerUsageSample{MeasureStart: now, Usage: model.ResourceAmount(v), Resource: model.ResourceCPU})
		if i%10 != 9 {
			continue
		}
		list := logic.MapToListOfRecommendedContainerResources(recommender.GetRecommendedPodResources(model.ContainerNameToAggregateStateMap{"shop": state}),
			logic.RecommendationFormat{RoundCPUMillicores: 1, RoundMemoryBytes: 1})
		capped, err := utils.ApplyVPAPolicy(list, c.Object.Spec.ResourcePolicy, nil)
		if err != nil {
			panic(err)
		}
		of := capped.ContainerRecommendations[0]
		if _, ok := of.Target[v1.ResourceCPU]; !ok {
			continue
		}
		target := of.Target.Cpu().MilliValue()
		request := int64(float64(target)*one(r, 0.5, 0.85, 0.9, 0.95, 1, 1.05, 1.1, 1.2, 3)) + 1
		age := one[int64](r, 1, 11, 12, 30)
		c.Want = append(c.Want, [6]int64{of.LowerBound.Cpu().MilliValue(), target, of.UpperBound.Cpu().MilliValue(), request, age, c.updated(now, capped, request, age)})
	}
}

// byDefault is the recommender with its defaults.
func byDefault() logic.PodResourceRecommender {
	return logic.CreatePodResourceRecommender(logic.RecommendationConfig{
		SafetyMarginFraction: 0.15, PodMinCPUMillicores: 25, PodMinMemoryMb: 250,
		TargetCPUPercentile: 0.9, LowerBoundCPUPercentile: 0.5, UpperBoundCPUPercentile: 0.95, ConfidenceIntervalCPU: 24 * time.Hour,
		TargetMemoryPercentile: 0.9, LowerBoundMemoryPercentile: 0.5, UpperBoundMemoryPercentile: 0.95, ConfidenceIntervalMemory: 24 * time.Hour,
	})
}

// Memory is a random use of memory with OOMs: each sample is a minute, the bytes, and whether a pod
// that requested them was killed. After every fifth there is a recommendation: lower bound, target,
// upper bound.
type Memory struct {
	Samples [][3]int64 `json:"samples"`
	Want    [][3]int64 `json:"want"`
}

func randomMemory(seed uint64) (out Memory) {
	r := rand.New(rand.NewPCG(seed, 32))
	mean, every := one(r, 2e8, 1e9, 3e10), one(r, 1, 7, 100, 1000)
	state := model.NewAggregateContainerState()
	state.UpdateFromPolicy(nil)
	container := model.NewContainerState(model.Resources{}, state)
	start, minute := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), int64(0)
	for i := range 60 {
		minute += int64(1 + r.IntN(every))
		bytes, oom := int64(mean*math.Exp(0.3*r.NormFloat64())), int64(0)
		at := start.Add(time.Duration(minute) * time.Minute)
		if r.IntN(8) == 0 {
			oom = 1
			if err := container.RecordOOM(at, model.ResourceAmount(bytes)); err != nil {
				panic(err)
			}
		} else {
			container.AddSample(&model.ContainerUsageSample{MeasureStart: at, Usage: model.ResourceAmount(bytes), Resource: model.ResourceMemory})
		}
		container.AddSample(&model.ContainerUsageSample{MeasureStart: at, Usage: 100, Resource: model.ResourceCPU})
		out.Samples = append(out.Samples, [3]int64{minute, bytes, oom})
		if i%5 == 4 {
			of := byDefault().GetRecommendedPodResources(model.ContainerNameToAggregateStateMap{"shop": state})["shop"]
			out.Want = append(out.Want, [3]int64{int64(of.LowerBound[model.ResourceMemory]), int64(of.Target[model.ResourceMemory]), int64(of.UpperBound[model.ResourceMemory])})
		}
	}
	return out
}

// updated is 1 where the updater would change the pod.
func (c *Random) updated(now time.Time, list *vpa.RecommendedPodResources, request, age int64) int64 {
	object := c.Object.DeepCopy()
	object.Status.Recommendation = list
	calculator := priority.NewUpdatePriorityCalculator(object, priority.UpdateConfig{MinChangePriority: 0.1, PodLifetimeUpdateThreshold: 12 * time.Hour, EvictAfterOOMThreshold: 10 * time.Minute},
		utils.NewCappingRecommendationProcessor(limitrange.NewNoopLimitsCalculator()), priority.NewProcessor())
	since := metav1.NewTime(now.Add(-time.Duration(age) * time.Hour))
	has := v1.ResourceList{v1.ResourceCPU: *resource.NewMilliQuantity(request, resource.DecimalSI), v1.ResourceMemory: resource.MustParse("250Mi")}
	calculator.AddPod(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "shop-0", Namespace: "shop"},
		Spec:   v1.PodSpec{Containers: []v1.Container{{Name: "shop", Resources: v1.ResourceRequirements{Requests: has}}}},
		Status: v1.PodStatus{Phase: v1.PodRunning, StartTime: &since}}, now, nil)
	return int64(len(calculator.GetSortedPods(priority.NewDefaultPodEvictionAdmission())))
}

func TestTheTablesAreWhatRecommenderAndUpdaterDo(t *testing.T) {
	for path, of := range map[string]func(seed uint64) any{
		table: func(seed uint64) any { return random(seed) }, memoryTable: func(seed uint64) any { return randomMemory(seed) },
	} {
		var lines [][]byte
		for seed := range uint64(200) {
			line, err := json.Marshal(of(seed))
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, line)
		}
		text := append(append([]byte("[\n"), bytes.Join(lines, []byte(",\n"))...), "\n]\n"...)
		if *update {
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		was, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(was, text) {
			t.Errorf("%s differs from what they do (%v): -update writes it", path, err)
		}
	}
}
