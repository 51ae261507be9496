package site

import (
	"testing"

	"github.com/trimtab/trimtab/config"
)

func TestAHostLeavesTheKnobsOfOthersAlone(t *testing.T) {
	cfg, err := config.Parse("trimtab.yaml", []byte(`
pool: {cpu: 4}
actuator: {cgroup_root: /none}
workloads:
  - {name: here, slo: {latency: 200ms, fraction: 0.95}, knob: {host: h1, cgroup: here, cpu: {min: 1, max: 2}}}
  - {name: there, slo: {latency: 200ms, fraction: 0.95}, knob: {host: h2, cgroup: there, cpu: {min: 1, max: 2}}}
  - {name: anywhere, slo: {latency: 200ms, fraction: 0.95}, knob: {cgroup: anywhere, cpu: {min: 1, max: 2}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string][]string{"h1": {"here", "anywhere"}, "h2": {"there", "anywhere"}, "h3": {"anywhere"}} {
		knobs, err := knobsOf(cfg, host)
		if err != nil {
			t.Fatal(err)
		}
		if !elsewhere(cfg, host) {
			t.Errorf("%s believes that no other host has a knob", host)
		}
		groups := groupsOf(cfg, host, false)
		if len(knobs) != len(want) || len(groups) != len(want) {
			t.Fatalf("%s has %d knobs and reads %d groups, want %d", host, len(knobs), len(groups), len(want))
		}
		for i, name := range want {
			if knobs[i].Workload != name || groups[i].Workload != name {
				t.Errorf("%s has the knob of %s and reads %s, want %s", host, knobs[i].Workload, groups[i].Workload, name)
			}
		}
	}
}
