package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trimtab/trimtab/config"
)

// fastFile is a site whose quotas move between rounds, below the group shop.slice.
func fastFile(t *testing.T, systemd bool) *config.Config {
	t.Helper()
	root := t.TempDir()
	groups := []string{"shop.slice/web/cpu.max", "shop.slice/cpu.max"}
	if systemd {
		groups = append(groups, "init.scope/cpu.max")
	}
	for _, name := range groups {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("max 100000\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := config.Parse("trimtab.yaml", fmt.Appendf(nil, `
pool: {cpu: 1}
actuator: {cgroup_root: %q, lock_dir: %q}
fast: {mode: act, parent: shop.slice}
workloads:
  - {name: web, slo: {latency: 100ms, fraction: 0.99}, knob: {cgroup: shop.slice/web, force: true, cpu: {min: 0.1, max: 1}}, mode: act}
`, root, t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestDoctorAndCheckSayThatTheGroupAboveCannotBeSet(t *testing.T) {
	cfg := fastFile(t, true)
	for name, found := range map[string][]Finding{"check": NotInForce(t.Context(), cfg), "doctor": Examine(t.Context(), cfg, Location{Host: "h"})} {
		said := false
		for _, f := range found {
			said = said || f.Subject == "fast.parent" && f.Level == FoundBad && strings.Contains(f.Text, "belongs to the systemd unit shop.slice") && strings.Contains(f.Hint, "take fast.parent out")
		}
		if !said {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

func TestAGroupAboveWithTheNameOfASliceMayBeSetWithoutSystemd(t *testing.T) {
	if found := NotInForce(t.Context(), fastFile(t, false)); len(found) > 0 {
		t.Errorf("%+v", found)
	}
}

func TestCheckSaysThatBestEffortJobsMayTakeOfThePool(t *testing.T) {
	cfg, err := config.Parse("trimtab.yaml", fmt.Appendf(nil, "pool: {cpu: 4}\nactuator: {cgroup_root: %q}\ncolocate: {}\nworkloads:\n"+
		"  - {name: web, slo: {latency: 200ms, fraction: 0.95}, knob: {cgroup: web, cpu: {max: 4}}}\n  - {name: batch, class: best-effort, knob: {cgroup: batch/*}}\n", t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	found := NotInForce(t.Context(), cfg)
	if len(found) != 1 || !strings.Contains(found[0].Text, "best-effort jobs may take what services do not have set, also of the pool's 4 cores") {
		t.Errorf("%+v", found)
	}
}
