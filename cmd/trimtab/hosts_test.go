package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/console/view"
)

// severalHosts is a view of shop with three instances on two hosts.
func severalHosts(now time.Time) *view.Model {
	v := view.New(view.Config{Pool: "cpu", Resource: "cpu", Capacity: 8, Round: time.Minute, Workloads: []view.Workload{{Name: "shop", Mode: trimtab.Recommend}}})
	for _, at := range [][]string{{"a", "1", "2"}, {"b", ""}} {
		h := &trimtab.Holding{Pool: "cpu", Host: at[0], Time: now, LeaseLeft: 30, Capacity: map[string]float64{"cpu": 4, "memory": 2 << 30}}
		for n, instance := range at[1:] {
			h.Targets = append(h.Targets, trimtab.KnobState{KnobID: trimtab.KnobID{Pool: "cpu", Host: at[0], Workload: "shop", Instance: instance, Resource: "cpu"},
				Knob: "cgroup v2 shop", Now: trimtab.Units(.5 + .25*float64(n)), Since: now, Max: 2})
		}
		v.Observe(h)
	}
	return v
}

// raise is a plan that raises all instances of shop.
func raise(now time.Time) *trimtab.Plan {
	target := 2.1
	p := &trimtab.Plan{Pool: "cpu", Epoch: 3, Sequence: 17, Step: 1, Last: true, Time: now, Lease: 30}
	for _, at := range [][2]string{{"a", "1"}, {"a", "2"}, {"b", ""}} {
		p.Actions = append(p.Actions, trimtab.Action{KnobID: trimtab.KnobID{Pool: "cpu", Host: at[0], Workload: "shop", Instance: at[1], Resource: "cpu"}, Mode: trimtab.Recommend,
			Expect: trimtab.Units(.5), Set: trimtab.Units(.7), Of: &trimtab.Whole{Instances: 3, From: 1.5, To: 2.1}, Why: trimtab.Reason{Target: &target, Binding: trimtab.Binding{Kind: "host", Detail: "b"}}})
	}
	return p
}

func contains(t *testing.T, text string, words ...string) {
	t.Helper()
	text = strings.Join(strings.Fields(text), " ")
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in\n%s", w, text)
		}
	}
}

func TestStatusHasHostsWhereThereAreSeveralOrCapacitiesAreMeasured(t *testing.T) {
	now := time.Now()
	v := severalHosts(now)
	s := v.Status(now)
	s.Tightest = v.Hosts(now, view.Filter{Limit: 10}).Hosts
	var out, wide strings.Builder
	printStatus(&out, &s, false)
	contains(t, out.String(), "HOST FREE KNOBS LEASE STATE a 2.75 of 4 cores, 2 GiB of 2 GiB 2 30 s ok b 3.5 of 4 cores, 2 GiB of 2 GiB 1 30 s ok")
	printStatus(&wide, &s, true)
	contains(t, wide.String(), "3 instances on 2 hosts", "HOST FREE")
	for range 3 { // two agents say that they are a
		for _, life := range []uint64{1, 2} {
			v.Observe(&trimtab.Holding{Pool: "cpu", Host: "a", Time: now, Life: life, Capacity: map[string]float64{"cpu": 4}})
		}
	}
	s.Tightest = v.Hosts(now, view.Filter{Limit: 10}).Hosts
	out.Reset()
	printStatus(&out, &s, false)
	contains(t, out.String(), "two agents say that they are this host, so its workloads are held: give each its own --host")
	s.Tightest = []view.Host{{Name: "only", Resources: []view.HostResource{{Resource: "cpu", Given: 1}}}}
	out.Reset()
	printStatus(&out, &s, false)
	if strings.Contains(out.String(), "HOST") {
		t.Errorf("one host, nothing measured:\n%s", out.String())
	}
	s.Tightest = nil
	for n := range 30 {
		s.Tightest = append(s.Tightest, view.Host{Name: fmt.Sprint("h", n)})
	}
	out.Reset()
	printStatus(&out, &s, false)
	contains(t, out.String(), "h19 ", "and 10 hosts with more free: trimtab status -o wide")
	if strings.Contains(out.String(), "h20") {
		t.Errorf("more than %d hosts:\n%s", fewHosts, out.String())
	}
}

