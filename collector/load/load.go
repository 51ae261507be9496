package load

import (
	"cmp"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/link"
	"github.com/trimtab/trimtab/collector/psi"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// Load is how much of a resource is in use, and its capacity.
type Load struct{ Used, Capacity float64 }

// Reader reads a host. The zero Reader reads this one.
type Reader struct {
	// Proc and Sys are where procfs and sysfs are mounted; "": /proc and /sys.
	Proc, Sys string
	// Groups lists the directories of control groups whose quotas trimtab sets; it may be nil.
	Groups func() []string
}

// Reading is one reading of the kernel's files. A missing value is nil, or 0.
type Reading struct {
	// At is the time since the host booted.
	At        time.Duration
	busy, all uint64 // ticks of all CPUs
	cpus      float64
	memory    *Load
	average   *float64
	// disks have the ms in which each was busy, waits how long something waited.
	disks map[string]uint64
	waits map[string]time.Duration
	// stopped is how long quotas throttled each group, summed over all CPUs.
	stopped map[string]time.Duration
	links   map[string]link.Reading
}

// pressures are the files of PSI.
func pressures() []string { return []string{"cpu", "memory", "io"} }

// Read reads everything once.
func (r Reader) Read() Reading {
	r.Proc = cmp.Or(r.Proc, "/proc")
	r.Sys = cmp.Or(r.Sys, "/sys")
	now := Reading{At: hostfs.BootTime(), disks: map[string]uint64{}, waits: map[string]time.Duration{}, links: map[string]link.Reading{}}
	now.busy, now.all, now.cpus, _ = parseStat(r.text("stat"))
	now.memory, _ = parseMemory(r.text("meminfo"))
	now.average, _ = parseAverage(r.text("loadavg"))
	for name, ms := range parseDisks(r.text("diskstats")) {
		if _, err := os.Stat(filepath.Join(r.Sys, "block", name)); err == nil { // partitions have no directory here
			now.disks[name] = ms
		}
	}
	for _, name := range pressures() {
		if p, err := psi.Parse(r.text("pressure/" + name)); err == nil {
			now.waits[name] = p.Some.Total
		}
	}
	if r.Groups != nil {
		now.stopped = stops(r.Groups())
	}
	dir := filepath.Join(r.Sys, "class", "net")
	entries, _ := os.ReadDir(dir) // on an error no link is reported
	for _, e := range entries {
		if l, err := link.Read(dir, e.Name()); err == nil && l.Bandwidth > 0 {
			now.links[e.Name()] = l
		}
	}
	return now
}

// text is a file, "" where it cannot be read.
func (r Reader) text(name string) string {
	b, err := os.ReadFile(filepath.Join(r.Proc, name))
	if err != nil {
		return ""
	}
	return string(b)
}

// Between returns the loads between two readings, by name.
func Between(before, after Reading) map[string]Load {
	out := map[string]Load{}
	window := after.At - before.At
	if after.memory != nil {
		out["memory"] = *after.memory
	}
	if after.average != nil && after.cpus > 0 {
		out["load"] = Load{*after.average, after.cpus}
	}
	if window <= 0 {
		return out
	}
	if after.all > before.all && before.all > 0 && after.busy >= before.busy && after.cpus > 0 {
		out["cpu"] = Load{after.cpus * min(1, float64(after.busy-before.busy)/float64(after.all-before.all)), after.cpus}
	}
	if busiest, known := busiestOf(before.disks, after.disks, window); known {
		out["disk"] = Load{busiest, 1}
	}
	for _, name := range pressures() {
		was, known := before.waits[name]
		if is, still := after.waits[name]; known && still && is >= was {
			out["pressure_"+name] = Load{min(1, (is-was).Seconds()/window.Seconds()), 1}
		}
	}
	contended(out, before, after, window)
	if l := sentOver(before.links, after.links); l.Capacity > 0 {
		out["network"] = l
	}
	return out
}

// contended subtracts from the CPU pressure the time that is not contention of the host: the kernel
// also counts a task as waiting while a quota throttles it. It subtracts the throttling of
// trimtab's groups, and limits the rest to the number of busy CPUs, since a waiting task waits for
// a CPU on which another runs:
//
//	pressure_cpu = min(pressure − Δ stopped / Δ t, cores in use)
func contended(out map[string]Load, before, after Reading, window time.Duration) {
	p, told := out["pressure_cpu"]
	if !told {
		return
	}
	for name, d := range after.stopped {
		if was, known := before.stopped[name]; known && d > was {
			p.Used -= (d - was).Seconds() / window.Seconds()
		}
	}
	if cpu, known := out["cpu"]; known {
		p.Used = min(p.Used, cpu.Used)
	}
	p.Used = max(0, p.Used)
	out["pressure_cpu"] = p
}

// stops reads how long groups were stopped, from cpu.stat of either version.
func stops(groups []string) map[string]time.Duration {
	out := map[string]time.Duration{}
	for _, dir := range groups {
		b, err := os.ReadFile(filepath.Join(dir, "cpu.stat"))
		if err != nil {
			continue // the group was removed
		}
		for line := range strings.Lines(string(b)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			n, err := strconv.ParseInt(value, 10, 62)
			switch {
			case err != nil || n < 0:
			case name == "throttled_usec" && n < 1<<50:
				out[dir] = time.Duration(n) * time.Microsecond
			case name == "throttled_time":
				out[dir] = time.Duration(n)
			}
		}
	}
	return out
}

// busiestOf is the share of time in which the busiest disk was busy.
func busiestOf(before, after map[string]uint64, window time.Duration) (most float64, known bool) {
	for name, ms := range after {
		if was, there := before[name]; there && ms >= was {
			most, known = max(most, float64(ms-was)/1000/window.Seconds()), true
		}
	}
	return min(1, most), known
}

// sentOver sums the traffic sent over all links.
func sentOver(before, after map[string]link.Reading) (l Load) {
	for name, now := range after {
		was, there := before[name]
		if v, err := link.Sent(was, now); there && err == nil {
			l.Used, l.Capacity = l.Used+v, l.Capacity+now.Bandwidth
		}
	}
	return l
}

// parseStat reads /proc/stat: the ticks of all CPUs, and how many are online. Its form:
//
//	cpu  1083 4 512 99410 320 0 12 7 0 0
//	cpu0 541 2 256 49705 160 0 6 3 0 0
//
// user, nice, system, idle, iowait, irq, softirq, steal; those of guests are in user.
func parseStat(text string) (busy, all uint64, cpus float64, err error) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 9 || !strings.HasPrefix(f[0], "cpu") {
			continue
		}
		if f[0] != "cpu" {
			cpus++
			continue
		}
		for i, word := range f[1:9] {
			n, err := strconv.ParseUint(word, 10, 60)
			if err != nil {
				return 0, 0, 0, trimtab.Invalidf("stat %.60q: want numbers", line)
			}
			if all += n; i != 3 && i != 4 {
				busy += n
			}
		}
	}
	if all == 0 || cpus == 0 {
		return 0, 0, 0, trimtab.Invalidf("stat %.60q: no CPU", text)
	}
	return busy, all, cpus, nil
}

