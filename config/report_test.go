package config_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab/config"
)

func TestThousandsOfWorkloadsAreReported1000InASecondButEachOnceARound(t *testing.T) {
	for _, c := range []struct {
		workloads   int
		round, want time.Duration
	}{
		{10, 10 * time.Second, 2 * time.Second},
		{2000, 10 * time.Second, 2 * time.Second},
		{5000, 10 * time.Second, 5 * time.Second},
		{5000, 2 * time.Second, 2 * time.Second},
	} {
		var b strings.Builder
		fmt.Fprintf(&b, "pool: {cpu: %d}\nround: %v\nworkloads:\n", c.workloads, c.round)
		for i := range c.workloads {
			fmt.Fprintf(&b, "  - {name: w%d, slo: {latency: 100ms, fraction: 0.9}, knob: {cgroup: w%d, cpu: {min: 0.1, max: 1}}}\n", i, i)
		}
		got, err := config.Parse("many.yaml", []byte(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		if got.Analyzer.ReportInterval != c.want {
			t.Errorf("%d workloads, round %v: reports every %v, want %v", c.workloads, c.round, got.Analyzer.ReportInterval, c.want)
		}
	}
}
