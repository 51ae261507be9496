package cgroup_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/cgroup"
)

// systemd skips unless this is the guest with a live systemd, whose units a test
// may make and reload.
func systemd(t *testing.T) {
	t.Helper()
	if os.Getenv("TRIMTAB_GUEST") != "systemd" {
		t.Skip("it makes units and reloads systemd: run make guest-short")
	}
}

func systemctl(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("systemctl", args...).CombinedOutput(); err != nil {
		t.Fatalf("systemctl %v: %v\n%s", args, err, out)
	}
}

const v2 = "/sys/fs/cgroup"

// startUnits starts services in the slice, each with its settings, and returns
// their groups. The guest is thrown away, and they with it.
func startUnits(t *testing.T, settings map[string]string) map[string]string {
	t.Helper()
	groups := map[string]string{}
	for name, lines := range settings {
		text := "[Service]\nSlice=shop.slice\nExecStart=/bin/sleep 1000\n" + strings.ReplaceAll(lines, " ", "\n") + "\n"
		if err := os.WriteFile("/run/systemd/system/"+name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		groups[name] = "shop.slice/" + name
	}
	systemctl(t, "daemon-reload")
	systemctl(t, append([]string{"start"}, slices.Collect(maps.Keys(groups))...)...)
	return groups
}

// unitActuator is an actuator with one knob, whose plans set it.
func unitActuator(t *testing.T, knob actuator.Knob, lower, upper float64) (*actuator.Actuator, func(sequence uint64, expect trimtab.Amount, v float64) trimtab.Result) {
	t.Helper()
	a, err := actuator.Open(t.Context(), actuator.Config{
		Host: "h", Pool: "p", Dir: t.TempDir(),
		Reopen: func(undo []byte) (actuator.Knob, error) {
			if k, err := cgroup.ReopenMemory(undo); err == nil {
				return k, nil
			}
			if k, err := cgroup.ReopenWeight(undo); err == nil {
				return k, nil
			}
			return cgroup.Reopen(undo)
		},
		Targets: []actuator.Target{{KnobID: trimtab.KnobID{Workload: "w", Resource: knob.Resource()}, Knob: knob, Min: lower, Max: upper, Mode: trimtab.Act}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(context.Background()) })
	return a, func(sequence uint64, expect trimtab.Amount, v float64) trimtab.Result {
		t.Helper()
		o := a.Handle(t.Context(), &trimtab.Plan{
			Pool: "p", Epoch: 1, Sequence: sequence, Step: 1, Last: true, Time: time.Now(), Capacity: upper, Lease: 600,
			Capacities: map[string]float64{knob.Resource(): upper},
			Actions:    []trimtab.Action{{KnobID: trimtab.KnobID{Pool: "p", Host: "h", Workload: "w", Resource: knob.Resource()}, Expect: expect, Set: trimtab.Units(v), Mode: trimtab.Act}},
		})
		if o.Refused != "" || len(o.Results) != 1 {
			t.Fatalf("%+v", o)
		}
		return o.Results[0]
	}
}

// The reason for the next tests, and a sentence of docs/operations.md.
func TestSystemdSetsTheGroupOfEveryUnitAgainAtDaemonReload(t *testing.T) {
	systemd(t)
	want := map[string]string{"quota.service": "50000 100000\n", "delegated-quota.service": "50000 100000\n", "delegated.service": unlimited}
	groups := startUnits(t, map[string]string{
		"quota.service": "CPUQuota=50%", "delegated-quota.service": "CPUQuota=50% Delegate=yes", "delegated.service": "Delegate=yes",
	})
	for _, group := range groups {
		if err := os.WriteFile(filepath.Join(v2, group, "cpu.max"), []byte("30000 100000"), 0); err != nil {
			t.Fatal(err)
		}
	}
	systemctl(t, "daemon-reload")
	for name, group := range groups {
		if got := kernelQuota(t, v2, group); got != want[name] {
			t.Errorf("%s has %q, want %q", name, got, want[name])
		}
	}
}

func TestAQuotaOfASystemdUnitOutlivesDaemonReloadAndIsRestored(t *testing.T) {
	systemd(t)
	before := map[string]trimtab.Amount{"a.service": trimtab.Units(0.5), "b.service": trimtab.Unlimited(), "c.service": trimtab.Units(0.3333)}
	groups := startUnits(t, map[string]string{
		"a.service": "CPUQuota=50% Delegate=yes", "b.service": "Delegate=yes", "c.service": "CPUQuota=33.33% CPUQuotaPeriodSec=50ms Delegate=yes",
	})
	actuators := map[string]*actuator.Actuator{}
	plans := map[string]func(uint64, trimtab.Amount, float64) trimtab.Result{}
	for name, group := range groups {
		actuators[name], plans[name] = unitActuator(t, openKnob(t, cgroup.Config{Root: v2, Path: group}), 0.01, 2)
	}
	for i, v := range []float64{0.257, 0.01} {
		// systemd stores whole percents, rounded down.
		want := trimtab.Units(float64(int(v*100)) / 100)
		for name, act := range plans {
			expect := actuators[name].Holding().Targets[0].Now
			if r := act(uint64(i+1), expect, v); r.Status != trimtab.Written || !r.Found.Equal(want, 1e-9) {
				t.Fatalf("%s, %v: %+v", name, v, r)
			}
		}
		systemctl(t, "daemon-reload")
		for name, a := range actuators {
			a.Tick(t.Context())
			if h := a.Holding().Targets[0]; h.Problem != "" || !h.Now.Equal(want, 1e-9) {
				t.Errorf("%s after a reload: %+v", name, h)
			}
		}
	}
	for name, a := range actuators {
		if err := a.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if v, err := openKnob(t, cgroup.Config{Root: v2, Path: groups[name]}).Read(t.Context()); err != nil || !v.Equal(before[name], 1e-9) {
			t.Errorf("%s is left with %v, %v, want %v", name, v, err, before[name])
		}
	}
}

func TestAWeightOfASystemdUnitOutlivesDaemonReloadAndIsRestored(t *testing.T) {
	systemd(t)
	groups := startUnits(t, map[string]string{"weighty.service": "CPUWeight=300 Delegate=yes"})
	a, act := unitActuator(t, openWeight(t, v2, groups["weighty.service"]), 1, 10_000)
	if r := act(1, trimtab.Units(300), 42); r.Status != trimtab.Written {
		t.Fatalf("%+v", r)
	}
	systemctl(t, "daemon-reload")
	if a.Tick(t.Context()); a.Holding().Targets[0].Now != trimtab.Units(42) || a.Holding().Targets[0].Problem != "" {
		t.Errorf("after a reload: %+v", a.Holding().Targets[0])
	}
	if err := a.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if v, err := openWeight(t, v2, groups["weighty.service"]).Read(t.Context()); err != nil || v != trimtab.Units(300) {
		t.Errorf("it is left with %v, %v", v, err)
	}
}

func TestAnIdleSystemdUnitIsRestoredAsIdle(t *testing.T) {
	systemd(t)
	groups := startUnits(t, map[string]string{"idle.service": "CPUWeight=idle Delegate=yes"})
	a, act := unitActuator(t, openWeight(t, v2, groups["idle.service"]), 1, 10_000)
	if r := act(1, trimtab.Units(0), 42); r.Status != trimtab.Written {
		t.Fatalf("%+v", r)
	}
	if got := strings.TrimSpace(content(t, v2, groups["idle.service"], "cpu.weight")); got != "42" {
		t.Errorf("its weight is %s", got)
	}
	if err := a.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if got := strings.TrimSpace(content(t, v2, groups["idle.service"], "cpu.idle")); got != "1" {
		t.Errorf("cpu.idle is %s", got)
	}
}

func TestAMemoryLimitOfASystemdUnitOutlivesDaemonReloadAndIsRestored(t *testing.T) {
	systemd(t)
	startUnits(t, map[string]string{"memory.service": "MemoryMax=64M Delegate=yes"})
	// So that its group is not taken for one of the kernel's own files.
	const path = "shop.slice/_memory.service"
	knob := openMemory(t, cgroup.Config{Root: v2, Path: path})
	a, act := unitActuator(t, knob, 16*mib, 1024*mib)
	if r := act(1, trimtab.Units(64*mib), 128*mib); r.Status != trimtab.Written {
		t.Fatalf("%+v", r)
	}
	systemctl(t, "daemon-reload")
	a.Tick(t.Context())
	if h := a.Holding().Targets[0]; h.Problem != "" || h.Now.Value != 128*mib {
		t.Errorf("after a reload: %+v", h)
	}
	if err := a.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if v, err := openMemory(t, cgroup.Config{Root: v2, Path: path}).Read(t.Context()); err != nil || v.Value != 64*mib {
		t.Errorf("it is left with %v, %v", v, err)
	}
}

// Another's systemctl set-property is a change like any other.
func TestWhatAnotherSetsForASystemdUnitIsReported(t *testing.T) {
	systemd(t)
	knob := openKnob(t, cgroup.Config{Root: v2, Path: startUnits(t, map[string]string{"set.service": "CPUQuota=50% Delegate=yes"})["set.service"]})
	a, act := unitActuator(t, knob, 0.01, 2)
	if r := act(1, trimtab.Units(0.5), 0.3); r.Status != trimtab.Written {
		t.Fatalf("%+v", r)
	}
	for _, c := range []struct{ quota, want string }{{"50%", "put back by somebody else to its baseline 0.5"}, {"70%", "changed by somebody else to 0.7"}} {
		systemctl(t, "set-property", "--runtime", "set.service", "CPUQuota="+c.quota)
		a.Tick(t.Context())
		if p := a.Holding().Targets[0].Problem; !strings.Contains(p, c.want) {
			t.Errorf("%s: problem %q", c.quota, p)
		}
	}
}

func TestASystemdUnitThatWasNotDelegatedIsRefused(t *testing.T) {
	systemd(t)
	path := startUnits(t, map[string]string{"plain.service": "CPUQuota=50%"})["plain.service"]
	knob := openKnob(t, cgroup.Config{Root: v2, Path: path})
	if err := knob.Write(t.Context(), trimtab.Units(0.3)); !errors.Is(err, trimtab.ErrRefused) {
		t.Errorf("error %v, want refused", err)
	}
	forced := openKnob(t, cgroup.Config{Root: v2, Path: path, Force: true})
	if err := forced.Write(t.Context(), trimtab.Units(0.3)); err != nil {
		t.Error(err)
	}
}

// Such a group is the delegate's own: systemd leaves it alone.
func TestAGroupBelowADelegatedSystemdUnitIsWrittenDirectly(t *testing.T) {
	systemd(t)
	path := startUnits(t, map[string]string{"below.service": "Delegate=yes"})["below.service"]
	// The controllers are handed down once no process is in the unit's own group.
	inner := path + "/inner.service"
	if err := os.Mkdir(filepath.Join(v2, inner), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, pid := range strings.Fields(content(t, v2, path, "cgroup.procs")) {
		if err := os.WriteFile(filepath.Join(v2, inner, "cgroup.procs"), []byte(pid), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(v2, path, "cgroup.subtree_control"), []byte("+cpu"), 0); err != nil {
		t.Fatal(err)
	}
	k := openKnob(t, cgroup.Config{Root: v2, Path: inner})
	if err := k.Write(t.Context(), trimtab.Units(0.2575)); err != nil {
		t.Fatal(err)
	}
	systemctl(t, "daemon-reload")
	if got := kernelQuota(t, v2, inner); got != "25750 100000\n" {
		t.Errorf("it has %q", got)
	}
}
