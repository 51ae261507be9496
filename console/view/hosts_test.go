package view

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
)

// on is one knob of a host.
func on(host, workload, instance string, now float64) trimtab.KnobState {
	return trimtab.KnobState{KnobID: trimtab.KnobID{Pool: "cpu", Host: host, Workload: workload, Instance: instance, Resource: "cpu"},
		Knob: "cgroup v2 " + workload + "@" + instance, Now: trimtab.Units(now), Since: noon, Baseline: trimtab.Units(1), Max: 8}
}

// says is the holding of a host with so many cores.
func says(host string, cores float64, knobs ...trimtab.KnobState) *trimtab.Holding {
	return &trimtab.Holding{Pool: "cpu", Host: host, Time: noon, LeaseLeft: 30, Capacity: map[string]float64{"cpu": cores}, Targets: knobs}
}

func hostsView(holdings ...*trimtab.Holding) *Model {
	v := testView()
	for _, h := range holdings {
		v.Observe(h)
	}
	return v
}

func TestAWorkloadHasAsMuchAsItsInstancesTimesTheLeast(t *testing.T) {
	v := New(Config{Pool: "cpu", Resource: "cpu", Workloads: []Workload{{Name: "shop", Mode: trimtab.Act}}})
	v.Observe(says("a", 8, on("a", "shop", "1", .5), on("a", "shop", "2", .7)))
	v.Observe(says("b", 8, on("b", "shop", "", .6)))
	e, _ := v.Explain("shop", 0, noon)
	if e.Allocation == nil || *e.Allocation != trimtab.Units(1.5) || e.Total == nil || *e.Total != trimtab.Units(1.8) || e.Instances != 3 || e.Hosts != 2 {
		t.Fatalf("has %v of %v in all, %d instances on %d hosts", e.Allocation, e.Total, e.Instances, e.Hosts)
	}
	var got []string
	for _, k := range e.Knobs {
		got = append(got, fmt.Sprintf("%s/%s %v %v", k.Host, k.Instance, k.Now, k.Least))
	}
	if want := "a/1 0.5 true, a/2 0.7 false, b/ 0.6 false"; strings.Join(got, ", ") != want {
		t.Errorf("%v, want %s", got, want)
	}
	r := v.Status(noon).Workloads[0]
	if *r.Allocation != *e.Allocation || *r.Total != *e.Total || r.Host != "" || r.Knob != "" {
		t.Errorf("%+v", r)
	}
	v.Observe(says("b", 8))
	v.Observe(says("a", 8, on("a", "shop", "2", .7)))
	if e, _ := v.Explain("shop", 0, noon); *e.Allocation != trimtab.Units(.7) || e.Total != nil || e.Knobs != nil || e.Host != "a" || e.Knob != "cgroup v2 shop@2" {
		t.Errorf("with one instance left: %+v", e)
	}
}

func TestWhatTheFastLoopDoesIsShownThoughNothingElseChanges(t *testing.T) {
	k := on("a", "shop", "1", .5)
	v := hostsView(says("a", 8, k))
	for _, set := range []float64{.5, .7, 0} {
		if k.Fast = nil; set > 0 {
			k.Fast = &trimtab.Fast{Set: set}
		}
		v.Observe(says("a", 8, k))
		e, _ := v.Explain("shop", 0, noon)
		if set > 0 && (e.Fast == nil || e.Fast.Set != set) || set == 0 && e.Fast != nil {
			t.Errorf("%+v, want %v", e.Fast, set)
		}
	}
}

func TestTheLoadThatAnInstanceServesSaysWhatItNeeds(t *testing.T) {
	v := hostsView(says("h", 8), says("a", 8, on("a", "shop", "", 3)), says("b", 8, on("b", "shop", "", 2)))
	for _, c := range []struct {
		a, b  float64 // what the estimate tells; 0: nothing
		has   float64
		binds string
	}{
		{0, 0, 4, "b"},     // 2·2: both are taken to serve alike
		{.75, .25, 4, "a"}, // 3/0.75
		{.6, .4, 5, "a"},   // 3/0.6 and 2/0.4
		{.2, .8, 2.5, "b"}, // 2/0.8
		{.3, .1, 4, "a"},   // what was told is of all that serve
		{.9, 0, 4, "b"},    // of the other nothing is known: it serves half
	} {
		var shares []trimtab.LoadShare
		for host, f := range map[string]float64{"a": c.a, "b": c.b} {
			if f > 0 {
				shares = append(shares, trimtab.LoadShare{Host: host, Share: f})
			}
		}
		slices.SortFunc(shares, trimtab.LoadShare.Compare)
		v.Observe(&trimtab.Estimate{Workload: "shop", Time: noon, Shares: shares})
		e, _ := v.Explain("shop", 0, noon)
		binds := e.Knobs[0]
		if e.Knobs[1].Least {
			binds = e.Knobs[1]
		}
		if e.Allocation.Value != c.has || !binds.Least || binds.Host != c.binds || (e.Knobs[0].Share != nil) != (c.a > 0) {
			t.Errorf("%v and %v: has %v, limited by %+v", c.a, c.b, e.Allocation, binds)
		}
	}
}

