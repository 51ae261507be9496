//go:build integration

package view

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/internal/newest"
)

// What is kept of peers that invent without end, and of long lives, in full size.

func TestAPeerThatInventsWithoutEndCostsTheViewBoundedMemory(t *testing.T) {
	before := heap()
	v := testView()
	text := strings.Repeat("y", 4<<10)
	for i := range maxWorkloads + 1000 {
		name := fmt.Sprint("invented ", i)
		v.Observe(&trimtab.Estimate{Workload: name, Time: noon, Hold: &trimtab.Held{Code: codes.HeldOther, Text: strings.Clone(text)}, Inputs: []trimtab.Input{{Name: name, Missing: strings.Clone(text)}}})
		v.Observe(&trimtab.Holding{Host: name, Time: noon, Targets: []trimtab.KnobState{
			{KnobID: trimtab.KnobID{Host: name, Workload: "shop", Resource: name}, Knob: strings.Clone(text)}, {KnobID: trimtab.KnobID{Host: name, Workload: name, Resource: "cpu"}, Knob: strings.Clone(text)}}})
		v.Observe(&trimtab.Outcome{Pool: "cpu", Host: name, Epoch: math.MaxUint64, Sequence: uint64(i), Time: noon,
			Results: []trimtab.Result{{KnobID: trimtab.KnobID{Pool: "cpu", Host: name, Workload: name, Resource: name}, Reason: strings.Clone(text)}}})
		p := plan(uint64(i+1), 2)
		p.Actions[0].Why.Summary, p.Held = strings.Repeat("z", 24<<10)+name, map[string]trimtab.Held{name: {Code: codes.HeldOther, Text: strings.Clone(text)}}
		p.Actions[0].Why.Alternatives[0].Why = name + text[:2048]
		v.Observe(p)
	}
	if grown := int64(heap()) - int64(before); grown > 256<<20 {
		t.Errorf("%d MiB", grown>>20)
	}
	if n := len(v.workloads.all["shop"].resources()); n > trimtab.MaxResources {
		t.Errorf("%d resources of one workload", n)
	}
	runtime.KeepAlive(v)
}

func TestHostsThatInventKnobsWithoutEndCostBoundedMemory(t *testing.T) {
	v := New(Config{Pool: "cpu", Resource: "cpu"})
	text := strings.Repeat("x", 500)
	before := heap()
	for n := range 40 {
		h := says(fmt.Sprint("h", n), 8)
		for i := range 20_000 {
			k := on(h.Host, "w", fmt.Sprint(i), 1)
			k.Problem = text
			h.Targets = append(h.Targets, k)
		}
		v.Observe(h)
	}
	if grown := int64(heap()) - int64(before); grown > 2*newest.MaxHostBytes || v.fleet.Bytes() > newest.MaxHostBytes {
		t.Errorf("%d MiB, counted %d", grown>>20, v.fleet.Bytes()>>20)
	}
	if d, ok := v.Host("h39", "", 1, 0, noon); !ok || d.Knobs == 0 {
		t.Error("the newest word was not kept")
	}
	for h := range v.fleet.All() {
		v.fleet.Drop(h)
	}
	if v.fleet.Bytes() != 0 || v.fleet.Problems("w") != 0 || len(v.fleet.On("w")) != 0 {
		t.Errorf("%d bytes, %d problems of no host", v.fleet.Bytes(), v.fleet.Problems("w"))
	}
}

func TestAFleetThatSaysMuchTakesBoundedMemory(t *testing.T) {
	v := New(Config{Pool: "p"})
	long := strings.Repeat("x", 3000)
	for i := range maxJobHosts + 200 {
		c := word(fmt.Sprint("h", i), 20)
		for j := range 300 {
			c.Jobs = append(c.Jobs, colocation.Job{ID: fmt.Sprint(j), Problem: long, Location: long})
		}
		v.Observe(c)
		if v.jobs.bytes > maxJobBytes || len(v.jobs.hosts) > maxJobHosts {
			t.Fatalf("%d hosts, %d bytes", len(v.jobs.hosts), v.jobs.bytes)
		}
	}
	sum := 0
	for _, h := range v.jobs.hosts {
		sum += h.cost
	}
	if sum != v.jobs.bytes {
		t.Errorf("%d bytes, counted %d", sum, v.jobs.bytes)
	}
	if _, ok := v.Colocation(fmt.Sprint("h", maxJobHosts+199), time.Now()); !ok {
		t.Error("the last that spoke is not there")
	}
}

func TestOldDecisionsCostLittleMemory(t *testing.T) {
	v := New(Config{Round: time.Second, Dir: t.TempDir()})
	for n := range maxDecisions + 1000 {
		p := at(n, "shop")
		v.Observe(p)
		v.Observe(answer(p, trimtab.Written))
	}
	s := v.workloads.all["shop"]
	if s.stored() != maxDecisions || len(v.book.order) != maxDecisions {
		t.Errorf("%d are kept, %d in order", s.stored(), len(v.book.order))
	}
	if len(s.decisions) > mostFresh || v.book.cost > mostFresh*2000 {
		t.Errorf("%d decisions of %d bytes are in memory", len(s.decisions), v.book.cost)
	}
	if most := int64(maxDecisions * 300); v.book.shelf.bytes > most {
		t.Errorf("%d bytes are on the shelf, want at most %d", v.book.shelf.bytes, most)
	}
	all := allPages(t, v, "shop", MaxDecisions, noon)
	if len(all) != maxDecisions || all[len(all)-1].Sequence != 1001 {
		t.Errorf("%d can be read, the oldest is %s", len(all), all[len(all)-1].Plan)
	}
	v.book.forget(noon.Add(time.Duration(maxDecisions) * time.Second))
	if s.stored() != 1000 || v.book.shelf.bytes > 2*segmentBytes {
		t.Errorf("%d are kept, %d bytes on the shelf", s.stored(), v.book.shelf.bytes)
	}
}

func TestDecisionsOfAllWorkloadsTogetherAreBoundedAndTheOldestGoFirst(t *testing.T) {
	v := New(Config{Round: time.Second})
	for n := range maxDecisions + 50 {
		v.Observe(at(n, []string{"even", "odd"}[n%2]))
	}
	even, odd := v.workloads.all["even"].decisions, v.workloads.all["odd"].decisions
	if len(even)+len(odd) != maxDecisions || len(v.book.order) != maxDecisions {
		t.Fatalf("%d and %d are kept", len(even), len(odd))
	}
	if even[0].Sequence != 51 || odd[0].Sequence != 52 {
		t.Errorf("oldest are %s and %s", even[0].Plan, odd[0].Plan)
	}
}

func TestThePastOfManyWorkloadsTogetherIsBounded(t *testing.T) {
	v := New(Config{Round: time.Second})
	points := func() (n int) {
		for _, s := range v.workloads.all {
			for _, l := range s.series.levels {
				n += len(l)
			}
		}
		return n
	}
	const workloads = 1500
	names := make([]string, workloads)
	for w := range names {
		names[w] = fmt.Sprint("w", w)
	}
	for n := range 200 {
		for w := range workloads {
			e := report(n, .5)
			e.Workload = names[w]
			v.Observe(e)
		}
	}
	if n := points(); n > levels*allLevelPoints*5/4 {
		t.Errorf("%d points", n)
	}
}
