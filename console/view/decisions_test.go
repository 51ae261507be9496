package view

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
)

// at is a plan of the nth second, with one action per workload.
func at(n int, workloads ...string) *trimtab.Plan {
	p := &trimtab.Plan{Pool: "cpu", Epoch: 1, Sequence: uint64(n + 1), Step: 1, Last: true, Time: noon.Add(time.Duration(n) * time.Second), Lease: 10, Cause: trimtab.Cause{Kind: codes.CauseTick}}
	for _, w := range workloads {
		p.Actions = append(p.Actions, trimtab.Action{KnobID: trimtab.KnobID{Pool: p.Pool, Host: "h", Workload: w, Resource: "cpu"}, Expect: trimtab.Units(1), Set: trimtab.Units(2), Mode: trimtab.Act,
			Why: trimtab.Reason{Summary: "raise " + w, Binding: trimtab.Binding{Kind: "step"}, Inputs: []trimtab.Input{{Name: "performance", Value: .5, Age: 1, Source: "spans"}}}})
	}
	return p
}

func TestDecisionsOlderThanTheBusKeepsThemAreForgotten(t *testing.T) {
	v := New(Config{Round: time.Second})
	v.Observe(at(0, "shop"))
	v.Observe(at(1, "shop"))
	v.Observe(at(int(maxAge/time.Second)+1, "shop"))
	if d := v.workloads.all["shop"].decisions; len(d) != 2 || d[0].Sequence != 2 {
		t.Errorf("%d are kept, the oldest is %s", len(d), d[0].Plan)
	}
}

func answer(p *trimtab.Plan, status trimtab.Status) *trimtab.Outcome {
	o := &trimtab.Outcome{Pool: p.Pool, Host: "h", Epoch: p.Epoch, Sequence: p.Sequence, Step: p.Step, Time: p.Time}
	for _, a := range p.Actions {
		o.Results = append(o.Results, trimtab.Result{KnobID: a.KnobID, Status: status})
	}
	return o
}

// TestWhateverTheOrderPlansAndOutcomesComeInEveryDecisionHasItsResult: the
// streams are read again side by side after a restart.
func TestWhateverTheOrderPlansAndOutcomesComeInEveryDecisionHasItsResult(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := New(Config{Round: time.Second})
		plans, outcomes := []trimtab.Value{}, []trimtab.Value{}
		n := rapid.IntRange(1, 20).Draw(t, "plans")
		for i := range n {
			p := at(i, "a", "b")
			plans = append(plans, p)
			outcomes = append(outcomes, answer(p, trimtab.Written))
		}
		for len(plans)+len(outcomes) > 0 {
			from := &plans
			if len(plans) == 0 || len(outcomes) > 0 && rapid.Bool().Draw(t, "outcome first") {
				from = &outcomes
			}
			v.Observe((*from)[0])
			*from = (*from)[1:]
		}
		for _, w := range []string{"a", "b"} {
			for _, d := range v.workloads.all[w].decisions {
				if d.Result == nil || d.Result.Workload != w || d.Result.Status != trimtab.Written {
					t.Fatalf("%s of %s: %+v", d.Plan, w, d.Result)
				}
			}
		}
		if len(v.book.early) > 1 {
			t.Fatalf("%d outcomes still wait", len(v.book.early))
		}
	})
}

func report(n int, performance float64) *trimtab.Estimate {
	return &trimtab.Estimate{Workload: "shop", Time: noon.Add(time.Duration(n) * time.Second), Performance: &performance}
}

func effectOf(t *testing.T, v *Model, sequence uint64, now int) Effect {
	t.Helper()
	out, _, err := v.Decisions("shop", "", MaxDecisions, noon.Add(time.Duration(now)*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range out.Decisions {
		if d.Sequence == sequence {
			return *d.Effect
		}
	}
	t.Fatalf("no decision %d", sequence)
	return Effect{}
}

func TestWhatCameOfADecisionIsTheFirstReportThatIsARoundYounger(t *testing.T) {
	v := New(Config{Round: 10 * time.Second})
	v.Observe(at(0, "shop"))
	if e := effectOf(t, v, 1, 0); e.Performance != TooEarly || *e.Before != .5 || !e.BeforeTime.Equal(noon.Add(-time.Second)) || e.After != nil {
		t.Errorf("at once: %+v", e)
	}
	v.Observe(report(9, .6))
	if e := effectOf(t, v, 1, 9); e.Performance != TooEarly {
		t.Errorf("before a round: %+v", e)
	}
	v.Observe(report(10, .7))
	v.Observe(report(20, .1))
	if e := effectOf(t, v, 1, 20); e.Performance != Rose || *e.After != .7 || !e.AfterTime.Equal(noon.Add(10*time.Second)) {
		t.Errorf("after it: %+v", e)
	}
}

func TestWithoutAReportNothingIsSaidToHaveComeOfADecision(t *testing.T) {
	v := New(Config{Round: 10 * time.Second})
	v.Observe(at(0, "shop"))
	if e := effectOf(t, v, 1, 60); e.Performance != TooEarly {
		t.Errorf("%+v", e)
	}
	if e := effectOf(t, v, 1, 61); e.Performance != NotMeasured {
		t.Errorf("%+v", e)
	}
	// A report from much later is of something else.
	v.Observe(report(600, .9))
	if e := effectOf(t, v, 1, 600); e.Performance != NotMeasured || e.After != nil {
		t.Errorf("%+v", e)
	}
}

func TestSmallDifferencesAreNone(t *testing.T) {
	for _, c := range []struct {
		before, after float64
		want          string
	}{{0, 0, Same}, {1, .991, Same}, {1, .98, Fell}, {.5, .51, Rose}, {0, .1, Rose}, {200, 201, Same}} {
		if got := direction(c.before, c.after); got != c.want {
			t.Errorf("%v to %v: %s, want %s", c.before, c.after, got, c.want)
		}
	}
}

// TestPagesOfDecisionsTogetherAreAllOfThemNewestFirst, whatever their size,
// and no step is torn between two.
func TestPagesOfDecisionsTogetherAreAllOfThemNewestFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := New(Config{Round: time.Second})
		var want []string
		for n := range rapid.IntRange(1, 60).Draw(t, "plans") {
			p := at(n)
			for r := range rapid.IntRange(0, 3).Draw(t, "resources") {
				a := at(n, "shop").Actions[0]
				a.Resource = fmt.Sprint("r", r)
				p.Actions = append(p.Actions, a)
				want = append(want, p.ID()+a.Resource)
			}
			v.Observe(p)
		}
		if len(want) == 0 {
			return
		}
		slices.Reverse(want)
		limit := rapid.IntRange(1, 9).Draw(t, "limit")
		var got []string
		for before := ""; ; {
			page, ok, err := v.Decisions("shop", before, limit, noon)
			if err != nil || !ok || page.Total != len(want) || len(page.Decisions) > limit+2 || len(page.Decisions) == 0 {
				t.Fatalf("%v, %v, %d of %d", ok, err, len(page.Decisions), page.Total)
			}
			for _, d := range page.Decisions {
				got = append(got, d.Plan+d.Action.Resource)
			}
			if before = page.Next; before == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v\nwant %v", got, want)
		}
	})
}
