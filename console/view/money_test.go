package view

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/quantity"
)

// reserving is the view of worked, with two pods that reserve so many cores; nil: unknown.
func reserving(now time.Time, reserved ...*float64) *Model {
	v := worked(trimtab.Units(1.9), now, 12, func(int) (float64, float64) { return 2, .95 })
	var knobs []trimtab.KnobState
	for i, r := range reserved {
		knobs = append(knobs, trimtab.KnobState{KnobID: trimtab.KnobID{Pool: "p", Host: "h", Workload: "shop", Instance: string(rune('a' + i)), Resource: "cpu"}, Knob: "test",
			Now: trimtab.Units(2), Baseline: trimtab.Units(2), Since: now, Max: 8, Status: &trimtab.KnobStatus{Reserved: r}})
	}
	v.Observe(&trimtab.Holding{Pool: "p", Host: "h", Time: now, LeaseLeft: 30, Targets: knobs})
	return v
}

func cores(v float64) *float64 { return &v }

func TestAReportTellsWhatPodsReserveUseAndNeed(t *testing.T) {
	now := time.Now()
	v := reserving(now, cores(1.5), cores(2))
	s := v.workloads.all["shop"]
	e := *s.estimate.Value
	e.Inputs = []trimtab.Input{{Name: string(quantity.Usage), Value: 1.1}}
	s.estimate.Value = &e
	r := v.Report(now.Add(-time.Minute), now)
	m := r.Workloads[0].Money
	// The curve meets the SLO from 2 cores on for 10 requests/s; 12 may come.
	if m == nil || m.Reserved != 3.5 || m.Pods != 2 || m.Used == nil || *m.Used != 1.1 || m.Needed == nil || *m.Needed < 2.3 || *m.Needed > 2.5 {
		t.Fatalf("%+v", m)
	}
	section, ok := r.money()
	if all := section.Rows[len(section.Rows)-1]; !ok || all[0] != "all" || all[2] != "3.5" || strings.Contains(section.Text[0], "of which all three") {
		t.Errorf("%+v", section)
	}
	if doc := r.Document(); !slices.ContainsFunc(doc.Sections, func(s Section) bool { return s.Title == section.Title }) {
		t.Error("the document does not have it")
	}
}

func TestWhatIsNotKnownOfRequestsIsMissingInAReport(t *testing.T) {
	now := time.Now()
	v := reserving(now, cores(1.5), nil)
	if r := v.Report(now.Add(-time.Minute), now); r.Workloads[0].Money != nil {
		t.Errorf("%+v with a pod of which it is unknown", r.Workloads[0].Money)
	} else if _, ok := r.money(); ok {
		t.Error("a section without a workload")
	}
	v = reserving(now, cores(1.5))
	s := v.workloads.all["shop"]
	e := *s.estimate.Value
	e.Hold = &trimtab.Held{Code: codes.HeldStale, Input: "load"}
	s.estimate.Value = &e
	r := v.Report(now.Add(-time.Minute), now)
	m := r.Workloads[0].Money
	section, ok := r.money()
	if !ok || m == nil || m.Used != nil || m.Needed != nil || len(section.Rows) != 1 || section.Rows[0][3] != Missing || section.Rows[0][4] != Missing || !strings.Contains(section.Text[0], "of the 0 of 1") {
		t.Errorf("%+v, %+v", m, section)
	}
}
