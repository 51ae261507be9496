package kubernetes

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/replicas"
	"github.com/trimtab/trimtab/sim"
	"github.com/trimtab/trimtab/sim/autoscale"
)

// shop is a workload of 2 pods of a core, whose curve is known with a band: it needs 12 ms
// of CPU a request, 10 at best and 14 at worst.
func shop(minutes int, load func(minute int) float64) Recorded {
	r := Recorded{Service: Service{Name: "shop", Cost: 0.01, Fraction: 0.95, Startup: 30}, Replicas: 2, Request: 1, Shares: true,
		Sizes: replicas.Size{Min: 0.1, Max: 2, Step: 0.01}, Counts: replicas.Count{Min: 1, Max: 50},
		HPA: DefaultHPA(), KEDA: DefaultKEDA(1, 0.01), VPA: DefaultVPA(),
		Predict: func(cores, load float64) trimtab.Band {
			at := func(cost float64) float64 { return math.Min(1, cores/(load*cost)) }
			return trimtab.Band{Lower: at(0.014), Mean: at(0.012), Upper: at(0.010)}
		}}
	for i := range minutes {
		r.Points = append(r.Points, Point{time.Date(2026, 3, 1, 0, i+1, 0, 0, time.UTC), load(i)})
	}
	return r
}

