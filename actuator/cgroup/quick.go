package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// quick has the open files of a group that is read ten times a second.
type quick struct {
	quota, stat, usage, burst *hostfs.Kept
	// pressure is opened at its first use; unpressed says that the kernel has no such file.
	pressure  *hostfs.Kept
	unpressed bool
	version   int
	// The raw counters at the last look, and the accumulated stall time.
	throttled, periods uint64
	known              bool
	stalled            float64
	cores              float64 // the quota at that look, in cores
	burstIs            int64
	// used is the last value of the CPU time counter; stuck is how many readings in a row it stayed
	// the same while the quota throttled the group.
	used  float64
	stuck int
}

// mostStuck is the number of readings for which the CPU time counter may stay the same while the
// quota throttles the group. After that the counter is not that of these processes: with version 1
// they may be in the group of only one of the two hierarchies.
const mostStuck = 5

// Ready opens the files for quick moves. Call it before the knob is journaled, since burst changes
// the undo record. It refuses groups of systemd units: systemd stores whole percents, and every
// change needs a request to it.
func (k *CPU) Ready(burst bool) error {
	if k.unit != "" {
		return fmt.Errorf("the group is that of the systemd unit %s, which keeps its own quota: %w", k.unit, trimtab.ErrUnsupported)
	}
	if err := k.openQuick(); err != nil {
		return err
	}
	if b := k.quick.burst; burst && b != nil && !k.config.Bursts {
		// A burst that another program has set stays as it is.
		if v, err := readNumber(b); err == nil && v == 0 {
			k.config.Bursts = true
		}
	}
	return nil
}

// Recall restores the record that an earlier process made: the baselines of the knob's parents, and
// whether a burst or a weight was set.
func (k *CPU) Recall(b []byte) error {
	u, err := actuator.ReadUndo[Config](kind, b)
	if err != nil {
		return trimtab.Invalidf("undo %.60q of cgroup %s", b, k.config.Path)
	}
	k.config.Bursts, k.config.Weighs = k.config.Bursts || u.Bursts, k.config.Weighs || u.Weighs
	for _, old := range u.Parents {
		if p := k.parent(old.Path); p != nil && old.Baseline != nil {
			p.Baseline = old.Baseline
		}
	}
	return nil
}

// openQuick opens the files of the group once.
func (k *CPU) openQuick() error {
	if k.quick != nil {
		return nil
	}
	q := &quick{version: k.root.CgroupVersion(k.config.Path)}
	if now, err := k.quota(k.config.Path); err == nil {
		k.period = now.Period
	}
	var err error
	q.quota, err = k.root.Keep(k.file(k.config.Path), true)
	if err == nil {
		q.stat, err = k.root.Keep(path.Join(k.config.Path, "cpu.stat"), false)
	}
	if err == nil && q.version == 1 {
		q.usage, err = k.keepUsage()
	}
	if err != nil {
		q.close()
		return err
	}
	// Kernels before 5.14 have no burst.
	q.burst, _ = k.root.Keep(burstFile(k.root, k.config.Path), true)
	if q.burst != nil {
		if v, err := readNumber(q.burst); err == nil {
			q.burstIs = v
		}
	}
	k.quick = q
	return nil
}

// keepUsage opens the CPU time counter of version 1, which may be in a separate hierarchy.
func (k *CPU) keepUsage() (*hostfs.Kept, error) {
	name := path.Join(k.config.Path, "cpuacct.usage")
	dir := hostfs.Accounting(k.root.Path())
	if dir == "" {
		return k.root.Keep(name, false)
	}
	twin, err := k.config.Roots.root(dir)
	if err != nil {
		return nil, err
	}
	defer twin.Close()
	return twin.Keep(name, false)
}

func (q *quick) close() {
	for _, f := range []*hostfs.Kept{q.quota, q.stat, q.usage, q.burst, q.pressure} {
		if f != nil {
			_ = f.Close() // every read and write has returned already
		}
	}
}

// shut closes the files for quick moves.
func (k *CPU) shut() {
	if k.quick != nil {
		k.quick.close()
		k.quick = nil
	}
}

