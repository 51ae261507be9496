package planner_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/fair"
	"github.com/trimtab/trimtab/planner/sizing"
	"github.com/trimtab/trimtab/quantity"
)

const mib = 1 << 20

// sizedPool is a pool of CPU whose workload a has a memory limit.
type sizedPool struct {
	*planner.Planner
	t        *testing.T
	now      time.Time
	sequence uint64
	limit    trimtab.Amount
	since    time.Time // of the limit
	problem  string
	status   *trimtab.KnobStatus
	cores    map[string]float64 // by workload
	held     map[string]trimtab.Held
}

func newSized(t *testing.T, mode trimtab.Mode, limit trimtab.Amount, change ...func(*planner.WorkloadConfig)) *sizedPool {
	t.Helper()
	cfg := pool(fair.NJCPolicy{}, mode)
	cfg.Guard.Disabled, cfg.Round = false, 30*time.Second
	for i := range cfg.Workloads {
		if w := &cfg.Workloads[i]; w.Name == "a" {
			w.Memory = &sizing.Bounds{Min: 64 * mib, Max: 4096 * mib, Margin: 0.1}
			for _, of := range change {
				of(w)
			}
		}
	}
	p, err := planner.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l := &sizedPool{Planner: p, t: t, now: t0, limit: limit, cores: map[string]float64{"a": 2}}
	p.Step(l.now, &trimtab.Leader{Pool: "p", Epoch: 1})
	return l
}

// after plays some time and an estimate with a need, and returns the actions on the limit. With a tick a
// round is due after 30 s.
func (l *sizedPool) after(d time.Duration, n quantity.MemoryNeed, change func(*trimtab.Estimate)) (all []trimtab.Action) {
	l.t.Helper()
	l.now = l.now.Add(d)
	h := holding(l.now, 1, l.sequence, l.cores)
	h.Targets = append(h.Targets, trimtab.KnobState{KnobID: trimtab.KnobID{Pool: "p", Host: h.Host, Workload: "a", Resource: trimtab.Memory},
		Knob: "test", Now: l.limit, Baseline: trimtab.Unlimited(), Since: l.since, Min: 64 * mib, Max: 4096 * mib, Problem: l.problem, Status: l.status})
	l.Step(l.now, h)
	e := asks(l.now, "a", 2, 0, 1)
	if n.Need > 0 {
		e.Memory = []quantity.MemoryNeed{n}
	}
	if change != nil {
		change(e)
	}
	out := l.Step(l.now, e)
	if d >= 30*time.Second {
		out = append(out, l.Step(l.now, nil)...)
	}
	for queue := plansOf(out); len(queue) > 0; queue = queue[1:] {
		plan := queue[0]
		l.sequence, l.held = plan.Sequence, plan.Held
		for _, a := range plan.Actions {
			if a.Resource != trimtab.Memory {
				continue
			}
			if all = append(all, a); a.Mode == trimtab.Act {
				l.limit, l.since = a.Set, l.now
			}
		}
		queue = append(queue, plansOf(l.Step(l.now, done(plan, l.now)))...)
	}
	return all
}

func needs(use, need float64) quantity.MemoryNeed {
	return quantity.MemoryNeed{Use: use * mib, Need: need * mib}
}

func TestALimitFallsStepByStepToTheNeedAndItsMargin(t *testing.T) {
	l := newSized(t, trimtab.Act, trimtab.Units(1000*mib))
	var steps []float64
	for range 20 {
		for _, a := range l.after(31*time.Second, needs(300, 400), nil) {
			steps = append(steps, a.Set.Value/mib)
			if !strings.Contains(a.Why.Summary, "working set is 300MiB") {
				t.Errorf("%q", a.Why.Summary)
			}
		}
	}
	if len(steps) == 0 || steps[0] != 800 || l.limit.Value < 440*mib || l.limit.Value > 1.12*440*mib {
		t.Errorf("%v: want a fall of 20%% a round, down to 440 MiB", steps)
	}
}

func TestWhatIsNotKnownLowersNoLimit(t *testing.T) {
	unlearnt, stale := needs(300, 400), needs(300, 400)
	unlearnt.Unlearnt = "its use grows and does not stop"
	elsewhere := needs(300, 400)
	elsewhere.Instance = "other"
	misses := 0.1
	for name, c := range map[string]struct {
		need    quantity.MemoryNeed
		change  func(*trimtab.Estimate)
		problem string
	}{
		"nothing is told":     {},
		"not learnt":          {need: unlearnt},
		"another instance":    {need: elsewhere},
		"a held estimate":     {need: stale, change: func(e *trimtab.Estimate) { e.Hold = &trimtab.Held{Code: "stale", Text: "x"} }},
		"an old estimate":     {need: stale, change: func(e *trimtab.Estimate) { e.Time = e.Time.Add(-10 * time.Minute) }},
		"it misses its SLO":   {need: stale, change: func(e *trimtab.Estimate) { e.Performance = &misses }},
		"the knob is unknown": {need: stale, problem: "permission denied"},
	} {
		l := newSized(t, trimtab.Act, trimtab.Units(1000*mib))
		l.problem = c.problem
		for range 4 {
			if all := l.after(31*time.Second, c.need, c.change); len(all) > 0 {
				t.Errorf("%s: %+v", name, all)
			}
		}
	}
}

