package planner_test

import (
	"math"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/envelope"
	"github.com/trimtab/trimtab/planner/fair"
	"github.com/trimtab/trimtab/planner/guard"
)

// fastLender is a lender whose plans have envelopes.
func fastLender(t testing.TB, f *envelope.Rules) *lender {
	t.Helper()
	cfg := pool(fair.NJCPolicy{}, trimtab.Act)
	cfg.Guard, cfg.Round, cfg.Lease, cfg.StaleAfter, cfg.Step, cfg.Fast = guard.Config{}, 10*time.Second, time.Hour, time.Hour, 30, f
	for i := range cfg.Workloads {
		cfg.Workloads[i].Components = []string{cfg.Workloads[i].Name}
	}
	p, err := planner.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &lender{t, p, &host{name: "h1", names: []string{"a", "b", "c"}, now: map[string]trimtab.Amount{
		"a": trimtab.Units(1), "b": trimtab.Units(2), "c": trimtab.Units(2)}}, t0}
}

// begin has it lead and plan once.
func (l *lender) begin(h *trimtab.Holding) []*trimtab.Plan {
	l.take(&trimtab.Leader{Pool: "p", Epoch: 1})
	l.take(h)
	told(l.Planner, l.now, map[string]float64{"a": 1, "b": 2, "c": 2})
	return l.take(nil)
}

