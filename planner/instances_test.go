package planner_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/fair"
	"github.com/trimtab/trimtab/planner/guard"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/welfare"
)

// fleet is hosts with instances of workloads, which carry out what they are told.
type fleet struct {
	capacity map[string]float64 // of the hosts that say
	now      map[trimtab.KnobID]trimtab.Amount
	accepted map[string]uint64 // the last plan, by host
	above    map[trimtab.KnobID]*trimtab.KnobStatus
	// share is how many knobs a plan may lower on a host, 0: all, and refused counts those
	// that were not.
	share, refused int
	// weights: what it has are shares by weight.
	weights bool
	// baseline is what the site set, of those that are shares and room on a node, too.
	baseline map[trimtab.KnobID]trimtab.Amount
}

func at(host, workload, instance string) trimtab.KnobID {
	return trimtab.KnobID{Pool: "p", Host: host, Workload: workload, Instance: instance, Resource: "cpu"}
}

func (f *fleet) hosts() []string {
	seen := map[string]bool{}
	for id := range f.now {
		seen[id.Host] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

func (f *fleet) holding(host string, t time.Time) *trimtab.Holding {
	h := &trimtab.Holding{Pool: "p", Host: host, Time: t, Epoch: 1, Sequence: f.accepted[host]}
	if c, ok := f.capacity[host]; ok {
		h.Capacity = map[string]float64{"cpu": c}
	}
	for _, id := range slices.SortedFunc(maps.Keys(f.now), trimtab.KnobID.Compare) {
		if id.Host == host {
			h.Targets = append(h.Targets, trimtab.KnobState{KnobID: id, Knob: "test", Now: f.now[id], Baseline: f.now[id], Since: t, Min: 0.1, Max: 8, Status: f.above[id], Shared: f.weights})
			if found, ok := f.baseline[id]; ok {
				k := &h.Targets[len(h.Targets)-1]
				k.Shared, k.Reserves, k.Baseline = true, true, found
			}
		}
	}
	return h
}

// tell tells the planner what all hosts hold.
func (f *fleet) tell(p *planner.Planner, t time.Time) {
	for _, host := range f.hosts() {
		p.Step(t, f.holding(host, t))
	}
}

// carryOut does what a plan says on one host.
func (f *fleet) carryOut(plan *trimtab.Plan, host string, t time.Time) *trimtab.Outcome {
	f.accepted[host] = plan.Sequence
	lowered := 0
	o := &trimtab.Outcome{Pool: "p", Host: host, Epoch: plan.Epoch, Sequence: plan.Sequence, Step: plan.Step, Time: t}
	for _, a := range plan.Actions {
		if a.Host != host || a.Mode != trimtab.Act {
			continue
		}
		before, there := f.now[a.KnobID]
		if !there {
			continue
		}
		r := trimtab.Result{KnobID: a.KnobID, Status: trimtab.Refused, Before: before, Asked: a.Set, Found: before, Known: true}
		if a.Set.Less(before) && f.share > 0 {
			if lowered++; lowered > f.share {
				f.refused++
				o.Results = append(o.Results, r)
				continue
			}
		}
		if before == a.Expect {
			r.Status, r.Found, f.now[a.KnobID] = trimtab.Written, a.Set, a.Set
		}
		o.Results = append(o.Results, r)
	}
	return o
}

// held is what the knobs of a host give, of all hosts without a name; an unlimited
// one counts as nothing, since it is not of trimtab's doing.
func (f *fleet) held(host string) float64 {
	sum := 0.0
	for id, v := range f.now {
		if host == "" || id.Host == host {
			sum += v.Value
		}
	}
	return sum
}

// settle runs rounds in which everything arrives.
func (f *fleet) settle(p *planner.Planner, from time.Time, rounds int, full map[string]float64) (last *trimtab.Plan) {
	for i := range rounds {
		t := from.Add(time.Duration(i) * time.Second)
		f.tell(p, t)
		told(p, t, full)
		out := plans(p.Step(t, nil))
		for len(out) > 0 {
			last = out[0]
			var next []*trimtab.Plan
			for _, host := range f.hosts() {
				next = append(next, plans(p.Step(t, f.carryOut(last, host, t)))...)
			}
			out = append(out[1:], next...)
		}
	}
	return last
}

func newFleet(now map[trimtab.KnobID]trimtab.Amount, capacity map[string]float64) *fleet {
	return &fleet{capacity: capacity, now: now, accepted: map[string]uint64{}}
}

func leads(t interface{ Fatal(...any) }, cfg planner.Config) *planner.Planner {
	p, err := planner.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p.Step(t0, &trimtab.Leader{Pool: "p", Epoch: 1})
	return p
}

func TestAWorkloadThatManyInstancesServeGetsTheTargetInEqualParts(t *testing.T) {
	f := newFleet(map[trimtab.KnobID]trimtab.Amount{
		at("h1", "a", "1"): trimtab.Units(2), at("h1", "a", "2"): trimtab.Units(2), at("h2", "a", "1"): trimtab.Units(2),
		at("h2", "b", ""): trimtab.Units(1), at("h2", "c", ""): trimtab.Units(1),
	}, nil)
	p := leads(t, pool(fair.NJCPolicy{}, trimtab.Act))
	f.settle(p, t0, 30, map[string]float64{"a": 3, "b": 2, "c": 2})
	one, two, three := f.now[at("h1", "a", "1")], f.now[at("h1", "a", "2")], f.now[at("h2", "a", "1")]
	if one != two || two != three {
		t.Errorf("the instances of a have %v, %v and %v", one, two, three)
	}
	if b := f.now[at("h2", "b", "")]; b.Value < 1.7 {
		t.Errorf("b has %v, though a needs half of what it had", b)
	}
}

func TestInstancesThatTheirHostRefusedToLowerComeDownLater(t *testing.T) {
	f := newFleet(map[trimtab.KnobID]trimtab.Amount{}, nil)
	for i := range 4 {
		f.now[at("h", "a", fmt.Sprint(i))] = trimtab.Unlimited()
	}
	f.share = 2 // half of the host's knobs at a time
	p := leads(t, pool(fair.NJCPolicy{}, trimtab.Act))
	f.settle(p, t0, 40, map[string]float64{"a": 3})
	part := f.now[at("h", "a", "0")]
	for id, v := range f.now {
		if v.Unlimited || v != part || v.Value*4 > 8 {
			t.Errorf("instance %s has %v, the first %v of a pool of 8", id.Instance, v, part)
		}
	}
	if f.refused == 0 {
		t.Error("nothing was refused")
	}
	refused := f.refused
	if last := f.settle(p, t0.Add(40*time.Second), 5, map[string]float64{"a": 3}); len(last.Actions) > 0 || f.refused != refused {
		t.Errorf("once all have their part: %v", last.Actions)
	}
}

func TestAnInstanceWithTwiceItsPartComesDown(t *testing.T) {
	f := newFleet(map[trimtab.KnobID]trimtab.Amount{at("h", "a", "1"): trimtab.Units(1), at("h", "a", "2"): trimtab.Units(4), at("h", "b", ""): trimtab.Units(1), at("h", "c", ""): trimtab.Units(1)}, nil)
	p := leads(t, pool(fair.NJCPolicy{}, trimtab.Act))
	f.settle(p, t0, 12, map[string]float64{"a": 2, "b": 1, "c": 1})
	if one, two := f.now[at("h", "a", "1")], f.now[at("h", "a", "2")]; two.Value > one.Value+0.1 {
		t.Errorf("the instances of a have %v and %v", one, two)
	}
	f = newFleet(map[trimtab.KnobID]trimtab.Amount{at("h", "a", "1"): trimtab.Units(1), at("h", "a", "2"): trimtab.Units(4), at("h", "b", ""): trimtab.Units(1)}, nil)
	f.settle(leads(t, pool(fair.NJCPolicy{}, trimtab.Act)), t0, 12, map[string]float64{"b": 1})
	if two := f.now[at("h", "a", "2")]; two.Value < 4 {
		t.Errorf("though nothing is known of a, an instance was lowered to %v", two)
	}
}

// The host had lowered them to half of what they had, and no further at once.
func TestInstancesWithTwiceTheirPartComeDownInAPoolThatIsOverItsCapacity(t *testing.T) {
	f := newFleet(map[trimtab.KnobID]trimtab.Amount{at("h", "a", "1"): trimtab.Units(2), at("h", "a", "2"): trimtab.Units(2),
		at("h", "a", "3"): trimtab.Units(4), at("h", "a", "4"): trimtab.Units(4)}, nil)
	c := pool(fair.NJCPolicy{}, trimtab.Act)
	c.Workloads, c.Guard = c.Workloads[1:2], guard.Config{}
	f.settle(leads(t, c), t0, 12, map[string]float64{"a": 8})
	for id, has := range f.now {
		if has.Value > 2.1 {
			t.Errorf("instance %s has %v of a pool of 8", id.Instance, has)
		}
	}
}

func TestAnInstanceThatServesMoreGetsMore(t *testing.T) {
	f := newFleet(map[trimtab.KnobID]trimtab.Amount{
		at("h1", "a", "1"): trimtab.Units(3), at("h2", "a", "1"): trimtab.Units(3),
		at("h1", "b", ""): trimtab.Units(1), at("h2", "c", ""): trimtab.Units(1),
	}, nil)
	p := leads(t, pool(fair.NJCPolicy{}, trimtab.Act))
	f.tell(p, t0)
	told(p, t0, map[string]float64{"b": 2, "c": 2})
	e := estimate("a", t0, ramp(3))
	e.Shares = []trimtab.LoadShare{{Host: "h1", Instance: "1", Share: 0.75}, {Host: "h2", Instance: "1", Share: 0.25}}
	p.Step(t0, e)
	got := map[string]float64{}
	for _, a := range one(t, p.Step(t0, nil)).Actions {
		if a.Workload == "a" {
			got[a.Host] = a.Set.Value
			if a.Of.From != 4 { // 3 of what serves three quarters of the load
				t.Errorf("it had %v in all", a.Of.From)
			}
		}
	}
	if want := map[string]float64{"h1": 2.25, "h2": 0.75}; fmt.Sprint(got) != fmt.Sprint(want) { // 3 in all: a step of 1
		t.Errorf("the instances are to have %v, want %v", got, want)
	}
}

func TestTheWholeOfAMoveIsToldWithEachOfItsInstances(t *testing.T) {
	f := newFleet(map[trimtab.KnobID]trimtab.Amount{
		at("h1", "a", "1"): trimtab.Units(2), at("h2", "a", "1"): trimtab.Units(2),
		at("h1", "b", ""): trimtab.Units(1), at("h2", "c", ""): trimtab.Units(1),
	}, nil)
	p := leads(t, pool(fair.NJCPolicy{}, trimtab.Act))
	f.tell(p, t0)
	told(p, t0, map[string]float64{"a": 2, "b": 3, "c": 3})
	seen := 0
	for _, a := range one(t, p.Step(t0, nil)).Actions {
		if a.Workload != "a" {
			continue
		}
		seen++
		if a.Of == nil || a.Of.Instances != 2 || a.Of.From != 4 || math.Abs(a.Of.To-2*a.Set.Value) > 1e-9 {
			t.Errorf("%s: %+v with %+v", a.KnobID.Name(), a.Set, a.Of)
		}
		if want := []string{"lowered from 4 to 3: njc wants", "from 2 to 1.5, as 1 of 2 instances"}[seen-1]; !strings.Contains(a.Why.Summary, want) {
			t.Errorf("said: %s, want %q", a.Why.Summary, want)
		}
	}
	if seen != 2 {
		t.Errorf("%d actions for 2 instances", seen)
	}
}

// a has one instance on a small host and one on a large one: the small host bounds
// it, what it cannot use goes to b.
func TestNoHostIsGivenMoreThanItHas(t *testing.T) {
	for _, objective := range []policy.Policy{fair.NJCPolicy{}, fair.ResourceFair{}, welfare.Egalitarian{}, welfare.Social{}} {
		f := newFleet(map[trimtab.KnobID]trimtab.Amount{
			at("small", "a", "1"): trimtab.Units(0.5), at("large", "a", "1"): trimtab.Units(0.5),
			at("large", "b", ""): trimtab.Units(0.5), at("small", "c", ""): trimtab.Units(0.5),
		}, map[string]float64{"small": 1.5, "large": 6})
		p := leads(t, pool(objective, trimtab.Act))
		f.settle(p, t0, 30, map[string]float64{"a": 6, "b": 6, "c": 0.4})
		if held := f.held("small"); held > 1.5+1e-9 || held < 1.3 {
			t.Errorf("%s: the small host gives %v of 1.5", objective.Name(), held)
		}
		if b := f.now[at("large", "b", "")].Value; b < 2 {
			t.Errorf("%s: b has %v on a host of 6 where a can use %v", objective.Name(), b, f.now[at("large", "a", "1")])
		}
	}
}

// The guard lets c give only a part of what it does not need: until then a's instance
// on the small host cannot have its part, and more for the other serves nothing.
func TestAnInstanceIsNotRaisedBeyondWhatTheHostOfAnotherAllows(t *testing.T) {
	f := newFleet(map[trimtab.KnobID]trimtab.Amount{
		at("small", "a", "1"): trimtab.Units(0.6), at("large", "a", "1"): trimtab.Units(0.6),
		at("small", "c", ""): trimtab.Units(0.9), at("large", "b", ""): trimtab.Units(0.5),
	}, map[string]float64{"small": 1.5, "large": 6})
	cfg := pool(fair.NJCPolicy{}, trimtab.Act)
	cfg.Guard = guard.Config{Fall: 0.2}
	p := leads(t, cfg)
	for i := range 5 {
		f.settle(p, t0.Add(time.Duration(i)*time.Second), 1, map[string]float64{"a": 6, "b": 0.4, "c": 0.2})
		one, two := f.now[at("small", "a", "1")], f.now[at("large", "a", "1")]
		if math.Abs(one.Value-two.Value) > 0.005 {
			t.Errorf("round %d: a has %v on the small host, and %v on the large one", i, one, two)
		}
	}
	if a := f.now[at("small", "a", "1")]; a.Value < 1 {
		t.Errorf("in the end a has %v there", a)
	}
}

func TestANewInstanceStartsWithTheMedianOfTheOthers(t *testing.T) {
	f := newFleet(map[trimtab.KnobID]trimtab.Amount{
		at("h1", "a", "1"): trimtab.Units(1), at("h1", "a", "2"): trimtab.Units(1.2), at("h2", "a", "3"): trimtab.Units(1.6),
	}, nil)
	cfg := pool(fair.NJCPolicy{}, trimtab.Act)
	p := leads(t, cfg)
	f.tell(p, t0) // nothing is learnt: nobody is moved
	f.settle(p, t0, 1, nil)
	f.now[at("h2", "a", "4")] = trimtab.Unlimited()
	last := f.settle(p, t0.Add(2*time.Second), 1, nil)
	if got := f.now[at("h2", "a", "4")]; math.Abs(got.Value-1.2) > 1e-9 || got.Unlimited {
		t.Errorf("the new instance has %v, want 1.2: %+v", got, last)
	}
	for id, want := range map[string]float64{"1": 1, "2": 1.2} {
		if got := f.now[at("h1", "a", id)]; got.Value != want {
			t.Errorf("instance %s has %v, want %v as before", id, got, want)
		}
	}
}

// One host alone is planned for as it always was, whatever it says it has.
func TestWhatOneHostSaysItHasChangesNothing(t *testing.T) {
	answer := func(capacity map[string]float64) []trimtab.Action {
		f := newFleet(map[trimtab.KnobID]trimtab.Amount{at("h1", "a", ""): trimtab.Units(4), at("h1", "b", ""): trimtab.Units(2), at("h1", "c", ""): trimtab.Units(2)}, capacity)
		p := leads(t, pool(fair.NJCPolicy{}, trimtab.Act))
		f.tell(p, t0)
		told(p, t0, skewed)
		return one(t, p.Step(t0, nil)).Actions
	}
	if diff := cmp.Diff(answer(nil), answer(map[string]float64{"h1": 1})); diff != "" {
		t.Error(diff)
	}
}

func TestAKnobOfAnInstanceThatEndedCountsForOneLeaseOnly(t *testing.T) {
	cfg := pool(fair.NJCPolicy{}, trimtab.Act)
	cfg.Lease = 10 * time.Second
	f := newFleet(map[trimtab.KnobID]trimtab.Amount{at("h1", "a", "1"): trimtab.Units(4), at("h1", "b", ""): trimtab.Units(2), at("h1", "c", ""): trimtab.Units(2)}, nil)
	p := leads(t, cfg)
	f.settle(p, t0, 1, nil)
	delete(f.now, at("h1", "a", "1"))
	full := map[string]float64{"b": 4, "c": 4}
	f.settle(p, t0.Add(time.Second), 8, full)
	if held := f.held(""); held > 4+1e-9 {
		t.Errorf("%v was given out while a, which is gone, may still hold 4 of 8", held)
	}
	f.settle(p, t0.Add(15*time.Second), 8, full)
	if held := f.held(""); held < 7 {
		t.Errorf("only %v of 8 was given out after the lease", held)
	}
}

func TestAPlanSaysWhatThePoolReallyHas(t *testing.T) {
	now := map[trimtab.KnobID]trimtab.Amount{at("h1", "a", ""): trimtab.Units(1), at("h2", "b", ""): trimtab.Units(1), at("h3", "c", ""): trimtab.Units(1)}
	for name, c := range map[string]struct {
		capacity map[string]float64
		want     float64
	}{
		"its hosts have less together than is declared": {map[string]float64{"h1": 2, "h2": 2, "h3": 1.5}, 5.5},
		"they have more":                  {map[string]float64{"h1": 4, "h2": 4, "h3": 4}, 8},
		"one of them does not say":        {map[string]float64{"h1": 2, "h2": 2}, 8},
		"they have nothing to be divided": {map[string]float64{"h1": 0, "h2": 0, "h3": 0}, 0},
	} {
		f := newFleet(maps.Clone(now), c.capacity)
		p := leads(t, pool(fair.NJCPolicy{}, trimtab.Act))
		plan := f.settle(p, t0, 2, nil)
		if plan.Capacity != c.want {
			t.Errorf("%s: a plan of %v, want %v", name, plan.Capacity, c.want)
		}
		if err := plan.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// R4, R5 over many hosts: whatever is lost, late or repeated, and whoever comes
// and goes, no host and not the pool is over its capacity at any instant.
func TestNoHostAndNotThePoolIsOverItsCapacityAtAnyInstant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := pool(rapid.SampledFrom([]policy.Policy{fair.NJCPolicy{}, fair.ResourceFair{}, welfare.Egalitarian{}, welfare.Social{}}).Draw(t, "objective"), trimtab.Act)
		cfg.Guard.Disabled = rapid.Bool().Draw(t, "without the guard")
		cfg.Lease = time.Minute
		hosts := []string{"h1", "h2", "h3"}[:rapid.IntRange(2, 3).Draw(t, "hosts")]
		f := newFleet(map[trimtab.KnobID]trimtab.Amount{}, map[string]float64{})
		f.weights = rapid.Bool().Draw(t, "weights")
		for _, h := range hosts {
			f.capacity[h] = float64(rapid.IntRange(10, 60).Draw(t, h)) / 10
		}
		born := 0
		grow := func(label, h string) {
			w := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, label+" workload")
			room := math.Min(f.capacity[h]-f.held(h), cfg.Capacity-f.held(""))
			if v := math.Min(room, float64(rapid.IntRange(1, 20).Draw(t, label+" amount"))/10); v >= 0.1 {
				f.now[at(h, w, fmt.Sprint(born))] = trimtab.Units(v)
				born++
			}
		}
		for i := range rapid.IntRange(len(hosts), 7).Draw(t, "instances") {
			grow(fmt.Sprint("instance ", i), hosts[i%len(hosts)])
		}
		p := leads(t, cfg)
		check := func(when string) {
			for _, h := range hosts {
				if held := f.held(h); held > f.capacity[h]+1e-6 {
					t.Fatalf("%s: host %s gives %v of %v", when, h, held, f.capacity[h])
				}
			}
			if held := f.held(""); held > cfg.Capacity+1e-6 {
				t.Fatalf("%s: the pool gives %v of %v", when, held, cfg.Capacity)
			}
		}
		full := map[string]float64{}
		for _, n := range []string{"a", "b", "c"} {
			full[n] = float64(rapid.IntRange(1, 80).Draw(t, n+" needs")) / 10
		}
		f.tell(p, t0) // every host was heard once before anything is decided
		var waiting []*trimtab.Plan
		var answers []*trimtab.Outcome
		for i := range 40 {
			now := t0.Add(time.Duration(i) * time.Second)
			for _, h := range hosts {
				if rapid.IntRange(0, 3).Draw(t, "heard") > 0 {
					waiting = append(waiting, plans(p.Step(now, f.holding(h, now)))...)
				}
			}
			if rapid.IntRange(0, 9).Draw(t, "an instance ends") == 0 && len(f.now) > 0 {
				delete(f.now, rapid.SampledFrom(slices.SortedFunc(maps.Keys(f.now), trimtab.KnobID.Compare)).Draw(t, "which"))
			}
			if told(p, now, full); f.weights {
				for _, n := range []string{"a", "b", "c"} {
					p.Step(now, asks(now.Add(time.Millisecond), n, full[n], 0, rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(t, "in time")))
				}
			}
			waiting = append(waiting, plans(p.Step(now, nil))...)
			for len(waiting) > 0 {
				plan := waiting[0]
				waiting = waiting[1:]
				if err := plan.Validate(); err != nil {
					t.Fatal(err)
				}
				for _, h := range hosts {
					if rapid.IntRange(0, 4).Draw(t, "arrives") == 0 || f.accepted[h] > plan.Sequence {
						continue
					}
					answers = append(answers, f.carryOut(plan, h, now))
					check(fmt.Sprintf("second %d, plan %s step %d on %s", i, plan.ID(), plan.Step, h))
				}
			}
			for len(answers) > 0 {
				o := answers[0]
				answers = answers[1:]
				if rapid.IntRange(0, 4).Draw(t, "answer arrives") > 0 {
					waiting = append(waiting, plans(p.Step(now, o))...)
				}
			}
		}
	})
}

