package planner_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/trimtab/trimtab/planner/admission"
)

// gated is a service of some cores behind the rule of a gate. A request takes 20 ms of CPU time, and
// must be answered in 200 ms.
type gated struct {
	rule *admission.Controller
	rand *rand.Rand
	now  time.Duration
	held []*atGate
	in   []*atGate
	// The counts of this second.
	inTime, refused, came float64
}

// atGate is a request, with the CPU time that it still needs.
type atGate struct {
	admission.Ticket
	left float64
	gone bool
}

func newGated(classes int) *gated {
	return &gated{rule: admission.New(admission.Settings{Within: 200 * time.Millisecond, Classes: classes}), rand: rand.New(rand.NewPCG(1, 1))}
}

// second has requests for so many cores come to a service that has others.
func (g *gated) second(comes, cores float64) {
	const step, work = time.Millisecond, 0.02
	g.inTime, g.refused, g.came = 0, 0, 0
	for range int(time.Second / step) {
		g.now += step
		if g.rand.Float64() < comes/work*step.Seconds() {
			g.arrive(&atGate{left: work})
		}
		each := min(1, cores/float64(max(1, len(g.in)))) * step.Seconds()
		for _, r := range slices.Clone(g.in) {
			if r.left -= each; r.left > 0 {
				continue
			}
			g.in = slices.DeleteFunc(g.in, func(x *atGate) bool { return x == r })
			if g.rule.Done(g.now, &r.Ticket, admission.Answered) {
				g.inTime++
			}
		}
		for _, r := range g.held {
			if !r.gone && g.now > r.Deadline() && g.rule.Expire(g.now, &r.Ticket) {
				r.Decide(admission.Refused)
			}
		}
		g.held = slices.DeleteFunc(g.held, func(r *atGate) bool { return r.gone })
		if g.now%(100*time.Millisecond) == 0 {
			g.rule.Tick(g.now)
		}
	}
}

func (g *gated) arrive(r *atGate) {
	g.came++
	r.Decide = func(v admission.Verdict) {
		if r.gone = true; v == admission.Admitted {
			g.in = append(g.in, r)
		} else {
			g.refused++
		}
	}
	switch v := g.rule.Arrive(g.now, &r.Ticket); {
	case v != admission.Waiting:
		r.Decide(v)
	case !r.gone:
		g.held = append(g.held, r)
	}
}

// bridged plays an overload of a deployment behind a gate: two pods of 2 cores are asked for 3 cores,
// then for 7, then for 3 again. A pod takes 30 s to start. It returns what was refused each second, the
// first second in which the pods suffice, and the most pods.
func bridged(t *testing.T, from, to, until int) (refused []float64, suffices, most int) {
	t.Helper()
	p, d, g := counted(t, 16, nil), deployed(2, 2), newGated(1)
	for i := range until {
		now, comes, serves := t0.Add(time.Duration(i)*time.Second), 3.0, 0.0
		if i >= from && i < to {
			comes = 7
		}
		d.run(now)
		for _, pod := range d.pods {
			if !now.Before(pod.ready) {
				serves += pod.limit
			}
		}
		if serves > 7 && suffices == 0 {
			suffices = i
		}
		g.second(comes, serves)
		refused, most = append(refused, g.refused), max(most, d.replicas)
		e := asks(now, "a", g.came/50, 0, g.inTime/g.came)
		if g.refused > 0 {
			e.Refused = map[string]float64{"low": g.refused}
		}
		queue := append(plans(p.Step(now, d.holding(now))), append(plans(p.Step(now, e)), plans(p.Step(now, nil))...)...)
		for ; len(queue) > 0; queue = queue[1:] {
			queue = append(queue, plans(p.Step(now, d.carryOut(queue[0], now)))...)
		}
	}
	return refused, suffices, most
}

func sumOf(all []float64) (sum float64) {
	for _, v := range all {
		sum += v
	}
	return sum
}

func TestRefusalsBridgeTheTimeThatPodsTakeToStartAndEndWhenTheyHave(t *testing.T) {
	const from, to, until = 20, 120, 160
	refused, suffices, most := bridged(t, from, to, until)
	if n := sumOf(refused[:from]); n > 0 {
		t.Errorf("%v requests were refused while they fitted", n)
	}
	if suffices < from+30 || suffices > from+60 || most < 4 {
		t.Fatalf("the pods suffice from second %d on, %d of them: want %d to %d, 4 or more", suffices, most, from+30, from+60)
	}
	// Requests for 3 of 7 cores, 50 for each core and second.
	if n := sumOf(refused[from:suffices]); n < 0.6*float64(suffices-from)*3*50 {
		t.Errorf("%v requests were refused in the %d s until the pods had started", n, suffices-from)
	}
	if n := sumOf(refused[suffices+5 : to]); n > 0 {
		t.Errorf("%v requests were refused from 5 s after the pods had started: %v", n, refused[suffices:to])
	}
	if n := sumOf(refused[to+5:]); n > 0 {
		t.Errorf("%v requests were refused from 5 s after the end of the overload", n)
	}
}

func TestAnOverloadThatEndsBeforePodsStartIsBridgedAlone(t *testing.T) {
	const from, to, until = 20, 35, 90
	refused, _, _ := bridged(t, from, to, until)
	if n := sumOf(refused[from:to]); n == 0 {
		t.Error("nothing was refused in the overload")
	}
	if n := sumOf(refused[to+5:]); n > 0 {
		t.Errorf("%v requests were refused from 5 s after the end of the overload: %v", n, refused[to:])
	}
}

// Cores come at once: what is refused is the bridge of the seconds until the plan.
func TestWhereCapacityComesAtOnceRefusalsEndWithIt(t *testing.T) {
	g := newGated(1)
	var refused []float64
	for i := range 60 {
		cores := 4.0
		if i >= 25 {
			cores = 8
		}
		comes := 3.0
		if i >= 20 {
			comes = 7
		}
		g.second(comes, cores)
		refused = append(refused, g.refused)
	}
	if n := sumOf(refused[20:25]); n == 0 {
		t.Error("nothing was refused before the cores came")
	}
	if n := sumOf(refused[27:]); n > 0 {
		t.Errorf("%v requests were refused from 2 s after the cores came: %v", n, refused[25:])
	}
}