// Look reads the quota and the counters. If the group was removed, and perhaps made again, Look
// fails once with os.ErrNotExist; the next look opens the group again.
func (k *CPU) Look() (c actuator.Counters, err error) {
	if err := k.openQuick(); err != nil {
		return c, err
	}
	defer func() {
		if errors.Is(err, os.ErrNotExist) {
			k.shut()
		}
	}()
	q := k.quick
	set, err := k.readSet()
	if err != nil {
		return c, err
	}
	stat, err := q.stat.Read()
	if err != nil {
		return c, err
	}
	raw, err := parseStat(stat)
	if err != nil {
		return c, err
	}
	if q.usage != nil {
		n, err := readNumber(q.usage)
		if err != nil {
			return c, err
		}
		raw.used = float64(n) / 1e9
	}
	stood := q.stalled
	q.stand(raw, float64(k.period)/1e6)
	switch {
	case raw.used != q.used:
		q.used, q.stuck = raw.used, 0
	case q.stalled > stood:
		q.stuck++
	}
	if q.stuck >= mostStuck {
		return c, fmt.Errorf("cgroup %s: its quota stops it, and its CPU time is not counted: %w", k.config.Path, trimtab.ErrUnsupported)
	}
	q.cores = math.Inf(1)
	if !set.Unlimited {
		q.cores = set.Value
	}
	return actuator.Counters{Set: set, Used: raw.used, Stalled: q.stalled}, nil
}

// Pressure reads from cpu.pressure how long all tasks of the group waited, in seconds. Groups of
// version 1 have no such file, nor has a kernel without pressure stall information.
func (k *CPU) Pressure() (total float64, ok bool) {
	q := k.quick
	if q == nil || q.unpressed {
		return 0, false
	}
	if q.pressure == nil {
		var err error
		if q.pressure, err = k.root.Keep(path.Join(k.config.Path, "cpu.pressure"), false); err != nil {
			q.pressure, q.unpressed = nil, true
			return 0, false
		}
	}
	text, err := q.pressure.Read()
	if err != nil {
		return 0, false
	}
	return parseFull(text)
}

