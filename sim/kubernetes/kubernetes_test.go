package kubernetes

import (
	"errors"
	"math"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/sim"
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

func TestMoreOfAnythingMakesFewerLate(t *testing.T) {
	for i, s := range Services() {
		rate := s.Cores / s.Cost
		before := 1.0
		for cores := 0.5; cores < 3*s.Cores; cores += 0.1 {
			late := s.late(4, cores/4, rate, 0)
			if late > before || late < 0 {
				t.Fatalf("service %d: %v late with %v cores, %v before", i, late, cores, before)
			}
			before = late
		}
		if before > 0.01 {
			t.Errorf("service %d: %v late with three times what it works", i, before)
		}
		if s.late(4, s.Cores/2, rate, 1e6) != 1 {
			t.Errorf("service %d: a backlog makes none late", i)
		}
	}
}

func TestAPodServesOnceItHasStarted(t *testing.T) {
	w := newWorld(load("nasa"), math.Inf(1), 1)
	p := w.places[9] // a start of 60 s
	p.pods = nil
	p.scale(3, 1, false)
	for second := 0; second < 120; second += tick {
		w.play()
		ready := 0
		for i := range p.pods {
			if p.pods[i].ready() {
				ready++
			}
		}
		if second < 30 && ready > 0 || second > 100 && ready != 3 {
			t.Fatalf("after %d s %d serve", second, ready)
		}
	}
	if r := p.seen(); len(r.started) != 3 || r.started[0] < 30 || r.ready != 3 {
		t.Errorf("%+v, want three starts", r)
	}
}

func TestPodsForWhichAPoolHasNoRoomWait(t *testing.T) {
	w := newWorld(load("nasa"), 60, 1)
	w.places[0].scale(60, 1, false)
	for range 60 {
		w.play()
		if used := w.used(); used > 60+1e-9 {
			t.Fatalf("%v of 60 cores", used)
		}
	}
}

func TestTheBestThresholdMissesNoMoreThanTheBudgetAndCostsLeast(t *testing.T) {
	of := map[float64][]Score{50: {{Missed: 0, CoreHours: 90}}, 60: {{Missed: 2, CoreHours: 80}}, 70: {{Missed: 5, CoreHours: 60}}}
	for budget, want := range map[float64]float64{0: 50, 1: 50, 2: 60, 4: 60, 5: 70, 99: 70, -1: 50} {
		if got := best(of, 0, budget); got.Threshold != want {
			t.Errorf("budget %v: %v, want %v", budget, got.Threshold, want)
		}
	}
}

func TestTheSameSeedGivesTheSameDay(t *testing.T) {
	x := &Experiment{Load: "nasa", Run: []string{HPA, KEDA}, Frame: sim.Frame{Seeds: 1, First: 3}, Thresholds: []float64{60}}
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

func TestAnExperimentThatMakesNoSenseIsRefused(t *testing.T) {
	good := func() *Experiment {
		return &Experiment{Load: "nasa", Run: []string{HPA}, Frame: sim.Frame{Seeds: 1}}
	}
	for name, change := range map[string]func(x *Experiment){
		"load": func(x *Experiment) { x.Load = "nass" }, "policy": func(x *Experiment) { x.Run = []string{"vpa"} },
		"seeds": func(x *Experiment) { x.Seeds = 0 }, "pool": func(x *Experiment) { x.Pool = math.NaN() }, "threshold": func(x *Experiment) { x.Thresholds = []float64{101} },
	} {
		x := good()
		change(x)
		if err := x.Validate(); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
