package cgroup

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// Reading is the content of one group's files at one time.
type Reading struct {
	// At is the time since the host booted.
	At time.Duration
	// Used is the total CPU time.
	Used time.Duration
	// Periods and Throttled count all periods of the group's own quota, and those in which it
	// throttled the group. Above and Stopped are the same for the parent group with the lowest
	// quota, which By names.
	Periods, Throttled uint64
	Above, Stopped     uint64
	By                 string
	// Quota is the group's own quota in force, Most the least of those above it.
	Quota hostfs.Quota
	Most  trimtab.Amount
	// Local is how long quotas of any group stopped the group's tasks, summed over CPUs; nil: the
	// kernel does not report it.
	Local *time.Duration
}

// ParseStat reads cpu.stat of either version; used is 0 and timed false where
// it has no usage_usec (version 1). Its form:
//
//	usage_usec 1234      version 2 only
//	nr_periods 10
//	nr_throttled 3
//	throttled_usec 5678
func ParseStat(s string) (r Reading, timed bool, err error) {
	found := 0
	for line := range strings.Lines(s) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		var to *uint64
		var micros uint64
		switch name {
		case "nr_periods":
			to = &r.Periods
		case "nr_throttled":
			to = &r.Throttled
		case "usage_usec":
			to, timed = &micros, true
		default:
			continue
		}
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil || n > math.MaxInt64/1000 {
			return Reading{}, false, trimtab.Invalidf("cpu.stat line %.60q", line)
		}
		*to = n
		if to == &micros {
			r.Used = time.Duration(n) * time.Microsecond
		} else {
			found++
		}
	}
	// A version 2 group whose parent has no cpu controller has the time alone.
	if found == 0 && !timed {
		return Reading{}, false, trimtab.Invalidf("cpu.stat %.60q: no counters", s)
	}
	return r, timed, nil
}

// ParseUsage reads version 1's cpuacct.usage, a number of nanoseconds.
func ParseUsage(s string) (time.Duration, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	if err != nil || n < 0 {
		return 0, trimtab.Invalidf("cpuacct.usage %.60q: want nanoseconds", s)
	}
	return time.Duration(n), nil
}

// read reads the group's files; usage is where version 1 accounts for it.
func read(root, usage *hostfs.Root, group string) (Reading, error) {
	stat, err := root.Read(path.Join(group, "cpu.stat"))
	if err != nil {
		return Reading{}, err
	}
	r, timed, err := ParseStat(stat)
	if err != nil {
		return Reading{}, err
	}
	if !timed {
		text, err := usage.Read(path.Join(group, "cpuacct.usage"))
		if err != nil {
			return Reading{}, err
		}
		if r.Used, err = ParseUsage(text); err != nil {
			return Reading{}, err
		}
	} else if local, err := root.Read(path.Join(group, "cpu.stat.local")); err == nil { // Linux 6.6, version 2
		r.Local = ParseLocal(local)
	}
	r.Most = trimtab.Unlimited()
	r.Quota, err = root.Quota(group)
	if errors.Is(err, os.ErrNotExist) {
		r.Quota, err = hostfs.Quota{Micros: -1, Period: hostfs.DefaultPeriod}, nil
	}
	if err != nil {
		return Reading{}, fmt.Errorf("quota: %w", err)
	}
	return r, nil
}

// ParseLocal reads cpu.stat.local, "throttled_usec 1234"; nil: it has no such line.
func ParseLocal(s string) *time.Duration {
	for line := range strings.Lines(s) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseUint(value, 10, 64); name == "throttled_usec" && err == nil && n <= math.MaxInt64/1000 {
			d := time.Duration(n) * time.Microsecond
			return &d
		}
	}
	return nil
}
