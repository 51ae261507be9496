package planner_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/behavior"
	"github.com/trimtab/trimtab/planner/fair"
	"github.com/trimtab/trimtab/planner/guard"
)

// pod is one of the Deployment's.
type pod struct {
	name  string
	limit float64
	node  string
	ready time.Time
	found float64 // what it began with
}

// deployment is a workload "a" of a cluster: pods, each of which begins with what the
// template says and serves some time later.
type deployment struct {
	// found is how many instances there were at first, which a restore brings back.
	found              int
	pods               []pod
	replicas           int
	template           float64
	startup            time.Duration
	made               int
	nodes              map[string]float64
	sizeBar, numberBar string
	number             trimtab.KnobStatus
	size               trimtab.KnobStatus
	floor              float64
	sequence           uint64
	// reserves: what pods have are weights, and room on their nodes.
	reserves bool
}

func deployed(n int, limit float64) *deployment {
	d := &deployment{replicas: n, found: n, template: limit, startup: 30 * time.Second, nodes: map[string]float64{"n1": 8, "n2": 8}}
	d.run(t0.Add(-time.Hour))
	return d
}

// run does what the controllers of the cluster do.
func (d *deployment) run(now time.Time) {
	for len(d.pods) < d.replicas {
		d.made++
		d.pods = append(d.pods, pod{fmt.Sprintf("a-%03d", d.made), d.template, fmt.Sprintf("n%d", 1+d.made%len(d.nodes)), now.Add(d.startup), d.template})
	}
	d.pods = d.pods[:d.replicas]
}

func scaleOf() trimtab.KnobID {
	return trimtab.KnobID{Pool: "p", Host: "k", Workload: "a", Instance: "a", Resource: trimtab.Replicas}
}

func (d *deployment) holding(now time.Time) *trimtab.Holding {
	h := &trimtab.Holding{Pool: "p", Host: "k", Time: now, Epoch: 1, Sequence: d.sequence}
	for i := range d.pods {
		p := &d.pods[i]
		s := d.size
		s.Node, s.Has = p.node, d.nodes[p.node]
		if now.Before(p.ready) {
			s.Phase = trimtab.Unready
		}
		h.Targets = append(h.Targets, trimtab.KnobState{KnobID: at("k", "a", p.name), Knob: "test", Now: trimtab.Units(p.limit), Baseline: trimtab.Units(p.limit), Since: now, Min: 0.1, Max: 2, ReadOnly: d.sizeBar, Status: &s})
		if k := &h.Targets[i]; d.reserves {
			k.Shared, k.Reserves, k.Baseline = true, true, trimtab.Units(p.found)
		}
	}
	s := d.number
	s.Starts = map[string]float64{"cpu": d.template}
	return d.with(h, now, &s)
}

func (d *deployment) with(h *trimtab.Holding, now time.Time, s *trimtab.KnobStatus) *trimtab.Holding {
	n := trimtab.Units(float64(d.replicas))
	baseline := n
	if d.replicas == 0 {
		baseline = trimtab.Units(float64(d.found))
	}
	h.Targets = append(h.Targets, trimtab.KnobState{KnobID: scaleOf(), Knob: "test", Now: n, Baseline: baseline, Since: now, Min: 1, Max: 10, Floor: d.floor, ReadOnly: d.numberBar, Status: s})
	return h
}

// carryOut does what a plan says.
func (d *deployment) carryOut(p *trimtab.Plan, now time.Time) *trimtab.Outcome {
	d.sequence = p.Sequence
	o := &trimtab.Outcome{Pool: "p", Host: "k", Epoch: p.Epoch, Sequence: p.Sequence, Step: p.Step, Time: now}
	for _, a := range p.Actions {
		if a.Mode != trimtab.Act {
			continue
		}
		r := trimtab.Result{KnobID: a.KnobID, Status: trimtab.Written, Before: a.Expect, Asked: a.Set, Found: a.Set, Known: true}
		if a.Resource == trimtab.Replicas {
			d.replicas = int(a.Set.Value)
			d.run(now)
		} else if i := slices.IndexFunc(d.pods, func(p pod) bool { return p.name == a.Instance }); i >= 0 {
			d.pods[i].limit = a.Set.Value
		}
		o.Results = append(o.Results, r)
	}
	return o
}

// limits is what all pods have together.
func (d *deployment) limits() (sum float64) {
	for _, p := range d.pods {
		sum += p.limit
	}
	return sum
}