func TestAnInstanceThatCannotBeUsedServesNothingWhereThereAreOthers(t *testing.T) {
	lost := on("b", "shop", "", 0)
	lost.Problem, lost.Since = "gone", time.Time{}
	v := hostsView(says("h", 8, on("h", "shop", "", 2)), says("b", 8, lost))
	e, _ := v.Explain("shop", 0, noon)
	if e.Allocation == nil || *e.Allocation != trimtab.Units(2) || e.Instances != 1 || e.Code == codeKnob || len(e.Knobs) != 2 || e.Knobs[0].Problem != "gone" {
		t.Errorf("has %v, %s, %+v", e.Allocation, e.State, e.Knobs)
	}
	v.Observe(says("h", 8))
	if e, _ := v.Explain("shop", 0, noon); e.Allocation != nil || e.State != "knob: gone" {
		t.Errorf("has %v, %s", e.Allocation, e.State)
	}
}

// slow is what is known of a workload, read from the last word of every host.
func slow(said map[string]*trimtab.Holding, workload string) (least, total float64, instances, hosts, problems int) {
	least = math.Inf(1)
	for _, h := range said {
		for _, k := range h.Targets {
			if k.Workload == workload && k.Problem != "" {
				problems++
			}
		}
	}
	all := instancesOf(said, workload)
	for _, name := range slices.Sorted(maps.Keys(said)) {
		here := 0
		for _, k := range said[name].Targets {
			if k.Workload != workload || k.Problem != "" && problems < all {
				continue
			}
			here++
			least, total = min(least, k.Now.Value), total+k.Now.Value
		}
		if instances += here; here > 0 {
			hosts++
		}
	}
	return least, total, instances, hosts, problems
}

func instancesOf(said map[string]*trimtab.Holding, workload string) (n int) {
	for _, h := range said {
		for _, k := range h.Targets {
			if k.Workload == workload {
				n++
			}
		}
	}
	return n
}

func TestInstancesThatComeAndGoLeaveNothingBehind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := New(Config{Pool: "cpu", Resource: "cpu", Workloads: []Workload{{Name: "w0", Mode: trimtab.Act}}})
		said := map[string]*trimtab.Holding{}
		for range rapid.IntRange(1, 30).Draw(t, "words") {
			host := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "host")
			h := says(host, 8)
			for w := range 3 {
				for i := range rapid.IntRange(0, 3).Draw(t, "instances") {
					k := on(host, fmt.Sprint("w", w), fmt.Sprint(i), float64(rapid.IntRange(1, 4).Draw(t, "now")))
					if rapid.Bool().Draw(t, "bad") {
						k.Problem = "bad"
					}
					h.Targets = append(h.Targets, k)
				}
			}
			if rapid.Bool().Draw(t, "backwards") {
				slices.Reverse(h.Targets)
			}
			v.Observe(h)
			said[host] = h
		}
		for w := range 3 {
			name := fmt.Sprint("w", w)
			least, total, instances, hosts, bad := slow(said, name)
			e, ok := v.Explain(name, 0, noon)
			if instances == 0 {
				if e.Instances != 0 || e.Allocation != nil {
					t.Fatalf("%s: %+v, though it is nowhere", name, e)
				}
				continue
			}
			want := round9(least * float64(instances))
			if !ok || e.Allocation == nil || e.Allocation.Value != want || e.Instances != instances || e.Hosts != hosts || v.fleet.Problems(name) != bad {
				t.Fatalf("%s: %v of %d instances on %d hosts, %d bad, want %v, %d, %d, %d", name, e.Allocation, e.Instances, e.Hosts, v.fleet.Problems(name), want, instances, hosts, bad)
			}
			if instances > 1 && math.Abs(e.Total.Value-total) > 1e-9 {
				t.Fatalf("%s: %v in all, want %v", name, e.Total, total)
			}
		}
	})
}

