package planner_test

import (
	"maps"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/fair"
)

// link is a fleet whose hosts can be cut off, with leases and clocks of their own.
type link struct {
	*fleet
	planner  *planner.Planner
	lease    time.Duration
	baseline map[trimtab.KnobID]trimtab.Amount
	epochs   map[string]uint64
	until    map[string]time.Time     // when the lease of a host ends; none: it is at its baselines
	skew     map[string]time.Duration // by how much a host's clock is ahead
	cut      func(host string, t time.Time) bool
	// moves are the directions in which each workload was moved.
	moves map[string][]int
	// fell is the greatest part of what it had that a plan took from a workload.
	fell map[string]float64
}

// linked is a pool over three hosts: what h1 is below its baseline it has lent to b
// and c, which need it.
func linked(t *testing.T) *link {
	t.Helper()
	cfg := guarded(fair.NJCPolicy{})
	cfg.Lease = 30 * time.Second
	l := &link{fleet: threeHosts(1, 3, 3), lease: cfg.Lease, baseline: map[trimtab.KnobID]trimtab.Amount{}, epochs: map[string]uint64{}, until: map[string]time.Time{},
		skew: map[string]time.Duration{}, cut: func(string, time.Time) bool { return false }, moves: map[string][]int{}, fell: map[string]float64{}}
	cfg.Capacity = 7
	for id := range l.now {
		l.baseline[id] = trimtab.Units(2)
		l.until[id.Host] = t0.Add(cfg.Lease)
	}
	l.planner = leads(t, cfg)
	return l
}

// second plays one second.
func (l *link) second(t time.Time) {
	for _, host := range l.hosts() {
		if end, on := l.until[host]; on && !t.Before(end) {
			delete(l.until, host)
			for id := range l.now {
				if id.Host == host {
					l.now[id] = l.baseline[id]
				}
			}
		}
		if l.cut(host, t) {
			continue
		}
		h := l.holding(host, t.Add(l.skew[host]))
		h.Epoch = max(1, l.epochs[host])
		if end, on := l.until[host]; on {
			h.LeaseLeft = trimtab.SecondsOf(end.Sub(t))
		}
		for i := range h.Targets {
			h.Targets[i].Baseline = l.baseline[h.Targets[i].KnobID]
		}
		l.obey(t, l.planner.Step(t, h))
	}
	told(l.planner, t, map[string]float64{"a": 1, "b": 3.3, "c": 3.3})
	l.obey(t, l.planner.Step(t, nil))
}

// obey carries out plans on the hosts that hear them.
func (l *link) obey(t time.Time, values []trimtab.Value) {
	for out := plans(values); len(out) > 0; out = out[1:] {
		for _, host := range l.hosts() {
			if l.cut(host, t) {
				continue
			}
			before := maps.Clone(l.now)
			o := l.carryOut(out[0], host, t)
			o.Time = t.Add(l.skew[host])
			l.epochs[host], l.until[host] = out[0].Epoch, t.Add(l.lease)
			for id, v := range l.now {
				switch was := before[id]; {
				case was.Less(v):
					l.moves[id.Workload] = append(l.moves[id.Workload], 1)
				case v.Less(was):
					l.moves[id.Workload] = append(l.moves[id.Workload], -1)
					l.fell[id.Workload] = max(l.fell[id.Workload], 1-v.Value/was.Value)
				}
			}
			out = append(out, plans(l.planner.Step(t, o))...)
		}
	}
}

// reversals counts the falls that follow a rise.
func (l *link) reversals(workload string) (n int) {
	last := 0
	for _, d := range l.moves[workload] {
		if d < 0 && last > 0 {
			n++
		}
		last = d
	}
	return n
}

// play plays the seconds from one to another.
func (l *link) play(from, to int) {
	for s := from; s < to; s++ {
		l.second(t0.Add(time.Duration(s) * time.Second))
	}
}

// Cuts of seconds move nobody. Each of the longer ones calls for what the host has
// lent; what comes back is lent again once, and then not before the host was steady
// for the guard's window.
func TestAHostThatFlapsMovesNobodyToAndFroMoreThanOnce(t *testing.T) {
	for _, c := range []struct{ cut, back, falls int }{{4, 4, 0}, {6, 3, 0}, {10, 5, 0}, {15, 10, 2}, {20, 10, 2}, {40, 10, 2}, {40, 40, 2}} {
		l := linked(t)
		flaps := 10 * (c.cut + c.back)
		l.cut = func(host string, t time.Time) bool {
			s := int(t.Sub(t0)/time.Second) - 60
			return host == "h1" && s > 0 && s < flaps && s%(c.cut+c.back) < c.cut
		}
		l.play(0, 60+flaps)
		for _, w := range []string{"b", "c"} {
			if falls := l.reversals(w) + min(1, len(l.moves[w])); falls != c.falls || l.fell[w] > 0.2 {
				t.Errorf("%s: %d s cut and %d s back, 10 times: moves %v, want %d falls; at most %v at once", w, c.cut, c.back, l.moves[w], c.falls, l.fell[w])
			}
		}
		l.play(60+flaps, 60+flaps+400)
		if b := l.now[at("h2", "b", "")].Value; b < 3 {
			t.Errorf("%d s cut and %d s back, 10 times: steady for 400 s, b has %v, want 3 as before", c.cut, c.back, b)
		}
	}
}

