package planner_test

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codec"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/fair"
	"github.com/trimtab/trimtab/planner/guard"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/welfare"
)

// started is a planner that leads with epoch 1 and knows what a, b, c hold.
func started(t testing.TB, cfg planner.Config, now map[string]float64) *planner.Planner {
	t.Helper()
	p, err := planner.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p.Step(t0, &trimtab.Leader{Pool: "p", Epoch: 1})
	p.Step(t0, holding(t0, 1, 0, now))
	return p
}

// told gives every workload an estimate.
func told(p *planner.Planner, at time.Time, full map[string]float64) {
	for n, f := range full {
		p.Step(at, estimate(n, at, ramp(f)))
	}
}

func one(t testing.TB, values []trimtab.Value) *trimtab.Plan {
	t.Helper()
	if len(values) != 1 {
		t.Fatalf("%d plans, want one: %v", len(values), values)
	}
	p := values[0].(*trimtab.Plan)
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	return p
}

func done(p *trimtab.Plan, now time.Time) *trimtab.Outcome {
	o := &trimtab.Outcome{Pool: p.Pool, Host: "h1", Epoch: p.Epoch, Sequence: p.Sequence, Step: p.Step, Time: now}
	for _, a := range p.Actions {
		r := trimtab.Result{KnobID: a.KnobID, Status: trimtab.Written, Before: a.Expect, Asked: a.Set, Found: a.Set, Known: true}
		if a.Mode == trimtab.Recommend {
			r.Status, r.Found = trimtab.Recommended, a.Expect
		}
		o.Results = append(o.Results, r)
	}
	return o
}

var equal = map[string]float64{"a": 4, "b": 2, "c": 2}
var skewed = map[string]float64{"a": 1, "b": 3, "c": 4}

// R9, R10: whatever is wrong with an estimate, its workload is not lowered, and
// no number that is not finite is published.
func TestAbsentDataLowersNobody(t *testing.T) {
	nan := math.NaN()
	spoil := map[string]func(*trimtab.Estimate) *trimtab.Estimate{
		"missing": func(*trimtab.Estimate) *trimtab.Estimate { return nil },
		"stale":   func(e *trimtab.Estimate) *trimtab.Estimate { e.Time = e.Time.Add(-time.Minute); return e },
		"future":  func(e *trimtab.Estimate) *trimtab.Estimate { e.Time = e.Time.Add(time.Hour); return e },
		"held": func(e *trimtab.Estimate) *trimtab.Estimate {
			e.Hold = &trimtab.Held{Code: codes.HeldMissing, Text: "frozen counter"}
			return e
		},
		"stood for": func(e *trimtab.Estimate) *trimtab.Estimate {
			e.Hold, e.Fallback = &trimtab.Held{Code: codes.HeldAbsent, Text: "no performance"}, "demand"
			return e
		},
		"no curve":   func(e *trimtab.Estimate) *trimtab.Estimate { e.Curve = nil; return e },
		"no knots":   func(e *trimtab.Estimate) *trimtab.Estimate { e.Curve.Knots = nil; return e },
		"NaN knot":   func(e *trimtab.Estimate) *trimtab.Estimate { e.Curve.Knots[0].Mean = nan; return e },
		"Inf load":   func(e *trimtab.Estimate) *trimtab.Estimate { e.Curve.Load = math.Inf(1); return e },
		"negative":   func(e *trimtab.Estimate) *trimtab.Estimate { e.Curve.Knots[0].Lower = -1; return e },
		"descending": func(e *trimtab.Estimate) *trimtab.Estimate { e.Curve.Knots[1].Allocation = 0; return e },
	}
	names := slices.Sorted(maps.Keys(spoil))
	rapid.Check(t, func(t *rapid.T) {
		cfg := pool(rapid.SampledFrom([]policy.Policy{fair.NJCPolicy{}, fair.ResourceFair{}, welfare.Egalitarian{}, welfare.Social{}, welfare.TieBreak{Objective: welfare.Egalitarian{}}, welfare.TieBreak{Objective: welfare.Social{}}}).Draw(t, "policy"), trimtab.Act)
		cfg.Guard.Disabled = rapid.Bool().Draw(t, "unguarded")
		cfg.Workloads[0].Default = 5
		p, err := planner.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		now := t0
		h := &host{name: "h1", names: []string{"a", "b", "c"}, now: map[string]trimtab.Amount{"a": trimtab.Units(4), "b": trimtab.Units(2), "c": trimtab.Units(1.5)}}
		p.Step(now, &trimtab.Leader{Pool: "p", Epoch: 1})
		for range rapid.IntRange(1, 8).Draw(t, "rounds") {
			now = now.Add(time.Minute)
			bad := map[string]bool{}
			for _, n := range h.names {
				e := estimate(n, now, ramp(rapid.Float64Range(0.2, 8).Draw(t, "full")))
				if bad[n] = rapid.Bool().Draw(t, "bad"); bad[n] {
					e = spoil[rapid.SampledFrom(names).Draw(t, "how")](e)
				}
				if e != nil {
					p.Step(now, e)
				}
			}
			p.Step(now, h.holding(now))
			queue := p.Step(now, nil)
			for len(queue) > 0 {
				plan := queue[0].(*trimtab.Plan)
				if _, err := codec.Encode(plan, trimtab.Origin{}); err != nil {
					t.Fatal(err) // JSON refuses what is not finite
				}
				for _, a := range plan.Actions {
					if bad[a.Workload] && a.Set.Less(a.Expect) {
						t.Fatalf("%s is lowered: %s", a.Workload, a.Why.Summary)
					}
				}
				for n := range bad {
					if bad[n] && plan.Held[n].Text == "" {
						t.Fatalf("%s is held without a reason", n)
					}
				}
				queue = append(queue[1:], p.Step(now, h.carryOut(plan, now, func(string) (bool, bool) { return false, true }))...)
			}
		}
	})
}