func TestAHostGivesTheLargerOfSetAndInForceAndNothingToWhatHasNoLimit(t *testing.T) {
	pending, falling, free := on("h", "a", "", 3), on("h", "b", "", 1), on("h", "c", "", 0)
	one, two := trimtab.Units(1), trimtab.Units(2)
	pending.Effective, falling.Effective, free.Now = &one, &two, trimtab.Unlimited()
	memory := on("h", "a", "", 1<<30)
	memory.Resource = "memory"
	v := hostsView(says("h", 16, pending, falling, free, memory))
	d, ok := v.Host("h", "", MaxKnobs, 0, noon)
	if !ok || len(d.Resources) != 2 || len(d.Listed) != 4 || d.Workloads != 3 || d.Instances != 3 {
		t.Fatalf("%v %+v", ok, d)
	}
	cpu := d.Resources[0]
	if cpu.Resource != "cpu" || cpu.Given != 3+2 || cpu.Unlimited != 1 || *cpu.Free != 11 || *cpu.Capacity != 16 {
		t.Errorf("%+v", cpu)
	}
	if m := d.Resources[1]; m.Resource != "memory" || m.Given != 1<<30 || m.Capacity != nil || m.Free != nil {
		t.Errorf("%+v: its capacity was not measured", m)
	}
}

func TestTheHostWithTheLeastFreeStandsFirst(t *testing.T) {
	v := New(Config{Pool: "cpu", Resource: "cpu"})
	v.Observe(says("roomy", 8, on("roomy", "w", "", 1)))
	v.Observe(says("tight", 80, on("tight", "w", "", 79)))
	unmeasured := says("unmeasured", 0, on("unmeasured", "w", "", 1))
	unmeasured.Capacity = nil
	v.Observe(unmeasured)
	v.Observe(says("over", 8, on("over", "v", "", 9)))
	names := func(f Filter) string {
		var out []string
		for _, h := range v.Hosts(noon, f).Hosts {
			out = append(out, h.Name)
		}
		return strings.Join(out, " ")
	}
	for query, want := range map[string]string{"": "over tight roomy unmeasured", "t": "tight", "state:bad": "over", "workload:W state:ok": "tight roomy unmeasured", "workload:": ""} {
		if got := names(Filter{Query: query, Limit: 10}); got != want {
			t.Errorf("%q: %s, want %s", query, got, want)
		}
	}
	if got := names(Filter{Limit: 2, Offset: 1}); got != "tight roomy" {
		t.Error(got)
	}
}

func TestTwoPoolsOnOneHostDoNotEraseEachOther(t *testing.T) {
	v := New(Config{Resource: "cpu"})
	for _, pool := range []string{"web", "batch"} {
		h := says("h", 8, on("h", "shop", pool, 2))
		h.Pool = pool
		v.Observe(h)
	}
	if n := len(v.Hosts(noon, Filter{Limit: 9}).Hosts); n != 2 {
		t.Errorf("%d", n)
	}
	if e, _ := v.Explain("shop", 0, noon); e.Instances != 2 {
		t.Errorf("%d instances", e.Instances)
	}
	if d, ok := v.Host("h", "web", 9, 0, noon); !ok || d.Pool != "web" || d.Listed[0].Instance != "web" {
		t.Errorf("%+v", d)
	}
	v.Configure(Config{Pool: "web", Resource: "cpu"})
	if e, _ := v.Explain("shop", 0, noon); e.Instances != 1 || v.fleet.Len() != 1 {
		t.Errorf("%d instances in the pool that is left, %d hosts", e.Instances, v.fleet.Len())
	}
}

