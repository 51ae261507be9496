package knobs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/gate"
	"github.com/trimtab/trimtab/actuator/kinds"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// patterned is a configuration with instances of web, and a plain group.
func patterned(t *testing.T, root, reserve string) *config.Config {
	t.Helper()
	cfg, err := config.Parse("trimtab.yaml", fmt.Appendf(nil, `
pool: {cpu: 4, memory: 1GiB}
objective: drf
actuator: {cgroup_root: %q, reserve: %s}
workloads:
  - name: web
    slo: {latency: 200ms, fraction: 0.95}
    knob: {cgroup: shop/web@*.service, force: true, cpu: {min: 3, max: 4}, memory: {min: 900MiB, max: 1GiB}}
  - name: other
    slo: {latency: 200ms, fraction: 0.95}
    knob: {cgroup: other, cpu: {min: 3, max: 4}}
`, root, reserve))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestEachInstanceOfAPatternHasTheKnobsAndBoundsOfTheWorkload(t *testing.T) {
	root := t.TempDir()
	for _, group := range []string{"shop/web@a.service", "shop/web@b.service", "other"} {
		dir := filepath.Join(root, group)
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "cpu.max"), []byte("max 100000\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	all, err := Of(kinds.All(), patterned(t, root, "{}"), "h")
	if err != nil {
		t.Fatal(err)
	}
	targets, finders, err := OpenAll(kinds.All(), all)
	if err != nil || len(targets) != 1 || targets[0].Workload != "other" || len(finders) != 1 || finders[0].Workload != "web" {
		t.Fatalf("targets %+v, finders %+v, %v", targets, finders, err)
	}
	found, err := finders[0].Find(t.Context())
	if err != nil || len(found) != 2 || found[1].Name != "b" {
		t.Fatalf("found %+v, %v", found, err)
	}
	knobs, err := finders[0].Open("b")
	if err != nil || len(knobs) != 2 {
		t.Fatalf("%+v, %v", knobs, err)
	}
	cpu, memory := knobs[0], knobs[1]
	if cpu.Resource != trimtab.CPU || cpu.Min != 3 || cpu.Max != 4 || cpu.Knob.String() != "cgroup v2 shop/web@b.service" {
		t.Errorf("%+v, %s", cpu, cpu.Knob)
	}
	if memory.Resource != trimtab.Memory || memory.Min != 900<<20 || memory.Max != 1<<30 {
		t.Errorf("%+v, %s", memory, memory.Knob)
	}
	if err := errors.Join(actuator.CloseTargets(targets), actuator.CloseTargets(knobs)); err != nil {
		t.Error(err)
	}
}

func TestEachSupervisedDirectoryOfAPatternHasTheKnobAndBoundsOfTheWorkload(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"web-a", "web-b", "mail"} {
		dir := filepath.Join(root, name)
		state := fmt.Sprintf(`{"supervisor":%d,"want":3}`, os.Getpid())
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "workers.max"), []byte("3\n"), 0o644),
			os.WriteFile(filepath.Join(dir, "workers.current"), []byte(state), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := config.Parse("trimtab.yaml", fmt.Appendf(nil, `
pool: {workers: 12}
workloads:
  - {name: web, slo: {latency: 200ms, fraction: 0.95}, knob: {process: {dir: %q}, workers: {min: 2, max: 4}}}
  - {name: mail, slo: {latency: 200ms, fraction: 0.95}, knob: {process: {dir: %q}, workers: {min: 1, max: 4}}}
`, filepath.Join(root, "web-*"), filepath.Join(root, "mail")))
	if err != nil {
		t.Fatal(err)
	}
	all, err := Of(kinds.All(), cfg, "h")
	if err != nil {
		t.Fatal(err)
	}
	targets, finders, err := OpenAll(kinds.All(), all)
	if err != nil || len(targets) != 1 || targets[0].Workload != "mail" || len(finders) != 1 || finders[0].Workload != "web" {
		t.Fatalf("targets %+v, finders %+v, %v", targets, finders, err)
	}
	if want := "process " + filepath.Join(root, "web-*"); finders[0].Pattern != want || len(finders[0].Like) != 1 || finders[0].Like[0].Max != 4 {
		t.Errorf("%+v, want %s", finders[0], want)
	}
	found, err := finders[0].Find(t.Context())
	if err != nil || len(found) != 2 || found[1].Name != "b" {
		t.Fatalf("found %+v, %v", found, err)
	}
	knobs, err := finders[0].Open("b")
	if err != nil || len(knobs) != 1 {
		t.Fatalf("%+v, %v", knobs, err)
	}
	if k := knobs[0]; k.Resource != trimtab.Workers || k.Min != 2 || k.Max != 4 || k.Knob.String() != "workers of "+filepath.Join(root, "web-b") {
		t.Errorf("%+v, %s", k, k.Knob)
	}
	if err := errors.Join(actuator.CloseTargets(targets), actuator.CloseTargets(knobs)); err != nil {
		t.Error(err)
	}
}

func TestTheCapacityOfAHostIsWhatItHasLessTheReserve(t *testing.T) {
	root, err := hostfs.CPUHierarchy()
	if err != nil {
		t.Skipf("no cpu hierarchy: %v", err)
	}
	cores, err := hostfs.CPUs(root)
	bytes, bad := hostfs.Memory(root)
	if err := errors.Join(err, bad); err != nil {
		t.Skipf("this host cannot be measured: %v", err)
	}
	for reserve, want := range map[string][2]float64{
		"{}":                           {cores, bytes},
		"{cpu: 0.25, memory: 64MiB}":   {cores - 0.25, bytes - 64<<20},
		"{cpu: 100000, memory: 90TiB}": {0, 0},
	} {
		cfg := patterned(t, root, reserve)
		all, err := Of(kinds.All(), cfg, "h")
		if err != nil {
			t.Fatal(err)
		}
		got, err := Measure(kinds.All(), cfg, all)()
		if err != nil || len(got) != 2 || got[trimtab.CPU] != want[0] || got[trimtab.Memory] != want[1] {
			t.Errorf("reserve %s: %v (%v), want %v", reserve, got, err, want)
		}
	}
}

func TestATreeOfPlainFilesIsNoHostToMeasure(t *testing.T) {
	cfg := patterned(t, t.TempDir(), "{}")
	all, err := Of(kinds.All(), cfg, "h")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Measure(kinds.All(), cfg, all)(); err != nil || len(got) > 0 {
		t.Errorf("%v, %v", got, err)
	}
	if Measure(kinds.All(), cfg, nil) != nil {
		t.Error("a host without cgroups is measured")
	}
}

func TestTheLimitsOfRequestsAtOneGateAreKnobsOfTheirOwn(t *testing.T) {
	cfg, err := config.Parse("trimtab.yaml", fmt.Appendf(nil, `
pool: {cpu: 4}
actuator: {cgroup_root: %q}
workloads:
  - name: shop
    slo: {latency: 200ms, fraction: 0.95}
    knob: {cgroup: shop, cpu: {max: 4}, concurrency: {gate: "unix:/run/shop.gate"}, rate: {gate: "unix:/run/shop.gate", max: 500, classes: {low: 20}}}
`, t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	all, err := Of(kinds.All(), cfg, "h")
	if err != nil || len(all) != 4 {
		t.Fatalf("%+v, %v", all, err)
	}
	var got []string
	for _, d := range all[1:] {
		if d.Kind != "gate" || len(d.Like) != 1 {
			t.Fatalf("%+v", d)
		}
		l := d.Like[0]
		k, err := gate.Kind().Open(d.At, l.Resource)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %q %v to %v, exact %t: %s", l.Resource, l.Instance, l.Min, l.Max, d.At.Exact, k))
	}
	if diff := cmp.Diff([]string{
		`concurrency "" 1 to 1000, exact false: gate unix:/run/shop.gate`,
		`rate "" 1 to 500, exact false: rate of gate unix:/run/shop.gate`,
		`rate "class=low" 20 to 20, exact true: rate of class low of gate unix:/run/shop.gate`,
	}, got); diff != "" {
		t.Error(diff)
	}
}