// counted is a planner of one workload in a pool, of 1 to 10 pods of .1 to 2 cores.
func counted(t interface{ Fatal(...any) }, capacity float64, edit func(*planner.WorkloadConfig)) *planner.Planner {
	w := planner.WorkloadConfig{Name: "a", Mode: trimtab.Act, Min: 0.1, Max: 2, SLO: 0.9, Count: &planner.Count{Min: 1, Max: 10, Startup: 30 * time.Second}}
	if edit != nil {
		edit(&w)
	}
	return leads(t, planner.Config{Pool: "p", Resource: "cpu", Capacity: capacity, Unit: 0.01, Step: 1000, Round: 10 * time.Second, Lease: 60 * time.Second, Urgent: 2 * time.Second,
		Policy: fair.NJCPolicy{}, Guard: guard.Config{Window: -1}, Workloads: []planner.WorkloadConfig{w}})
}

// play runs seconds, in each of which it needs so much, and returns the plans.
func (d *deployment) play(p *planner.Planner, from time.Time, seconds int, need func(second int) float64) (all []*trimtab.Plan) {
	for i := range seconds {
		now := from.Add(time.Duration(i) * time.Second)
		d.run(now)
		out := plans(p.Step(now, d.holding(now)))
		has := 0.0
		for _, pod := range d.pods {
			if !now.Before(pod.ready) {
				has += pod.limit
			}
		}
		performance := math.Min(1, 0.9*has/need(i))
		out = append(out, plans(p.Step(now, asks(now, "a", need(i), 0, performance)))...)
		out = append(out, plans(p.Step(now, nil))...)
		for len(out) > 0 {
			all = append(all, out[0])
			out = append(out[1:], plans(p.Step(now, d.carryOut(out[0], now)))...)
		}
	}
	return all
}

func steady(v float64) func(int) float64 { return func(int) float64 { return v } }

// numbersOf are the numbers that plans set, in order.
func numbersOf(all []*trimtab.Plan) (out []int) {
	for _, p := range all {
		for _, a := range p.Actions {
			if a.Resource == trimtab.Replicas {
				out = append(out, int(a.Set.Value))
			}
		}
	}
	return out
}

// saysOf joins why numbers are set or stay.
func saysOf(all []*trimtab.Plan) string {
	var out []string
	for _, p := range all {
		out = append(out, p.Unmoved["a"].Text)
		for _, a := range p.Actions {
			out = append(out, a.Why.Summary, a.Why.Binding.String())
		}
	}
	return strings.Join(out, "\n")
}

func TestOnePlanResizesInPlaceFirstThenScalesUpThenDown(t *testing.T) {
	p, d := counted(t, 16, nil), deployed(2, 0.5)
	d.play(p, t0, 60, steady(3))
	if d.replicas != 2 || d.limits() < 3 {
		t.Fatalf("of 3 cores: %d pods with %v, want 2 larger ones", d.replicas, d.limits())
	}
	all := d.play(p, t0.Add(60*time.Second), 120, steady(7))
	if d.replicas < 4 || d.limits() < 7 {
		t.Fatalf("of 7 cores: %d pods with %v, want 4 of 2 cores or more:\n%s", d.replicas, d.limits(), saysOf(all))
	}
	if !strings.Contains(saysOf(all), "replicas raised from 2 to") {
		t.Errorf("nothing says so:\n%s", saysOf(all))
	}
	all = d.play(p, t0.Add(180*time.Second), 900, steady(1))
	if d.replicas != 1 {
		t.Errorf("of 1 core: %d pods with %v, want 1:\n%s", d.replicas, d.limits(), saysOf(all[len(all)-3:]))
	}
	if n := numbersOf(all[:28]); len(n) > 0 { // 300 s, of 10 s each, less the first
		t.Errorf("within the stabilisation window it went to %v", n)
	}
}

