package beside

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/jobs"
)

// ownGroups lists the control groups of this process and of process 1: a job that contained them
// would take the CPU time of trimtab, or of the whole host.
func ownGroups() (all []string) {
	for _, pid := range []string{"self", "1"} {
		if b, err := os.ReadFile("/proc/" + pid + "/cgroup"); err == nil {
			all = append(all, groupsIn(string(b))...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// groupsIn parses a /proc/PID/cgroup file, with lines such as "0::/system.slice/a.service". It
// leaves out root groups, since no job is one.
func groupsIn(text string) (all []string) {
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if group := strings.Trim(parts[len(parts)-1], "/"); len(parts) == 3 && group != "" {
			all = append(all, group)
		}
	}
	return all
}

// declaredApart refuses a declared job whose group contains trimtab, or meets that of speculative
// tasks, which another rule freezes. Of patterns it does not check whether they match trimtab: their
// matches are checked when they appear.
func declaredApart(cfg *config.Config, own []string) error {
	for _, w := range cfg.Jobs() {
		if of := jobs.Holds(hostfs.PlainPattern(w.Knob.Cgroup), own); of != "" {
			return fmt.Errorf("best-effort job %q: its cgroup %s holds trimtab itself or the system's first process, which are in %s: declare the groups of the jobs alone", w.Name, w.Knob.Cgroup, of)
		}
		if s := cfg.Beside.Tasks; s != nil && jobs.Meet(s.Cgroup, w.Knob.Cgroup) {
			return fmt.Errorf("best-effort job %q: its cgroup %s is that of speculative tasks, %s, or one above or below it, and both would freeze the same processes: declare another group, or set beside.tasks.cgroup", w.Name, w.Knob.Cgroup, s.Cgroup)
		}
	}
	return nil
}

// apart wraps a finder so that it leaves out the groups that contain trimtab.
func apart(f actuator.Finder, group func(instance string) string, own []string) actuator.Finder {
	find := f.Find
	f.Find = func(ctx context.Context) ([]actuator.Instance, error) {
		found, err := find(ctx)
		return slices.DeleteFunc(slices.Clone(found), func(i actuator.Instance) bool { return jobs.Holds(group(i.Name), own) != "" }), err
	}
	return f
}

// allApart does the same for the finders of declared jobs.
func allApart(finders []actuator.Finder, cfg *config.Config, own []string) (all []actuator.Finder) {
	declared := jobsOf(cfg)
	for _, f := range finders {
		pattern := declared[f.Workload].Knob.Cgroup
		all = append(all, apart(f, func(instance string) string { return groupOf(pattern, instance) }, own))
	}
	return all
}
