package kubernetes

import (
	"errors"
	"math"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/lab"
	"github.com/trimtab/trimtab/sim/kubernetes"
)

func TestTheDayOfEachLoadHasAMeanOfOneAndPeaks(t *testing.T) {
	for _, name := range LoadNames() {
		values := load(name)
		sum, top := 0.0, 0.0
		for _, v := range values[len(values)/2:] {
			sum += v
			top = math.Max(top, v)
		}
		if mean := sum / float64(len(values)/2); math.Abs(mean-1) > 1e-9 || top < 1.5 {
			t.Errorf("%s: mean %v, highest %v", name, mean, top)
		}
	}
}

func TestTheBestThresholdMissesNoMoreThanTheBudgetAndCostsLeast(t *testing.T) {
	of := map[float64][]kubernetes.Score{50: {{Missed: 0, CoreHours: 90}}, 60: {{Missed: 2, CoreHours: 80}}, 70: {{Missed: 5, CoreHours: 60}}}
	for budget, want := range map[float64]float64{0: 50, 1: 50, 2: 60, 4: 60, 5: 70, 99: 70, -1: 50} {
		if got := best(of, 0, budget); got.Threshold != want {
			t.Errorf("budget %v: %v, want %v", budget, got.Threshold, want)
		}
	}
}

func TestTheSameSeedGivesTheSameDay(t *testing.T) {
	x := &Experiment{Load: "nasa", Run: []string{kubernetes.HPA, kubernetes.KEDA}, Frame: lab.Frame{Seeds: 1, First: 3}, Thresholds: []float64{60}}
	a, err := x.Play()
	if err != nil {
		t.Fatal(err)
	}
	b, err := x.Play()
	if err != nil {
		t.Fatal(err)
	}
	for i := range a {
		if a[i].Missed != b[i].Missed || a[i].CoreHours != b[i].CoreHours || a[i].CoreHours < 1500 {
			t.Errorf("%+v, then %+v", a[i], b[i])
		}
	}
}

func TestTheMoneyOfAPolicyIsToldBesideItsMinutes(t *testing.T) {
	x := &Experiment{Load: "nasa", Run: []string{kubernetes.EKS, kubernetes.DPA}, Frame: lab.Frame{Seeds: 1, First: 3}}
	got, err := x.Play()
	if err != nil {
		t.Fatal(err)
	}
	eks := &got[0]
	if !(eks.NeededHours > eks.UsedHours && eks.UsedHours > 1000 && eks.CoreHours > eks.UsedHours) || eks.Nodes*nodeCores*24 < eks.CoreHours || eks.Nodes*nodeCores*24 > 1.4*eks.CoreHours {
		t.Errorf("%+v: want 1224 core-hours used, more needed and reserved, and as many nodes", eks)
	}
	if eks.Advice == nil || *eks.Advice != 12*3600+60 || got[1].Advice == nil || *got[1].Advice > 60 || eks.Resizes > 100 {
		t.Errorf("first advice %v s and %v s, %v resizes", eks.Advice, got[1].Advice, eks.Resizes)
	}
}

func TestAnExperimentThatMakesNoSenseIsRefused(t *testing.T) {
	good := func() *Experiment {
		return &Experiment{Load: "nasa", Run: []string{kubernetes.HPA}, Frame: lab.Frame{Seeds: 1}}
	}
	for name, change := range map[string]func(x *Experiment){
		"load": func(x *Experiment) { x.Load = "nass" }, "policy": func(x *Experiment) { x.Run = []string{"vpas"} },
		"seeds": func(x *Experiment) { x.Seeds = 0 }, "pool": func(x *Experiment) { x.Pool = math.NaN() }, "threshold": func(x *Experiment) { x.Thresholds = []float64{101} },
	} {
		x := good()
		change(x)
		if err := x.Validate(); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