// parseFull finds the total in the line "full", in microseconds, without allocating memory.
func parseFull(b []byte) (total float64, ok bool) {
	_, line, found := bytes.Cut(b, []byte("full "))
	if !found {
		return 0, false
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	_, value, found := bytes.Cut(line, []byte("total="))
	if !found {
		return 0, false
	}
	n, err := number(bytes.TrimSpace(value))
	return float64(n) / 1e6, err == nil
}

// stand adds the time for which the quota stopped the group, counted once for any number of CPUs.
// With D the mean number of stopped CPUs over the throttled periods, q the quota and T the period,
// it ran on D + q CPUs at a time, until q T/(D + q) of the period, so
//
//	stalled = n T · D / (D + q)
//
// for n throttled periods. throttled_time counts a stall when it ends, as nr_throttled does.
func (q *quick) stand(raw rawStat, period float64) {
	was, periods := q.throttled, q.periods
	known := q.known
	q.throttled, q.periods, q.known = raw.throttled, raw.periods, true
	if !known || raw.throttled < was || raw.periods < periods {
		return
	}
	time := float64(raw.throttled-was) / 1e9
	n := float64(raw.periods - periods)
	if time <= 0 {
		return
	}
	n = math.Max(n, 1) // a write to the quota ends a stall in the middle of a period
	d := time / (n * period)
	still := n * period
	if !math.IsInf(q.cores, 1) {
		still = n * period * d / (d + q.cores)
	}
	q.stalled += math.Min(still, time)
}

// readSet reads the quota, in the period found last.
func (k *CPU) readSet() (trimtab.Amount, error) {
	text, err := k.quick.quota.Read()
	if err != nil {
		return trimtab.Amount{}, err
	}
	if k.quick.version == 2 {
		v, err := hostfs.ParseCPUMax(string(text))
		if err == nil {
			k.period = v.Period
		}
		return v.Amount(), err
	}
	v, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	if err != nil {
		return trimtab.Amount{}, trimtab.Invalidf("cpu.cfs_quota_us %.40q of cgroup %s", text, k.config.Path)
	}
	return hostfs.Quota{Micros: v, Period: k.period}.Amount(), nil
}

// Move sets quota and burst, in cores. The kernel refuses a quota below the burst, and a burst
// above the quota: so a raise sets the quota first, and a reduction the burst.
func (k *CPU) Move(v trimtab.Amount, burst float64) (found trimtab.Amount, err error) {
	if err := k.openQuick(); err != nil {
		return found, err
	}
	defer func() {
		if errors.Is(err, os.ErrNotExist) {
			k.shut()
		}
	}()
	next := hostfs.Quota{Period: k.period}.With(v)
	save := int64(0)
	if k.config.Bursts && next.Micros > 0 {
		save = min(int64(math.Round(burst*float64(k.period))), next.Micros)
	}
	q := k.quick
	if k.config.Bursts && save < q.burstIs {
		if err := k.save(save); err != nil {
			return found, err
		}
	}
	text := next.CFSQuota()
	if q.version == 2 {
		text = next.CPUMax()
	}
	if err := q.quota.Write(text); err != nil {
		return found, whyQuota(k.root, k.config.Path, next, err)
	}
	if k.config.Bursts && save > q.burstIs {
		if err := k.save(save); err != nil {
			return found, err
		}
	}
	return k.readSet()
}

// save sets the burst, in microseconds.
func (k *CPU) save(micros int64) error {
	if k.quick.burst == nil {
		return nil
	}
	if err := k.quick.burst.Write(strconv.FormatInt(micros, 10)); err != nil {
		return err
	}
	k.quick.burstIs = micros
	return nil
}

// unburst resets the burst that trimtab set, before the quota is set to a value that may be lower.
func (k *CPU) unburst() error {
	if !k.config.Bursts {
		return nil
	}
	if err := k.openQuick(); err != nil || k.quick.burst == nil || k.quick.burstIs == 0 {
		return err
	}
	return k.save(0)
}

// rawStat is the content of cpu.stat.
type rawStat struct {
	used      float64
	throttled uint64 // nanoseconds
	periods   uint64 // those in which the quota stopped the group
}

// parseStat parses cpu.stat of either version without allocating memory: it is called ten times a
// second.
func parseStat(b []byte) (r rawStat, err error) {
	found := false
	for len(b) > 0 {
		line := b
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			line, b = b[:i], b[i+1:]
		} else {
			b = nil
		}
		name, value, _ := bytes.Cut(line, []byte(" "))
		var to *uint64
		scale := uint64(1)
		var micros uint64
		switch string(name) {
		case "nr_throttled":
			to = &r.periods
		case "throttled_time":
			to = &r.throttled
		case "throttled_usec":
			to, scale = &r.throttled, 1000
		case "usage_usec":
			to = &micros
		default:
			continue
		}
		n, err := number(value)
		if err != nil || n > math.MaxInt64/1000 {
			return rawStat{}, trimtab.Invalidf("cpu.stat line %.60q", line)
		}
		*to = n * scale
		if to == &micros {
			r.used = float64(n) / 1e6
		}
		found = true
	}
	if !found {
		return rawStat{}, trimtab.Invalidf("cpu.stat: no counters")
	}
	return r, nil
}

// number parses digits.
func number(b []byte) (n uint64, err error) {
	if len(b) == 0 || len(b) > 19 {
		return 0, strconv.ErrSyntax
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, strconv.ErrSyntax
		}
		n = n*10 + uint64(c-'0')
	}
	return n, nil
}

// readNumber reads a file with one number.
func readNumber(f *hostfs.Kept) (int64, error) {
	text, err := f.Read()
	if err != nil {
		return 0, err
	}
	n, err := number(bytes.TrimSpace(text))
	if err != nil {
		return 0, trimtab.Invalidf("%.40q: want a number", strings.TrimSpace(string(text)))
	}
	return int64(n), nil
}