func TestAfterHoldRoundsADefaultMayRaise(t *testing.T) {
	for holdRounds, first := range map[int]int{0: 3, 1: 1, 5: 5} {
		cfg := pool(fair.NJCPolicy{}, trimtab.Act)
		cfg.HoldRounds = holdRounds
		cfg.Workloads[0].Default = 3 // c
		cfg.Workloads[1].Default = 3 // a has more
		p := started(t, cfg, map[string]float64{"a": 4, "b": 2, "c": 1})
		for s := range first + 1 {
			now := t0.Add(time.Duration(s) * time.Second)
			p.Step(now, holding(now, 1, uint64(s), map[string]float64{"a": 4, "b": 2, "c": 1}))
			plan := one(t, p.Step(now, nil))
			if raised := len(plan.Actions) > 0; raised != (s >= first) {
				t.Fatalf("hold rounds %d, after %d s: %+v", holdRounds, s, plan.Actions)
			}
			if len(plan.Actions) > 0 && (plan.Actions[0].Workload != "c" || plan.Actions[0].Set.Value != 2 || plan.Actions[0].Why.Summary == "") {
				t.Fatalf("the spare capacity of 1 should go to c: %+v", plan.Actions)
			}
		}
	}
}

func TestWithoutTheLeadNothingIsPublished(t *testing.T) {
	p, err := planner.New(pool(fair.NJCPolicy{}, trimtab.Act))
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range []trimtab.Value{nil, holding(t0, 0, 0, equal), &trimtab.Leader{Pool: "other", Epoch: 4}, nil,
		&trimtab.Leader{Pool: "p", Epoch: 4}, &trimtab.Leader{Pool: "p"}, nil, &trimtab.Leader{Pool: "p", Epoch: 3}, nil,
		&trimtab.Command{Pool: "p", Verb: trimtab.Round, Time: t0}, &trimtab.Command{Pool: "p", Verb: trimtab.Apply, Plan: "1-1", Time: t0},
		&trimtab.Alert{Workload: "a", Name: "x", Group: "g", Firing: true, Time: t0}} {
		if out := p.Step(t0.Add(time.Duration(i)*time.Minute), v); len(out) > 0 {
			t.Errorf("input %d published %v", i, out)
		}
	}
}