func TestEveryKnobThatActsGetsAnEnvelopeAndTheHostWhatItMayLend(t *testing.T) {
	l := fastLender(t, &envelope.Rules{Burst: 1})
	plans := l.begin(l.host.holding(l.now))
	if len(plans) == 0 {
		t.Fatal("no plan")
	}
	has := map[string]*trimtab.Envelope{}
	for _, p := range plans {
		for _, e := range p.Envelopes {
			if e.Envelope.Target != e.At.Value {
				t.Errorf("%s rests at %v, its envelope at %v", e.Workload, e.At, e.Envelope.Target)
			}
			has[e.Workload] = e.Envelope
		}
		sum := 0.0
		for _, a := range p.Actions {
			if a.Envelope == nil || a.Envelope.Target != a.Set.Value {
				t.Fatalf("the action on %s has the envelope %+v", a.Workload, a.Envelope)
			}
			has[a.Workload] = a.Envelope
		}
		for _, v := range l.host.now {
			sum += v.Value
		}
		if p.Lendable["h1"] < 0 || p.Lendable["h1"] > p.Capacity-sum+1e-9 {
			t.Errorf("%v may be lent of %v, of which %v is set", p.Lendable, p.Capacity, sum)
		}
	}
	for _, name := range l.host.names {
		e := has[name]
		if e == nil || !e.Lend || !e.Borrow || e.Floor > 0.31*e.Target || e.Ceiling > 4*e.Target+1e-9 || e.Burst != e.Target || e.Budget <= 0 {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func TestAnEnvelopeThatAHostFollowsIsNotSentAgain(t *testing.T) {
	l := fastLender(t, &envelope.Rules{Burst: 1})
	within := map[string]*trimtab.Envelope{}
	for _, p := range l.begin(l.host.holding(l.now)) {
		for _, e := range p.Envelopes {
			within[e.Workload] = e.Envelope
		}
		for _, a := range p.Actions {
			within[a.Workload] = a.Envelope
		}
	}
	for range 3 {
		l.now = l.now.Add(11 * time.Second)
		h := l.host.holding(l.now)
		for i := range h.Targets {
			h.Targets[i].Fast = &trimtab.Fast{Envelope: *within[h.Targets[i].Workload], Set: 1}
		}
		l.take(h)
		for _, p := range l.take(nil) {
			for _, e := range p.Envelopes {
				if w := within[e.Workload]; math.Abs(w.Target-e.Envelope.Target) < 1e-9 {
					t.Errorf("%s gets %+v, and follows %+v", e.Workload, e.Envelope, w)
				}
				within[e.Workload] = e.Envelope
			}
			for _, a := range p.Actions {
				within[a.Workload] = a.Envelope
			}
		}
	}
}

func TestWithoutTheFastLoopPlansHaveNoEnvelopesAndEndThoseThatAreThere(t *testing.T) {
	l := fastLender(t, nil)
	h := l.host.holding(l.now)
	h.Targets[0].Fast = &trimtab.Fast{Envelope: trimtab.Envelope{Floor: 0.3, Target: 1, Ceiling: 4, Lend: true}, Set: 1}
	ended := false
	for _, p := range l.begin(h) {
		for _, a := range p.Actions {
			ended = ended || a.Workload == "a"
			if a.Envelope != nil {
				t.Errorf("%+v", a)
			}
		}
		for _, e := range p.Envelopes {
			ended = ended || e.Workload == "a" && e.Envelope == nil
			if e.Envelope != nil || e.Workload != "a" {
				t.Errorf("%+v", e)
			}
		}
		if p.Lendable != nil {
			t.Errorf("%v", p.Lendable)
		}
	}
	if !ended {
		t.Error("the envelope of a stays")
	}
}

func TestALoanThatLastsStartsOneRoundHoweverOftenItIsHeardOf(t *testing.T) {
	l := fastLender(t, &envelope.Rules{})
	l.begin(l.host.holding(l.now))
	l.now = l.now.Add(time.Second)
	rounds := 0
	for range 5 {
		l.now = l.now.Add(100 * time.Millisecond)
		h := l.host.holding(l.now)
		h.Targets[0].Fast = &trimtab.Fast{Envelope: trimtab.Envelope{Floor: 0.3, Target: 1, Ceiling: 4}, Set: 3,
			Ask: &trimtab.FastAsk{Number: 1, Cause: "loan lasts", Lasts: 5, Want: 3}}
		for _, p := range l.take(h) {
			if p.Cause.Kind != codes.CauseLoan || p.Cause.Workload != "a" || p.Cause.Ref != "loan lasts" {
				t.Errorf("%+v", p.Cause)
			}
			if p.Step == 1 {
				rounds++
			}
		}
	}
	if rounds != 1 {
		t.Errorf("%d rounds", rounds)
	}
}

// within are the newest envelopes of plans.
func within(to map[string]*trimtab.Envelope, plans []*trimtab.Plan) {
	for _, p := range plans {
		for _, e := range p.Envelopes {
			to[e.Workload] = e.Envelope
		}
		for _, a := range p.Actions {
			to[a.Workload] = a.Envelope
		}
	}
}

// follow lets a round pass on a host that follows its envelopes, with loans that gave so
// much of what was granted.
func (l *lender) follow(has map[string]*trimtab.Envelope, borrowed float64) {
	l.now = l.now.Add(11 * time.Second)
	h := l.host.holding(l.now)
	for i := range h.Targets {
		if e := has[h.Targets[i].Workload]; e != nil {
			h.Targets[i].Fast = &trimtab.Fast{Envelope: *e, Set: e.Target, Granted: 100, Borrowed: 100 * borrowed}
		}
	}
	within(has, l.take(h))
	for name, full := range map[string]float64{"a": 1, "b": 2, "c": 2} {
		e, all := estimate(name, l.now, ramp(full)), 1.0
		e.Performance = &all
		within(has, l.take(e))
	}
	within(has, l.take(nil))
}

func TestContributionsDivideWhatTheSLOLeavesAmongTheBudgetsOfStalls(t *testing.T) {
	l := fastLender(t, &envelope.Rules{})
	tail := &colocation.Contributions{Workload: "a", Time: l.now, SLO: 0.2, Quantile: 0.99, Levels: 2, Servpods: []colocation.Servpod{
		{Component: "a", Sojourn: 0.02, Contribution: 3}, {Component: "b", Sojourn: 0.02, Contribution: 1}, {Component: "elsewhere"}}}
	l.take(tail)
	has := map[string]*trimtab.Envelope{}
	within(has, l.begin(l.host.holding(l.now)))
	// .16 s are left, in parts of (1 - 3/4)/2, (1 - 1/4)/2 and 1/2.
	for name, want := range map[string]float64{"a": 0.02, "b": 0.06, "c": 0.05} {
		if has[name] == nil || math.Abs(float64(has[name].Budget)-want) > 1e-9 {
			t.Errorf("%s: %+v, want a budget of %v s", name, has[name], want)
		}
	}
	other := *tail // another workload's requests leave b less
	other.Workload, other.SLO = "c", 0.08
	l.take(&other)
	was := has["b"].Budget
	l.follow(has, 0)
	if got := float64(has["b"].Budget / was); got > 0.3 || got < 0.2 {
		t.Errorf("where .015 s are left instead of .06 the budget is %v of what it was", got)
	}
	other.SLO = 1e-9
	l.take(&other)
	if l.follow(has, 0); !(has["b"].Budget >= 0.0099) {
		t.Errorf("where nothing is left the budget is %v s", has["b"].Budget)
	}
}