func TestAFallNamesThePodsThatServeTheLeastWhereThatIsAskedForAndKnown(t *testing.T) {
	for name, c := range map[string]struct{ chosen, known bool }{"asked for and known": {true, true}, "not asked for": {false, true}, "not known": {true, false}} {
		p, d := counted(t, 16, func(w *planner.WorkloadConfig) { w.Count.Chosen = c.chosen }), deployed(3, 0.5)
		now, left := t0, []string(nil)
		for range 900 {
			if now = now.Add(time.Second); d.replicas < 3 {
				break
			}
			e := asks(now, "a", 0.3, 0, 1)
			if c.known {
				e.Shares = []trimtab.LoadShare{{Host: "k", Instance: "a-001", Share: 0.5}, {Host: "k", Instance: "a-003", Share: 0.5}}
			}
			out := slices.Concat(plans(p.Step(now, d.holding(now))), plans(p.Step(now, e)), plans(p.Step(now, nil)))
			for ; len(out) > 0; out = out[1:] {
				for _, a := range out[0].Actions {
					if a.Resource == trimtab.Replicas {
						left = a.Leave
					}
				}
				out = append(out, plans(p.Step(now, d.carryOut(out[0], now)))...)
			}
		}
		if want := c.chosen && c.known; d.replicas == 3 || want != (len(left) > 0 && left[0] == "a-002") {
			t.Errorf("%s: %d pods, %q leave first", name, d.replicas, left)
		}
	}
}

func TestWhileARolloutRunsNoPodIsTakenAway(t *testing.T) {
	p, d := counted(t, 16, nil), deployed(4, 2)
	d.play(p, t0, 60, steady(7))
	d.number.Rollout = true
	all := d.play(p, t0.Add(60*time.Second), 900, steady(1))
	if d.replicas < 4 || strings.Contains(saysOf(all), "replicas lowered") {
		t.Errorf("%d pods, want 4 while a rollout runs:\n%s", d.replicas, saysOf(all[len(all)-3:]))
	}
	d.number.Rollout = false
	if d.play(p, t0.Add(960*time.Second), 600, steady(1)); d.replicas > 2 {
		t.Errorf("%d pods after it, want fewer", d.replicas)
	}
}

func TestPodsThatAreStillStartingBringNoSecondScaleUp(t *testing.T) {
	p, d := counted(t, 16, nil), deployed(2, 2)
	d.startup = 50 * time.Second
	all := d.play(p, t0, 45, steady(7))
	if n := slices.Compact(numbersOf(all)); len(n) != 1 {
		t.Errorf("it went to %v while pods start:\n%s", n, saysOf(all))
	}
}

func TestStartUpTimesAreLearnt(t *testing.T) {
	p, d := counted(t, 16, nil), deployed(1, 2)
	d.startup = 17 * time.Second
	d.play(p, t0, 40, steady(5))
	if s := string(p.Snapshot()["planner"]); !strings.Contains(s, `"seen":[16000000000`) {
		t.Errorf("snapshot %s", s)
	}
}

func TestANumberThatAnHPASetsIsOnlyRecommendedAndThePlanNamesIt(t *testing.T) {
	p, d := counted(t, 16, nil), deployed(2, 2)
	d.numberBar = "HorizontalPodAutoscaler shop/h sets its replicas"
	all := d.play(p, t0, 60, steady(7))
	if n := numbersOf(all); d.replicas != 2 || len(n) == 0 || n[0] < 4 {
		t.Errorf("%d pods, advised %v, want 2 and 4 or more", d.replicas, n)
	}
	if says := saysOf(all); !strings.Contains(says, "would be raised from 2") || !strings.Contains(says, d.numberBar) {
		t.Errorf("it says:\n%s", says)
	}
	// The size is its own still.
	q, e := counted(t, 16, nil), deployed(2, 0.5)
	e.numberBar = d.numberBar
	e.play(q, t0, 60, steady(3))
	if e.limits() < 3 {
		t.Errorf("pods have %v, want 3", e.limits())
	}
}

func TestUnderAnHPAMorePodsAreAdvisedToWhoMissesItsSLOWithAllItMayHaveAlsoWhereNothingTellsHowManyAreEnough(t *testing.T) {
	p, d := counted(t, 16, nil), deployed(2, 2)
	d.numberBar = "HorizontalPodAutoscaler shop/h sets its replicas"
	var all []*trimtab.Plan
	for i := range 60 {
		now := t0.Add(time.Duration(i) * time.Second)
		e := asks(now, "a", 4, 0, 0.75)
		e.Cost, e.Backlog = nil, nil
		for k := range e.Curve.Knots { // what it has was seen, and met nothing
			e.Curve.Knots[k].Allocation, e.Curve.Knots[k].Band = 2+float64(k), trimtab.Band{Lower: 0.5, Mean: 0.6 + 0.07*float64(k), Upper: 0.99}
		}
		for _, v := range []trimtab.Value{d.holding(now), e, nil} {
			for _, plan := range plans(p.Step(now, v)) {
				all = append(all, plan)
				p.Step(now, d.carryOut(plan, now))
			}
		}
	}
	if n := numbersOf(all); len(n) == 0 || n[len(n)-1] != 3 {
		t.Errorf("advised %v, want 3 pods, half more than it has:\n%s", n, saysOf(all[max(0, len(all)-3):]))
	}
}

