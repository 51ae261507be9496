package analyzer_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/merge"
)

func TestAnEstimatePointsToTheSlowestRequestsOfAllPartitions(t *testing.T) {
	c := config("w")
	c.Partitions = 2
	a := make1(t, c)
	var all []trimtab.Exemplar
	for p := range 2 {
		s := sketch("w", 0, 40, 36)
		s.Partition = p
		for i := range trimtab.MaxExemplars {
			s.Exemplars = append(s.Exemplars, trimtab.Exemplar{TraceID: fmt.Sprintf("%032x", 10*p+i+1), SpanID: fmt.Sprintf("%016x", 1),
				Latency: trimtab.Seconds(float64(8-2*i-p) / 10)})
		}
		all = append(all, s.Exemplars...)
		a.Step(sec(1.6), s)
	}
	e := estimates(t, a.Step(sec(1.7), nil))["w"]
	if e == nil || len(e.Exemplars) != trimtab.MaxExemplars {
		t.Fatalf("estimate %+v", e)
	}
	if diff := cmp.Diff(merge.Slowest(all, nil), e.Exemplars); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	a.Step(sec(2.6), sketch("w", 1, 40, 40))
	a.Step(sec(2.6), func() trimtab.Value { s := sketch("w", 1, 40, 40); s.Partition = 1; return s }())
	if e := estimates(t, a.Step(sec(2.7), nil))["w"]; e == nil || e.Exemplars != nil {
		t.Errorf("they stayed: %+v", e)
	}
}
