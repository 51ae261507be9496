package memory

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/collector/poll/polltest"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/leak"
	"github.com/trimtab/trimtab/internal/metric"
	"github.com/trimtab/trimtab/quantity"
)

func TestMain(m *testing.M) { leak.Main(m) }

// tree is a hierarchy of plain files, which the test writes as the kernel would.
type tree struct {
	t    *testing.T
	root string
}

func (h tree) put(group string, files map[string]string) {
	h.t.Helper()
	dir := filepath.Join(h.root, group)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		h.t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			h.t.Fatal(err)
		}
	}
}

func (h tree) remove(group string) {
	h.t.Helper()
	if err := os.RemoveAll(filepath.Join(h.root, group)); err != nil {
		h.t.Fatal(err)
	}
}

// version2 are files of a group of version 2.
func version2(high, kills int) map[string]string {
	return map[string]string{
		"memory.current": "1000\n", "memory.max": "4096\n", "memory.swap.current": "7\n",
		"memory.stat":   "anon 600\nfile 300\ninactive_file 250\nworkingset_refault_anon 10\nworkingset_refault_file 20\n",
		"memory.events": fmt.Sprintf("low 0\nhigh %d\nmax 3\noom 2\noom_kill %d\noom_group_kill 0\n", high, kills),
	}
}

// version1 are files of a group of version 1.
func version1(failed, kills int) map[string]string {
	return map[string]string{
		"memory.usage_in_bytes": "1000\n", "memory.failcnt": fmt.Sprintln(failed),
		"memory.stat":        "rss 1\nhierarchical_memory_limit 2048\ntotal_rss 600\ntotal_inactive_file 250\ntotal_swap 5\n",
		"memory.oom_control": fmt.Sprintf("oom_kill_disable 0\nunder_oom 0\noom_kill %d\n", kills),
	}
}

// polled polls two workloads: one group, and the instances of a pattern.
func polled(t *testing.T) (tree, *polltest.Polled, *metric.Set) {
	h, set := tree{t, t.TempDir()}, metric.NewSet()
	h.put("shop", nil)
	return h, polltest.Open(t, Source(), poll.Config{Root: h.root, Metrics: set, Targets: []poll.Target{{Workload: "one", Path: "one"}, {Workload: "web", Host: "h", Path: "shop/web@*"}}}), set
}

func total(t *testing.T, set *metric.Set, workload string) float64 {
	t.Helper()
	return testutil.ToFloat64(set.Counter(killsMetric, workload))
}

