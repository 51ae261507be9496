package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/quantity"
)

// censusOf is a look at a tree of groups, of which those of shop/ are workloads', beside a tree of
// processes.
func censusOf(t *testing.T, files map[string]string, proc string) *census {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := hostfs.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	s := newCensus(root, proc)
	s.enter("pool/shop-a", false)
	for _, group := range []string{"pool/shop-b", "pool/team/shop-c"} {
		if _, err := os.Stat(filepath.Join(dir, group)); err == nil {
			s.enter(group, false)
		}
	}
	s.findStrays()
	return s
}

func TestWhatIsRemarkableOfAGroupIsNamed(t *testing.T) {
	proc := t.TempDir()
	for pid, stat := range map[string]string{
		"10": "10 (shop) S 1 10 10", "11": "11 (shop) S 10 10 10", // those of the group
		"12": "12 (a (b) c) S 10 12 12", "13": "13 (sh) S 1 13 13", "14": "cut", "15": "15 (sh", "16": "16 (sh) S",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Join(proc, pid), 0o755), os.WriteFile(filepath.Join(proc, pid, "stat"), []byte(stat), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	plain := map[string]string{"pool/shop-a/cgroup.procs": "10\n11\n12\n", "pool/shop-a/cgroup.threads": "", "pool/shop-a/cpu.idle": "0\n", "pool/shop-a/cpu.weight": "100\n"}
	with := func(more ...string) map[string]string {
		out := map[string]string{}
		for name, text := range plain {
			out[name] = text
		}
		for i := 0; i < len(more); i += 2 {
			out[more[i]] = more[i+1]
		}
		return out
	}
	for name, c := range map[string]struct {
		files map[string]string
		above string
		want  []string
	}{
		"nothing":            {files: with(), above: "pool"},
		"it is idle":         {files: with("pool/shop-a/cpu.idle", "1\n"), want: []string{"group pool/shop-a is idle (cpu.idle)"}},
		"the group above is": {files: with("pool/cpu.idle", "1\n"), want: []string{"group pool is idle (cpu.idle)"}},
		"nothing runs in it": {files: with("pool/shop-a/cgroup.procs", ""), want: []string{"no process is in group pool/shop-a"}},
		"it is not seen":     {files: map[string]string{"pool/cpu.weight": "1\n"}},
		"a process left it": {files: with("pool/shop-a/cgroup.procs", "10\n11\n"),
			want: []string{"1 process that it started is outside of its group, a (b) c (process 12): what it uses is not seen"}},
		"a stranger below the group above": {files: with("pool/shop-b/cpu.weight", "100\n", "pool/shop-b/cgroup.procs", "7\n", "pool/other/cpu.weight", "50\n", "pool/other/cgroup.procs", "", "pool/other/deep/cgroup.procs", "8\n"), above: "pool",
			want: []string{"1 group that is no workload's shares the limit of pool, pool/other: by its weight it gets 20% of it"}},
		"two": {files: with("pool/x[1]/cpu.weight", "100\n", "pool/x[1]/cgroup.procs", "0\n", "pool/other/cpu.weight", "100\n", "pool/other/cgroup.procs", "", "pool/other/deep/cgroup.procs", "8\n"), above: "pool",
			want: []string{"2 groups that are no workload's share the limit of pool, such as pool/other: by their weight they get 67% of it"}},
		"the group above a workload's":            {files: with("pool/team/cpu.weight", "50\n", "pool/team/cgroup.procs", "", "pool/team/shop-c/cgroup.procs", "8\n"), above: "pool"},
		"one whose processes cannot be listed":    {files: with("pool/other/cpu.weight", "50\n"), above: "pool"},
		"it is in another namespace of processes": {files: with("pool/shop-a/cgroup.procs", "0\n0\n", "pool/shop-a/cgroup.threads", "0\n")},
		"an empty one":                 {files: with("pool/other/cpu.weight", "50\n", "pool/other/cgroup.procs", ""), above: "pool"},
		"the group above has no limit": {files: with("pool/other/cpu.weight", "50\n", "pool/other/cgroup.procs", "8\n")},
	} {
		s := censusOf(t, c.files, proc)
		got := s.remarks("pool/shop-a", c.above)
		if len(got) != len(c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
			continue
		}
		for i := range got {
			if !strings.Contains(got[i], c.want[i]) {
				t.Errorf("%s: %q, want %q", name, got[i], c.want[i])
			}
		}
	}
}

// A child that begins between two readings is in the group when it is looked at again.
func TestAChildThatBeginsMeanwhileIsNoStray(t *testing.T) {
	proc := t.TempDir()
	s := censusOf(t, map[string]string{"pool/shop-a/cgroup.procs": "10\n"}, proc)
	for pid, stat := range map[string]string{"10": "10 (shop) S 1 10 10", "11": "11 (shop) S 10 10 10"} {
		if err := errors.Join(os.MkdirAll(filepath.Join(proc, pid), 0o755), os.WriteFile(filepath.Join(proc, pid, "stat"), []byte(stat), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(s.root.Path(), "pool/shop-a/cgroup.procs"), []byte("10\n11\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if s.findStrays(); s.strayed("pool/shop-a") != "" {
		t.Errorf("%q of a child in the group", s.strayed("pool/shop-a"))
	}
}

func TestAGroupThatUsedCPUIsNotCalledEmpty(t *testing.T) {
	s := censusOf(t, map[string]string{"pool/shop-b/cgroup.procs": ""}, t.TempDir())
	if got := s.empty("pool/shop-b"); !strings.Contains(got, "no process is in group pool/shop-b") {
		t.Errorf("%q of one that used nothing", got)
	}
	s = newCensus(s.root, s.proc)
	if s.enter("pool/shop-b", true); s.empty("pool/shop-b") != "" {
		t.Errorf("%q of one that used CPU: its processes cannot be seen", s.empty("pool/shop-b"))
	}
}

// A real process becomes one of a real-time class, and starts another one that leaves the group.
func TestRealThreadsOfARealTimeClassAndRealStraysAreNamed(t *testing.T) {
	sleep := exec.Command("sh", "-c", "sleep 1000 & echo $!; wait")
	out, err := sleep.StdoutPipe()
	if err == nil {
		err = sleep.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	child := 0
	if _, err := fmt.Fscan(out, &child); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p, err := os.FindProcess(child); err == nil {
			p.Kill()
		}
		sleep.Process.Kill()
		sleep.Wait()
	})
	pid := fmt.Sprint(sleep.Process.Pid)
	s := censusOf(t, map[string]string{"pool/shop-a/cgroup.procs": pid + "\n", "pool/shop-a/cgroup.threads": pid + "\n"}, "/proc")
	if got := s.strayed("pool/shop-a"); !strings.Contains(got, "1 process that it started is outside of its group, s") || !strings.Contains(got, fmt.Sprintf("(process %d)", child)) {
		t.Errorf("%q: want the child %d", got, child)
	}
	if got := s.realtime("pool/shop-a"); got != "" {
		t.Errorf("%q of a usual class", got)
	}
	if text, err := exec.Command("chrt", "-f", "-p", "1", pid).CombinedOutput(); err != nil {
		t.Skipf("no real-time class here: %v: %s", err, text)
	}
	if got := s.realtime("pool/shop-a"); got != "1 thread of it has a real-time class: neither weights nor quotas hold it" {
		t.Errorf("%q", got)
	}
	if err := os.WriteFile(filepath.Join(s.root.Path(), "pool/shop-a/cgroup.threads"), []byte(strings.Repeat(pid+"\n", 501)), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := s.realtime("pool/shop-a"); !strings.HasPrefix(got, "at least 500 threads of it have a real-time class") {
		t.Errorf("%q of more than are looked at", got)
	}
}

func TestProcessesThatAreInNoGroupAreNamedWhileTheHostIsFull(t *testing.T) {
	dir, err := hostfs.CPUHierarchy()
	if err != nil {
		t.Skip(err)
	}
	root, err := hostfs.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	s := newCensus(root, "/proc")
	_, err = root.Read("cgroup.procs") // of the top alone: groups below may be somebody's own
	some := err == nil && root.Whole()
	if got := s.groupless(); !some && got != "" || got != "" && !strings.Contains(got, "in no group: each") {
		t.Errorf("%q", got)
	} else {
		t.Log(got)
	}
}

type outlet chan *trimtab.Sample

func (o outlet) Publish(_ context.Context, v trimtab.Value) error {
	if s := v.(*trimtab.Sample); s.Quantity == quantity.Remarks {
		o <- s
	}
	return nil
}

func TestARemarkIsToldOnceAMinuteAndWhenItIsOver(t *testing.T) {
	dir, o := t.TempDir(), make(outlet, 10)
	put := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	put("a/cpu.stat", "usage_usec 1\n")
	put("a/cpu.idle", "1\n")
	c, err := Open(Config{Root: dir, Bus: o, Targets: []Target{{Workload: "w", Path: "a"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 3 {
		c.round(t.Context())
	}
	if len(o) != 1 {
		t.Fatalf("%d remarks in three rounds, want 1", len(o))
	}
	if s := <-o; s.Value != 1 || !strings.Contains(s.Note, "group a is idle") || s.Validate() != nil {
		t.Errorf("%+v", s)
	}
	put("a/cpu.idle", "0\n")
	for range 3 {
		c.censusAt = 0 // none was yet
		c.round(t.Context())
	}
	if len(o) != 1 {
		t.Fatalf("%d remarks since it is over, want 1 that says so", len(o))
	}
	if s := <-o; s.Value != 0 || s.Note != "" {
		t.Errorf("%+v", s)
	}
}
