package site

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/kinds"
	"github.com/trimtab/trimtab/agent/knobs"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/supervise"
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
	knob, modes := "{}", [2]string{"act", "act"}
	more, workload, _ := strings.Cut(more, "; ")
	switch key, value, _ := strings.Cut(more, ": "); key {
	case "cpu":
		knob = value
	case "modes":
		modes = [2]string(strings.Fields(value))
	case "pool":
		text = strings.Replace(text, "{cpu: 0.66}", value, 1)
	default:
		text += more + "\n"
	}
	text += "workloads:\n"
	for i, g := range groups {
		text += fmt.Sprintf("  - {name: w%d, slo: {latency: 100ms, fraction: 0.99}, knob: {cgroup: %q, cpu: %s}, mode: %s}\n", i, g, knob, modes[i])
	}
	if workload != "" {
		text += "  - " + workload + "\n"
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
		Above  string
		unit   float64
		why    string
	}{
		"nothing is said":                    {"", same, nil, "shop", 0.33, ""},
		"it is asked for":                    {"cpu: {cap: auto}", same, nil, "shop", 0.33, ""},
		"instances of a pattern":             {"", [2]string{"shop/a-*", "shop/b"}, map[string]string{"shop/a-1/cpu.max": "max 100000\n"}, "shop", 0.33, ""},
		"others are in the group, too":       {"", same, map[string]string{"shop/cron/cpu.max": "max 100000\n"}, "", 0, "others, such as shop/cron"},
		"processes are in the group itself":  {"", same, map[string]string{"shop/cgroup.procs": "17\n"}, "", 0, "processes of its own"},
		"no group in common":                 {"", apart, nil, "", 0, "no group of their own in common"},
		"groups at the top":                  {"", [2]string{"a", "b"}, nil, "", 0, "no group of their own in common"},
		"a quota for each is asked for":      {"cpu: {cap: always}", same, nil, "", 0, ""},
		"the pool may have other hosts":      {"nats: {url: \"nats://127.0.0.1:4222\"}", same, nil, "", 0, "may have other hosts"},
		"other hosts may join":               {"nats: {listen: \"127.0.0.1:4222\"}", same, nil, "", 0, "may have other hosts"},
		"another host is named":              {"; {name: far, slo: {latency: 100ms, fraction: 0.99}, knob: {host: other, cgroup: shop/far, cpu: {}}, mode: act}", same, nil, "", 0, "may have other hosts"},
		"never a quota, in spite of others":  {"cpu: {cap: never}", same, map[string]string{"shop/cron/cpu.max": "max 100000\n"}, "shop", 0.33, ""},
		"never a quota, on several hosts":    {"cpu: {cap: never}; {name: far, slo: {latency: 100ms, fraction: 0.99}, knob: {host: other, cgroup: shop/far, cpu: {cap: never}}, mode: act}", same, nil, "shop", 0.33, ""},
		"quotas move between rounds":         {"fast: {mode: act}", same, nil, "", 0, ""},
		"a workload is only watched":         {"modes: act recommend", same, nil, "", 0, "not in mode act"},
		"nothing is set":                     {"modes: recommend recommend", same, nil, "", 0, ""},
		"best-effort jobs use what is left":  {"beside: {jobs: {}}", same, nil, "", 0, "best-effort jobs"},
		"a best-effort workload has a quota": {"; {name: batch, class: best-effort, slo: {latency: 1s, fraction: 0.5}, knob: {cgroup: batch, cpu: {}}, mode: act}", same, nil, "", 0, "batch has a limit of another kind"},
		"several resources":                  {"pool: {cpu: 0.66, memory: 1GiB}\nobjective: drf", same, nil, "", 0, "decides amounts"},
		"one application":                    {"objective: end-to-end\nplanning: {entry: w0}", same, nil, "", 0, "decides amounts"},
	} {
		cfg := shareFile(t, c.more, c.groups, c.files)
		kinds := kinds.All()
		all, err := knobs.Of(kinds, cfg, "h")
		if err != nil {
			t.Fatal(err)
		}
		at, no := knobs.Share(cfg, kinds, all, "h")
		if at.Group != c.Above || c.why == "" != (no.Why == "") || no.Do == "" != (no.Why == "") || !strings.Contains(no.Why, c.why) {
			t.Errorf("%s: %+v, %+v", name, at, no)
		}
		if said := knobs.Remark(cfg, kinds, "h"); said != "" != no.Groups || no.Groups && !strings.Contains(said, c.why) {
			t.Errorf("%s: each is said to have a quota: %q", name, said)
		}
		for _, d := range all {
			if math.Abs(d.At.ShareUnit-c.unit) > 1e-12 {
				t.Errorf("%s: the usual weight is %v cores, want %v", name, d.At.ShareUnit, c.unit)
			}
		}
	}
}

