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
	// forceEvery is how often is looked whether a quota is in force.
	forceEvery = 10 * time.Second
	// forceSlack is how far a group's use may exceed its quota, as a factor, forceCores in cores:
	// a quota is enforced in slices.
	forceSlack, forceCores = 1.2, 0.05
	// forceLooks is after how many such readings in a row it is reported: between two readings
	// the quota may have been another.
	forceLooks = 2
)

// force is the last reading of a quota's effect.
type force struct {
	at    time.Duration
	quota hostfs.Quota
	stat  rawForce
	over  int
	why   error
}

// rawForce is the content of cpu.stat: CPU time used, in seconds, periods of the quota, and in
// how many of them it stopped the group.
type rawForce struct {
	used             float64
	periods, stopped uint64
}

// InForce returns an error where the quota reads back and does nothing, as under a scheduler
// of sched_ext that knows none: the group used more than its quota, and the kernel counted no
// period of it. Read looks, of groups of version 2.
func (k *CPU) InForce() error { return k.force.why }

// watch looks at the effect of a quota, now and then.
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
		case next.stat.periods != f.stat.periods: // it is enforced
		case cores <= q.Amount().Value*forceSlack+forceCores: // nothing to enforce
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

// parseForce reads cpu.stat; what it does not say is 0.
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

// scheduledBy names the scheduler of sched_ext that runs, "" where none does.
func scheduledBy(dir string) string {
	state, err := os.ReadFile(path.Join(dir, "state"))
	if err != nil || strings.TrimSpace(string(state)) != "enabled" {
		return " (do its tasks have a real-time class?)"
	}
	name, _ := os.ReadFile(path.Join(dir, "root", "ops")) // without it its name is not known
	return fmt.Sprintf(" (the scheduler %s of sched_ext runs, which need not know quotas and weights: end it, or use one that does)", strings.TrimSpace(string(name)))
}