func TestWhatTheKernelTellsOfAGroupIsToldInBothVersions(t *testing.T) {
	h, p, _ := polled(t)
	h.put("one", version2(1, 0))
	h.put("shop/web@a", version1(5, 0))
	p.Next()
	h.put("one", version2(4, 0))
	h.put("shop/web@a", version1(7, 0))
	got := p.Next()
	for name, want := range map[string]any{
		"one// working_set": 750.0, "one// memory_usage": 1000.0, "one// memory_anonymous": 600.0, "one// memory_swap": 7.0, "one// memory_limit": 4096.0,
		"one// memory_high_events": 3.0, "one// memory_max_events": 0.0, "one// oom_events": 0.0, "one// oom_kills": 0.0, "one// refaults": 0.0,
		"web/h/a working_set": 750.0, "web/h/a memory_anonymous": 600.0, "web/h/a memory_swap": 5.0, "web/h/a memory_limit": 2048.0, "web/h/a memory_max_events": 2.0,
		"web/h/a oom_kills": 0.0, "web/h/a memory_high_events": nil, "web/h/a refaults": nil, // this kernel tells none
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	h.put("one", map[string]string{"memory.max": "max\n"})
	if got := p.Next()["one// memory_limit"]; got != unlimited {
		t.Errorf("without a limit: %v", got)
	}
}

func TestAKillCountsOnceAndACounterThatWentBackIsARestart(t *testing.T) {
	h, p, set := polled(t)
	h.put("one", version2(0, 5))
	for i, step := range []struct {
		kills int
		want  any
	}{{5, poll.First}, {7, 2.0}, {7, 0.0}, {1, poll.Reset}, {2, 1.0}} {
		h.put("one", version2(0, step.kills))
		if got := p.Next()["one// oom_kills"]; got != step.want {
			t.Errorf("reading %d: %v, want %v", i, got, step.want)
		}
	}
	if n := total(t, set, "one"); n != 3 {
		t.Errorf("%v kills in the metric, want 3", n)
	}
}

func TestKillsOfAGroupThatWasMadeAgainCount(t *testing.T) {
	h, p, set := polled(t)
	h.put("shop", version2(0, 0))
	h.put("shop/web@a", version2(0, 0))
	h.put("shop/web@b", version2(0, 0))
	p.Next()
	h.remove("shop/web@a") // with its process, which was killed
	h.put("shop", version2(0, 1))
	h.put("shop/web@a", version2(0, 0))
	if got := p.Next(); got["web/h/a oom_kills"] != 1.0 || got["web/h/b oom_kills"] != 0.0 {
		t.Errorf("a was made again: %v, b: %v", got["web/h/a oom_kills"], got["web/h/b oom_kills"])
	}
	h.remove("shop/web@b") // two of its processes were killed, it does not come back
	h.put("shop", version2(0, 4))
	h.put("shop/web@a", version2(0, 1))
	if got := p.Next(); got["web/h/a oom_kills"] != 1.0 || got["web/h/b oom_kills"] != 2.0 {
		t.Errorf("a: %v, b is gone: %v", got["web/h/a oom_kills"], got["web/h/b oom_kills"])
	}
	h.put("shop/web@c", version2(0, 1)) // it is new, and was killed at once
	h.put("shop", version2(0, 5))
	if got := p.Next(); got["web/h/c oom_kills"] != 1.0 || got["web/h/a oom_kills"] != 0.0 {
		t.Errorf("c is new: %v, a: %v", got["web/h/c oom_kills"], got["web/h/a oom_kills"])
	}
	if n := total(t, set, "web"); n != 5 {
		t.Errorf("%v kills in the metric, want 5", n)
	}
}

func TestWhoseKillItWasIsNotGuessed(t *testing.T) {
	h, p, set := polled(t)
	h.put("shop", version2(0, 0))
	h.put("shop/web@a", version2(0, 0))
	h.put("shop/web@b", version2(0, 0))
	p.Next()
	h.remove("shop/web@a")
	h.remove("shop/web@b")
	h.put("shop", version2(0, 1))
	for name, v := range p.Next() {
		if strings.HasSuffix(name, "oom_kills") && v != poll.Absent {
			t.Errorf("%s: %v", name, v)
		}
	}
	if n := total(t, set, "web"); n != 0 {
		t.Errorf("%v kills in the metric", n)
	}
}

func TestWhatCannotBeReadIsMissing(t *testing.T) {
	h, p, _ := polled(t)
	h.put("one", version2(0, 3))
	p.Next()
	h.put("one", map[string]string{"memory.current": "many\n"})
	for name, v := range p.Next() {
		if v != poll.Unreadable {
			t.Errorf("%s is %v", name, v)
		}
	}
	h.put("one", version2(0, 9))
	if got := p.Next()["one// oom_kills"]; got != poll.First {
		t.Errorf("once it can be read again: %v", got)
	}
}

func TestAHostWithoutGroupsSaysSo(t *testing.T) {
	if _, err := open(poll.Config{}); err == nil || !strings.Contains(err.Error(), "unsupported") {
		t.Error(err)
	}
}

// real makes a group of version 1 with a limit of 16 MiB, which goes with the test.
func real(t *testing.T) (root, name, dir string) {
	t.Helper()
	root = "/sys/fs/cgroup/cpu"
	name = fmt.Sprintf("trimtab-test-%d-%d", os.Getpid(), time.Now().UnixNano()%1e9)
	dir = filepath.Join(hostfs.Sibling(root, "memory"), name)
	for _, d := range []string{filepath.Join(root, name), dir} {
		if hostfs.Sibling(root, "memory") == "" || os.Mkdir(d, 0o755) != nil {
			t.Skip("no writable hierarchies of version 1")
		}
		t.Cleanup(func() { _ = os.Remove(d) })
	}
	if err := os.WriteFile(filepath.Join(dir, "memory.limit_in_bytes"), []byte("16777216"), 0); err != nil {
		t.Skipf("no limit can be set: %v", err)
	}
	return root, name, dir
}

// TestARealKillIsCounted has the kernel kill a program that takes more than its limit.
func TestARealKillIsCounted(t *testing.T) {
	root, name, dir := real(t)
	set := metric.NewSet()
	p := polltest.Open(t, Source(), poll.Config{Root: root, Metrics: set, Targets: []poll.Target{{Workload: "one", Path: name}}})
	p.Next()
	// tail reads a file without lines, and keeps all of it.
	out, err := exec.Command("/bin/sh", "-c", "echo $$ > "+dir+"/cgroup.procs && exec tail /dev/zero").CombinedOutput()
	if err == nil {
		t.Fatalf("it was not killed: %s", out)
	}
	got := p.Next()
	if got["one// oom_kills"] != 1.0 || total(t, set, "one") != 1 || got["one// memory_limit"] != 16777216.0 || got["one// memory_max_events"] == 0.0 {
		t.Errorf("%v after %v: %s", got, err, out)
	}
}

// A file that is written counts as usage of the group, half of whose limit is passed at 8 MiB.
func TestARealGroupThatPassesHalfOfItsLimitIsReadBeforeTheNextRound(t *testing.T) {
	root, name, dir := real(t)
	p, err := open(poll.Config{Root: root, Groups: &hostfs.Root{}, Metrics: metric.NewSet(), Seen: func([]poll.Group, []*trimtab.Sample) {}})
	if err != nil {
		t.Fatal(err)
	}
	r := p.(*reader)
	defer r.Close()
	if _, err := r.Read(t.Context(), []poll.Group{{Workload: "w", Instance: hostfs.Instance{Path: name}}}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	write := func(bytes int) {
		t.Helper()
		if out, err := exec.Command("/bin/sh", "-c", fmt.Sprintf("echo $$ > %s/cgroup.procs && exec head -c %d /dev/zero > %s", dir, bytes, file)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	write(1 << 20)
	select {
	case <-r.Woken():
		t.Fatal("it is told of 1 MiB")
	default:
	}
	write(9 << 20)
	if path := <-r.Woken(); path != name {
		t.Fatal(path)
	}
	g, all := r.Early(name)
	i := slices.IndexFunc(all, func(s *trimtab.Sample) bool { return s.Quantity == quantity.MemoryUsage })
	if i < 0 || g.Workload != "w" || all[i].Workload != "w" || all[i].Value < 8<<20 {
		t.Errorf("%v: %v", g, all)
	}
	if s := r.states[g].step; s.above != s.part-nextStep && s.at > 0 || s.untilIn != 1+quietFor {
		t.Errorf("%+v", s)
	}
	// Below a step that it passed, it is read once more, halfway to its limit.
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	before := r.states[g].step
	if _, err := r.Read(t.Context(), []poll.Group{g}); err != nil {
		t.Fatal(err)
	}
	if s := r.states[g].step; s.part != before.above || !(s.at > 0 && s.at < (before.above+nextStep/2)*s.limit) {
		t.Errorf("%+v, after %+v", s, before)
	}
	if _, none := r.Early("another"); none != nil {
		t.Error(none)
	}
}

func TestNoCounterIsEverNegative(t *testing.T) {
	all := append(events(), quantity.Refaults)
	draw := rapid.Custom(func(r *rapid.T) *reading {
		x := &reading{at: time.Duration(rapid.Int64Min(0).Draw(r, "at")), counts: map[quantity.Quantity]uint64{}}
		for _, q := range all {
			if rapid.Bool().Draw(r, "told") {
				x.counts[q] = rapid.Uint64Max(1<<63-1).Draw(r, "count")
			}
		}
		return x
	})
	rapid.Check(t, func(r *rapid.T) {
		blank := func(q quantity.Quantity) *trimtab.Sample {
			return &trimtab.Sample{Workload: "w", Quantity: q, Time: time.Unix(1, 0)}
		}
		for _, s := range samples(blank, draw.Draw(r, "before"), draw.Draw(r, "after"), nil) {
			if err := s.Validate(); err != nil || s.Value < 0 {
				r.Fatal(s, err)
			}
		}
	})
}

func FuzzFilesOfAGroupAreTotal(f *testing.F) {
	files := func(m map[string]string) (all []string) {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			all = append(all, m[name])
		}
		return all
	}
	two, one := files(version2(1, 2)), files(version1(1, 2))
	f.Add(two[0], two[1], two[3], one[0])
	f.Add("0", "oom_kill -1\n", "inactive_file 99999999999999999999999\n", "max")
	f.Fuzz(func(t *testing.T, usage, control, stat, limit string) {
		h := tree{t, t.TempDir()}
		h.put("two", map[string]string{"memory.current": usage, "memory.events": control, "memory.stat": stat, "memory.max": limit})
		h.put("one", map[string]string{"memory.usage_in_bytes": usage, "memory.oom_control": control, "memory.stat": stat, "memory.failcnt": limit})
		root, err := hostfs.OpenRoot(h.root)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		for _, group := range []string{"one", "two"} {
			r, err := read(root, group, nil)
			if err != nil {
				continue
			}
			for q, v := range r.bytes {
				if !(v >= 0 && v < 1<<63) {
					t.Errorf("%s: %s is %v", group, q, v)
				}
			}
		}
	})
}
