package cgroup_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator/cgroup"
)

// besideGroup makes a real group with a file, under its name in version 1 or 2; else it skips.
func besideGroup(t *testing.T, v1, v2, text string) (root, path, name string) {
	t.Helper()
	root = cpuRoot(t)
	g := makeGroup(t, root)
	for _, name := range []string{v2, v1} {
		at := filepath.Join(root, g.Path(), name)
		if _, err := os.Stat(at); err == nil {
			if err := os.WriteFile(at, []byte(text), 0); err != nil {
				t.Fatal(err)
			}
			return root, g.Path(), name
		}
	}
	t.Skipf("this kernel has neither %s nor %s", v1, v2)
	return "", "", ""
}

func refusedFor(t *testing.T, err error, words ...string) {
	t.Helper()
	if !errors.Is(err, trimtab.ErrRefused) {
		t.Fatalf("error %v, want refused", err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}

// Found: the kernel's "invalid argument" to a quota that is right by itself.
func TestAQuotaBelowTheBurstOfAnotherProgramNamesThatFileAndWhatToDo(t *testing.T) {
	root := cpuRoot(t)
	g := makeGroup(t, root)
	k, err := cgroup.Open(cgroup.Config{Root: root, Path: g.Path()})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if err := k.Write(t.Context(), trimtab.Units(0.5)); err != nil {
		t.Fatal(err)
	}
	name := ""
	for _, n := range []string{"cpu.max.burst", "cpu.cfs_burst_us"} {
		if os.WriteFile(filepath.Join(root, g.Path(), n), []byte("40000"), 0) == nil {
			name = n
		}
	}
	if name == "" {
		t.Skip("this kernel has no burst")
	}
	if err := k.Ready(true); err != nil {
		t.Fatal(err)
	}
	if v, err := k.Move(trimtab.Units(0.3), 0.1); err == nil {
		t.Errorf("moved to %v", v)
	} else {
		refusedFor(t, err, name, "40000 us", "write 0")
	}
	refusedFor(t, k.Write(t.Context(), trimtab.Units(0.3)), name, "40000 us", "write 0")
	if err := k.Write(t.Context(), trimtab.Units(0.6)); err != nil {
		t.Errorf("a quota over the burst: %v", err)
	}
}

func TestAWeightOfAnIdleGroupNamesThatFileAndWhatToDo(t *testing.T) {
	root, path, name := besideGroup(t, "cpu.idle", "cpu.idle", "1")
	k := openWeight(t, root, path)
	refusedFor(t, k.Write(t.Context(), trimtab.Units(200)), path+"/"+name, "write 0")
	if err := os.WriteFile(filepath.Join(root, path, name), []byte("0"), 0); err != nil {
		t.Fatal(err)
	}
	if err := k.Write(t.Context(), trimtab.Units(200)); err != nil {
		t.Error(err)
	}
}

// Found: a group that was idle came back with the least weight. The kernel of version 2 reads
// 0 for the weight of such a group (kernel/sched/core.c, cpu_weight_read_u64), which these
// files play.
func TestAnIdleGroupIsRestoredAsIdle(t *testing.T) {
	root := tree(t, map[string]string{"a/cpu.weight": "0\n", "a/cpu.idle": "1\n"})
	k := openWeight(t, root, "a")
	was, err := k.Read(t.Context())
	if err != nil || k.Nearest(was) != was {
		t.Fatalf("%v, %v, nearest %v", was, err, k.Nearest(was))
	}
	setContent(t, root, "a/cpu.idle", "0\n") // as systemd does with CPUWeight=200
	setContent(t, root, "a/cpu.weight", "200\n")
	if err := k.Write(t.Context(), was); err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(content(t, root, "a/cpu.idle")); got != "1" {
		t.Errorf("cpu.idle is %q", got)
	}
	s, err := cgroup.OpenShare(cgroup.Config{Root: root, Path: "a"}, 1, trimtab.Unlimited())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if v := s.Nearest(trimtab.Units(0)); !(v.Value > 0) {
		t.Errorf("a share of nothing becomes %v: no plan makes a group idle", v)
	}
}
