package cgroup

import (
	"fmt"
	"os"
	"path"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

const (
	// forceEvery is how often a knob checks whether its quota has an effect.
	forceEvery = 10 * time.Second
	// forceSlack is the factor, and forceCores the number of cores, by which a group's usage may
	// exceed its quota: the kernel enforces a quota in slices.
	forceSlack, forceCores = 1.2, 0.05
	// forceLooks is the number of such readings in a row after which it is reported: the quota may
	// have changed between two readings.
	forceLooks = 2
)

// force has the last readings of a quota's effect.
type force struct {
	at    time.Duration
	quota hostfs.Quota
	stat  rawForce
	over  int
	why   error
}

// rawForce is the content of cpu.stat: the CPU time used, in seconds, the number of quota periods,
// and the number of those in which the quota throttled the group.
type rawForce struct {
	used             float64
	periods, stopped uint64
}

// InForce returns an error if the quota reads back but has no effect, for example under a sched_ext
// scheduler without quotas: the group used more than its quota, and the kernel counted no period.
// Read takes the measurements, for groups of version 2.
func (k *CPU) InForce() error { return k.force.why }

// watch checks the effect of a quota every forceEvery.
func (k *CPU) watch(q hostfs.Quota, now time.Duration) {
	f := &k.force
	if q.Micros < 0 || k.root.CgroupVersion(k.config.Path) != 2 {
		*f = force{}
		return
	}
	if f.at > 0 && now-f.at < forceEvery {
		return
	}
	text, err := k.root.Read(path.Join(k.config.Path, "cpu.stat"))
	if err != nil {
		*f = force{}
		return
	}
	next := force{at: now, quota: q, stat: parseForce(text)}
	if f.at > 0 && f.quota == q {
		cores := (next.stat.used - f.stat.used) / (now - f.at).Seconds()
		switch {
		case next.stat.periods != f.stat.periods: // the kernel enforces it
		case cores <= q.Amount().Value*forceSlack+forceCores: // too little usage to tell
			next.over, next.why = f.over, f.why
		default:
			if next.over = f.over + 1; next.over >= forceLooks {
				next.why = fmt.Errorf("the quota is not in force: cgroup %s used %.2f cores at %v, and the kernel counted no period of it%s: %w",
					k.config.Path, cores, q.Amount(), scheduledBy("/sys/kernel/sched_ext"), trimtab.ErrUnsupported)
			}
		}
	}
	*f = next
}

// parseForce parses cpu.stat; missing values are 0.
func parseForce(text string) (r rawForce) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := number([]byte(value))
		switch {
		case err != nil:
		case name == "usage_usec":
			r.used = float64(n) / 1e6
		case name == "nr_periods":
			r.periods = n
		case name == "nr_throttled":
			r.stopped = n
		}
	}
	return r
}

// scheduledBy returns the name of the running sched_ext scheduler; "": none runs.
func scheduledBy(dir string) string {
	state, err := os.ReadFile(path.Join(dir, "state"))
	if err != nil || strings.TrimSpace(string(state)) != "enabled" {
		return " (do its tasks have a real-time class?)"
	}
	name, _ := os.ReadFile(path.Join(dir, "root", "ops")) // on an error the name is unknown
	return fmt.Sprintf(" (the scheduler %s of sched_ext runs, which need not know quotas and weights: end it, or use one that does)", strings.TrimSpace(string(name)))
}