// A former leader's grow of a, already read back by nobody, may still happen:
// the new leader's own grows wait until a was read under its own epoch.
func TestANewLeaderWaitsForItsFence(t *testing.T) {
	p, err := planner.New(pool(fair.NJCPolicy{}, trimtab.Act))
	if err != nil {
		t.Fatal(err)
	}
	low := map[string]float64{"a": 1, "b": 2, "c": 2}
	p.Step(t0, holding(t0, 6, 9, low)) // before 6-10 raised a to 3
	p.Step(t0, &trimtab.Leader{Pool: "p", Epoch: 7})
	told(p, t0, map[string]float64{"a": 1, "b": 5, "c": 5})
	first := one(t, p.Step(t0, nil))
	if first.Last || len(first.Actions) > 0 {
		t.Fatalf("grows before the fence: %+v", first)
	}
	if out := p.Step(t0, done(first, t0.Add(time.Millisecond))); len(out) > 0 {
		t.Fatalf("an answer without a reading is no fence: %v", out)
	}
	second := one(t, p.Step(t0, holding(t0.Add(2*time.Millisecond), 7, 1, map[string]float64{"a": 3, "b": 2, "c": 2})))
	sum := 7.0
	for _, a := range second.Actions {
		sum += a.Set.Value - a.Expect.Value
	}
	if !second.Last || len(second.Actions) == 0 || sum > 8+1e-9 {
		t.Fatalf("reaches %v: %+v", sum, second)
	}
}

func TestALostAnswerKeepsItsReservation(t *testing.T) {
	p := started(t, pool(fair.NJCPolicy{}, trimtab.Act), map[string]float64{"a": 1, "b": 2, "c": 2})
	told(p, t0, map[string]float64{"a": 1, "b": 5, "c": 1})
	first := one(t, p.Step(t0, nil)) // c may fall, b rises by one core
	second := one(t, p.Step(t0, done(first, t0)))
	if len(second.Actions) != 1 || second.Actions[0].Workload != "b" {
		t.Fatalf("%+v", second)
	}
	// The answer is lost; a repetition is refused, which proves nothing. The
	// next grow must count b at what it may have by now.
	refused := done(second, t0)
	refused.Results, refused.Refused = nil, "repeated"
	p.Step(t0, refused)
	now := t0.Add(time.Second)
	told(p, now, map[string]float64{"a": 8, "b": 5, "c": 8})
	sum := second.Actions[0].Set.Value + 1 // b, a
	for _, a := range first.Actions {
		sum += a.Set.Value // c
	}
	for range 3 {
		now = now.Add(time.Second)
		for _, v := range p.Step(now, nil) {
			for _, a := range v.(*trimtab.Plan).Actions {
				if a.Workload != "b" {
					sum += a.Set.Value - a.Expect.Value
				}
			}
		}
		told(p, now, map[string]float64{"a": 8, "b": 5, "c": 8})
	}
	if sum > 8+1e-9 {
		t.Errorf("may reach %v of 8", sum)
	}
}

func TestShrinksThatAreNotAnsweredFundNothing(t *testing.T) {
	p := started(t, pool(fair.NJCPolicy{}, trimtab.Act), equal)
	told(p, t0, skewed)
	first := one(t, p.Step(t0, nil))
	if first.Last || len(first.Actions) != 1 {
		t.Fatalf("%+v", first)
	}
	if out := p.Step(t0.Add(time.Second), nil); len(out) > 0 {
		t.Fatalf("went on before the wait was over: %v", out)
	}
	late := p.Step(t0.Add(5*time.Second), nil)
	plan := late[0].(*trimtab.Plan)
	if plan.Step != 2 || !plan.Last || len(plan.Actions) > 0 {
		t.Errorf("unfunded: %+v", plan)
	}
}

