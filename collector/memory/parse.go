package memory

import (
	"errors"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/quantity"
)

// reading is the content of one group's files.
type reading struct {
	at time.Duration // since the host booted
	// bytes has the amounts, counts the counters. A quantity that the kernel does not report is in
	// neither.
	bytes  map[quantity.Quantity]float64
	counts map[quantity.Quantity]uint64
	// unlimited: no limit is in force.
	unlimited bool
}

// unlimited1 is the value from which version 1 means unlimited.
const unlimited1 = 1 << 60

// names are the names of one version of cgroups: of files, and of lines in memory.stat.
type names struct {
	usage, inactive, anonymous string
	refaults                   []string // the sum of those that exist
}

func namesOf(version int) names {
	if version == 1 {
		return names{"memory.usage_in_bytes", "total_inactive_file", "total_rss", []string{"total_workingset_refault_anon", "total_workingset_refault_file"}}
	}
	return names{"memory.current", "inactive_file", "anon", []string{"workingset_refault_anon", "workingset_refault_file", "workingset_refault"}} // the last before Linux 5.9
}

// versionOf returns the version of cgroups. In a tree that is not a cgroup file system it goes by the
// files in the group.
func versionOf(root *hostfs.Root, group string) int {
	switch root.Filesystem() {
	case hostfs.Cgroup1:
		return 1
	case hostfs.Cgroup2:
		return 2
	}
	if ok, err := root.Exists(path.Join(group, "memory.usage_in_bytes")); ok && err == nil {
		return 1
	}
	return 2
}

// read reads the files of a group.
func read(root *hostfs.Root, group string) (*reading, error) {
	r := &reading{at: hostfs.BootTime(), bytes: map[quantity.Quantity]float64{}, counts: map[quantity.Quantity]uint64{}}
	file := func(name string) (string, error) { return root.Read(path.Join(group, name)) }
	version := versionOf(root, group)
	of := namesOf(version)
	text, err := file(of.usage)
	if err != nil {
		return nil, err
	}
	usage, err := number(text)
	if err != nil {
		return nil, trimtab.Invalidf("%s: %.40q: want bytes", of.usage, text)
	}
	stat, err := file("memory.stat")
	if err != nil {
		return nil, err
	}
	inactive, ok := hostfs.Keyed(stat, of.inactive)
	if !ok {
		return nil, trimtab.Invalidf("memory.stat %.60q: no %s", stat, of.inactive)
	}
	r.bytes[quantity.MemoryUsage] = float64(usage)
	r.bytes[quantity.WorkingSet] = float64(usage - min(usage, inactive))
	if v, ok := hostfs.Keyed(stat, of.anonymous); ok {
		r.bytes[quantity.MemoryAnonymous] = float64(v)
	}
	for _, name := range of.refaults {
		if v, ok := hostfs.Keyed(stat, name); ok {
			r.counts[quantity.Refaults] += v
		}
	}
	if version == 1 {
		return r, r.first(stat, file)
	}
	if err := r.second(file); err != nil {
		return nil, err
	}
	return r, r.limit(root, group)
}

// first reads the quantities that version 1 keeps in files of its own.
func (r *reading) first(stat string, file func(string) (string, error)) error {
	if v, ok := hostfs.Keyed(stat, "total_swap"); ok {
		r.bytes[quantity.MemorySwap] = float64(v)
	}
	if v, ok := hostfs.Keyed(stat, "hierarchical_memory_limit"); ok {
		if r.unlimited = v >= unlimited1; !r.unlimited {
			r.bytes[quantity.MemoryLimit] = float64(v)
		}
	}
	if text, err := file("memory.failcnt"); err == nil {
		if v, err := number(text); err == nil {
			r.counts[quantity.MemoryMaxEvents] = v
		}
	}
	text, err := file("memory.oom_control")
	if err != nil {
		return err
	}
	if v, ok := hostfs.Keyed(text, "oom_kill"); ok { // since Linux 4.13
		r.counts[quantity.OOMKills] = v
	}
	return nil
}

// second reads the quantities that version 2 keeps in files of its own. Without swap accounting there
// is no memory.swap.current.
func (r *reading) second(file func(string) (string, error)) error {
	if text, err := file("memory.swap.current"); err == nil {
		if v, err := number(text); err == nil {
			r.bytes[quantity.MemorySwap] = float64(v)
		}
	}
	text, err := file("memory.events")
	if err != nil {
		return err
	}
	for name, q := range map[string]quantity.Quantity{"high": quantity.MemoryHighEvents, "max": quantity.MemoryMaxEvents, "oom": quantity.OOMEvents, "oom_kill": quantity.OOMKills} {
		if v, ok := hostfs.Keyed(text, name); ok {
			r.counts[q] = v
		}
	}
	return nil
}

// limit finds the lowest memory.max of a group of version 2 and of its parents. The root of the
// hierarchy has no such file.
func (r *reading) limit(root *hostfs.Root, group string) error {
	least, found := math.Inf(1), false
	for ; ; group = path.Dir(group) {
		text, err := root.Read(path.Join(group, "memory.max"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err == nil {
			found = true
			if v, err := number(text); err == nil {
				least = math.Min(least, float64(v))
			}
		}
		if group == "." {
			break
		}
	}
	if r.unlimited = found && math.IsInf(least, 1); found && !r.unlimited {
		r.bytes[quantity.MemoryLimit] = least
	}
	return nil
}

// number reads an amount or a counter.
func number(text string) (uint64, error) { return strconv.ParseUint(strings.TrimSpace(text), 10, 63) }
