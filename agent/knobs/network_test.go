package knobs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/kinds"
	"github.com/trimtab/trimtab/config"
)

// From the file to a real interface and back: a plan sets what two containers may
// send, and a restore from the journal alone takes it away. In mode recommend nothing
// is set.
func TestAPlanSetsWhatAWorkloadMaySend(t *testing.T) {
	for _, mode := range []string{"act", "recommend"} {
		t.Run(mode, func(t *testing.T) {
			base := fmt.Sprintf("trimtab-site-%d-%s", os.Getpid(), mode)
			root := t.TempDir()
			for _, i := range []string{"a", "b"} {
				ns := base + "-" + i
				if out, err := exec.Command("ip", "netns", "add", ns).CombinedOutput(); err != nil {
					t.Skipf("not tried: network namespaces cannot be made here: %v: %s", err, out)
				}
				t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", ns).Run() })
				if out, err := exec.Command("ip", "-n", ns, "link", "set", "lo", "up").CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				group := filepath.Join(root, "w-"+i)
				if err := os.Mkdir(group, 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(group, "cpu.max"), []byte("200000 100000\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			cfg, err := config.Parse("trimtab.yaml", fmt.Appendf(nil, `
pool: {cpu: 8, resources: {network: 20000000}}
objective: drf
actuator: {cgroup_root: %q}
workloads:
  - name: w
    mode: %s
    slo: {latency: 200ms, fraction: 0.95}
    knob:
      cgroup: w-*
      cpu: {min: 1, max: 4}
      resources: {network: {min: 1000000, max: 10000000}}
      interface: {name: lo, namespace: %s-*}
`, root, mode, base))
			if err != nil {
				t.Fatal(err)
			}
			known := kinds.All()
			all, err := Of(known, cfg, "h")
			if err != nil {
				t.Fatal(err)
			}
			c := actuator.Config{Host: "h", Pool: cfg.Pool.Name, Dir: t.TempDir(), Reopen: actuator.AnyOf(known), Measure: Measure(known, cfg, all), KeepOnStop: true}
			if c.Targets, c.Finders, err = OpenAll(known, all); err != nil {
				t.Fatal(err)
			}
			a, err := actuator.Open(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			plan := &trimtab.Plan{Pool: cfg.Pool.Name, Epoch: 1, Sequence: 1, Step: 1, Last: true, Time: time.Now(), Capacity: 8, Lease: 30,
				Capacities: map[string]float64{trimtab.Network: 20e6}}
			for _, k := range a.Holding().Targets {
				if k.Problem != "" {
					t.Errorf("%s: %s", k.Name(), k.Problem)
				}
				if k.Resource == trimtab.Network {
					plan.Actions = append(plan.Actions, trimtab.Action{KnobID: k.KnobID, Expect: k.Now, Set: trimtab.Units(2e6), Mode: trimtab.Mode(mode)})
				}
			}
			if len(plan.Actions) != 2 {
				t.Fatalf("%d interfaces, want those of two instances: %+v", len(plan.Actions), a.Holding())
			}
			rates := func() (n int) {
				for _, i := range []string{"a", "b"} {
					out, err := exec.Command("tc", "-n", base+"-"+i, "qdisc", "show", "dev", "lo").CombinedOutput()
					if err != nil {
						t.Fatalf("%v: %s", err, out)
					}
					n += strings.Count(string(out), "tbf 7472: root refcnt 2 rate 16Mbit")
				}
				return n
			}
			want, status := map[string]int{"act": 2}[mode], map[string]trimtab.Status{"act": trimtab.Written, "recommend": trimtab.Recommended}[mode]
			o := a.Handle(t.Context(), plan)
			for _, r := range o.Results {
				if r.Status != status {
					t.Errorf("%+v", r)
				}
			}
			if got := rates(); o.Refused != "" || got != want {
				t.Errorf("%d interfaces have the rate, want %d (%s)", got, want, o.Refused)
			}
			if err := a.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := actuator.Restore(t.Context(), c.Dir, kinds.Reopen); err != nil {
				t.Fatal(err)
			}
			if got := rates(); got != 0 {
				t.Errorf("%d interfaces have the rate after the restore", got)
			}
		})
	}
}