func TestAnActingWorkloadIsNotLoweredForAdvice(t *testing.T) {
	cfg := pool(fair.ResourceFair{}, trimtab.Act)
	for i := range cfg.Workloads {
		if cfg.Workloads[i].Name != "a" {
			cfg.Workloads[i].Mode = trimtab.Recommend
		}
	}
	p := started(t, cfg, equal) // a has 4, its share is 2.67
	told(p, t0, skewed)
	for _, a := range one(t, p.Step(t0, nil)).Actions {
		if a.Workload == "a" {
			t.Errorf("%s", a.Why.Summary)
		}
	}
}

func TestUnlimitedFallsFromItsMaximumOnProofOnly(t *testing.T) {
	cfg := pool(fair.NJCPolicy{}, trimtab.Act)
	cfg.Guard = guard.Config{}
	p, err := planner.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p.Step(t0, &trimtab.Leader{Pool: "p", Epoch: 1})
	h := holding(t0, 1, 0, map[string]float64{"a": 0})
	h.Targets[0].Now = trimtab.Unlimited()
	p.Step(t0, h)
	if plan := one(t, p.Step(t0, nil)); len(plan.Actions) > 0 || plan.Held["a"].Text == "" || plan.Held["b"].Text == "" {
		t.Fatalf("without proof: %+v", plan)
	}
	now := t0.Add(time.Second)
	h = holding(now, 1, 0, map[string]float64{"a": 0, "b": 4})
	h.Targets[0].Now = trimtab.Unlimited()
	p.Step(now, h)
	told(p, now, map[string]float64{"a": 4, "b": 4})
	plan := one(t, p.Step(now, nil))
	if len(plan.Actions) != 1 || !plan.Actions[0].Expect.Unlimited || math.Abs(plan.Actions[0].Set.Value-7) > 1e-9 {
		t.Fatalf("want a step of 10 units from the maximum of 8: %+v", plan)
	}
}

func TestAReasonCanBeCheckedByHand(t *testing.T) {
	for _, policy := range []policy.Policy{fair.NJCPolicy{}, welfare.Egalitarian{}, welfare.Social{}} {
		p := started(t, pool(policy, trimtab.Act), equal)
		told(p, t0, skewed)
		now := t0.Add(time.Second)
		first := one(t, p.Step(now, nil))
		second := one(t, p.Step(now, done(first, now)))
		for _, a := range append(first.Actions, second.Actions...) {
			w := a.Why
			if w.Summary == "" || w.Model != "test/1" || w.Bounds == nil || w.Utility == nil || w.Target == nil || w.Demand == nil || w.Binding.Kind == "" ||
				len(w.Alternatives) == 0 || !w.NextCheck.Equal(now.Add(time.Second)) || len(w.Inputs) != 1 || w.Inputs[0].Age != 2 {
				t.Errorf("%s: incomplete: %+v", policy.Name(), w)
			}
			for _, alt := range w.Alternatives {
				if alt.Objective > *first.Value+1e-9 && !strings.HasPrefix(alt.Why, "all the way") {
					t.Errorf("%s: %q is worth %v, the target only %v", policy.Name(), alt.Why, alt.Objective, *first.Value)
				}
			}
		}
	}
}