func TestPodsThatCannotBeResizedUseTheirNumberAlone(t *testing.T) {
	p, d := counted(t, 16, nil), deployed(2, 1)
	d.sizeBar = "this cluster has no pods/resize"
	all := d.play(p, t0, 90, steady(4))
	if d.replicas < 4 || d.limits() != float64(d.replicas) {
		t.Errorf("%d pods with %v, want 4 or more of one core:\n%s", d.replicas, d.limits(), saysOf(all))
	}
}

func TestInModeRecommendSizeAndNumberAreAdvisedAndNothingIsDone(t *testing.T) {
	p, d := counted(t, 16, func(w *planner.WorkloadConfig) { w.Mode = trimtab.Recommend }), deployed(2, 2)
	all := d.play(p, t0, 60, steady(7))
	if n := numbersOf(all); len(n) == 0 || d.replicas != 2 || d.limits() != 4 {
		t.Errorf("advised %v; %d pods with %v", n, d.replicas, d.limits())
	}
	for _, plan := range all {
		for _, a := range plan.Actions {
			if a.Mode != trimtab.Recommend {
				t.Fatalf("action %+v", a)
			}
		}
	}
}

func TestAQuotaClampsBeforePlanningAndIsNamedAsBinding(t *testing.T) {
	p, d := counted(t, 16, nil), deployed(2, 2)
	d.number = trimtab.KnobStatus{Most: 3, By: "ResourceQuota shop/q"}
	all := d.play(p, t0, 90, steady(9))
	if says := saysOf(all); d.replicas != 3 || !strings.Contains(says, "ResourceQuota shop/q") {
		t.Errorf("%d pods, want 3:\n%s", d.replicas, says)
	}
	p, d = counted(t, 16, func(w *planner.WorkloadConfig) { w.Count.Max = 2 }), deployed(2, 1)
	d.size = trimtab.KnobStatus{Most: 1, By: "LimitRange shop/r"}
	all = d.play(p, t0, 60, steady(4))
	if says := saysOf(all); d.limits() != 2 || !strings.Contains(says, "LimitRange shop/r") {
		t.Errorf("pods have %v, want 2:\n%s", d.limits(), says)
	}
}

func TestAStepTakesNoMorePodsThanTheFloorOfItsBudgets(t *testing.T) {
	p, d := counted(t, 16, nil), deployed(4, 2)
	d.floor = 4
	all := d.play(p, t0, 500, steady(1))
	if d.replicas != 4 {
		t.Errorf("%d pods, want 4:\n%s", d.replicas, saysOf(all[len(all)-2:]))
	}
}

func TestTheBlockBehaviorIsObeyedInThePlan(t *testing.T) {
	p := counted(t, 16, func(w *planner.WorkloadConfig) {
		w.Count.Behavior = &behavior.Behavior{Up: &behavior.Rules{Policies: []behavior.Policy{{Type: behavior.Pods, Value: 1, PeriodSeconds: 60}}}}
	})
	d := deployed(2, 2)
	all := d.play(p, t0, 55, steady(12))
	if says := saysOf(all); d.replicas != 3 || !strings.Contains(says, "ScaleUpLimit") {
		t.Errorf("%d pods within a minute, want 3:\n%s", d.replicas, says)
	}
}

func TestAnInstanceThatCameToServeGetsWhatTheOthersHaveWithinFiveSeconds(t *testing.T) {
	p, d := counted(t, 16, nil), deployed(3, 2)
	d.template = 0.5
	d.startup = 3 * time.Second
	d.replicas = 4 // somebody else did
	for i := range 9 {
		d.play(p, t0.Add(time.Duration(i)*time.Second), 1, steady(3))
	}
	if got := d.pods[3].limit; got < 1.9 {
		t.Errorf("it has %v after 6 s of serving", got)
	}
}

