package fast

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/lab"
	"github.com/trimtab/trimtab/sim"
)

func experiment(seconds int, run []string, loads ...string) *Experiment {
	return &Experiment{Run: run, Loads: loads, Seconds: seconds, Frame: lab.Frame{Seeds: 1, First: 7}, Pool: 160}
}

func TestTheSameSeedsGiveTheSameBits(t *testing.T) {
	play := func() *Answer {
		a, err := experiment(120, []string{K8sCPUFast, Captain, Tower, Escra, Fast, Oracle}, Steps).Play()
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	if a, b := play(), play(); !reflect.DeepEqual(a, b) {
		t.Error("two answers")
	}
}

func TestAPoolThatIsTightIsNeverExceeded(t *testing.T) {
	x := experiment(300, []string{Fast})
	var apps []*App
	used := 0.0
	for i, name := range []string{Bursty, Steps} {
		a := x.app(job{load: name}, uint64(i))
		apps, used = append(apps, a), used+a.Used
	}
	for _, times := range []float64{1.2, 2} {
		cl := newCluster(apps, times*used, true, 1)
		if r := cl.play(newFast(cl, x.Now), nil); r.Over > 0 || r.Second > g6Second {
			t.Errorf("pool of %v x used: %d ticks over, %v in a second", times, r.Over, r.Second)
		}
	}
}

func TestTheOracleNeedsHardlyMoreThanIsUsed(t *testing.T) {
	a, err := experiment(240, []string{Oracle, Static}, Constant).Play()
	if err != nil {
		t.Fatal(err)
	}
	for i := range a.Cells {
		if c := &a.Cells[i]; c.Policy == Oracle && (c.Quotas > 1.2 || c.Late > 0) {
			t.Errorf("%+v", c.Result)
		}
	}
}

func TestLatenessOfAClassIsOverAllServicesThatItVisits(t *testing.T) {
	a := NewApp(&Load{Name: "x", Rate: []float64{1000, 1000}}, 1)
	a.forget()
	if l := a.late(0, 100); l != 0 || a.p99(0, 100) != unstalled {
		t.Fatalf("nothing waited: %v", l)
	}
	mongodbRate, geo := 9, 2 // in the order of names
	for s := range 100 {
		a.delays[mongodbRate][s], a.delays[geo][s] = 4, 4 // each alone is in time
	}
	if l := a.late(0, 100); math.Abs(l-0.6*0.2) > 1e-9 {
		t.Errorf("%v late: want the search requests that the cache does not know", l)
	}
	if p := a.p99(0, 100); p != unstalled+8*20 {
		t.Errorf("p99 %v", p)
	}
}

func TestLoadsAreBuiltInOrRead(t *testing.T) {
	for _, name := range append(Loads(), Tuning) {
		l, err := Named(name, 4000, 3)
		if err != nil || len(l.Rate) != 4000 {
			t.Fatalf("%s: %v", name, err)
		}
		for s, r := range l.Rate {
			if !(r >= 500 && r <= 5000) {
				t.Errorf("%s: %v requests/s in second %d", name, r, s)
				break
			}
		}
	}
	l, err := Read("x", "1\n3\n", 4)
	if err != nil || !reflect.DeepEqual(l.Rate, []float64{800, 2400, 800, 2400}) {
		t.Errorf("%v, %v", l, err)
	}
	for _, text := range []string{"", "0\n0", "1\nx", "-1", "NaN", "1e300"} {
		if _, err := Read("x", text, 4); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestWhatCannotBePlayedIsInvalid(t *testing.T) {
	for name, change := range map[string]func(*Experiment){
		"policy":  func(x *Experiment) { x.Run = []string{"slow"} },
		"load":    func(x *Experiment) { x.Loads = []string{"flat"} },
		"seconds": func(x *Experiment) { x.Seconds = 5 },
		"seeds":   func(x *Experiment) { x.Seeds = 0 },
		"pool":    func(x *Experiment) { x.Pool = math.NaN() },
	} {
		x := experiment(120, []string{Static}, Constant)
		change(x)
		if _, err := x.Play(); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAStoppedExperimentHasNoAnswer(t *testing.T) {
	x := experiment(120, PolicyNames(), Constant)
	asked := 0
	x.Stop = func() bool { asked++; return asked > 3 }
	if a, err := x.Play(); !errors.Is(err, sim.ErrStopped) || a != nil {
		t.Errorf("%v, %v", a, err)
	}
}

func TestGoalsThatNothingWasPlayedForAreNotJudged(t *testing.T) {
	for _, g := range (&Answer{}).Goals() {
		if g.Met != nil || strings.Contains(g.Here, "NaN") {
			t.Errorf("%+v", g)
		}
	}
}
