package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// groups are the CPU groups of the workloads.
type groups struct {
	kind, root string
	// limit is the name of the file with a group's limit.
	limit  string
	remove func()
}

// name is that of a workload and of its group.
func name(i int) string { return fmt.Sprintf("w%05d", i) }

// firstCores is what every group has at first.
const firstCores = 0.5

// makeGroups makes n groups, real ones where that is allowed.
func makeGroups(dir string, n int) (*groups, error) {
	if root, err := hostfs.CPUHierarchy(); err == nil && cgroup.Writable(root) == nil && hostfs.Sibling(root, "memory") != "" {
		return realGroups(filepath.Join(root, fmt.Sprintf("trimtab-small-%d", os.Getpid())), n)
	}
	g := &groups{kind: "files", root: filepath.Join(dir, "groups"), limit: "cpu.max", remove: func() {}}
	for i := range n {
		at := filepath.Join(g.root, name(i))
		if err := os.MkdirAll(at, 0o755); err != nil {
			return nil, fmt.Errorf("make group: %w", err)
		}
		for file, text := range map[string]string{"cpu.max": fmt.Sprintf("%.0f 100000\n", firstCores*100000), "cpu.stat": "usage_usec 0\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n"} {
			if err := os.WriteFile(filepath.Join(at, file), []byte(text), 0o644); err != nil {
				return nil, fmt.Errorf("make group: %w", err)
			}
		}
	}
	return g, nil
}

func realGroups(root string, n int) (*groups, error) {
	g := &groups{kind: "cgroups of version 1", root: root, limit: "cpu.cfs_quota_us"}
	roots := []string{root}
	// Where CPU time is accounted apart, the groups are there, too.
	if base := hostfs.Accounting(filepath.Dir(root)); base != "" {
		roots = append(roots, filepath.Join(base, filepath.Base(root)))
	}
	g.remove = func() {
		for _, root := range roots {
			for i := range n {
				_ = os.Remove(filepath.Join(root, name(i))) // one that was never made
			}
			if err := os.Remove(root); err != nil {
				fmt.Fprintln(os.Stderr, "small: remove groups:", err)
			}
		}
	}
	for i := range n {
		var err error
		for _, root := range roots {
			err = errors.Join(err, os.MkdirAll(filepath.Join(root, name(i)), 0o755))
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(root, name(i), g.limit), []byte(strconv.Itoa(int(firstCores*100000))), 0o644)
		}
		if err != nil {
			g.remove()
			return nil, fmt.Errorf("make group: %w", err)
		}
	}
	return g, nil
}

// cores is the limit that a group has now; without a readable one, the first.
func (g *groups) cores(i int) float64 {
	text, err := os.ReadFile(filepath.Join(g.root, name(i), g.limit))
	if err != nil {
		return firstCores
	}
	quota, err := strconv.ParseFloat(strings.Fields(string(text) + " x")[0], 64)
	if err != nil || quota <= 0 {
		return firstCores
	}
	return quota / 100000
}
