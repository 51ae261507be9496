package site

import (
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/cgroup"
	"github.com/trimtab/trimtab/config"
)

func TestSamplesOfInstancesAndOfAFleetNameTheHost(t *testing.T) {
	cfg, err := config.Parse("trimtab.yaml", []byte(`
pool: {cpu: 4}
workloads:
  - {name: web, slo: {latency: 200ms, fraction: 0.95}, knob: {cgroup: "shop/web@*.service", cpu: {max: 4}}}
  - {name: other, slo: {latency: 200ms, fraction: 0.95}, knob: {cgroup: other, cpu: {max: 4}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	for fleet, want := range map[bool]string{false: "", true: "h"} {
		groups := groupsOf(cfg, "h", fleet)
		if groups[0].Host != "h" || groups[1].Host != want {
			t.Errorf("fleet %v: %+v", fleet, groups)
		}
	}
	cfg.Workloads[1].Knob.Host = "h"
	if groups := groupsOf(cfg, "h", true); groups[1].Host != "" {
		t.Errorf("what one host alone has: %+v", groups)
	}
}

func TestOneWhoReadsOnlyPatternsMayBeSilentAndIsReady(t *testing.T) {
	pattern, plain := cgroup.Target{Workload: "web", Host: "h", Path: "web@*"}, cgroup.Target{Workload: "other", Path: "other"}
	for want, targets := range map[trimtab.Kind][]cgroup.Target{"": {pattern}, trimtab.KindSample: {pattern, plain}} {
		if got := groupWork(cgroup.Config{Targets: targets, Interval: time.Second}); got.Every != want || got.Round != time.Second {
			t.Errorf("%+v: %+v", targets, got)
		}
	}
}