func TestAPoolWithoutControlGroupsIsNotToldHowTheyWouldShare(t *testing.T) {
	cfg := shareFile(t, "", [2]string{"shop/a", "shop/b"}, nil)
	all, err := knobs.Of(kinds.All(), cfg, "h")
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		all[i].Kind = "kubernetes"
	}
	if at, no := knobs.Share(cfg, kinds.All(), all, "h"); at != (knobs.Above{}) || no != (knobs.Obstacle{}) {
		t.Errorf("%+v, %+v", at, no)
	}
}

// The least of what a workload may have at most and what all may have is what it can use: a
// quota keeps a max that is less than the pool.
func TestAShareHasAQuotaOfItsMaxAlone(t *testing.T) {
	for bounds, want := range map[string]float64{"{}": 0, "{max: 0.66}": 0, "{max: 4}": 0, "{max: 0.4}": 0.4} {
		cfg := shareFile(t, "cpu: "+bounds, [2]string{"shop/a", "shop/b"}, nil)
		kinds := kinds.All()
		all, err := knobs.Of(kinds, cfg, "h")
		if err != nil {
			t.Fatal(err)
		}
		knobs.Share(cfg, kinds, all, "h")
		for _, d := range all {
			k, err := openAllOf(kinds, d)
			if err != nil || d.At.ShareMost != want {
				t.Fatalf("%s: %v, want %v: %v", bounds, d.At.ShareMost, want, err)
			}
			err = errors.Join(k.Traits().Shared.Adopt(t.Context(), trimtab.Units(0.66)), k.Close())
			quota, bad := os.ReadFile(filepath.Join(d.At.Root, d.At.Path, "cpu.max"))
			if text := map[float64]string{0: "max 100000", 0.4: "40000 100000"}[want]; err != nil || bad != nil || strings.TrimSpace(string(quota)) != text {
				t.Errorf("%s: the quota is %q, want %q: %v, %v", bounds, quota, text, err, bad)
			}
		}
	}
}

// openAllOf opens the knob of a workload that shares.
func openAllOf(kinds []actuator.Kind, d knobs.Declared) (actuator.Knob, error) {
	all, _, err := knobs.OpenAll(kinds, []knobs.Declared{d})
	if err != nil {
		return nil, err
	}
	return all[0].Knob, nil
}

// What the next actuator turns at the same place, and in the same way, stays as it is.
func TestAReloadKeepsWhatIsStillTurnedAtItsPlace(t *testing.T) {
	of := func(cfg *config.Config) turns {
		known := kinds.All()
		all, err := knobs.Of(known, cfg, "h")
		if err != nil {
			t.Fatal(err)
		}
		above, _ := knobs.Share(cfg, known, all, "h")
		return turns{cfg.Pool.Name, "locks", all, supervise.KeyOf(above)}
	}
	const shares, quotas = "", "cpu: {cap: always}"
	for name, c := range map[string]struct {
		more   string
		change func(*config.Config)
		keeps  [2]bool
		Above  bool
	}{
		"a larger pool":         {shares, func(c *config.Config) { c.Pool.CPU = 0.9 }, [2]bool{true, true}, true},
		"another max":           {shares, func(c *config.Config) { c.Workloads[0].Knob.CPU.Max = 0.5 }, [2]bool{true, true}, true},
		"another SLO":           {shares, func(c *config.Config) { c.Workloads[0].SLO.Fraction = 0.9 }, [2]bool{true, true}, true},
		"quotas, not shares":    {shares, func(c *config.Config) { c.Workloads[0].Knob.CPU.Cap = config.CapAlways }, [2]bool{}, false},
		"one only recommends":   {shares, func(c *config.Config) { c.Workloads[0].Mode = trimtab.Recommend }, [2]bool{}, false},
		"another group for one": {quotas, func(c *config.Config) { c.Workloads[1].Knob.Cgroup = "shop/c" }, [2]bool{true, false}, true},
		"one is gone":           {quotas, func(c *config.Config) { c.Workloads = c.Workloads[:1] }, [2]bool{true, false}, true},
		// Its group is a stranger to the others then, and they have quotas.
		"one that shares is gone": {shares, func(c *config.Config) { c.Workloads = c.Workloads[:1] }, [2]bool{}, false},
	} {
		cfg := shareFile(t, c.more, [2]string{"shop/a", "shop/b"}, nil)
		before, next := of(cfg), *cfg
		next.Workloads = append([]config.Workload(nil), cfg.Workloads...)
		for i := range next.Workloads {
			cpu := *next.Workloads[i].Knob.CPU
			next.Workloads[i].Knob.CPU = &cpu
		}
		c.change(&next)
		after := of(&next)
		keeps, above := before.kept(&after)
		for i, want := range c.keeps {
			if got := keeps(trimtab.KnobID{Workload: fmt.Sprint("w", i), Resource: trimtab.CPU}); got != want {
				t.Errorf("%s: w%d stays as it is: %v, want %v", name, i, got, want)
			}
		}
		if above != c.Above {
			t.Errorf("%s: the group above stays as it is: %v, want %v", name, above, c.Above)
		}
	}
}