// The agent raises a limit by itself: the shortage that it answered raises it no second time.
func TestAShortageThatTheAgentAnsweredIsOver(t *testing.T) {
	l := newSized(t, trimtab.Act, trimtab.Units(500*mib))
	l.after(31*time.Second, needs(400, 450), nil)
	n, at := needs(495, 496), l.now.Add(2*time.Second)
	n.Short = &at
	l.limit, l.since = trimtab.Units(600*mib), at
	if all := l.after(2*time.Second, n, nil); len(all) > 0 {
		t.Errorf("%+v", all)
	}
}

func TestAShortageRaisesTheLimitWithoutARound(t *testing.T) {
	for name, of := range map[string]func(*quantity.MemoryNeed, *time.Time){
		"it meets its limit": func(n *quantity.MemoryNeed, at *time.Time) { n.Short = at },
		"it was killed":      func(n *quantity.MemoryNeed, at *time.Time) { n.Killed, n.Kills = at, 1 },
	} {
		l := newSized(t, trimtab.Act, trimtab.Units(500*mib))
		l.after(31*time.Second, needs(400, 450), nil)
		n := needs(495, 496)
		at := l.now.Add(2 * time.Second)
		of(&n, &at)
		all := l.after(2*time.Second, n, nil)
		if len(all) != 1 || all[0].Set.Value < 600*mib-mib || all[0].Mode != trimtab.Act {
			t.Errorf("%s: %+v", name, all)
		}
		for range 5 {
			if more := l.after(2*time.Second, n, nil); len(more) != 0 {
				t.Errorf("%s: again for the same shortage: %+v", name, more)
			}
		}
	}
}

func TestInModeRecommendAndWithoutALimitOneIsOnlyAsked(t *testing.T) {
	for name, c := range map[string]struct {
		mode  trimtab.Mode
		limit trimtab.Amount
		want  string
	}{
		"recommend": {trimtab.Recommend, trimtab.Units(1000 * mib), "would be lowered"},
		"no limit":  {trimtab.Act, trimtab.Unlimited(), "adds none by itself"},
	} {
		l := newSized(t, c.mode, c.limit)
		all := l.after(31*time.Second, needs(300, 400), nil)
		if len(all) != 1 || all[0].Mode != trimtab.Recommend || !strings.Contains(all[0].Why.Summary, c.want) || l.limit != c.limit {
			t.Errorf("%s: %+v", name, all)
		}
	}
}

func TestANodeWithoutRoomIsSaidAndTheLimitTakesWhatThereIs(t *testing.T) {
	l := newSized(t, trimtab.Act, trimtab.Units(600*mib))
	l.status = &trimtab.KnobStatus{Node: "n1", Has: 700 * mib}
	for _, c := range []struct {
		mode  trimtab.Mode
		limit float64
		want  string
	}{{trimtab.Act, 700, "node n1 has room for 100MiB more"}, {trimtab.Recommend, 700, "node n1 has room for 0B more"}} {
		all := l.after(31*time.Second, needs(550, 900), nil)
		if len(all) != 1 || all[0].Mode != c.mode || !strings.Contains(all[0].Why.Summary, c.want) || l.limit.Value != c.limit*mib {
			t.Errorf("%s: %+v", c.want, all)
		}
	}
}

func TestOfMemoryAloneNoCPUIsPlannedAndNoSLOIsNeeded(t *testing.T) {
	l := newSized(t, trimtab.Act, trimtab.Units(1000*mib), func(w *planner.WorkloadConfig) { w.MemoryAlone, w.SLO = true, 0 })
	l.cores = map[string]float64{"b": 2}
	unseen := func(e *trimtab.Estimate) {
		*e = trimtab.Estimate{Workload: e.Workload, Time: e.Time, Model: "none", Memory: e.Memory, Hold: &trimtab.Held{Code: "absent", Text: "no load"}}
	}
	for range 20 {
		l.after(31*time.Second, needs(300, 400), unseen)
		if why, held := l.held["a"]; held {
			t.Fatalf("it is held: %+v", why)
		}
	}
	if l.limit.Value < 440*mib || l.limit.Value > 1.12*440*mib {
		t.Errorf("%v: want about 440 MiB", l.limit)
	}
	state := l.Snapshot()["planner"]
	if err := newSized(t, trimtab.Act, l.limit, func(w *planner.WorkloadConfig) { w.MemoryAlone = true }).Restore("planner", state); err != nil {
		t.Error(err)
	}
	out := l.Step(l.now, &trimtab.Estimate{Workload: "a", Time: l.now, Model: "none", Memory: []quantity.MemoryNeed{{Use: math.NaN()}}})
	if len(plansOf(out)) > 0 {
		t.Errorf("%+v", out)
	}
}
