package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/console/view"
)

// overloaded is a view of a service with half a core that 100 requests/s of 10 ms ask for, of which
// its gate refuses one half, the least important first, for 3 minutes up to now.
func overloaded(now time.Time) *view.Model {
	v := view.New(view.Config{Pool: "cpu", Resource: "cpu", Capacity: 4, Round: 5 * time.Second, Workloads: []view.Workload{{Name: "shop", Mode: trimtab.Act, Share: true, Target: .95, SLO: "95% under 200ms"}}})
	band := func(low, mean, high float64) trimtab.Band { return trimtab.Band{Lower: low, Mean: mean, Upper: high} }
	curve := &trimtab.Curve{Load: 100, Level: .9, Knots: []trimtab.Knot{
		{Allocation: .5, Band: band(.4, .5, .6)}, {Allocation: 1, Band: band(.8, .9, .95)}, {Allocation: 1.1, Band: band(.9, .95, .99)}, {Allocation: 1.4, Band: band(.95, .99, 1)}}}
	half, cost, has := .5, .01, .5
	for k := range 37 {
		v.Observe(&trimtab.Estimate{Workload: "shop", Time: now.Add(time.Duration(k-36) * 5 * time.Second), Curve: curve, Performance: &half, Cost: &cost, Allocation: &has,
			Load: &trimtab.LoadForecast{Now: 100, Mean: 100, Upper: 110}, Latency: map[string]trimtab.Seconds{"p95": .12}, Refused: map[string]float64{"low": 45, "normal": 5}, Model: "test/1"})
	}
	knob := trimtab.KnobID{Pool: "cpu", Host: "a", Workload: "shop", Resource: trimtab.Concurrency}
	v.Observe(&trimtab.Plan{Pool: "cpu", Resource: "cpu", Epoch: 1, Sequence: 7, Step: 1, Time: now, Capacity: 4, Actions: []trimtab.Action{{KnobID: knob, Expect: trimtab.Unlimited(), Set: trimtab.Units(6), Mode: trimtab.Act,
		Why: trimtab.Reason{Summary: "requests in service lowered from unlimited to 6: 0.5 cores serve 50 requests/s in time, each of which takes 120ms", Binding: trimtab.Binding{Kind: codes.BindingDemand}}}}})
	rate, low := knob, knob
	rate.Resource, low.Resource, low.Instance = trimtab.Rate, trimtab.Rate, "class=low"
	v.Observe(&trimtab.Holding{Pool: "cpu", Host: "a", Time: now, LeaseLeft: 30, Capacity: map[string]float64{"cpu": 4}, Targets: []trimtab.KnobState{
		{KnobID: knob, Knob: "gate", Now: trimtab.Units(6), Baseline: trimtab.Unlimited(), Since: now, Min: 1, Max: 40},
		{KnobID: rate, Knob: "gate", Now: trimtab.Units(50), Baseline: trimtab.Unlimited(), Since: now, Min: 1, Max: 1e6},
		{KnobID: low, Knob: "gate", Now: trimtab.Units(5), Baseline: trimtab.Unlimited(), Since: now, Min: 1, Max: 1e6},
		{KnobID: trimtab.KnobID{Pool: "cpu", Host: "a", Workload: "shop", Resource: "cpu"}, Knob: "test", Now: trimtab.Units(.5), Baseline: trimtab.Units(.5), Since: now, Max: 2}}})
	return v
}

func TestStatusAndExplainSayWhatIsShedOfWhomWhySinceWhenAndWhatItWouldTakeNotTo(t *testing.T) {
	now := time.Now()
	v := overloaded(now)
	s := v.Status(now)
	since := view.Clock(now.Add(-180 * time.Second))
	for _, wide := range []bool{false, true} {
		var out strings.Builder
		printStatus(&out, &s, wide)
		contains(t, out.String(), "sheds 50 requests/s, 50% of the load (low 45, normal 5), since "+since)
	}
	e, ok := v.Explain("shop", 0, now)
	if !ok {
		t.Fatal("no shop")
	}
	var out strings.Builder
	printExplanation(&out, &e)
	contains(t, out.String(),
		"sheds 50 requests/s, 50% of the load (low 45, normal 5), since "+since,
		"why 100 requests/s come; 0.5 cores answer at most 50/s, at 10 ms of CPU time a request, 95% of them within 120 ms",
		"limit of its gates at most 6 in service: requests in service lowered from unlimited to 6: 0.5 cores serve 50 requests/s in time, each of which takes 120ms; at most 50 requests/s; at most 5 requests/s of class low",
		"to shed none 1.1 cores (1 to 1.4, 90% band of its curve); it has 0.5")
	var asJSON struct {
		Shed struct {
			Rate    float64 `json:"refused_per_second"`
			Share   float64 `json:"share_of_load"`
			Limit   float64 `json:"limit"`
			Classes []view.ShedClass
			Needs   view.ShedNeeds
		}
	}
	b, err := json.Marshal(&e)
	if err == nil {
		err = json.Unmarshal(b, &asJSON)
	}
	if x := asJSON.Shed; err != nil || x.Rate != 50 || x.Share != .5 || x.Limit != 6 || len(x.Classes) != 2 || x.Classes[0].Class != "low" || *x.Needs.Most != 1.4 || x.Needs.Has {
		t.Errorf("%+v, %v", x, err)
	}
}