// By the clock of h1 its lease has ended long ago, as far as a new leader can tell
// from what it says: what it has lent is called for once, and lent again when it has
// accepted the first plan.
func TestAHostWhoseClockDiffersByMinutesCostsOneRecallAtTheBeginOfATerm(t *testing.T) {
	for skew, falls := range map[time.Duration]int{-5 * time.Minute: 1, 5 * time.Minute: 0} {
		l := linked(t)
		l.skew["h1"] = skew
		l.play(0, 120)
		if len(l.moves) > 0 {
			t.Errorf("a clock that differs by %v moves %v while one planner leads", skew, l.moves)
		}
		l.planner.Step(t0.Add(120*time.Second), &trimtab.Leader{Pool: "p", Epoch: 2})
		l.play(120, 600)
		for _, w := range []string{"a", "b", "c"} {
			if len(l.moves[w]) > 2*falls || l.fell[w] > 0.2 {
				t.Errorf("a clock that differs by %v moves %s: %v, at most %v at once", skew, w, l.moves[w], l.fell[w])
			}
		}
		for id, want := range map[trimtab.KnobID]float64{at("h1", "a", ""): 1, at("h2", "b", ""): 3, at("h3", "c", ""): 3} {
			if got := l.now[id].Value; got != want {
				t.Errorf("a clock that differs by %v: after minutes %s has %v, want %v as before", skew, id.Workload, got, want)
			}
		}
	}
}

// What it held is over, and it is at its baseline: the pool goes on from there.
func TestAHostThatComesBackAfterADayMovesNobodyBeyondTheGuard(t *testing.T) {
	l := linked(t)
	day := 24 * 60 * 60
	l.cut = func(host string, t time.Time) bool {
		s := int(t.Sub(t0) / time.Second)
		return host == "h1" && s > 60 && s < day
	}
	l.play(0, 200)
	for w, moves := range l.moves {
		if len(moves) > 1 || l.fell[w] > 0.2 {
			t.Errorf("while it is away %s is moved %v, by %v at once", w, moves, l.fell[w])
		}
	}
	l.moves, l.fell = map[string][]int{}, map[string]float64{}
	l.play(day-60, day+120)
	for _, w := range []string{"b", "c"} {
		if l.reversals(w) > 0 || l.fell[w] > 0.2 {
			t.Errorf("when it is back %s is moved %v, by %v at once", w, l.moves[w], l.fell[w])
		}
	}
	if held := l.held(""); held > 7+1e-9 {
		t.Errorf("the pool gives %v of 7", held)
	}
}

// Each says what it finds, by turns: on that ground its workloads are neither raised
// nor lowered, and nobody else is lowered for it.
func TestWhileTwoAgentsSayThatTheyAreOneHostItsWorkloadsAreHeldAndTheOthersGoOn(t *testing.T) {
	cfg := guarded(fair.NJCPolicy{})
	p, f := leads(t, cfg), threeHosts(2, 3, 1)
	needs := map[string]float64{"a": 3.2, "b": 3.2, "c": 3.2}
	var last *trimtab.Plan
	for s := range 60 {
		now := t0.Add(time.Duration(s) * time.Second)
		for _, host := range f.hosts() {
			h := f.holding(host, now)
			if host == "h1" {
				if h.Life = 1 + uint64(s%2); h.Life == 2 {
					h.Targets[0].Now = trimtab.Units(0.5)
				}
			}
			p.Step(now, h)
		}
		told(p, now, needs)
		out := plans(p.Step(now, nil))
		for len(out) > 0 {
			last = out[0]
			for _, a := range last.Actions {
				if s > 5 && a.Host == "h1" {
					t.Fatalf("second %d: %s", s, a.Why.Summary)
				}
				if a.Set.Less(a.Expect) {
					t.Fatalf("second %d, %s on %s is lowered: %s", s, a.Workload, a.Host, a.Why.Summary)
				}
			}
			var next []*trimtab.Plan
			for _, host := range f.hosts() {
				next = append(next, plans(p.Step(now, f.carryOut(last, host, now)))...)
			}
			out = append(out[1:], next...)
		}
	}
	if held := last.Held["a"]; held.Code != codes.HeldDuplicate || held.Text != "two agents say that they are host h1" {
		t.Errorf("a is held: %+v", held)
	}
	if c := f.now[at("h3", "c", "")].Value; c < 2.9 {
		t.Errorf("c on another host has %v, needs 3.2", c)
	}
	counted := 0.0
	p.Counts(func(name string, value float64, _ ...string) {
		if name == "trimtab_planner_twin_holdings_total" {
			counted = value
		}
	})
	if counted < 50 {
		t.Errorf("%v holdings were counted, want about one a second", counted)
	}
}
