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
	// stat has the lines of memory.stat, as of statAt; above has the least limit of the parent groups.
	stat   stat
	statAt time.Duration
	above  struct {
		least float64
		found bool
	}
	// waited is how long some task has waited for memory since the group was made, if pressed.
	waited  time.Duration
	pressed bool
}

// unlimited1 is the value from which version 1 means unlimited.
const unlimited1 = 1 << 60

// stat has the lines of memory.stat that are used, by version: of version 1 those that include the groups
// below.
type stat struct {
	inactive, anonymous, refaults, swap, limit       uint64
	hasAnonymous, hasRefaults, hasSwap, hasLimit, ok bool
}

// parseStat reads memory.stat in one pass. ok: it has the inactive part of the page cache.
func parseStat(text string, version int) (s stat) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, " ")
		if version == 1 {
			if name == "hierarchical_memory_limit" {
				s.limit, s.hasLimit = of(value)
				continue
			}
			var total bool
			if name, total = strings.CutPrefix(name, "total_"); !total {
				continue
			}
		}
		switch name {
		case "inactive_file":
			s.inactive, s.ok = of(value)
		case "anon", "rss":
			if (name == "rss") == (version == 1) {
				s.anonymous, s.hasAnonymous = of(value)
			}
		case "workingset_refault_anon", "workingset_refault_file", "workingset_refault": // the last before Linux 5.9
			if v, ok := of(value); ok {
				s.refaults, s.hasRefaults = s.refaults+v, true
			}
		case "swap":
			s.swap, s.hasSwap = of(value)
		}
	}
	return s
}

// of reads the number of a line.
func of(value string) (uint64, bool) {
	v, err := number(value)
	return v, err == nil
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

// statEvery is how often memory.stat and the limits above a group are read if the usage, to the byte, and
// the count of refused charges are those of the last reading: the split of the usage changes slowly then.
const statEvery = 5 * time.Second

// read reads the files of a group. before is its last reading, or nil: what cannot have changed since is
// taken from there.
func read(root *hostfs.Root, group string, before *reading) (*reading, error) {
	r := &reading{at: hostfs.BootTime(), bytes: map[quantity.Quantity]float64{}, counts: map[quantity.Quantity]uint64{}}
	file := func(name string) (string, error) { return root.Read(path.Join(group, name)) }
	version := versionOf(root, group)
	name := "memory.current"
	if version == 1 {
		name = "memory.usage_in_bytes"
	}
	text, err := file(name)
	if err != nil {
		return nil, err
	}
	usage, err := number(text)
	if err != nil {
		return nil, trimtab.Invalidf("%s: %.40q: want bytes", name, text)
	}
	r.bytes[quantity.MemoryUsage] = float64(usage)
	if version == 1 {
		err = r.first(file)
	} else {
		err = r.second(file)
	}
	if err != nil {
		return nil, err
	}
	if r.still(before) {
		r.stat, r.statAt = before.stat, before.statAt
	} else {
		if text, err = file("memory.stat"); err != nil {
			return nil, err
		}
		if r.stat, r.statAt = parseStat(text, version), r.at; !r.stat.ok {
			return nil, trimtab.Invalidf("memory.stat %.60q: no inactive_file", text)
		}
	}
	r.take(usage)
	if version == 1 {
		return r, nil
	}
	return r, r.limit(root, group, before)
}

// still reports whether memory.stat need not be read again.
func (r *reading) still(before *reading) bool {
	return before != nil && before.stat.ok && r.at-before.statAt < statEvery &&
		r.bytes[quantity.MemoryUsage] == before.bytes[quantity.MemoryUsage] &&
		r.counts[quantity.MemoryMaxEvents] == before.counts[quantity.MemoryMaxEvents] &&
		r.counts[quantity.MemoryHighEvents] == before.counts[quantity.MemoryHighEvents]
}

// take sets the quantities that memory.stat has.
func (r *reading) take(usage uint64) {
	s := &r.stat
	r.bytes[quantity.WorkingSet] = float64(usage - min(usage, s.inactive))
	if s.hasAnonymous {
		r.bytes[quantity.MemoryAnonymous] = float64(s.anonymous)
	}
	if s.hasRefaults {
		r.counts[quantity.Refaults] = s.refaults
	}
	if s.hasSwap {
		r.bytes[quantity.MemorySwap] = float64(s.swap)
	}
	if s.hasLimit {
		if r.unlimited = s.limit >= unlimited1; !r.unlimited {
			r.bytes[quantity.MemoryLimit] = float64(s.limit)
		}
	}
}

// first reads the counters that version 1 keeps in files of their own.
func (r *reading) first(file func(string) (string, error)) error {
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
// is no memory.swap.current, without PSI no memory.pressure.
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
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, " ")
		if q := eventOf(name); q != "" {
			if v, ok := of(value); ok {
				r.counts[q] = v
			}
		}
	}
	if text, err := file("memory.pressure"); err == nil {
		r.waited, r.pressed = waited(text)
	}
	return nil
}

// eventOf returns the quantity of a line of memory.events; "": none.
func eventOf(name string) quantity.Quantity {
	switch name {
	case "high":
		return quantity.MemoryHighEvents
	case "max":
		return quantity.MemoryMaxEvents
	case "oom":
		return quantity.OOMEvents
	case "oom_kill":
		return quantity.OOMKills
	}
	return ""
}

// waited returns how long some task has waited for memory, of a file such as memory.pressure:
//
//	some avg10=0.00 avg60=0.66 avg300=0.69 total=226403120
func waited(text string) (time.Duration, bool) {
	line, _, _ := strings.Cut(text, "\n")
	rest, some := strings.CutPrefix(line, "some ")
	_, total, ok := strings.Cut(rest, "total=")
	v, err := number(total)
	if !some || !ok || err != nil || v > math.MaxInt64/1000 {
		return 0, false
	}
	return time.Duration(v) * time.Microsecond, true
}

// limit finds the lowest memory.max of a group of version 2 and of its parents. The root of the
// hierarchy has no such file. Those of the parents are read with memory.stat.
func (r *reading) limit(root *hostfs.Root, group string, before *reading) error {
	own, found, err := limitOf(root, group)
	if err != nil {
		return err
	}
	if before != nil && r.statAt == before.statAt {
		r.above = before.above
	} else {
		r.above.least = math.Inf(1)
		for group != "." {
			group = path.Dir(group)
			v, ok, err := limitOf(root, group)
			if err != nil {
				return err
			}
			r.above.least, r.above.found = math.Min(r.above.least, v), r.above.found || ok
		}
	}
	least := math.Min(own, r.above.least)
	found = found || r.above.found
	if r.unlimited = found && math.IsInf(least, 1); found && !r.unlimited {
		r.bytes[quantity.MemoryLimit] = least
	}
	return nil
}

// limitOf reads memory.max of one group, +Inf without a limit; false: it has no such file.
func limitOf(root *hostfs.Root, group string) (float64, bool, error) {
	text, err := root.Read(path.Join(group, "memory.max"))
	if errors.Is(err, os.ErrNotExist) {
		return math.Inf(1), false, nil
	}
	if v, bad := number(text); bad == nil {
		return float64(v), true, err
	}
	return math.Inf(1), true, err
}

// number reads an amount or a counter.
func number(text string) (uint64, error) { return strconv.ParseUint(strings.TrimSpace(text), 10, 63) }
