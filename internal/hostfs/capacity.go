package hostfs

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab"
)

// CPUs returns how many cores the groups in root may use of this host together: the least of the
// online CPUs, root's cpuset, and the quotas of root and of the groups above it, such as a
// container's. The error is trimtab.ErrUnsupported if root is no control group of a kernel.
// Isolated CPUs do not count unless root has no others: the kernel moves no task there by itself.
func CPUs(root string) (float64, error) {
	all, err := enclosing(root)
	if err != nil {
		return 0, fmt.Errorf("measure cores: %w", err)
	}
	sets, _ := enclosing(Sibling(root, "cpuset")) // version 2 has them in root itself
	return cpus(all, append(sets, all...), "/sys/devices/system/cpu/online"), nil
}

// cpus returns the number of CPUs, given the groups from the innermost out and the file that lists
// online CPUs. A file that cannot be read sets no bound.
func cpus(groups, sets []string, online string) float64 {
	n := float64(runtime.NumCPU())
	isolated := ParseCPUs(readText(filepath.Join(filepath.Dir(online), "isolated")))
	if v := unisolated(readText(online), isolated); v > 0 {
		n = float64(v)
	}
	// The cpuset in force in a group is a part of its parents'.
	for _, dir := range sets {
		text := firstText(dir, "cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus")
		if v := unisolated(text, isolated); v > 0 {
			n = math.Min(n, float64(v))
			break
		}
	}
	for _, dir := range groups {
		q, err := ParseCPUMax(readText(filepath.Join(dir, "cpu.max")))
		if err != nil {
			q, err = ParseCFS(readText(filepath.Join(dir, "cpu.cfs_quota_us")), readText(filepath.Join(dir, "cpu.cfs_period_us")))
		}
		if v := q.Amount(); err == nil && !v.Unlimited {
			n = math.Min(n, v.Value)
		}
	}
	return n
}

// Memory returns how many bytes the groups in root may use of this host together: the least of
// the installed memory and the limits of root and of the groups above it. The error is
// trimtab.ErrUnsupported if root is no control group of a kernel.
func Memory(root string) (float64, error) {
	if twin := Sibling(root, "memory"); twin != "" {
		root = twin
	}
	groups, err := enclosing(root)
	if err == nil {
		var n float64
		if n, err = memory(groups, "/proc/meminfo"); err == nil {
			return n, nil
		}
	}
	return 0, fmt.Errorf("measure memory: %w", err)
}

func memory(groups []string, meminfo string) (float64, error) {
	total, err := meminfoLine(readText(meminfo), "MemTotal:")
	if err != nil {
		return 0, err
	}
	for _, dir := range groups {
		text := firstText(dir, "memory.max", "memory.limit_in_bytes")
		if v, err := strconv.ParseUint(text, 10, 64); err == nil {
			total = math.Min(total, float64(v))
		}
	}
	return total, nil
}

// FreeMemory returns how many bytes the groups in root may still take before the kernel must reclaim
// what is in use: MemAvailable, or less where a limit of root or of a group above it leaves less
// beyond its usage without inactive page cache. used is the rest of [Memory]. The errors are those of
// Memory.
func FreeMemory(root string) (free, used float64, err error) {
	if twin := Sibling(root, "memory"); twin != "" {
		root = twin
	}
	groups, err := enclosing(root)
	if err == nil {
		if free, used, err = freeMemory(groups, "/proc/meminfo"); err == nil {
			return free, used, nil
		}
	}
	return 0, 0, fmt.Errorf("measure free memory: %w", err)
}

func freeMemory(groups []string, meminfo string) (free, used float64, err error) {
	text := readText(meminfo)
	if free, err = meminfoLine(text, "MemAvailable:"); err != nil {
		return 0, 0, err
	}
	total, err := meminfoLine(text, "MemTotal:")
	if err != nil {
		return 0, 0, err
	}
	used = math.Max(0, total-free)
	for _, dir := range groups {
		limit, err := strconv.ParseUint(firstText(dir, "memory.max", "memory.limit_in_bytes"), 10, 64)
		if err != nil || float64(limit) >= total {
			continue
		}
		usage, err := strconv.ParseUint(firstText(dir, "memory.current", "memory.usage_in_bytes"), 10, 64)
		if err != nil {
			return 0, 0, trimtab.Invalidf("usage of %s: want bytes", dir)
		}
		stat := readText(filepath.Join(dir, "memory.stat"))
		cache, ok := Keyed(stat, "total_inactive_file")
		if !ok {
			cache, _ = Keyed(stat, "inactive_file") // version 2
		}
		usage -= min(usage, cache)
		if left := math.Max(0, float64(limit)-float64(usage)); left < free {
			free, used = left, float64(usage)
		}
	}
	return free, used, nil
}

// meminfoLine reads one line of /proc/meminfo, such as "MemTotal: 24684092 kB", in bytes.
func meminfoLine(text, name string) (float64, error) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 3 || f[0] != name || f[2] != "kB" {
			continue
		}
		if kib, err := strconv.ParseUint(f[1], 10, 54); err == nil {
			return float64(kib) * 1024, nil
		}
	}
	return 0, trimtab.Invalidf("meminfo %.60q: no %s", text, strings.TrimSuffix(name, ":"))
}

// enclosing lists root and the control groups above it, as far as they can be
// seen from here.
func enclosing(root string) ([]string, error) {
	if root == "" {
		return nil, nil
	}
	dir, err := filepath.EvalSymlinks(root)
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return nil, err
	}
	var all []string
	for ; isGroup(dir); dir = filepath.Dir(dir) {
		all = append(all, dir)
	}
	if all == nil {
		return nil, fmt.Errorf("%s is no control group: %w", root, trimtab.ErrUnsupported)
	}
	return all, nil
}

func isGroup(dir string) bool {
	var s unix.Statfs_t
	return unix.Statfs(dir, &s) == nil && (s.Type == unix.CGROUP_SUPER_MAGIC || s.Type == unix.CGROUP2_SUPER_MAGIC)
}

// unisolated counts the CPUs of a list without isolated ones, all if there are no others.
func unisolated(list string, isolated []int) int {
	all := ParseCPUs(list)
	own := slices.DeleteFunc(slices.Clone(all), func(cpu int) bool { return slices.Contains(isolated, cpu) })
	return cmp.Or(len(own), len(all))
}

// maxCPUs bounds a list of CPUs.
const maxCPUs = 1 << 16

// ParseCPUs reads a list such as 0-3,7; nil if it is malformed.
func ParseCPUs(list string) (all []int) {
	for part := range strings.SplitSeq(list, ",") {
		from, to, ranged := strings.Cut(part, "-")
		if !ranged {
			to = from
		}
		first, err := strconv.ParseUint(from, 10, 16)
		last, bad := strconv.ParseUint(to, 10, 16)
		if errors.Join(err, bad) != nil || last < first || len(all)+int(last-first) >= maxCPUs {
			return nil
		}
		for n := first; n <= last; n++ {
			all = append(all, int(n))
		}
	}
	return all
}

// firstText returns the text of the first file in dir that has one.
func firstText(dir string, names ...string) string {
	for _, name := range names {
		if text := readText(filepath.Join(dir, name)); text != "" {
			return text
		}
	}
	return ""
}

// readText returns the content of a kernel file; "" if it cannot be read.
func readText(name string) string {
	b, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
