package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/trimtab/trimtab/config"
)

func TestAPoolMayShareOneOtherResourceUnderAnyObjective(t *testing.T) {
	for _, objective := range []string{"njc", "egalitarian", "social", "nash", "resource-fair", "drf", "sum(u)", "min(u)"} {
		c, err := config.Parse("llc.yaml", fmt.Appendf(nil, `
pool: {resources: {llc: 11}}
objective: %q
workloads:
  - {name: a, slo: {latency: 1s, fraction: 0.9}, knob: {cgroup: a, llc: {min: 2, max: 8}}}
  - {name: b, slo: {latency: 1s, fraction: 0.9}, knob: {cgroup: b, llc: {}}}
`, objective))
		if err != nil {
			t.Errorf("%s: %v", objective, err)
			continue
		}
		if s := c.Pool.Shares(); c.Pool.Resource() != "llc" || c.Pool.Capacity() != 11 || len(s) != 1 || s[0].Name != "llc" || s[0].Unit != 1 {
			t.Errorf("%s: %+v", objective, s)
		}
		a, b := c.Workloads[0].Knob.Bounds(), c.Workloads[1].Knob.Bounds()
		if a == nil || *a != (config.Bounds{Min: 2, Max: 8}) || b == nil || *b != (config.Bounds{Min: 1, Max: 11}) {
			t.Errorf("%s: bounds %+v and %+v", objective, a, b)
		}
	}
}

func TestWhatDoesNotFitAPoolOfOneOtherResourceIsRefused(t *testing.T) {
	for _, c := range []struct{ knob, want string }{
		{"{cgroup: a, cpu: {max: 2}}", "a cgroup knob turns cpu, and the pool shares llc"},
		{"{cgroup: a, cpu: {max: 2}, llc: {max: 3}}", "a cgroup knob turns cpu, and the pool shares llc"},
		{"{cgroup: a}", "has no bounds"},
		{"{cgroup: a, llc: {min: 2.5}}", "want a whole number of ways"},
		{"{cgroup: a, llc: {min: 8, max: 3}}", "min 8 is more than max 3"},
		{"{cgroup: a, llc: {min: 12}}", "min 12 is more than max 11"},
		{"{cgroup: a, membw: {min: 12}}", `the pool shares no "membw"`},
		{"{process: {dir: /a}, workers: {max: 2}}", "a process knob turns workers, and the pool shares llc"},
	} {
		_, err := config.Parse("llc.yaml", fmt.Appendf(nil, "pool: {resources: {llc: 11}}\nworkloads:\n  - {name: a, slo: {latency: 1s, fraction: 0.9}, knob: %s}\n", c.knob))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.knob, err, c.want)
		}
	}
}
