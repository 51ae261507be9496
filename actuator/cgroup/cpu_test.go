package cgroup_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/actuator/knobtest"
)

func reopen(undo []byte) (actuator.Knob, error) { return cgroup.Reopen(undo) }

// v1Root returns the mount of a version 1 hierarchy with the cpu controller
// in which this process may make groups; else it skips, with the proof.
func v1Root(t *testing.T) string {
	t.Helper()
	const root = "/sys/fs/cgroup/cpu"
	if err := cgroup.Writable(root); err != nil {
		t.Skipf("no writable cpu hierarchy: %v", err)
	}
	return root
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

func TestRealVersion1QuotaMeetsTheContractOfKnobs(t *testing.T) {
	root := v1Root(t)
	knobtest.Run(t, func(t *testing.T) knobtest.Fixture {
		g := makeGroup(t, root)
		return knobtest.Fixture{
			Knob: openKnob(t, cgroup.Config{Root: root, Path: g.Path()}), Reopen: reopen, Least: 0.05, Most: 8,
			Vanish: func() { os.Remove(filepath.Join(root, g.Path())) },
		}
	})
}

// tree makes a tree of plain files in the place of a hierarchy: this is how
// version 2 is tested where the kernel has no cpu controller for it.
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
