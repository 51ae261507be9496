package site

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trimtab/trimtab/config"
)

// shareFile is a site of two services in the groups named, on a host with these files.
func shareFile(t *testing.T, more string, groups [2]string, files map[string]string) *config.Config {
	t.Helper()
	root := t.TempDir()
	all := map[string]string{"cpu.max": "max 100000\n", "cpu.weight": "100\n", "cgroup.procs": ""}
	for name, text := range files {
		all[name] = text
	}
	for _, g := range groups {
		for dir := g; dir != "."; dir = filepath.Dir(dir) {
			for _, f := range []string{"cpu.max", "cpu.weight", "cgroup.procs"} {
				if _, set := all[dir+"/"+f]; !set {
					all[dir+"/"+f] = all[f]
				}
			}
		}
	}
	for name, text := range all {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text := fmt.Sprintf(`
pool: {cpu: 0.66}
actuator: {cgroup_root: %q, lock_dir: %q}
`, root, t.TempDir())
	bounds, mode := "{cap: auto}", "act"
	if rest, ok := strings.CutPrefix(more, "cap: "); ok {
		bounds = "{cap: " + rest + "}"
	} else if rest, ok := strings.CutPrefix(more, "mode: "); ok {
		mode = rest
	} else {
		text += more + "\n"
	}
	text += "workloads:\n"
	for i, g := range groups {
		text += fmt.Sprintf("  - {name: w%d, slo: {latency: 100ms, fraction: 0.99}, knob: {cgroup: %q, cpu: %s}, mode: %s}\n", i, g, bounds, mode)
	}
	cfg, err := config.Parse("trimtab.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestAPoolSharesByWeightWhereItsGroupsHaveAGroupOfTheirOwnInCommon(t *testing.T) {
	same, apart := [2]string{"shop/a", "shop/b"}, [2]string{"shop/a", "mail/b"}
	for name, c := range map[string]struct {
		more   string
		groups [2]string
		files  map[string]string
		above  string
		unit   float64
		why    string
	}{
		"a group of their own":              {"", same, nil, "shop", 0.33, ""},
		"instances of a pattern":            {"", [2]string{"shop/a-*", "shop/b"}, map[string]string{"shop/a-1/cpu.max": "max 100000\n"}, "shop", 0.33, ""},
		"the group is not there yet":        {"", same, nil, "shop", 0.33, ""},
		"others are in the group, too":      {"", same, map[string]string{"shop/cron/cpu.max": "max 100000\n"}, "", 0, "others, such as shop/cron"},
		"processes are in the group itself": {"", same, map[string]string{"shop/cgroup.procs": "17\n"}, "", 0, "processes of its own"},
		"no group in common":                {"", apart, nil, "", 0, "no group of their own in common"},
		"groups at the top":                 {"", [2]string{"a", "b"}, nil, "", 0, "no group of their own in common"},
		"a quota for each is asked for":     {"cap: always", same, nil, "", 0, ""},
		"the pool may have other hosts":     {"nats: {url: \"nats://127.0.0.1:4222\"}", same, nil, "", 0, "other hosts"},
		"nothing is said":                   {"cap: ''", same, nil, "", 0, ""},
		"never a quota, in spite of others": {"cap: never", same, map[string]string{"shop/cron/cpu.max": "max 100000\n"}, "shop", 0.33, ""},
		"quotas move between rounds":        {"fast: {mode: act}", same, nil, "", 0, ""},
		"a workload is only watched":        {"mode: recommend", same, nil, "", 0, "not in mode act"},
	} {
		cfg := shareFile(t, c.more, c.groups, c.files)
		kinds := kinds()
		all, err := knobsOf(kinds, cfg, "h")
		if err != nil {
			t.Fatal(err)
		}
		at, why := sharing(cfg, kinds, all)
		if at.group != c.above || c.why == "" != (why == "") || !strings.Contains(why, c.why) {
			t.Errorf("%s: %+v, %q", name, at, why)
		}
		for _, d := range all {
			if math.Abs(d.at.ShareUnit-c.unit) > 1e-12 {
				t.Errorf("%s: the usual weight is %v cores, want %v", name, d.at.ShareUnit, c.unit)
			}
		}
	}
}
