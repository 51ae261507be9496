package view

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
)

func TestRepeatedStepsOfAnAnswerAddNothing(t *testing.T) {
	v := testView()
	for _, step := range []int{1, 2, 2, 2, 7, 2, 1, 2} {
		p := plan(1, 2)
		p.Step, p.Cause = step, trimtab.Cause{Kind: codes.CauseApply, Ref: "2-1", By: "x"}
		v.Observe(p)
	}
	if a := v.Applied("2-1"); a == nil || len(a.Actions) != 2 {
		t.Errorf("%+v", a)
	}
}

// heap is what is in use.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestAWorkloadThatIsConfiguredLaterIsShownHoweverManyWereInvented(t *testing.T) {
	v := testView()
	for i := range maxWorkloads + 10 {
		v.Observe(&trimtab.Estimate{Workload: fmt.Sprint("invented ", i), Time: noon})
	}
	v.Configure(Config{Pool: "cpu", Resource: "cpu", Workloads: []Workload{{Name: "late", Mode: trimtab.Act}}})
	if _, ok := v.Explain("late", 0, noon); !ok || len(v.workloads.all) > maxWorkloads {
		t.Errorf("%v, %d workloads", ok, len(v.workloads.all))
	}
}

func TestAClockThatWasAheadDoesNotFreezeWhatIsShown(t *testing.T) {
	v := testView()
	now := time.Now()
	ahead, after := .1, .9
	v.Observe(&trimtab.Estimate{Workload: "shop", Time: now.AddDate(10, 0, 0), Performance: &ahead, Allocation: &ahead})
	v.Observe(&trimtab.Estimate{Workload: "shop", Time: now, Performance: &after, Allocation: &after})
	e, _ := v.ExplainWith("shop", 0, 10, now)
	if e.Performance == nil || *e.Performance != after {
		t.Errorf("performance %v", e.Performance)
	}
	h, _ := v.History("shop", time.Time{}, now)
	if n := len(h.Time); n == 0 || h.Time[n-1] > float64(now.Unix()+60) {
		t.Errorf("history %v", h.Time)
	}
	v.Observe(plan(1, 2))
	p := plan(2, 3)
	p.Time = now.AddDate(10, 0, 0)
	v.Observe(p)
	if d, _, _ := v.Decisions("shop", "", 10, now); d.Total != 2 && now.Sub(noon) < maxAge {
		t.Errorf("%d decisions", d.Total)
	}
}

func TestAnInventedEpochIsBelievedOnlyUntilTheTrueOneOutlastsIt(t *testing.T) {
	for name, invented := range map[string]trimtab.Plan{
		"epoch": {Epoch: math.MaxUint64, Sequence: math.MaxUint64}, "sequence": {Epoch: 2, Sequence: math.MaxUint64},
		"time": {Epoch: 9, Sequence: 1, Time: noon.AddDate(100, 0, 0)},
	} {
		synctest.Test(t, func(t *testing.T) {
			v, n := testView(), 1
			next := func(sequence int) *trimtab.Plan {
				p := plan(uint64(sequence), 2)
				p.Time, p.Audit = time.Now(), &trimtab.Audit{}
				return p
			}
			for ; n <= 3; n++ {
				v.Observe(next(n))
				time.Sleep(time.Second)
			}
			lie := next(1)
			lie.Epoch, lie.Sequence = invented.Epoch, invented.Sequence
			if !invented.Time.IsZero() {
				lie.Time = invented.Time
			}
			v.Observe(lie)
			for range 3 { // rounds, in which the later term may be the true one
				time.Sleep(time.Second)
				v.Observe(next(n))
				n++
			}
			if got := v.LastPlan().ID(); got != lie.ID() {
				t.Errorf("%s: %s replaced the plan of a later term at once", name, got)
			}
			for range 70 {
				time.Sleep(time.Second)
				v.Observe(next(n))
				n++
			}
			want := next(n - 1).ID()
			if got := v.LastPlan().ID(); got != want || v.Status(time.Now()).Plan != want {
				t.Errorf("%s: shows %s, the newest is %s", name, got, want)
			}
			if d, _, _ := v.Decisions("shop", "", 500, time.Now()); d.Decisions[0].Plan != want || d.Total != len(v.book.order) {
				t.Errorf("%s: %d decisions of %d, the newest %s", name, d.Total, len(v.book.order), d.Decisions[0].Plan)
			}
			cost := 0
			for _, d := range v.workloads.all["shop"].decisions {
				cost += d.cost()
			}
			if cost != v.book.cost {
				t.Errorf("%s: cost %d, counted %d", name, cost, v.book.cost)
			}
			if a, ok := v.Audited(); !ok || a.Plan != want {
				t.Errorf("%s: audit of %s", name, a.Plan)
			}
		})
	}
}

func TestARepeatedWordOfAFilterIsReadOnce(t *testing.T) {
	if n := len(wordsOf("a b A b a")); n != 2 {
		t.Errorf("%d words", n)
	}
}
