package cgroup_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// A group with more controllers has their files, also where version 1 keeps each in a
// hierarchy of its own, and a process may live in it.
func TestAGroupIsMadeWithTheControllersThatItIsToHave(t *testing.T) {
	root := cpuRoot(t)
	g, err := cgroup.Create(root, groupName(t), "cpuset", "memory", "freezer")
	if err != nil {
		skip(t, "no such controllers: %v", err)
	}
	var made []string
	for controller, files := range map[string][]string{"cpuset": {"cpuset.cpus"}, "memory": {"memory.limit_in_bytes", "memory.max"}, "freezer": {"freezer.state", "cgroup.freeze"}} {
		dir := filepath.Join(root, g.Path())
		if twin := hostfs.Sibling(root, controller); twin != "" {
			dir = filepath.Join(twin, g.Path())
		}
		made = append(made, dir)
		if !slices.ContainsFunc(files, func(f string) bool { _, err := os.Stat(filepath.Join(dir, f)); return err == nil }) {
			t.Errorf("%s: %s has none of %q", controller, dir, files)
		}
	}
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := g.AddProcess(cmd.Process.Pid); err != nil {
		t.Errorf("a process in it: %v", err)
	}
	if _, err := cgroup.Create(root, g.Path(), "cpuset"); err != nil {
		t.Errorf("one that is there: %v", err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err := g.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	for _, dir := range made {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is left", dir)
		}
	}
}