func TestASilentHostIsSaidAndCountsUntilItsLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now
		v := New(Config{Pool: "cpu", Resource: "cpu", Capacity: 16, Workloads: []Workload{{Name: "shop", Mode: trimtab.Act}}})
		speak := func(host string, lease trimtab.Seconds) {
			h := says(host, 8, on(host, "shop", "", 2))
			h.Time, h.LeaseLeft = now(), lease
			v.Observe(h)
		}
		speak("dead", 90)
		time.Sleep(70 * time.Second)
		speak("lives", 90)
		if h := v.Hosts(now(), Filter{Limit: 9, Query: "dead"}).Hosts[0]; h.Code != codeSilent || h.Kind != "bad" || h.LeaseLeft != 20 {
			t.Errorf("%+v", h)
		}
		if s := v.Status(now()); s.Allocated != trimtab.Units(4) || s.Hosts != 2 {
			t.Errorf("%v on %d hosts, though the lease of one goes on", s.Allocated, s.Hosts)
		}
		time.Sleep(30 * time.Second)
		if s := v.Status(now()); s.Allocated != trimtab.Units(2) || s.Hosts != 1 || s.Workloads[0].Instances != 1 {
			t.Errorf("%v on %d hosts after its lease", s.Allocated, s.Hosts)
		}
		if e, _ := v.Explain("shop", 0, now()); e.Host != "lives" {
			t.Errorf("on %q", e.Host)
		}
		time.Sleep(time.Hour)
		if e, _ := v.Explain("shop", 0, now()); e.Instances != 2 || e.Knobs[0].Silent == "" {
			t.Errorf("%d instances: where all are silent, what was last known is shown", e.Instances)
		}
	})
}

func TestTwoAgentsOfOneNameAreATroubleOfTheirHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := New(Config{Pool: "cpu", Resource: "cpu", Capacity: 16})
		speak := func(life uint64, host string) Host {
			time.Sleep(time.Second)
			h := says(host, 8, on(host, "shop", "", 2))
			h.Time, h.LeaseLeft, h.Life = time.Now(), 30, life
			v.Observe(h)
			d, _ := v.Host(host, "", 1, 0, time.Now())
			return d.Host
		}
		for range 10 {
			speak(7, "alone")
		}
		speak(8, "alone") // its next life
		if h := speak(8, "alone"); h.Code != codeOK {
			t.Errorf("of an agent that began again: %+v", h)
		}
		for range 3 {
			speak(1, "twin")
			speak(2, "twin")
		}
		h := speak(1, "twin")
		if h.Code != codeDuplicate || h.Kind != "bad" || !strings.Contains(h.State, "two agents say that they are this host") || !strings.Contains(h.State, "--host") {
			t.Errorf("%+v", h)
		}
		if all := v.Hosts(time.Now(), Filter{Limit: 9, Query: "state:bad"}); len(all.Hosts) != 1 || all.Hosts[0].Name != "twin" {
			t.Errorf("in trouble: %+v", all.Hosts)
		}
		for range 70 { // one of the two was stopped
			h = speak(1, "twin")
		}
		if h.Code != codeOK {
			t.Errorf("a minute after the other fell silent: %+v", h)
		}
	})
}

func TestAWordThatTheBusKeptOfAHostThatIsGoneIsOld(t *testing.T) {
	v := hostsView(says("h", 8, on("h", "shop", "", 2))) // of noon, read months later
	if h := v.Hosts(time.Now(), Filter{Limit: 1}).Hosts[0]; h.Code != codeSilent {
		t.Errorf("%+v", h)
	}
}

func TestAHeartbeatThatSaysNothingNewChangesNoWorkload(t *testing.T) {
	word := func() *trimtab.Holding {
		half := trimtab.Units(.5)
		k := on("h", "shop", "", 2)
		k.Effective = &half
		return says("h", 8, k)
	}
	v := hostsView(word())
	_, version := v.Changes(0, noon)
	v.Observe(word())
	if c, _ := v.Changes(version, noon); len(c.Workloads) > 0 || c.All {
		t.Errorf("%v changed", c.Workloads)
	}
	v.Observe(says("h", 8, on("h", "shop", "", 3)))
	if c, _ := v.Changes(version, noon); !slices.Equal(c.Workloads, []string{"shop"}) {
		t.Errorf("%v changed", c.Workloads)
	}
}

// planOn is the n-th plan, which moves instances of shop by their hosts.
func planOn(n uint64, from, to float64, hosts ...string) *trimtab.Plan {
	p := plan(n, to)
	a := p.Actions[0]
	p.Actions = nil
	for _, h := range hosts {
		a.Host, a.Expect, a.Set = h, trimtab.Units(from), trimtab.Units(to)
		p.Actions = append(p.Actions, a)
	}
	return p
}

