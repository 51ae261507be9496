package knobs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/actuator/kinds"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// realGroups makes groups with all controllers; else it skips, with the proof.
func realGroups(t *testing.T, names ...string) {
	t.Helper()
	root, err := hostfs.CPUHierarchy()
	for _, name := range names {
		var g *cgroup.Group
		if err == nil {
			g, err = cgroup.Create(root, name, "cpuset", "freezer", "memory")
		}
		if err != nil {
			t.Skipf("no writable groups: %v", err)
		}
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			if err := g.Remove(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

// One line of the file turns the cores and the weight of real groups beside their
// quotas, whatever mode they are in, and all comes back.
func TestAFileSharesCoresAndWeightOfRealGroups(t *testing.T) {
	prefix := fmt.Sprintf("trimtab-test-%d-", os.Getpid())
	realGroups(t, prefix+"act", prefix+"recommend")
	cfg, err := config.Parse("trimtab.yaml", fmt.Appendf(nil, `
objective: drf
pool: {cpu: 2, resources: {cores: 2, weight: 1000}}
workloads:
  - {name: act, mode: act, slo: {latency: 200ms, fraction: 0.95}, knob: {cgroup: %sact, cpu: {min: 0.1}, resources: {cores: {min: 1}, weight: {}}}}
  - {name: recommend, mode: recommend, slo: {latency: 200ms, fraction: 0.95}, knob: {cgroup: %[1]srecommend, cpu: {min: 0.1}, resources: {cores: {min: 1}, weight: {}}}}
`, prefix))
	if err != nil {
		t.Fatal(err)
	}
	all, err := Of(kinds.All(), cfg, "h")
	if err != nil {
		t.Fatal(err)
	}
	c := actuator.Config{Host: "h", Pool: cfg.Pool.Name, Dir: t.TempDir(), Reopen: kinds.Reopen, Measure: Measure(kinds.All(), cfg, all)}
	if c.Targets, c.Finders, err = OpenAll(kinds.All(), all); err != nil {
		t.Fatal(err)
	}
	a, err := actuator.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	plan := &trimtab.Plan{Pool: cfg.Pool.Name, Epoch: 1, Sequence: 1, Step: 1, Last: true, Time: time.Now(), Capacity: 2, Lease: 30,
		Capacities: map[string]float64{"cpu": 2, "cores": 2, "weight": 1000}}
	h := a.Holding()
	if h.Capacity["cores"] < 1 || h.Capacity["weight"] != 0 {
		t.Errorf("measured %v", h.Capacity)
	}
	before := kernelFiles(t, prefix)
	for _, k := range h.Targets {
		if k.Problem != "" {
			t.Fatalf("%s: %s", k.Name(), k.Problem)
		}
		v := map[string]float64{"cpu": 1, "cores": 1, "weight": 50}[k.Resource]
		plan.Actions = append(plan.Actions, trimtab.Action{KnobID: k.KnobID, Expect: k.Now, Set: trimtab.Units(v), Mode: trimtab.Act})
	}
	for _, r := range a.Handle(t.Context(), plan).Results {
		want := trimtab.Written
		if r.Workload == "recommend" {
			want = trimtab.Recommended
		}
		if r.Status != want && !(r.Status == trimtab.Equal && r.Before == trimtab.Units(1)) {
			t.Errorf("%+v, want %s", r, want)
		}
	}
	set := kernelFiles(t, prefix)
	for name, was := range before {
		if changed, acts := set[name] != was, strings.HasPrefix(name, prefix+"act"); changed && !acts {
			t.Errorf("%s became %q", name, set[name])
		}
	}
	if slices.Equal(sortedValues(before), sortedValues(set)) {
		t.Error("the kernel has what it had")
	}
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, now := range kernelFiles(t, prefix) {
		if now != before[name] {
			t.Errorf("%s has %q after the stop, and had %q", name, now, before[name])
		}
	}
}

func sortedValues(m map[string]string) (out []string) {
	for k, v := range m {
		out = append(out, k+v)
	}
	slices.Sort(out)
	return out
}

// kernelFiles reads what the kernel has of the groups, by group and file.
func kernelFiles(t *testing.T, prefix string) map[string]string {
	t.Helper()
	root, err := hostfs.CPUHierarchy()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, dir := range []string{root, hostfs.Sibling(root, "cpuset")} {
		for _, file := range []string{"cpu.cfs_quota_us", "cpu.max", "cpu.shares", "cpu.weight", "cpuset.cpus"} {
			found, err := filepath.Glob(filepath.Join(dir, prefix+"*", file))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range found {
				b, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				out[filepath.Base(filepath.Dir(name))+"/"+file] = string(b)
			}
		}
	}
	return out
}
