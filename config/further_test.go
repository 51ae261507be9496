package config_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/config"
)

func TestSeveralResourcesGetUnitsOfTheirKind(t *testing.T) {
	text, err := os.ReadFile("testdata/good/several.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse("several.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	want := []config.Share{{"cpu", 8, 0.005, 2.665}, {"memory", 16 << 30, 16 << 20, 160 << 20}, {"llc", 20, 1, 10}, {"membw", 100, 1, 10}}
	if got := c.Pool.Shares(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
	checkout, report := &c.Workloads[0].Knob, &c.Workloads[1].Knob
	if b, ok := checkout.BoundsOf("llc"); !ok || b.Min != 2 || b.Max != 20 {
		t.Errorf("llc %+v, %v: want max filled in", b, ok)
	}
	if b, ok := checkout.BoundsOf("memory"); !ok || b.Min != 512<<20 || b.Max != 12<<30 || b.Default != 4<<30 {
		t.Errorf("memory %+v, %v", b, ok)
	}
	if _, ok := report.BoundsOf("memory"); ok {
		t.Error("report has no memory knob")
	}
}

func TestOneResourceStaysWhatItWas(t *testing.T) {
	c, err := config.Parse("one.yaml", []byte("pool: {cpu: 8}\nworkloads:\n  - {name: a, slo: {latency: 1s, fraction: 0.9}, knob: {cgroup: a, cpu: {max: 2}}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if s := c.Pool.Shares(); len(s) != 1 || s[0].Name != "cpu" || s[0].Capacity != 8 {
		t.Errorf("%+v", s)
	}
	if s := (&config.Pool{}).Shares(); s != nil {
		t.Errorf("no capacity: %+v", s)
	}
}

func TestUnitsOfFurtherResourcesAreRound(t *testing.T) {
	for capacity, want := range map[float64]float64{20: 1, 1000: 1, 100: 1, 2.5: 0.002, 1e10: 1e7, 5500: 5, 1 << 20: 1000} {
		p := config.Pool{CPU: 1, Resources: map[string]float64{"x": capacity}}
		if got := p.Shares()[1].Unit; got < want*0.999999 || got > want*1.000001 {
			t.Errorf("capacity %v: unit %v, want %v", capacity, got, want)
		}
	}
	for capacity, want := range map[config.Bytes]float64{1 << 20: 4096, 16 << 30: 16 << 20, 1 << 40: 1 << 30} {
		p := config.Pool{CPU: 1, Memory: capacity}
		if got := p.Shares()[1].Unit; got != want {
			t.Errorf("memory %v: unit %v, want %v", capacity, got, want)
		}
	}
}

func TestCoresAreSharedInWholeOnesAndSwitchesNotAtAll(t *testing.T) {
	const text = "objective: drf\npool: {cpu: 8, resources: {cores: 8, weight: 1000}}\nworkloads:\n  - {name: a, slo: {latency: 1s, fraction: 0.9}, knob: {cgroup: a, cpu: {max: 2}, resources: {cores: {min: 1, max: 4}, weight: {max: 400}}}}\n"
	c, err := config.Parse("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if b, ok := c.Workloads[0].Knob.BoundsOf("cores"); !ok || b != (config.Bounds{Min: 1, Max: 4}) {
		t.Errorf("%+v, %v", b, ok)
	}
	for from, to := range map[string][2]string{
		"min: 1, max: 4":       {"min: 1, max: 3.5", "max is 3.5, want a whole number of physical cores"},
		"cores: 8, weight":     {"cores: 8, running: 4, weight", "running is a switch, which no pool shares"},
		"{cores: {min: 1, max": {"{core: {min: 1, max", `did you mean "cores"`},
	} {
		if _, err := config.Parse("f", []byte(strings.Replace(text, from, to[0], 1))); err == nil || !strings.Contains(err.Error(), to[1]) {
			t.Errorf("%s: %v, want %q", to[0], err, to[1])
		}
	}
}

func TestAMemoryLimitThatNoPoolSharesFollowsTheNeed(t *testing.T) {
	parse := func(pool, memory string) *config.Knob {
		t.Helper()
		c, err := config.Parse("sized.yaml", fmt.Appendf(nil, "pool: {cpu: 8%s}\nobjective: drf\nworkloads:\n  - {name: a, slo: {latency: 1s, fraction: 0.9}, knob: {cgroup: a, cpu: {max: 2}%s}}\n", pool, memory))
		if err != nil {
			t.Fatal(err)
		}
		if k := &c.Workloads[0].Knob; k.Memory == nil || k.Sized(&c.Pool) {
			return k
		}
		return nil
	}
	if m := parse("", ", memory: {max: 4GiB}").Memory; m.Min != 64<<20 || m.Max != 4<<30 || m.Margin != 0.07 {
		t.Errorf("what was left out: %+v", m)
	}
	if m := parse("", ", memory: {min: 1MiB, max: 2MiB, margin: 0.5}").Memory; m.Min != 1<<20 || m.Max != 2<<20 || m.Margin != 0.5 {
		t.Errorf("what was given: %+v", m)
	}
	if k := parse(", memory: 16GiB", ", memory: {max: 4GiB}"); k != nil {
		t.Errorf("memory that the pool shares: %+v", k.Memory)
	}
}

func TestMemoryAloneNeedsNeitherAnSLONorBoundsOfCPU(t *testing.T) {
	parse := func(workload string) (*config.Config, error) {
		return config.Parse("alone.yaml", fmt.Appendf(nil, "pool: {cpu: 8}\nworkloads:\n  - {name: a, %s}\n", workload))
	}
	c, err := parse("mode: act, knob: {cgroup: a, memory: {max: 4GiB}}")
	if err != nil {
		t.Fatal(err)
	}
	// Nor does a pool without CPU change that.
	ways, err := config.Parse("ways.yaml", []byte("pool: {resources: {llc: 11}}\nworkloads:\n  - {name: a, slo: {latency: 1s, fraction: 0.9}, knob: {cgroup: a, memory: {max: 4GiB}, llc: {max: 8}}}\n  - {name: b, knob: {cgroup: b, memory: {max: 4GiB}}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := &ways.Workloads[0].Knob, &ways.Workloads[1].Knob; !a.Sized(&ways.Pool) || a.MemoryAlone(&ways.Pool) || a.Bounds() == nil || a.Bounds().Max != 8 || !b.MemoryAlone(&ways.Pool) {
		t.Errorf("beside ways: %+v, %+v", a, b)
	}
	k := &c.Workloads[0].Knob
	_, cpu := k.BoundsOf(trimtab.CPU)
	b, memory := k.BoundsOf(trimtab.Memory)
	if !k.MemoryAlone(&c.Pool) || cpu || k.Bounds() != nil || !memory || b != (config.Bounds{Min: 64 << 20, Max: 4 << 30}) {
		t.Errorf("CPU %v, memory %+v", cpu, b)
	}
	for workload, want := range map[string]string{
		"knob: {cgroup: a, memory: {max: 4GiB}}, fallback: {demand: 1}":                                                                 "a fallback of a workload whose memory alone is planned",
		"knob: {cgroup: a, memory: {min: 1GiB}}":                                                                                        "memory has no max",
		"knob: {process: {dir: /a}, memory: {max: 4GiB}}":                                                                               "a process knob has no memory",
		"slo: {latency: 1s, fraction: 0.9}, knob: {cgroup: a, memory: {max: 4GiB}, concurrency: {gate: 127.0.0.1:80}}":                  "knob has no bounds",
		"slo: {latency: 1s, fraction: 0.9}, knob: {kubernetes: {namespace: s, deployment: d}, memory: {max: 1GiB}, replicas: {max: 3}}": "replicas are planned with the size of pods",
	} {
		if _, err := parse(workload); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", workload, err, want)
		}
	}
}
