package planner_test

import (
	"math"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner"
)

// behindAGate plays the 30 s that pods take to start, and a minute more. Requests for 7 cores come to
// two pods of 2 cores, and a gate refuses what these do not answer. load is what of it the estimates
// count as load. It returns how many pods there are while the first of them starts, and the cores
// whose requests are answered each second.
func behindAGate(t *testing.T, load func(comes, answered float64) float64) (pods int, answered []float64) {
	t.Helper()
	p, d := counted(t, 16, nil), deployed(2, 2)
	for i := range 90 {
		now := t0.Add(time.Duration(i) * time.Second)
		d.run(now)
		serves := 0.0
		for _, pod := range d.pods {
			if !now.Before(pod.ready) {
				serves += pod.limit
			}
		}
		const comes = 7.0 // cores that the requests need
		answers := math.Min(serves, comes)
		told := load(comes, answers)
		e := asks(now, "a", told, 0, 0.95*answers/told)
		if told > answers {
			e.Refused = map[string]float64{"low": (told - answers) * 50}
		}
		queue := append(plans(p.Step(now, d.holding(now))), append(plans(p.Step(now, e)), plans(p.Step(now, nil))...)...)
		for ; len(queue) > 0; queue = queue[1:] {
			queue = append(queue, plans(p.Step(now, d.carryOut(queue[0], now)))...)
		}
		if answered = append(answered, answers); i < 30 {
			pods = d.replicas
		}
	}
	return pods, answered
}

func TestReplicasRiseByWhatAGateRefusesThoughWhatIsAnsweredStaysFlat(t *testing.T) {
	pods, answered := behindAGate(t, func(comes, _ float64) float64 { return comes })
	for second, cores := range answered[:30] { // no pod has started yet
		if cores > 4 {
			t.Fatalf("after %d s requests of %v cores were answered, by two pods of 2", second, cores)
		}
	}
	if pods < 4 || answered[len(answered)-1] < 7 {
		t.Errorf("%d pods, which answer %v of 7 cores: want 4 or more, and all", pods, answered[len(answered)-1])
	}
	// What is answered alone asks for no more than the pods have.
	if pods, _ := behindAGate(t, func(_, answered float64) float64 { return answered }); pods > 3 {
		t.Errorf("by what is answered alone: %d pods: then this test shows nothing", pods)
	}
}

func TestAdmissionIsTakenBackAsCapacityArrives(t *testing.T) {
	l := newLimited(t, trimtab.Act, planner.Admit{Max: 1000}, "")
	l.round(2, 1, 0.1) // 100 requests/s of 100 ms fit
	before, cores := l.limits[""].Value, l.cores
	const comes = 6 * 50 // requests/s
	for range 20 {
		l.round(6, math.Min(1, 0.95*l.cores/6), trimtab.Seconds(0.1*math.Max(1, 6/l.cores)))
	}
	if l.cores < 6 || l.cores <= cores {
		t.Fatalf("%v cores, before %v: capacity did not arrive", l.cores, cores)
	}
	if now := l.limits[""].Value; now <= before || now < comes*0.1 {
		t.Errorf("%v in service, before %v; %v requests/s of 100 ms are %v", now, before, comes, comes*0.1)
	}
}
