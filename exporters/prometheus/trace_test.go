package prometheus

import (
	"fmt"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/metric"
)

func TestDurationsPointToTheTraceOfTheirDecision(t *testing.T) {
	set := metric.NewSet()
	e := New(set)
	o := &trimtab.Outcome{Pool: "p", Epoch: 3, Sequence: 17, Time: noon, Took: .003, Results: []trimtab.Result{{KnobID: trimtab.KnobID{Pool: "p", Workload: "w", Resource: "cpu"}, Status: trimtab.Written}}}
	e.Observe(o)
	if got := exemplars(t, set); len(got) != 0 {
		t.Errorf("without traces: %v", got)
	}
	e.SetTraces(func(pool string, epoch, sequence uint64) string {
		return fmt.Sprintf("%s%031d", pool[:1], epoch*100+sequence)
	})
	e.Observe(o)
	if got := exemplars(t, set); len(got) != 1 || got[0] != "p0000000000000000000000000000317" {
		t.Errorf("exemplars %v", got)
	}
}

func exemplars(t *testing.T, set *metric.Set) (ids []string) {
	t.Helper()
	var m dto.Metric
	if err := set.Histogram("trimtab_action_duration_seconds").(interface{ Write(*dto.Metric) error }).Write(&m); err != nil {
		t.Fatal(err)
	}
	for _, b := range m.Histogram.Bucket {
		if b.Exemplar != nil {
			ids = append(ids, b.Exemplar.Label[0].GetValue())
		}
	}
	return ids
}
