package planner_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/fair"
	"github.com/trimtab/trimtab/planner/guard"
)

// lender is a guarded planner whose plans are carried out at once on a host
// that keeps the contract.
type lender struct {
	t testing.TB
	*planner.Planner
	host *host
	now  time.Time
}

func lend(t testing.TB) *lender {
	t.Helper()
	cfg := pool(fair.NJCPolicy{}, trimtab.Act)
	cfg.Guard, cfg.Round, cfg.Lease, cfg.StaleAfter, cfg.Step = guard.Config{}, 10*time.Minute, time.Hour, time.Hour, 30
	p, err := planner.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l := &lender{t, p, &host{name: "h1", names: []string{"a", "b", "c"}, now: map[string]trimtab.Amount{
		"a": trimtab.Units(1), "b": trimtab.Units(2), "c": trimtab.Units(2)}}, t0}
	l.take(&trimtab.Leader{Pool: "p", Epoch: 1})
	l.take(l.host.holding(l.now))
	told(p, l.now, map[string]float64{"a": 1, "b": 2, "c": 2})
	l.take(nil)
	l.take(l.host.holding(l.now))
	return l
}

// take hands one value to the planner, carries out what it plans, and returns
// the plans.
func (l *lender) take(v trimtab.Value) (out []*trimtab.Plan) {
	l.t.Helper()
	queue := l.Step(l.now, v)
	for len(queue) > 0 {
		plan := queue[0].(*trimtab.Plan)
		out = append(out, plan)
		if err := plan.Validate(); err != nil {
			l.t.Fatal(err)
		}
		queue = append(queue[1:], l.Step(l.now, l.host.carryOut(plan, l.now, func(string) (bool, bool) { return false, true }))...)
	}
	return out
}

// after lets time pass, renews the estimates with what the workloads need, and
// sends an alert on a.
func (l *lender) after(d time.Duration, need float64, firing bool) []*trimtab.Plan {
	l.t.Helper()
	l.now = l.now.Add(d)
	l.take(l.host.holding(l.now))
	told(l.Planner, l.now, map[string]float64{"a": need, "b": 2, "c": 2})
	return l.take(slow(l.now, "f1", firing))
}

func slow(now time.Time, fingerprint string, firing bool) *trimtab.Alert {
	return &trimtab.Alert{Workload: "a", Name: "Slow", Group: "g", Fingerprint: fingerprint, Firing: firing, Time: now}
}

func (l *lender) a() float64 { return l.host.now["a"].Value }

func TestWhatWasLentForAnAlertIsGivenBackUnderTheGuardWhenItIsOver(t *testing.T) {
	l := lend(t)
	before := l.a()
	plan := l.after(time.Second, 3, true)
	high := l.a()
	if len(plan) == 0 || high <= before || !strings.Contains(plan[0].Cause.String(), "alert Slow of a (") {
		t.Fatalf("from %v to %v: %+v", before, high, plan)
	}
	if why := plan[len(plan)-1].Actions[0].Why.Summary; !strings.HasSuffix(why, "; alert Slow fires") {
		t.Errorf("reason %q", why)
	}
	// Without the end of the alert the window holds it, however little it needs.
	l.now = l.now.Add(15 * time.Second)
	told(l.Planner, l.now, map[string]float64{"a": 0.5, "b": 2, "c": 2})
	l.take(&trimtab.Command{Pool: "p", Verb: trimtab.Round, Time: l.now})
	if l.a() != high {
		t.Fatalf("lowered to %v while the alert fires", l.a())
	}
	plan = l.after(15*time.Second, 0.5, false)
	if len(plan) == 0 || !strings.Contains(plan[0].Cause.String(), "alert Slow of a is over (") {
		t.Fatalf("plans: %+v", plan)
	}
	if l.a() >= high || l.a() < before-1e-9 {
		t.Errorf("from %v to %v: want no less than the %v before", high, l.a(), before)
	}
	if why := plan[0].Actions[0].Why.Summary; !strings.HasSuffix(why, "; it was lent for alert Slow, which is over") {
		t.Errorf("reason %q", why)
	}
}

func TestALoanIsGivenBackDownToWhatWasThereBefore(t *testing.T) {
	g := guard.Config{Fall: 1, Lowered: 1, Moved: 1}.Apply(guard.Round{Now: t0, Unit: 0.1, Capacity: 8, Workloads: []guard.Workload{{
		Name: "a", Now: 4, Target: 1, Want: 1, Fresh: true, Lent: 1.25, Last: guard.Move{Direction: 1, At: t0}}}})
	if d := g[0].Set - 2.8; d > 1e-9 || d < -1e-9 {
		t.Errorf("set %v, want 2.8: what was lent, in whole units", g[0].Set)
	}
}

func TestAnAlertThatFlapsDoesNotMakeTheAllocationFlap(t *testing.T) {
	l := lend(t)
	down, last := 0, l.a()
	rising := true
	for i := range 20 { // 280 s
		need := 3.0
		if i%2 == 1 {
			need = 0.5
		}
		l.after(14*time.Second, need, i%2 == 0)
		if l.a() < last && rising {
			down++
		}
		if l.a() != last {
			rising = l.a() > last
		}
		last = l.a()
	}
	if down != 1 {
		t.Errorf("%d falls after a rise in one window, want 1", down)
	}
}