func replayed(t *testing.T, x Replay) []Played {
	t.Helper()
	x.Interval, x.Runner = time.Minute, sim.InOrder
	got, err := x.Play()
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestAReplayScoresEachAutoscalerByTheCurveOfTheRecordingWithItsBand(t *testing.T) {
	x := Replay{Run: ReplayNames(), Workloads: []Recorded{shop(240, func(i int) float64 { return 250 + 150*math.Sin(float64(i)/20) })}}
	of := map[string]*Score{}
	for _, p := range replayed(t, x) {
		s := p.Workloads[0]
		of[p.Policy] = &s
		if s.Minutes != 240 || s.LeastMissed > s.Missed || s.Missed > s.MostMissed || s.CoreHours <= 0 || len(s.Course) != 240 {
			t.Errorf("%s: %+v", p.Policy, s)
		}
	}
	if of[HPA].Scaled == 0 || of[KEDA].Scaled == 0 || of[Trimtab].Resized == 0 {
		t.Errorf("hpa %+v, keda %+v, trimtab %+v: want changes", of[HPA], of[KEDA], of[Trimtab])
	}
	if of[VPA].Scaled != 0 || of[VPA].MostMissed < of[HPA].MostMissed {
		t.Errorf("vpa %+v: it changes no number, and is worst here", of[VPA])
	}
}

func TestTheWordsOfAnHPAAreFollowedInAReplay(t *testing.T) {
	steady := func(int) float64 { return 210 } // 2.1 cores of work, 2.52 to meet the SLO
	for percent, want := range map[float64]float64{30: 7, 60: 4} {
		r := shop(60, steady)
		r.HPA.Targets = []Target{{Type: autoscale.Utilization, Value: percent}}
		if got := replayed(t, Replay{Run: []string{HPA}, Workloads: []Recorded{r}})[0].Workloads[0]; math.Abs(got.Course[50]-want) > 1e-9 {
			t.Errorf("at %v%%: %v cores, want %v", percent, got.Course[50], want)
		}
	}
	r := shop(60, steady)
	r.HPA.Max = 3
	r.HPA.Targets = []Target{{Type: autoscale.External, Load: true, Value: 10}}
	if got := replayed(t, Replay{Run: []string{HPA}, Workloads: []Recorded{r}})[0].Workloads[0]; math.Abs(got.Course[50]-3) > 1e-9 {
		t.Errorf("%v cores, want maxReplicas", got.Course[50])
	}
}

func TestAnHPAOfASumScalesToNoPodAndBack(t *testing.T) {
	for _, kind := range []string{autoscale.Value, autoscale.External} {
		r := shop(90, func(minute int) float64 {
			if minute > 20 && minute < 60 {
				return 0
			}
			return 150
		})
		r.HPA.Min, r.HPA.Targets = 0, []Target{{Type: kind, Load: true, Value: 50}}
		got := replayed(t, Replay{Run: []string{HPA}, Workloads: []Recorded{r}})[0].Workloads[0]
		if got.Course[50] != 0 || got.Course[80] < 3 {
			t.Errorf("%s: %v cores without load and %v with it, want 0 and 3 or more", kind, got.Course[50], got.Course[80])
		}
	}
}

func TestTheWordsOfKEDAAreFollowedInAReplay(t *testing.T) {
	idle := func(minute int) float64 {
		if minute > 20 {
			return 0
		}
		return 100
	}
	zero, long := time.Duration(0), time.Hour
	for cooldown, want := range map[*time.Duration]float64{nil: 0, &zero: 0, &long: 1} {
		r := shop(60, idle)
		r.KEDA.Min, r.KEDA.Cooldown = 0, cooldown
		got := replayed(t, Replay{Run: []string{KEDA}, Workloads: []Recorded{r}})[0].Workloads[0]
		if got.Course[55] != want || (cooldown == &zero) != (got.Course[24] == 0) {
			t.Errorf("cooldown %v: %v cores 4 minutes later, %v at the end, want %v", cooldown, got.Course[24], got.Course[55], want)
		}
	}
	r := shop(60, func(int) float64 { return 100 })
	r.KEDA.Targets = []Target{{Type: autoscale.External, Load: true, Value: 1000}, {Type: autoscale.External, Value: 5, Within: func(at time.Time) bool { return at.Minute() < 20 || at.Minute() >= 40 }}}
	got := replayed(t, Replay{Run: []string{KEDA}, Workloads: []Recorded{r}})[0].Workloads[0]
	if got.Course[10] != 5 || got.Course[35] != 1 || got.Course[50] != 5 {
		t.Errorf("by the clock: %v, %v, %v cores, want 5, 1, 5", got.Course[10], got.Course[35], got.Course[50])
	}
	none := 0
	r = shop(60, idle)
	r.KEDA.Min, r.KEDA.Idle, r.KEDA.Cooldown, r.KEDA.Targets = 1, &none, &zero, []Target{{Type: autoscale.Utilization, Value: 60}}
	if got := replayed(t, Replay{Run: []string{KEDA}, Workloads: []Recorded{r}})[0].Workloads[0]; got.Course[55] != 1 {
		t.Errorf("CPU alone: %v cores without load, want 1", got.Course[55])
	}
	// Of the type Value the sum over the threshold is times the pods: it grows until the sum is
	// at the threshold, whatever the number.
	r = shop(60, func(int) float64 { return 100 })
	r.KEDA.Max, r.KEDA.Targets = 9, []Target{{Type: autoscale.Value, Load: true, Value: 50}}
	if got := replayed(t, Replay{Run: []string{KEDA}, Workloads: []Recorded{r}})[0].Workloads[0]; got.Course[50] != 9 {
		t.Errorf("a Value of half of the load: %v cores, want the most", got.Course[50])
	}
}

func TestRequestsOfEKSAndDPAFollowThePercentileOfUseAndTheNumberOfPodsStays(t *testing.T) {
	r := shop(26*60, func(int) float64 { return 140 }) // 1.4 cores of work in 2 pods of 2
	r.Request, r.Sizes.Max = 2, 4
	for policy, want := range map[string]struct{ cores, advice float64 }{EKS: {1.4 / 0.87, 12 * 3600}, DPA: {1.4 * 1.05, 60}} {
		got := replayed(t, Replay{Run: []string{policy}, Workloads: []Recorded{r}})[0].Workloads[0]
		if end := got.Course[len(got.Course)-1]; math.Abs(end/want.cores-1) > 0.02 || got.Scaled != 0 || got.Resized != 2 {
			t.Errorf("%s: %v cores at the end, want %v: %+v", policy, end, want.cores, got)
		}
		if first := got.Course[5]; (policy == EKS) != (first == 4) || got.Advice == nil || math.Abs(*got.Advice-want.advice) > 120 {
			t.Errorf("%s: %v cores after 5 minutes, advice after %v s, want %v", policy, first, *got.Advice, want.advice)
		}
	}
}

func TestAReplayTellsWhatWasReservedUsedAndNeeded(t *testing.T) {
	r := shop(4*60, func(int) float64 { return 100 }) // 1 core of work, 1.14 to meet the SLO, 2 reserved
	got := replayed(t, Replay{Run: []string{EKS}, Workloads: []Recorded{r}})[0].Total
	for name, x := range map[string][2]float64{"reserved": {got.CoreHours, 8}, "used": {got.UsedHours, 4}, "needed": {got.NeededHours, 4 * 1.14}, "pod days": {got.PodDays, 2 * 4 / 24.0}, "quiet hours": {got.QuietHours, 4}} {
		if math.Abs(x[0]/x[1]-1) > 0.01 {
			t.Errorf("%s: %v, want %v", name, x[0], x[1])
		}
	}
	if got.Resized != 0 || got.Advice != nil || got.NeedUnknown != 0 {
		t.Errorf("%+v: want no resize and no advice in 4 h", got)
	}
	r.Predict = func(float64, float64) trimtab.Band { return trimtab.Band{} }
	if got := replayed(t, Replay{Run: []string{EKS}, Workloads: []Recorded{r}})[0].Total; got.NeedUnknown != 240 || got.NeededHours != 0 {
		t.Errorf("%+v: want a need that is unknown", got)
	}
}

func TestNodesAreThoseThatTheRequestsOfAllPodsNeed(t *testing.T) {
	r := shop(4*60, func(int) float64 { return 100 }) // two pods of a core
	for cores, want := range map[float64]float64{0: 0, 1: 2, 1.5: 2, 2: 1} {
		if got := replayed(t, Replay{Run: []string{EKS}, Node: cores, Workloads: []Recorded{r}})[0].Nodes; got != want {
			t.Errorf("nodes of %v cores: %v, want %v", cores, got, want)
		}
	}
}

func TestResizesInAnHourOfSteadyLoadCountAsQuietOnes(t *testing.T) {
	steady := func(minute int) float64 {
		if minute < 120 {
			return 100
		}
		return 100 + 2*float64(minute-120)
	}
	got := replayed(t, Replay{Run: []string{DPA}, Workloads: []Recorded{shop(240, steady)}})[0].Total
	if got.QuietHours != 2 || got.Quiet != 2 || got.Resized < 4 {
		t.Errorf("%+v: want two quiet hours with the first resize of both pods", got)
	}
}

func TestAVPAThatEvictsKeepsHalfOfThePodsAndOneThatAdvisesChangesNothing(t *testing.T) {
	r := shop(60, func(int) float64 { return 190 })
	for words, resizes := range map[VPAWords]bool{{}: false, {Recreate: true}: true, {InPlace: true}: true, {InPlace: true, MinReplicas: 3}: false, {InPlace: true, Min: 1, Max: 1}: false} {
		r.VPA = words
		got := replayed(t, Replay{Run: []string{VPA}, Workloads: []Recorded{r}})[0].Workloads[0]
		if got.Resized > 0 != resizes || got.Scaled != 0 {
			t.Errorf("%+v: %+v", words, got)
		}
	}
}

func TestAVPAEvictsTheOnlyPodWhereItMay(t *testing.T) {
	for least, resizes := range map[int]bool{1: true, 2: false} {
		r := shop(60, func(int) float64 { return 95 })
		r.Replicas, r.VPA = 1, VPAWords{Recreate: true, MinReplicas: least}
		if got := replayed(t, Replay{Run: []string{VPA}, Workloads: []Recorded{r}})[0].Workloads[0]; got.Resized > 0 != resizes {
			t.Errorf("minReplicas %d: %+v", least, got)
		}
	}
}

func TestOfCPUAPodCountsOnceItHasBeenReadyForAWindow(t *testing.T) {
	p := &place{Service: &Service{}, request: 1, pods: []pod{{lives: 40, age: 20}, {lives: 60, age: 20}, {lives: 5, age: 5, left: 30}, {before: 3600}}}
	r := &report{used: 2, ready: 3, rate: 30}
	cpu, load := Target{Type: autoscale.Utilization, Value: 50}, Target{Type: autoscale.AverageValue, Load: true, Value: 5}
	if m := cpu.metric(p, r, r); len(m.Usage) != 2 || m.Unready != 2 || m.Ready != 3 {
		t.Errorf("of CPU: %+v, want 2 that count", m)
	}
	if m := load.metric(p, r, r); len(m.Usage) != 3 || m.Unready != 1 {
		t.Errorf("of the load: %+v, want 3 that count", m)
	}
}

func TestAGapInARecordingIsPassedOverAndNotScored(t *testing.T) {
	r := shop(60, func(int) float64 { return 100 })
	for i := 30; i < 60; i++ {
		r.Points[i].At = r.Points[i].At.Add(48 * time.Hour)
	}
	for _, p := range replayed(t, Replay{Run: ReplayNames(), Workloads: []Recorded{r}}) {
		if m := p.Total.Minutes; m < 59 || m > 63 { // the last point before it stands for a little longer
			t.Errorf("%s: %v minutes, want 60", p.Policy, m)
		}
	}
}

func TestWhatIsLearntAtTheBeginningIsNotScored(t *testing.T) {
	x := Replay{Run: []string{Trimtab}, Learn: 20 * time.Minute, Workloads: []Recorded{shop(60, func(int) float64 { return 100 })}}
	if got := replayed(t, x); got[0].Total.Minutes != 40 {
		t.Errorf("%v minutes, want 40", got[0].Total.Minutes)
	}
}

func TestAReplayThatMakesNoSenseIsRefused(t *testing.T) {
	for name, change := range map[string]func(x *Replay){
		"policy": func(x *Replay) { x.Run = []string{"njc"} }, "workloads": func(x *Replay) { x.Workloads = nil }, "interval": func(x *Replay) { x.Interval = 0 },
		"learn": func(x *Replay) { x.Learn = time.Hour }, "cost": func(x *Replay) { x.Workloads[0].Cost = math.NaN() }, "pods": func(x *Replay) { x.Workloads[0].Replicas = 0 },
		"load": func(x *Replay) { x.Workloads[0].Points[3].Load = math.Inf(1) }, "order": func(x *Replay) { x.Workloads[0].Points[3].At = time.Time{} },
		"slo": func(x *Replay) { x.Workloads[0].Predict = nil }, "bounds": func(x *Replay) { x.Workloads[0].Counts.Max = 0 },
	} {
		x := &Replay{Run: []string{HPA}, Interval: time.Minute, Runner: sim.InOrder, Workloads: []Recorded{shop(30, func(int) float64 { return 1 })}}
		change(x)
		if err := x.Validate(); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// queues are workloads of the formula, whose pods take a minute to start.
func queues() []Recorded {
	var all []Recorded
	for i, cores := range []float64{6, 3, 8} {
		r := shop(180, func(int) float64 { return cores / 0.01 })
		r.Name, r.Predict, r.Startup, r.Latency, r.Variation, r.Replicas, r.Request = fmt.Sprint(i), nil, 60, 0.15, 1, int(cores), 1
		r.Counts.Max = 60
		all = append(all, r)
	}
	return all
}

func TestMoreOfAnythingMakesFewerLate(t *testing.T) {
	for _, s := range queues() {
		before := 1.0
		for cores := 0.5; cores < 24; cores += 0.1 {
			late := s.late(4, cores/4, 800, 0)
			if late > before || late < 0 {
				t.Fatalf("%s: %v late with %v cores, %v before", s.Name, late, cores, before)
			}
			before = late
		}
		if before > 0.01 {
			t.Errorf("%s: %v late with three times what it works", s.Name, before)
		}
		if s.late(4, 4, 800, 1e6) != 1 {
			t.Errorf("%s: a backlog makes none late", s.Name)
		}
	}
}

func TestAPodServesOnceItHasStarted(t *testing.T) {
	w := (&Replay{Workloads: queues()}).world()
	p := w.places[0]
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
	w := (&Replay{Workloads: queues(), Pool: 60}).world()
	w.places[0].scale(60, 1, false)
	for range 60 {
		w.play()
		if used := w.used(); used > 60+1e-9 {
			t.Fatalf("%v of 60 cores", used)
		}
	}
}
