package analyzer

import (
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/quantity"
)

func TestARemarkOnAGroupIsANoteWhileItIsRepeated(t *testing.T) {
	of := func(k int, instance, note string) *trimtab.Sample {
		s := &trimtab.Sample{Workload: "w", Host: "h", Instance: instance, Quantity: quantity.Remarks, Source: "cgroup", Time: at(k), Note: note}
		if note != "" {
			s.Value = 1
		}
		return s
	}
	for name, c := range map[string]struct {
		of        []*trimtab.Sample
		after     time.Duration
		want, not string
	}{
		"one":                    {[]*trimtab.Sample{of(0, "", "group a is idle")}, 0, "group a is idle", "instance"},
		"of two instances":       {[]*trimtab.Sample{of(0, "2", "group b is idle"), of(0, "1", "group a is idle")}, 0, "instance 1: group a is idle (and there is something of 1 more instance)", "group b"},
		"it is over":             {[]*trimtab.Sample{of(0, "", "group a is idle"), of(1, "", "")}, time.Second, "", "idle"},
		"it came before":         {[]*trimtab.Sample{of(1, "", ""), of(0, "", "group a is idle")}, time.Second, "", "idle"},
		"it is not repeated":     {[]*trimtab.Sample{of(0, "", "group a is idle")}, 3 * time.Minute, "", "idle"},
		"a very long one is cut": {[]*trimtab.Sample{of(0, "", strings.Repeat("long ", 1000))}, 0, "…", strings.Repeat("long ", 300)},
	} {
		a := queueAnalyzer(t, FromSpans)
		for _, s := range c.of {
			a.Step(at(1), s)
		}
		w := a.find("w")
		got := w.remarks.note(at(0).Add(c.after))
		if !strings.Contains(got, c.want) || strings.Contains(got, c.not) {
			t.Errorf("%s: %q, want %q and not %q", name, got, c.want, c.not)
		}
	}
	a := queueAnalyzer(t, FromSpans)
	a.Step(at(1), of(0, "", "group a is idle"))
	var e *trimtab.Estimate
	for k := range 3 {
		e = later(e, second(a, k, 0.12, 0, answers(at(k), 10, 0.02)))
	}
	if e == nil || len(e.Notes) != 1 || e.Notes[0] != "group a is idle" {
		t.Errorf("%+v: want a note", e)
	}
	for i := range 3 * maxRemarks {
		a.Step(at(9), of(8, strings.Repeat("x", i), "group a is idle"))
	}
	if n := len(a.find("w").remarks); n > maxRemarks {
		t.Errorf("%d remarks are kept", n)
	}
}