func TestOnlyTheEndOfTheLastAlertStartsARound(t *testing.T) {
	l := lend(t)
	l.after(time.Second, 1, true)
	l.now = l.now.Add(11 * time.Second)
	l.take(slow(l.now, "f2", true))
	for i, c := range []struct {
		fingerprint string
		want        int
	}{{"unknown", 0}, {"f1", 0}, {"f1", 0}, {"f2", 1}, {"f2", 0}} {
		l.now = l.now.Add(11 * time.Second)
		if got := l.take(slow(l.now, c.fingerprint, false)); len(got) != c.want {
			t.Errorf("end %d, of %s: %d plans, want %d", i, c.fingerprint, len(got), c.want)
		}
	}
}

func TestAnAlertInsideAGapGetsItsRoundAtTheEndOfIt(t *testing.T) {
	l := lend(t)
	l.after(time.Second, 1, true)
	if got := l.after(2*time.Second, 3, false); len(got) != 0 {
		t.Fatalf("a second round in the gap: %+v", got)
	}
	l.now = l.now.Add(7900 * time.Millisecond)
	if got := l.take(nil); len(got) != 0 {
		t.Fatalf("before the end of the gap: %+v", got)
	}
	l.now = l.now.Add(100 * time.Millisecond)
	if got := l.take(nil); len(got) == 0 || !strings.Contains(got[0].Cause.String(), "alert Slow of a is over") {
		t.Fatalf("at the end of the gap: %+v", got)
	}
	if got := l.take(nil); len(got) != 0 {
		t.Errorf("and again: %+v", got)
	}
	if got := l.after(9*time.Second, 1, true); len(got) != 0 {
		t.Errorf("the round at the end of a gap begins the next: %+v", got)
	}
}

// S4: at most one round per gap and group, whatever comes.
func TestAlertsStartAtMostOneRoundPerGapAndGroup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := pool(fair.NJCPolicy{}, trimtab.Recommend)
		cfg.Round, cfg.Lease = 10*time.Minute, time.Hour
		p, err := planner.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		p.Step(t0, &trimtab.Leader{Pool: "p", Epoch: 1})
		p.Step(t0, nil)
		now, last := t0, map[string]time.Time{}
		for range rapid.IntRange(1, 60).Draw(t, "alerts") {
			now = now.Add(time.Duration(rapid.IntRange(0, 6000).Draw(t, "ms")) * time.Millisecond)
			var in trimtab.Value
			if a := slow(now, rapid.SampledFrom([]string{"f1", "f2"}).Draw(t, "fingerprint"), rapid.Bool().Draw(t, "firing")); rapid.IntRange(0, 2).Draw(t, "tick") > 0 {
				a.Group = rapid.SampledFrom([]string{"g1", "g2"}).Draw(t, "group")
				in = a
			}
			for _, plan := range plans(p.Step(now, in)) {
				for _, g := range []string{"g1", "g2"} {
					if !strings.Contains(plan.Cause.String(), "(group "+g) {
						continue
					}
					if before, ok := last[g]; ok && now.Sub(before) < 10*time.Second {
						t.Fatalf("two rounds for %s in %v", g, now.Sub(before))
					}
					last[g] = now
				}
			}
		}
	})
}

// S4: nothing in an alert but which workload it is on changes what is planned.
func TestAnAlertAsksAndNeverDictates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		decide := func(a *trimtab.Alert) string {
			cfg := pool(fair.NJCPolicy{}, trimtab.Act)
			p, err := planner.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			p.Step(t0, &trimtab.Leader{Pool: "p", Epoch: 1})
			p.Step(t0, holding(t0, 1, 0, equal))
			told(p, t0, skewed)
			out := ""
			for _, plan := range plans(p.Step(t0, a)) {
				for _, x := range plan.Actions {
					out += fmt.Sprintln(x.Workload, x.Expect, x.Set, x.Mode, x.Why.Binding)
				}
			}
			return out
		}
		text := rapid.String()
		hostile := &trimtab.Alert{Workload: "a", Name: text.Draw(t, "name"), Group: text.Draw(t, "group"), Fingerprint: text.Draw(t, "fingerprint"),
			Firing: true, Time: t0, Started: t0.Add(time.Duration(rapid.Int64().Draw(t, "started"))), Summary: text.Draw(t, "summary")}
		if d := cmp.Diff(decide(slow(t0, "f1", true)), decide(hostile)); d != "" {
			t.Fatal(d)
		}
	})
}

func TestALoanOutlivesThePlanner(t *testing.T) {
	l := lend(t)
	l.after(time.Second, 3, true)
	high := l.a()
	old := l.Planner
	l.Planner = lend(t).Planner
	for name, b := range old.Snapshot() {
		if err := l.Restore(name, b); err != nil {
			t.Fatal(err)
		}
	}
	l.take(&trimtab.Leader{Pool: "p", Epoch: 2})
	l.after(15*time.Second, 0.5, false)
	if l.a() >= high {
		t.Errorf("still %v of %v", l.a(), high)
	}
	for _, bad := range []string{`{"a":{"unit":0.1,"loan":{"base":1}}}`} {
		if l.Restore("planner", []byte(bad)) == nil {
			t.Errorf("accepts %s", bad)
		}
	}
}