// R7: repeated inputs in any order inside a round change no byte.
func TestOrderAndRepetitionInsideARoundChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := t0
		rounds := rapid.IntRange(1, 4).Draw(t, "rounds")
		var inputs [][]trimtab.Value
		for r := range rounds {
			at := now.Add(time.Duration(r) * time.Second)
			in := []trimtab.Value{holding(at, 1, uint64(r), equal)}
			for _, n := range []string{"a", "b", "c"} {
				in = append(in, estimate(n, at, ramp(rapid.Float64Range(0.5, 8).Draw(t, "full"))))
			}
			inputs = append(inputs, in)
		}
		run := func(shuffle bool) []byte {
			p, err := planner.New(pool(welfare.Egalitarian{}, trimtab.Recommend))
			if err != nil {
				t.Fatal(err)
			}
			p.Step(t0, &trimtab.Leader{Pool: "p", Epoch: 1})
			var out []trimtab.Value
			for r, in := range inputs {
				at := t0.Add(time.Duration(r) * time.Second)
				if shuffle {
					in = append(append([]trimtab.Value(nil), in...), in[rapid.IntRange(0, len(in)-1).Draw(t, "again")])
					in = rapid.Permutation(in).Draw(t, "order")
					if r > 0 { // a late one
						in = append(in, inputs[r-1][rapid.IntRange(0, 3).Draw(t, "late")])
					}
				}
				for _, v := range in {
					out = append(out, p.Step(at, v)...)
				}
				out = append(out, p.Step(at, nil)...)
			}
			b, err := json.Marshal(out)
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		if d := cmp.Diff(string(run(false)), string(run(true))); d != "" {
			t.Fatal(d)
		}
	})
}

func TestAStateThatIsOutOfRangeIsRefused(t *testing.T) {
	p := started(t, pool(fair.NJCPolicy{}, trimtab.Act), equal)
	if err := p.Restore("planner", []byte(`{"a":{"demand":-4,"unit":0.1}}`)); !errors.Is(err, trimtab.ErrInvalid) {
		t.Errorf("%v, want trimtab.ErrInvalid", err)
	}
}

func FuzzRestore(f *testing.F) {
	f.Add([]byte(`{"a":{"demand":3,"unit":0.1,"move":{"direction":-1,"at":"2026-01-02T03:04:05Z"}}}`))
	f.Add([]byte(`{"a":{"demand":1e9}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		p := started(t, pool(fair.NJCPolicy{}, trimtab.Act), equal)
		if err := p.Restore("planner", b); err != nil {
			return
		}
		told(p, t0, skewed)
		one(t, p.Step(t0, nil))
	})
}

func TestEveryCountIsInTheTableOfMetrics(t *testing.T) {
	p := started(t, pool(fair.NJCPolicy{}, trimtab.Act), equal)
	p.Step(t0, nil)
	n := 0
	p.Counts(func(name string, v float64, labels ...string) {
		if !strings.HasPrefix(name, "trimtab_planner_") || len(labels) == 0 || labels[0] != "p" {
			t.Errorf("%s %v", name, labels)
		}
		n++
	})
	if n < 10 {
		t.Errorf("%d counts", n)
	}
}

// A host that stays silent may yet carry out a former leader's plan: when the
// wait for it is over, its knob still counts as its maximum.
func TestASilentHostCountsAsItsMaximum(t *testing.T) {
	cfg := pool(fair.NJCPolicy{}, trimtab.Act)
	cfg.Lease = time.Minute
	for i := range cfg.Workloads {
		cfg.Workloads[i].Max = 4
	}
	p, err := planner.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p.Step(t0, of(holding(t0, 6, 9, map[string]float64{"a": 1}), "h2", ""))
	p.Step(t0, holding(t0, 6, 9, map[string]float64{"b": 1, "c": 1}))
	p.Step(t0, &trimtab.Leader{Pool: "p", Epoch: 7})
	sum := 4.0 // a, at its maximum
	b := map[string]float64{"b": 1, "c": 1}
	grown := false
	for s := range 40 {
		now := t0.Add(time.Duration(s) * time.Second)
		told(p, now, map[string]float64{"a": 1, "b": 8, "c": 8})
		for _, v := range p.Step(now, nil) {
			plan := v.(*trimtab.Plan)
			for _, a := range plan.Actions {
				b[a.Workload] = a.Set.Value
				grown = true
			}
			if sum+b["b"]+b["c"] > 8+1e-9 {
				t.Fatalf("after %d s: %v and up to %v", s, b, sum)
			}
			p.Step(now, done(plan, now))
			p.Step(now, holding(now, plan.Epoch, plan.Sequence, b))
		}
	}
	if !grown {
		t.Error("nothing ever grew")
	}
}