// answerOf is what one host says of its action in a plan.
func answerOf(p *trimtab.Plan, host string, status trimtab.Status, reason string) *trimtab.Outcome {
	o := &trimtab.Outcome{Pool: p.Pool, Host: host, Epoch: p.Epoch, Sequence: p.Sequence, Step: p.Step, Time: p.Time, Took: .01}
	for _, a := range p.Actions {
		if a.Host == host {
			o.Results = append(o.Results, trimtab.Result{KnobID: a.KnobID, Status: status, Asked: a.Set, Found: a.Set, Known: true, Reason: reason})
		}
	}
	return o
}

func TestWhatAPlanDoesWithTheInstancesOfAWorkloadIsOneDecision(t *testing.T) {
	v := testView()
	p := planOn(1, .5, .7, "h1", "h2", "h3")
	p.Actions[0].Why.Binding = trimtab.Binding{Kind: codes.BindingNone}
	p.Actions[1].Why.Binding = trimtab.Binding{Kind: "host", Detail: "h2"}
	v.Observe(answerOf(p, "h3", trimtab.Written, "")) // before its plan
	v.Observe(p)
	latest := func() *Decision {
		all, _, _ := v.Decisions("shop", "", 10, noon)
		if all.Total != 1 {
			t.Fatalf("%d decisions", all.Total)
		}
		return all.Decisions[0]
	}
	d := latest()
	if d.Action.Host != "" || d.Action.Expect != trimtab.Units(1.5) || d.Action.Set != trimtab.Units(2.1) || d.Action.Why.Binding.Detail != "h2" || len(d.Moves) != 3 {
		t.Fatalf("%+v", d)
	}
	if got, want := d.Each(), "3 instances on 3 hosts, 0.5 -> 0.7 each"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if d.Result == nil || d.Result.Status != trimtab.Written || d.Result.Reason != "2 instances without an answer yet" {
		t.Errorf("%+v", d.Result)
	}
	v.Observe(answerOf(p, "h1", trimtab.Written, ""))
	v.Observe(answerOf(p, "h2", trimtab.Refused, "the host is full"))
	d = latest()
	if d.Result.Status != trimtab.Refused || d.Result.Reason != "1 of 3 instances; the host is full" || d.Moves[1].Status != trimtab.Refused || d.Moves[0].Found != trimtab.Units(.7) {
		t.Errorf("%+v, %+v", d.Result, d.Moves)
	}
	e, _ := v.Explain("shop", 0, noon)
	if *e.Before != trimtab.Units(1.5) || *e.Set != trimtab.Units(2.1) || len(e.Moves) != 3 {
		t.Errorf("explained: %v -> %v, %d moves", e.Before, e.Set, len(e.Moves))
	}
}

func TestAHostNamesWhomItKeepsFromMore(t *testing.T) {
	v := hostsView(says("a", 8, on("a", "batch", "", 1), on("a", "shop", "1", .5), on("a", "shop", "2", .5)), says("b", 8, on("b", "shop", "", .5)))
	p := planOn(1, .5, .7, "a", "b")
	p.Actions[0].Instance, p.Actions[0].Why.Binding = "1", trimtab.Binding{Kind: codes.BindingHost, Detail: "a"}
	v.Observe(p)
	for host, want := range map[string]int{"a": 1, "b": 0} {
		d, _ := v.Host(host, "", 9, 0, noon)
		if d.Binds != want {
			t.Errorf("%s binds %d, want %d", host, d.Binds, want)
		}
		for _, k := range d.Listed {
			if k.Bound != (host == "a" && k.Workload == "shop") {
				t.Errorf("%s on %s: bound %v", k.Workload, host, k.Bound)
			}
		}
	}
	if e, _ := v.Explain("shop", 0, noon); !e.Knobs[0].Bound || e.Knobs[2].Bound {
		t.Errorf("%+v", e.Knobs)
	}
}

func TestUnevenInstancesAreToldFromTheLeastToTheMost(t *testing.T) {
	moves := []Move{{Host: "a", Instance: "1", Expect: trimtab.Units(1 << 30), Set: trimtab.Unlimited()}, {Host: "a", Instance: "2", Expect: trimtab.Units(1 << 29), Set: trimtab.Units(1 << 30)}}
	if got, want := Each(moves, "memory"), "2 instances on a host, 512 MiB to 1 GiB -> 1 GiB to unlimited each"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if Each(nil, "cpu") != "" {
		t.Error("an only instance is told as it always was")
	}
}

