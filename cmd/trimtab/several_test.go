package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/site"
)

const mib = 1 << 20

// severalConfig is two workloads that share one core and 512 MiB.
func severalConfig(t testing.TB, root string) *config.Config {
	t.Helper()
	text := fmt.Sprintf(`
pool: {cpu: 1, unit: 0.01, step: 0.1, memory: 512MiB}
objective: drf
round: 1s
lease: 1m
guard: {max_fall: 0.5, max_lowered: 1, max_moved: 0.5, dead_band: 0.02, reversal_window: 0s}
analyzer: {report_interval: 500ms, partitions: 1}
actuator: {cgroup_root: %q}
storage: {path: %q}
web: {listen_address: "127.0.0.1:0"}
otlp: {grpc: "127.0.0.1:0", http: "off"}
jaeger: {grpc: "off"}
workloads:
  - {name: hungry, slo: {latency: 100ms, fraction: 0.95}, knob: {cgroup: hungry, cpu: {min: 0.05, max: 0.9}, memory: {min: 32MiB, max: 448MiB}}, mode: act}
  - {name: modest, slo: {latency: 100ms, fraction: 0.95}, knob: {cgroup: modest, cpu: {min: 0.05, max: 0.9}, memory: {min: 32MiB, max: 448MiB}}, mode: act}
`, root, t.TempDir())
	c, err := config.Parse("several.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// limits is where the workloads have their memory limits, in MiB.
type limits func(name string) float64

func readLimit(t testing.TB, file string) float64 {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Error(err)
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(string(b)), 64)
	if err != nil {
		t.Error(err)
	}
	return v / mib
}

// fixtureLimits adds memory to the tree of files of version 2.
func fixtureLimits(t testing.TB) (quotas, limits) {
	q := fixtureQuotas(t)
	for _, name := range []string{"hungry", "modest"} {
		for file, text := range map[string]string{"memory.max": strconv.Itoa(256*mib) + "\n", "memory.current": strconv.Itoa(48*mib) + "\n", "memory.stat": fmt.Sprintf("inactive_file %d\n", 8*mib)} {
			if err := os.WriteFile(filepath.Join(q.root, name, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return q, func(name string) float64 { return readLimit(t, filepath.Join(q.root, name, "memory.max")) }
}

// use plays the kernel: the files say what a workload uses of what it has, as
// it needs it. A quota is charged by the period of 100 ms.
type use struct {
	root             string
	spent, throttled map[string]int
	periods          int
}

func (u *use) tell(t testing.TB, name string, cores, needsCores, mem, needsMem float64) {
	u.spent[name] += int(min(cores, needsCores) * 100_000)
	if cores < needsCores {
		u.throttled[name]++
	}
	for file, text := range map[string]string{
		"memory.current": strconv.Itoa(int(min(mem-1, needsMem)*mib)+8*mib) + "\n",
		"cpu.stat":       fmt.Sprintf("usage_usec %d\nnr_periods %d\nnr_throttled %d\nthrottled_usec 0\n", u.spent[name], u.periods, u.throttled[name]),
	} {
		whole := filepath.Join(u.root, name, file)
		if err := os.WriteFile(whole+".new", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(whole+".new", whole); err != nil {
			t.Fatal(err)
		}
	}
}

// kernelLimits are real groups of version 1, in the hierarchies of cpu and of
// memory.
func kernelLimits(t testing.TB) (quotas, limits) {
	q := kernelQuotas(t)
	root := hostfs.Sibling(q.root, "memory")
	if root == "" {
		parent := hostfs.Sibling(filepath.Dir(q.root), "memory")
		if parent == "" {
			t.Skip("no memory hierarchy of version 1 beside that of cpu")
		}
		root = filepath.Join(parent, filepath.Base(q.root))
	}
	base, err := cgroup.Create(filepath.Dir(root), filepath.Base(root))
	if err != nil {
		t.Skipf("memory hierarchy is not writable: %v", err)
	}
	groups := []*cgroup.Group{base}
	// Far from equal, so that equal demands move both.
	for name, has := range map[string][2]int{"hungry": {30000, 352 * mib}, "modest": {70000, 160 * mib}} {
		if err := os.WriteFile(filepath.Join(q.root, name, "cpu.cfs_quota_us"), []byte(strconv.Itoa(has[0])), 0o644); err != nil {
			t.Fatal(err)
		}
		g, err := cgroup.Create(root, name)
		if err != nil {
			t.Fatal(err)
		}
		groups = append(groups, g)
		if err := os.WriteFile(filepath.Join(root, name, "memory.limit_in_bytes"), []byte(strconv.Itoa(has[1])), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for i := len(groups) - 1; i >= 0; i-- {
			if err := groups[i].Remove(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
	return q, func(name string) float64 { return readLimit(t, filepath.Join(root, name, "memory.limit_in_bytes")) }
}

// Cores go to the one workload and memory to the other, by one plan and under
// one guard, in the files of real groups.
func TestAPlanMovesCoresAndMemoryOfRealGroups(t *testing.T) {
	t.Parallel()
	q, m := kernelLimits(t)
	runSeveral(t, q, m, nil)
}

func TestAPlanMovesCoresAndMemoryOfGroupsInTheFormOfVersion2(t *testing.T) {
	t.Parallel()
	q, m := fixtureLimits(t)
	runSeveral(t, q, m, &use{root: q.root, spent: map[string]int{}, throttled: map[string]int{}})
}

// In real groups no process runs, so that no use is measured: there both limits
// have to move towards equal shares. Where use is told, to who needs it.
func runSeveral(t *testing.T, q quotas, m limits, u *use) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	s, err := site.Open(ctx, severalConfig(t, q.root), site.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	closed := false
	defer func() {
		if !closed {
			_ = s.Close()
		}
	}()
	type limit struct{ cores, memory float64 }
	baseline := map[string]limit{}
	for _, name := range []string{"hungry", "modest"} {
		baseline[name] = limit{q.read(name), m(name)}
	}
	plans := make(chan *trimtab.Plan, 1000)
	stop, err := s.Bus().Subscribe(ctx, bus.Subscription{Kind: trimtab.KindPlan, Handle: func(_ context.Context, d bus.Delivery) error {
		if p, ok := d.Value.(*trimtab.Plan); ok {
			select {
			case plans <- p:
			default:
			}
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	load := newSender(t, s.OTLPAddress(), q)
	// In MiB: hungry is content with little, modest needs 340.
	needs := map[string]float64{"hungry": 100, "modest": 340}
	load.also = func(name string) float64 { return min(1, m(name)/needs[name]) }
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	there := func() bool {
		if u == nil {
			return q.read("hungry") >= 0.35 && m("hungry") <= 335
		}
		return q.read("hungry") >= 0.52 && m("modest") >= 265
	}
	for !there() {
		select {
		case err := <-s.Failed():
			t.Fatal(err)
		case <-ctx.Done():
			t.Logf("last audit: %s", lastAudit(plans))
			t.Fatalf("hungry has %v cores and %v MiB, modest %v and %v: %s", q.read("hungry"), m("hungry"), q.read("modest"), m("modest"), statusOf(t, s))
		case <-tick.C:
		}
		if err := load.send(ctx); err != nil {
			t.Fatal(err)
		}
		hungry, modest := both(q.read)
		hungryMem, modestMem := both(m)
		if hungry+modest > 1+1e-6 || hungryMem+modestMem > 512 {
			t.Fatalf("%v + %v cores and %v + %v MiB are given, of 1 and 512", hungry, modest, hungryMem, modestMem)
		}
		if u != nil {
			u.periods++
			for name, needsCores := range load.need {
				if m(name) < min(needs[name], 256)*9/8 && m(name) < 256 {
					t.Fatalf("%s has %v MiB, and with the margin %v are in use", name, m(name), needs[name]*9/8)
				}
				u.tell(t, name, q.read(name), needsCores, m(name), needs[name])
			}
		}
	}
	moved, audited := map[string]bool{}, false
	for len(plans) > 0 {
		p := <-plans
		for _, a := range p.Actions {
			moved[a.Resource] = true
		}
		audited = audited || p.Audit != nil && len(p.Audit.Resources) == 2 && len(p.Audit.Workloads) == 2
	}
	var a view.Audited
	getJSON(t, s, "/api/v1/fairness", &a)
	var said strings.Builder
	printFairness(&said, &a, true)
	for _, want := range []string{"what drf wants: ", "memory ", "512MiB", "hungry", "modest", "50%"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("no %q in\n%s", want, said.String())
		}
	}
	if !moved["cpu"] || !moved["memory"] || !audited {
		t.Errorf("plans moved %v, audited: %v", moved, audited)
	}
	if u != nil { // what would be in use could not be taken away
		for name := range needs {
			u.tell(t, name, q.read(name), 0.1, m(name), 40)
		}
	}
	closed = true
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"hungry", "modest"} {
		if got := (limit{q.read(name), m(name)}); got != baseline[name] {
			t.Errorf("after the end %s has %v, want the baseline %v", name, got, baseline[name])
		}
	}
}

// lastAudit is for the log of a test that failed.
func lastAudit(plans chan *trimtab.Plan) string {
	var last *trimtab.Plan
	for len(plans) > 0 {
		if p := <-plans; p.Audit != nil {
			last = p
		}
	}
	b, _ := json.MarshalIndent(last, "", " ")
	return string(b)
}
