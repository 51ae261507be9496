package rig

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/trimtab/trimtab"
)

// Memory is the memory controller's directory of a group, of either version.
type Memory struct {
	dir   string
	first bool // version 1
}

// MemoryUse is what the kernel says of a group's memory now.
type MemoryUse struct {
	// Usage is all that is charged to the group, Working that without the inactive part of the page
	// cache, Limit the group's own limit, in bytes; a limit of 0: there is none.
	Usage, Working, Limit float64
	// Kills are the processes that the kernel killed, Met how often the limit was met, and Refaults the
	// pages that were read again soon after they were reclaimed, since the group was made.
	Kills, Met, Refaults float64
}

// Memory returns the group's memory controller. In version 1 the group must be [Group.Everywhere].
func (g *Group) Memory() (*Memory, error) {
	for _, dir := range append([]string{g.dir}, g.also...) {
		for first, file := range map[bool]string{true: "memory.usage_in_bytes", false: "memory.current"} {
			if _, err := os.Stat(filepath.Join(dir, file)); err == nil {
				return &Memory{dir, first}, nil
			}
		}
	}
	return nil, fmt.Errorf("find memory of cgroup %s: %w", g.Name, trimtab.ErrUnsupported)
}

func (m *Memory) pick(first, second string) string {
	if m.first {
		return first
	}
	return second
}

// Limit returns the limit alone, in bytes; 0: there is none.
func (m *Memory) Limit() (float64, error) {
	return m.number(m.pick("memory.limit_in_bytes", "memory.max"))
}

// Use reads what the kernel says now.
func (m *Memory) Use() (u MemoryUse, err error) {
	stat, err := m.table("memory.stat")
	if err != nil {
		return u, err
	}
	events, err := m.table(m.pick("memory.oom_control", "memory.events"))
	if err != nil {
		return u, err
	}
	if u.Usage, err = m.number(m.pick("memory.usage_in_bytes", "memory.current")); err != nil {
		return u, err
	}
	if u.Limit, err = m.Limit(); err != nil {
		return u, err
	}
	total := m.pick("total_", "")
	u.Working = max(0, u.Usage-stat[total+"inactive_file"])
	u.Refaults = stat[total+"workingset_refault_file"] + stat[total+"workingset_refault_anon"]
	u.Kills, u.Met = events["oom_kill"], events["max"]
	if m.first {
		u.Met, err = m.number("memory.failcnt")
	}
	return u, err
}

// Set sets the limit, in bytes; 0: there is none then. The kernel refuses a limit below what it
// cannot reclaim.
func (m *Memory) Set(limit float64) error {
	text := strconv.FormatInt(int64(limit), 10)
	if limit <= 0 {
		text = m.pick("-1", "max")
	}
	file := filepath.Join(m.dir, m.pick("memory.limit_in_bytes", "memory.max"))
	if err := os.WriteFile(file, []byte(text), 0); err != nil {
		return fmt.Errorf("limit memory to %s: %w", text, err)
	}
	return nil
}

// unlimited is above every limit: version 1 shows the largest number of whole pages for none.
const unlimited = 1 << 62

func (m *Memory) number(file string) (float64, error) {
	b, err := os.ReadFile(filepath.Join(m.dir, file))
	if err != nil {
		return 0, fmt.Errorf("read memory of a cgroup: %w", err)
	}
	text := strings.TrimSpace(string(b))
	if text == "max" {
		return 0, nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", file, err)
	}
	if v >= unlimited {
		return 0, nil
	}
	return v, nil
}

// table reads lines of a name and a number.
func (m *Memory) table(file string) (map[string]float64, error) {
	b, err := os.ReadFile(filepath.Join(m.dir, file))
	if err != nil {
		return nil, fmt.Errorf("read memory of a cgroup: %w", err)
	}
	out := map[string]float64{}
	for line := range strings.Lines(string(b)) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		if v, err := strconv.ParseFloat(text, 64); err == nil {
			out[name] = v
		}
	}
	return out, nil
}
