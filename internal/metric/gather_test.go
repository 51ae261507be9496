package metric

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/proto"
)

// The registry is the slow and careful way to the same.
func TestGatherGivesWhatARegistryGives(t *testing.T) {
	s := NewSet()
	for _, w := range []string{"b", "a", "c d", "a\"b"} {
		s.Gauge("trimtab_workload_load", w).Set(1)
		for _, p := range []string{"99", "50"} {
			s.Gauge("trimtab_workload_latency_seconds", w, p).Set(2)
		}
		s.Counter("trimtab_workload_decisions_total", w, "act", "raise").Inc()
	}
	s.Histogram("trimtab_action_duration_seconds").Observe(0.1)
	other := prometheus.NewGauge(prometheus.GaugeOpts{Name: "other", Help: "Not in the table."})
	s.Registry().MustRegister(other)
	looked := 0
	s.Before(func() { looked++ })

	careful := prometheus.NewRegistry()
	careful.MustRegister(append(s.vectors, other)...)
	want, err := careful.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Gather()
	if err != nil || looked != 1 {
		t.Fatalf("%v, what comes before was called %d times", err, looked)
	}
	if len(got) != len(want) {
		t.Fatalf("%d families, want %d", len(got), len(want))
	}
	for i := range want {
		if !proto.Equal(got[i], want[i]) {
			t.Errorf("got %v\nwant %v", got[i], want[i])
		}
	}
}
