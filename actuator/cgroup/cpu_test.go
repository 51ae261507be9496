package cgroup_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/actuator/knobtest"
	"github.com/trimtab/trimtab/internal/hostfs"
)

func reopen(undo []byte) (actuator.Knob, error) { return cgroup.Reopen(undo) }

// cpuRoot returns the hierarchy with the cpu controller, of this host's version,
// in which this process may make groups; else it skips, with the proof.
func cpuRoot(t testing.TB) string {
	t.Helper()
	root, err := hostfs.CPUHierarchy()
	if err == nil {
		err = cgroup.Writable(root)
	}
	if err != nil {
		skip(t, "no writable cpu hierarchy: %v", err)
	}
	return root
}

// skip skips the test; in the guest of `make guest`, which has what tests of
// real groups need, it fails.
func skip(t testing.TB, format string, why ...any) {
	t.Helper()
	if os.Getenv("TRIMTAB_GUEST") != "" {
		t.Fatalf(format, why...)
	}
	t.Skipf(format, why...)
}

// kernelQuota returns the quota of a real group as version 2 prints it.
func kernelQuota(t *testing.T, root, group string) string {
	t.Helper()
	if b, err := os.ReadFile(filepath.Join(root, group, "cpu.max")); err == nil {
		return string(b)
	}
	quota := strings.TrimSpace(content(t, root, group, "cpu.cfs_quota_us"))
	if quota == "-1" {
		quota = "max"
	}
	return quota + " " + content(t, root, group, "cpu.cfs_period_us")
}

func groupName(testing.TB) string {
	return fmt.Sprintf("trimtab-test-%d-%d", os.Getpid(), time.Now().UnixNano()%1e9)
}

// makeGroup makes a real group for one test.
func makeGroup(t *testing.T, root string) *cgroup.Group {
	t.Helper()
	g, err := cgroup.Create(root, groupName(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := g.Remove(ctx); err != nil {
			t.Error(err)
		}
	})
	return g
}

func openKnob(t *testing.T, c cgroup.Config) *cgroup.CPU {
	t.Helper()
	k, err := cgroup.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	return k
}

func TestARealQuotaMeetsTheContractOfKnobs(t *testing.T) {
	root := cpuRoot(t)
	knobtest.Run(t, func(t *testing.T) knobtest.Fixture {
		g := makeGroup(t, root)
		return knobtest.Fixture{
			Knob: openKnob(t, cgroup.Config{Root: root, Path: g.Path()}), Reopen: reopen, Least: 0.05, Most: 8,
			Vanish: func() { os.Remove(filepath.Join(root, g.Path())) },
		}
	})
}

// tree makes a tree of plain files in the place of a hierarchy: this is how
// the version is tested that this host does not have.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func content(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestVersion2FilesMeetTheContractOfKnobs(t *testing.T) {
	knobtest.Run(t, func(t *testing.T) knobtest.Fixture {
		root := tree(t, map[string]string{"shop/checkout/cpu.max": "max 100000\n"})
		return knobtest.Fixture{
			Knob: openKnob(t, cgroup.Config{Root: root, Path: "shop/checkout"}), Reopen: reopen, Least: 0.05, Most: 64,
			Vanish: func() { os.RemoveAll(filepath.Join(root, "shop/checkout")) },
		}
	})
}

func TestVersion1FilesMeetTheContractOfKnobs(t *testing.T) {
	knobtest.Run(t, func(t *testing.T) knobtest.Fixture {
		root := tree(t, map[string]string{"a/cpu.cfs_quota_us": "-1\n", "a/cpu.cfs_period_us": "50000\n"})
		return knobtest.Fixture{
			Knob: openKnob(t, cgroup.Config{Root: root, Path: "a"}), Reopen: reopen, Least: 0.05, Most: 64,
			Vanish: func() { os.RemoveAll(filepath.Join(root, "a")) },
		}
	})
}