func TestInAFullPoolTheCoresOfAWorkloadFollowItsLoadFromInstanceToInstance(t *testing.T) {
	a, b := at("h1", "a", "a"), at("h1", "a", "b")
	f := newFleet(map[trimtab.KnobID]trimtab.Amount{a: trimtab.Units(3.5), b: trimtab.Units(3.5)}, nil)
	c := pool(welfare.Egalitarian{}, trimtab.Act)
	c.Workloads = c.Workloads[1:2]
	c.Capacity = 7
	p := leads(t, c)
	for i := range 40 {
		now := t0.Add(time.Duration(i) * time.Second)
		f.tell(p, now)
		e := estimate("a", now, ramp(8))
		e.Shares = []trimtab.LoadShare{{Host: "h1", Instance: "a", Share: 0.75}, {Host: "h1", Instance: "b", Share: 0.25}}
		p.Step(now, e)
		out := plans(p.Step(now, nil))
		for len(out) > 0 {
			var next []*trimtab.Plan
			next = append(next, plans(p.Step(now, f.carryOut(out[0], "h1", now)))...)
			if held := f.held(""); held > 7 {
				t.Fatalf("the pool of 7 has given out %g", held)
			}
			out = append(out[1:], next...)
		}
	}
	if f.now[a].Value < 5 || f.now[b].Value > 2 {
		t.Errorf("the instance with three quarters of the load has %v, the other %v, of 7", f.now[a], f.now[b])
	}
}