// The same of a workload whose number somebody else sets, and of one that is slow to serve.
func TestAnInstanceThatCameToRunGetsWhatTheOthersHaveWithinFiveSecondsOfThat(t *testing.T) {
	for name, edit := range map[string]func(*planner.WorkloadConfig){"counted": nil, "size alone": func(w *planner.WorkloadConfig) { w.Count = nil }} {
		p, d := counted(t, 16, edit), deployed(3, 2)
		d.template, d.startup = 0.5, time.Hour
		d.play(p, t0, 21, steady(5))
		before := d.limits()
		d.replicas = 4 // somebody else did
		for i := range 6 {
			d.play(p, t0.Add(time.Duration(21+i)*time.Second), 1, steady(5))
		}
		if got := d.pods[3].limit; got < 1.6 {
			t.Errorf("%s: it has %v after 5 s of running: %v", name, got, d.pods)
		}
		if d.limits() < before {
			t.Errorf("%s: others were lowered for it: %v", name, d.pods)
		}
	}
}

func TestAnInstanceThatStartsGetsNoMoreThanIsLeft(t *testing.T) {
	p, d := counted(t, 5, func(w *planner.WorkloadConfig) { w.Count = nil }), deployed(2, 2)
	d.template, d.startup = 0.5, time.Hour
	d.play(p, t0, 11, steady(3.5))
	d.replicas = 3
	for i := range 30 {
		d.play(p, t0.Add(time.Duration(11+i)*time.Second), 1, steady(3.5))
		if sum := d.limits(); sum > 5+1e-9 {
			t.Fatalf("%v of 5: %v", sum, d.pods)
		}
	}
	if d.pods[2].limit <= 0.5 {
		t.Errorf("it got nothing of what is left: %v", d.pods)
	}
}

func TestMissingInputLowersNeitherSizeNorNumber(t *testing.T) {
	p, d := counted(t, 16, nil), deployed(4, 2)
	for i := range 900 {
		now := t0.Add(time.Duration(i) * time.Second)
		p.Step(now, d.holding(now))
		for _, plan := range plans(p.Step(now, nil)) {
			p.Step(now, d.carryOut(plan, now))
		}
	}
	if d.replicas != 4 || d.limits() != 8 {
		t.Errorf("%d pods with %v", d.replicas, d.limits())
	}
}

// Whatever it needs, what pods have, and those begin with that were asked for, is never
// more than the pool has, unless somebody else makes it so; and no node is over.
func TestNeitherThePoolNorANodeIsOverByWhatIsPlanned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.Float64Range(3, 12).Draw(t, "capacity")
		p, d := counted(t, capacity, nil), deployed(2, rapid.SampledFrom([]float64{0.2, 0.5, 1}).Draw(t, "template"))
		d.startup = time.Duration(rapid.IntRange(1, 40).Draw(t, "startup")) * time.Second
		d.nodes = map[string]float64{"n1": rapid.Float64Range(1, 6).Draw(t, "n1"), "n2": 4}
		needs := rapid.SliceOfN(rapid.Float64Range(0.2, 12), 4, 4).Draw(t, "needs")
		for i := range 60 {
			now := t0.Add(time.Duration(i) * time.Second)
			for _, plan := range d.play(p, now, 1, steady(needs[i/15])) {
				if sum := d.limits(); sum > capacity+1e-6 && len(plan.Actions) > 0 {
					t.Fatalf("%v in a pool of %v: %v, second %d, %s", sum, capacity, d.pods, i, saysOf([]*trimtab.Plan{plan}))
				}
			}
			wrote := map[string]float64{} // where a pod comes is the scheduler's to say
			for _, pod := range d.pods {
				if pod.limit > d.template {
					wrote[pod.node] += pod.limit
				}
			}
			for node, has := range d.nodes {
				if wrote[node] > has+1e-6 {
					t.Fatalf("node %s has %v, pods have %v", node, has, d.pods)
				}
			}
		}
	})
}

// Item 1.4: what instances cannot get in place they get by their number.
func TestWhereANodeGrowsNoPodThePlannerTakesReplicasInstead(t *testing.T) {
	p, d := counted(t, 16, nil), deployed(2, 1)
	d.play(p, t0, 60, steady(1.5))
	if d.replicas != 2 {
		t.Fatalf("%d pods", d.replicas)
	}
	d.size.Most, d.size.By = 1, `node n1 grows no Guaranteed pod: Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"`
	all := d.play(p, t0.Add(60*time.Second), 120, steady(3.5))
	for _, pod := range d.pods {
		if pod.limit > 1 {
			t.Errorf("pod %s has %v", pod.name, pod.limit)
		}
	}
	if d.replicas < 4 {
		t.Errorf("%d pods, want 4 of 1 core:\n%s", d.replicas, saysOf(all))
	}
}
