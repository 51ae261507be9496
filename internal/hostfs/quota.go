package hostfs

import (
	"math"
	"strconv"
	"strings"

	"github.com/trimtab/trimtab"
)

// Kernel limits of a CPU quota, in microseconds (kernel/sched/core.c:
// min_cfs_quota_period, max_cfs_quota_period; cgroup-v2.rst, "cpu.max").
const (
	MinQuota      = 1000
	MinPeriod     = 1000
	MaxPeriod     = 1000000
	DefaultPeriod = 100000
)

// Quota is a CPU limit as the kernel keeps it: Micros of CPU time in every
// Period, both in microseconds. Micros below 0 means without limit.
type Quota struct {
	Micros int64
	Period int64
}

// Amount returns the limit in cores, Micros / Period.
func (q Quota) Amount() trimtab.Amount {
	if q.Micros < 0 {
		return trimtab.Unlimited()
	}
	return trimtab.Units(float64(q.Micros) / float64(q.Period))
}

// With returns the quota nearest to a under the same period, at least
// [MinQuota].
func (q Quota) With(a trimtab.Amount) Quota {
	if a.Unlimited {
		return Quota{Micros: -1, Period: q.Period}
	}
	// Beyond this the kernel's own arithmetic overflows; no host has so many
	// cores.
	micros := min(math.Round(a.Value*float64(q.Period)), 1<<40)
	return Quota{Micros: max(int64(micros), MinQuota), Period: q.Period}
}

// CPUMax prints the content of version 2's cpu.max: "150000 100000".
func (q Quota) CPUMax() string {
	if q.Micros < 0 {
		return "max " + strconv.FormatInt(q.Period, 10)
	}
	return strconv.FormatInt(q.Micros, 10) + " " + strconv.FormatInt(q.Period, 10)
}

// CFSQuota prints the content of version 1's cpu.cfs_quota_us: "150000", "-1".
func (q Quota) CFSQuota() string { return strconv.FormatInt(max(q.Micros, -1), 10) }

// ParseCPUMax reads version 2's cpu.max, "$MAX $PERIOD" with $MAX a number or
// "max". Only the first line counts.
func ParseCPUMax(s string) (Quota, error) {
	f := strings.Fields(firstLine(s))
	if len(f) != 2 {
		return Quota{}, trimtab.Invalidf("cpu.max %.60q: want QUOTA PERIOD", s)
	}
	return parseQuota(f[0], "max", f[1])
}

// ParseCFS reads version 1's cpu.cfs_quota_us, a number or -1, and
// cpu.cfs_period_us.
func ParseCFS(quota, period string) (Quota, error) {
	return parseQuota(strings.TrimSpace(firstLine(quota)), "-1", strings.TrimSpace(firstLine(period)))
}

func parseQuota(quota, unlimited, period string) (Quota, error) {
	p, err := strconv.ParseInt(period, 10, 64)
	if err != nil || p < MinPeriod || p > MaxPeriod {
		return Quota{}, trimtab.Invalidf("cpu period %.30q: want microseconds from %d to %d", period, MinPeriod, MaxPeriod)
	}
	if quota == unlimited {
		return Quota{Micros: -1, Period: p}, nil
	}
	q, err := strconv.ParseInt(quota, 10, 64)
	if err != nil || q < 0 {
		return Quota{}, trimtab.Invalidf("cpu quota %.30q: want microseconds or %q", quota, unlimited)
	}
	return Quota{Micros: q, Period: p}, nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
