package analyzer

import (
	"testing"
	"time"

	"github.com/trimtab/trimtab"
)

func TestWhatAFastLoopGrantedIsTheMeanOfItsTotals(t *testing.T) {
	var g grants
	var c counters
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	tell := func(after time.Duration, granted, stalled float64) map[string]float64 {
		at = at.Add(after)
		g.observe(&trimtab.Holding{Host: "h", Time: at, Targets: []trimtab.KnobState{{
			KnobID: trimtab.KnobID{Workload: "shop", Host: "h", Resource: "cpu"}, Fast: &trimtab.Fast{Granted: granted, Stalled: stalled}}}}, "shop", time.Second, &c)
		out := map[string]float64{}
		for _, in := range c.inputs(at) {
			out[in.Name] = in.Value
		}
		return out
	}
	tell(0, 10, 1)
	if got := tell(10*time.Second, 25, 2); got["granted"] != 1.5 || got["stalled"] != 0.1 {
		t.Errorf("%v, want 1.5 cores and a tenth of the time", got)
	}
	if got := tell(20*time.Second, 65, 2); got["granted"] != 2 || got["stalled"] != 0 {
		t.Errorf("%v after a holding that was lost, want 2 cores", got)
	}
	if got := tell(2*time.Second, 1, 0); got["granted"] != 2 {
		t.Errorf("%v: totals of another life say nothing", got)
	}
	if got := tell(2*time.Second, 2, 0); got["granted"] != 0.5 {
		t.Errorf("%v, want half a core", got)
	}
}