// parseMemory reads /proc/meminfo: "MemTotal: 24684096 kB" and "MemAvailable: …".
func parseMemory(text string) (*Load, error) {
	var kib [2]float64
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 3 || f[2] != "kB" {
			continue
		}
		for i, name := range []string{"MemTotal:", "MemAvailable:"} {
			if n, err := strconv.ParseUint(f[1], 10, 53); f[0] == name && err == nil {
				kib[i] = float64(n)
			}
		}
	}
	if kib[0] <= 0 || kib[1] <= 0 || kib[1] > kib[0] {
		return nil, trimtab.Invalidf("meminfo %.60q: no memory", text)
	}
	return &Load{(kib[0] - kib[1]) * 1024, kib[0] * 1024}, nil
}

// parseAverage reads /proc/loadavg: "0.20 0.18 0.12 1/80 11206".
func parseAverage(text string) (*float64, error) {
	first, _, _ := strings.Cut(text, " ")
	v, err := strconv.ParseFloat(first, 64)
	if err != nil || !(v >= 0 && v < 1e9) {
		return nil, trimtab.Invalidf("load average %.60q", text)
	}
	return &v, nil
}

// parseDisks reads /proc/diskstats: the name, and as the tenth number after it the ms in
// which the disk was busy. Disks in memory and files are none.
func parseDisks(text string) map[string]uint64 {
	out := map[string]uint64{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 13 || strings.HasPrefix(f[2], "loop") || strings.HasPrefix(f[2], "ram") || strings.HasPrefix(f[2], "zram") {
			continue
		}
		if ms, err := strconv.ParseUint(f[12], 10, 60); err == nil {
			out[f[2]] = ms
		}
	}
	return out
}