func TestExplainListsInstancesWhereThereIsMoreThanOne(t *testing.T) {
	now := time.Now()
	v := severalHosts(now)
	v.Observe(raise(now))
	e, _ := v.Explain("shop", 0, now)
	var out strings.Builder
	printExplanation(&out, &e)
	contains(t, out.String(), "has 1.5 cores, by 3 instances on 2 hosts, of which the slowest counts; 1.75 in all",
		"on a, 1 0.5 cores, the slowest instance, cgroup v2 shop", "on a, 2 0.75 cores", "on b 0.5 cores, limited by its host, cgroup v2 shop",
		"change 1.5 -> 2.1 cores; 3 instances on 2 hosts, 0.5 -> 0.7 each", "limited by host: b")
	for range 30 {
		e.Knobs = append(e.Knobs, e.Knobs[0])
	}
	out.Reset()
	printExplanation(&out, &e)
	contains(t, out.String(), "and 13 more: trimtab explain -o json")
}

func TestPlanAndDiffSumUpTheInstancesOfAWorkload(t *testing.T) {
	now := time.Now()
	var plan, applied, wide strings.Builder
	p := raise(now)
	printPlan(&plan, &view.Planned{ID: p.ID(), Plan: p})
	contains(t, plan.String(), "shop recommend 1.5 2.1 2.1 host: b 3 instances on 2 hosts, 0.5 -> 0.7 each")
	if n := strings.Count(plan.String(), "shop"); n != 1 {
		t.Errorf("%d lines\n%s", n, plan.String())
	}
	printApplied(&applied, p)
	contains(t, applied.String(), "shop cpu 1.5 -> 2.1 3 instances on 2 hosts, 0.5 -> 0.7 each")
	widePlan(&wide, p)
	contains(t, wide.String(), "shop cpu a 1", "shop cpu a 2", "shop cpu b –")
	v := severalHosts(now)
	v.Observe(p)
	b, err := json.Marshal(v.Differences())
	if err != nil {
		t.Fatal(err)
	}
	contains(t, string(b), `"moves":[{"host":"a","instance":"1","expect":0.5,"set":0.7}`)
}

func TestAPlanThatCannotBeAppliedOffersNoApply(t *testing.T) {
	now := time.Now()
	p := raise(now)
	v := severalHosts(now)
	v.Observe(p)
	planned := v.Planned()
	if planned.ID != p.ID() || !planned.Applicable {
		t.Fatalf("%+v", planned)
	}
	b, err := json.Marshal(planned)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, string(b), `"id":"`+p.ID()+`"`, `"actions":[`, `"applicable":true`)
	var text strings.Builder
	printPlan(&text, planned)
	contains(t, text.String(), "to carry it out: trimtab apply "+p.ID())
	for _, h := range []string{"a", "b"} {
		said := &trimtab.Holding{Pool: p.Pool, Host: h, Time: now.Add(time.Second)}
		for _, a := range p.Actions {
			if a.Host == h {
				said.Targets = append(said.Targets, trimtab.KnobState{KnobID: a.KnobID, Knob: "test", Now: a.Expect, Baseline: a.Expect, Since: now, Max: 8, ReadOnly: "this group may not be written"})
			}
		}
		v.Observe(said)
	}
	text.Reset()
	printPlan(&text, v.Planned())
	contains(t, text.String(), "cannot be applied: shop: this group may not be written")
	if strings.Contains(text.String(), "trimtab apply") {
		t.Errorf("an apply is offered:\n%s", text.String())
	}
}

func TestStatusSaysAtOnceThatTheBusIsOutOfReach(t *testing.T) {
	var out strings.Builder
	printStatus(&out, &view.Status{Pool: "p", Capacity: 8, Resource: "cpu", NotReady: map[string]string{"bus": "no server at 10.0.0.1:4222"}}, false)
	if !strings.HasPrefix(out.String(), "bus is not ready: no server at 10.0.0.1:4222\n") {
		t.Error(out.String())
	}
}