func TestADifferenceIsOfAllInstancesAndNamesThoseThatAreNotThere(t *testing.T) {
	v := hostsView(says("a", 8, on("a", "shop", "", .5)), says("b", 8, on("b", "shop", "", .5)), says("c", 8, on("c", "shop", "", .5)), says("h", 8))
	p := planOn(1, .5, .75, "a", "b")
	target := 2.0
	p.Actions[0].Why.Target, p.Actions[1].Why.Target = &target, &target
	v.Observe(p)
	d := v.Differences()
	if len(d) != 1 || d[0].Now != trimtab.Units(1.5) || d[0].Next != trimtab.Units(2) || len(d[0].Moves) != 2 || d[0].Moves[1].Host != "b" {
		t.Fatalf("%+v", d)
	}
	v.Observe(says("a", 8, on("a", "shop", "", .75)))
	if d := v.Differences(); len(d) != 1 || len(d[0].Moves) != 1 || d[0].Moves[0].Host != "b" {
		t.Errorf("%+v", d)
	}
	v.Observe(says("b", 8, on("b", "shop", "", .75)))
	if d := v.Differences(); len(d) != 0 {
		t.Errorf("%+v, though all are there", d)
	}
}

func TestAdviceOnSeveralInstancesIsForEachOfThem(t *testing.T) {
	a, b := on("a", "shop", "1", .5), on("b", "shop", "2", .5)
	a.Unit, b.Unit = "shop@1.service", "shop@2.service"
	v := hostsView(says("h", 8), says("a", 8, a), says("b", 8, b))
	p := planOn(1, .5, .75, "a", "b")
	p.Actions[0].Instance, p.Actions[1].Instance = "1", "2"
	v.Observe(p)
	got, _, _ := v.Patch("shop")
	if got.Instances != 2 || got.Amounts["cpu"] != trimtab.Units(.75) || got.Unit != "shop@.service" || !strings.Contains(got.Systemd, "CPUQuota=75%") ||
		!strings.Contains(got.Deployment, "for each of its instances") || !strings.Contains(got.Deployment, `"750m"`) {
		t.Errorf("%+v", got)
	}
}

// fleetOf is a view of so many hosts with 20 knobs each, two of every workload.
func fleetOf(hosts int) *Model {
	c := Config{Pool: "cpu", Resource: "cpu", Capacity: 8 * float64(hosts), Objective: "njc", Round: 10 * time.Second}
	const each = 20
	name := func(n int) string { return fmt.Sprintf("team-%d/service-%05d", n%20, n) }
	for w := range hosts * each / 2 {
		c.Workloads = append(c.Workloads, Workload{Name: name(w), Mode: trimtab.Act})
	}
	v := New(c)
	for n := range hosts {
		host := fmt.Sprintf("host-%04d", n)
		h := says(host, 32)
		for i := range each {
			h.Targets = append(h.Targets, on(host, name((n*each+i)/2), fmt.Sprint(i%2), 1))
		}
		v.Observe(h)
	}
	return v
}

func TestAThousandHostsOfTwentyKnobsTakeLittleMemory(t *testing.T) {
	before := heap()
	v := fleetOf(1000)
	if grown := int64(heap()) - int64(before); grown > 32<<20 {
		t.Errorf("%d MiB for 20,000 knobs and 10,000 workloads", grown>>20)
	}
	if s := v.Page(noon, Filter{Limit: 1}); s.Total != 10_000 || s.Hosts != 1000 || s.Allocated != trimtab.Units(20_000) {
		t.Errorf("%d workloads on %d hosts have %v", s.Total, s.Hosts, s.Allocated)
	}
}

func TestAHostTellsWhatItGaveOverTheLastHourByTheMinute(t *testing.T) {
	var h trend
	start := time.Unix(600_000, 0)
	for _, minute := range []int{0, 1, 1, 4} {
		h.note(start.Add(time.Duration(minute)*time.Minute), float32(minute))
	}
	var got []float64
	for _, p := range h.points() {
		if p == nil {
			got = append(got, -1)
		} else {
			got = append(got, *p)
		}
	}
	if !slices.Equal(got, []float64{0, 1, -1, -1, 4}) {
		t.Errorf("%v", got)
	}
	h.note(start.Add(30*24*time.Hour), 7)
	if p := h.points(); len(p) != 60 || p[58] != nil || *p[59] != 7 {
		t.Errorf("%d points after a month", len(p))
	}
}
