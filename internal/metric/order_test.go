package metric

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestSeriesAreInTheOrderOfTheirLabels(t *testing.T) {
	s := NewSet()
	var want []string
	for _, workload := range []string{"b", "a", "ab", "c"} {
		for _, percentile := range []string{"99", "50"} {
			s.Gauge("trimtab_workload_latency_seconds", workload, percentile).Set(1)
			want = append(want, fmt.Sprint(workload, " ", percentile))
		}
	}
	slices.Sort(want)
	families, err := s.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range families {
		if f.GetName() != "trimtab_workload_latency_seconds" {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			got = append(got, labels["workload"]+" "+labels["percentile"])
		}
	}
	// Labels are in the order of their names.
	slices.SortFunc(want, func(a, b string) int {
		wa, pa, _ := strings.Cut(a, " ")
		wb, pb, _ := strings.Cut(b, " ")
		return strings.Compare(pa+" "+wa, pb+" "+wb)
	})
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
