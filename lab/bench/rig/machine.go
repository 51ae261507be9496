package rig

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
)

// tick is the unit of CPU time in /proc: USER_HZ is 100 on every Linux that Go runs
// on.
const tick = 10 * time.Millisecond

// busyTime returns the time that all CPUs together were not idle, and what of it
// the hypervisor took for other machines, from /proc/stat: "cpu user nice system
// idle iowait irq softirq steal …". Guest time is part of user time.
func busyTime(stat string) (busy, stolen time.Duration, err error) {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < 8 || fields[0] != "cpu" {
		return 0, 0, trimtab.Invalidf("/proc/stat begins with %.60q", line)
	}
	var sum, steal int64
	for i, f := range fields[1:min(len(fields), 9)] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, 0, trimtab.Invalidf("/proc/stat begins with %.60q", line)
		}
		if i == 7 {
			steal = n
		}
		if i != 3 && i != 4 { // idle, iowait
			sum += n
		}
	}
	return time.Duration(sum) * tick, time.Duration(steal) * tick, nil
}

// Meter tells what others used of the machine since it was made.
type Meter struct {
	ours func() (time.Duration, error)
	at   time.Time
	// all, stolen and own are CPU times then.
	all, stolen, own time.Duration
}

// NewMeter begins to measure; ours returns the CPU time that is not that of others.
func NewMeter(ours func() (time.Duration, error)) (*Meter, error) {
	m := &Meter{ours: ours, at: time.Now()}
	var err error
	m.all, m.stolen, m.own, err = m.busy()
	return m, err
}

func (m *Meter) busy() (all, stolen, own time.Duration, err error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, 0, fmt.Errorf("see how busy the machine is: %w", err)
	}
	if all, stolen, err = busyTime(string(b)); err != nil {
		return 0, 0, 0, err
	}
	own, err = m.ours()
	return all, stolen, own, err
}

// Others returns what others used, and what of it the hypervisor took, as shares
// of the machine.
func (m *Meter) Others() (used, taken float64, err error) {
	all, stolen, own, err := m.busy()
	if err != nil {
		return 0, 0, err
	}
	whole := time.Since(m.at).Seconds() * float64(runtime.NumCPU())
	return max(0, ((all-m.all)-(own-m.own)).Seconds()/whole), (stolen - m.stolen).Seconds() / whole, nil
}

// DescribeMachine names the processor and counts the CPUs.
func DescribeMachine() string {
	model := runtime.GOARCH
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%d CPUs (%s)", runtime.NumCPU(), model)
}
