package cgroup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/waits"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/quantity"
)

// A census checks once a minute whether something makes the weight and quota of a group act
// differently than their values say. It only makes remarks for people.

const (
	// censusEvery is how often groups are checked.
	censusEvery = time.Minute
	// maxMembers is how many processes, or threads, of a group are checked, maxHost how many
	// processes of the host, maxGroups how many groups below one above, maxDirs how many
	// directories are searched for processes and threads.
	maxMembers, maxHost, maxGroups, maxDirs = 500, 4000, 500, 4000
)

// census is one check of all groups.
type census struct {
	root *hostfs.Root
	proc string
	// ours are the groups of workloads and those above them.
	ours map[string]bool
	// dirs is the number of directories in which processes and threads may still be searched.
	dirs int
	// members has the processes of each group; of has the group of each process.
	members map[string][]int
	of      map[int]string
	// strays are processes outside of a group that one of it started, by that group.
	strays map[string][]string
	// beside has remarks on parent groups; alone is the remark on processes without a group.
	beside map[string]string
	alone  string
}

// census checks all groups, and publishes the remarks on each.
func (c *Collector) census(ctx context.Context, all []location) {
	now := hostfs.BootTime()
	if c.rounds < 2 || c.censusAt > 0 && now-c.censusAt < censusEvery {
		return
	}
	c.censusAt = now
	root, err := hostfs.OpenRoot(c.config.Root) // which keeps nothing open
	if err != nil {
		return
	}
	defer root.Close()
	s := newCensus(root, "/proc")
	for _, p := range all {
		g := p.group
		s.enter(g.Path, g.before == nil || g.before.Used != g.counted)
		if g.before != nil {
			g.counted = g.before.Used
		}
	}
	s.findStrays()
	if c.waiter.full {
		s.alone = s.groupless()
	}
	for _, p := range all {
		t, g, above := p.target, p.group, ""
		if g.before != nil && g.before.By == path.Dir(g.Path) {
			above = g.before.By
		}
		remarks := s.remarks(g.Path, above)
		if c.config.Remark != "" {
			remarks = append(remarks, c.config.Remark)
		}
		if len(remarks) == 0 && !g.remarked {
			continue
		}
		g.remarked = len(remarks) > 0
		c.publish(ctx, &trimtab.Sample{Workload: t.Workload, Host: t.Host, Instance: g.Name, Quantity: quantity.Remarks, Source: Source,
			Time: time.Now().Round(0).UTC(), Value: float64(len(remarks)), Note: strings.Join(remarks, "; ")})
	}
}

// newCensus begins a look at all groups.
func newCensus(root *hostfs.Root, proc string) *census {
	return &census{root: root, proc: proc, ours: map[string]bool{}, dirs: maxDirs, members: map[string][]int{}, of: map[int]string{}, beside: map[string]string{}}
}

// enter records a group of a workload and its processes. used: it used CPU since the last check;
// if it then has no process, its processes cannot be seen from here.
func (s *census) enter(group string, used bool) {
	for at := group; at != "." && at != "/"; at = path.Dir(at) {
		s.ours[at] = true
	}
	all, err := s.processes(group)
	if err != nil || len(all) == 0 && used {
		return // an incomplete check gives no remarks
	}
	s.members[group] = all
	for _, pid := range all {
		s.of[pid] = group
	}
}

// processes lists the processes of a group.
func (s *census) processes(group string) ([]int, error) {
	all := []int{}
	err := waits.Numbers(s.root, group, "cgroup.procs", &s.dirs, func(pid int) error {
		switch {
		case pid == 0:
			return waits.ErrUnseen
		case len(all) == maxMembers:
			return waits.ErrTooMany
		}
		all = append(all, pid)
		return nil
	})
	return all, err
}

// remarks returns the remarks on a group; above is the group above, if its limit is the tightest.
func (s *census) remarks(group, above string) (all []string) {
	for _, remark := range []string{s.idle(group), s.realtime(group), s.empty(group), s.strayed(group), s.stranger(above), s.alone} {
		if remark != "" {
			all = append(all, remark)
		}
	}
	return all
}

// idle says which group, it or one above, has the scheduler's lowest class.
func (s *census) idle(group string) string {
	for at := group; at != "." && at != "/"; at = path.Dir(at) {
		if text, err := s.root.Read(path.Join(at, "cpu.idle")); err == nil && strings.TrimSpace(text) == "1" {
			return fmt.Sprintf("group %s is idle (cpu.idle): what is in it runs only while nobody else wants a CPU", at)
		}
	}
	return ""
}

// realtime says how many threads of a group are real-time, which neither weight nor quota limits.
func (s *census) realtime(group string) string {
	n, seen := 0, 0
	file := "cgroup.threads"
	if s.root.CgroupVersion(group) == 1 {
		file = "tasks"
	}
	err := waits.Numbers(s.root, group, file, &s.dirs, func(tid int) error {
		switch {
		case tid == 0:
			return waits.ErrUnseen
		case seen == maxMembers:
			return waits.ErrTooMany
		}
		if seen++; waits.RealTime(tid) {
			n++
		}
		return nil
	})
	least := ""
	switch {
	case n == 0, err != nil && !errors.Is(err, waits.ErrTooMany):
		return ""
	case err != nil:
		least = "at least "
	}
	return least + counted(n, "thread of it has a real-time class: neither weights nor quotas hold it", "threads of it have a real-time class: neither weights nor quotas hold them")
}

// empty says that no process is in a group.
func (s *census) empty(group string) string {
	if all, known := s.members[group]; known && len(all) == 0 {
		return fmt.Sprintf("no process is in group %s: if the service runs, it does so in another one", group)
	}
	return ""
}

// strayed says which processes that a group's started are in another one.
func (s *census) strayed(group string) string {
	all := s.strays[group]
	if len(all) == 0 {
		return ""
	}
	if len(all) == 1 {
		return fmt.Sprintf("1 process that it started is outside of its group, %s: what it uses is not seen, and no limit of the group holds it", all[0])
	}
	return fmt.Sprintf("%d processes that it started are outside of its group, such as %s: what they use is not seen, and no limit of the group holds them", len(all), all[0])
}

// findStrays looks for processes outside of a group whose parent is in it.
func (s *census) findStrays() {
	s.strays = map[string][]string{}
	f, err := os.Open(s.proc)
	if err != nil {
		return
	}
	defer f.Close()
	names, _ := f.Readdirnames(maxHost + 200) // other entries come after the processes
	pids, whole := 0, map[string]bool{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || s.of[pid] != "" {
			continue
		}
		if pids++; pids > maxHost {
			return
		}
		command, parent := statOf(s.proc, name)
		group := s.of[parent]
		if group == "" {
			continue
		}
		if _, again := whole[group]; !again { // it may have started after they were listed
			all, err := s.processes(group)
			whole[group] = err == nil
			for _, pid := range all {
				s.of[pid] = group
			}
		}
		if whole[group] && s.of[pid] == "" {
			s.strays[group] = append(s.strays[group], fmt.Sprintf("%s (process %d)", command, pid))
		}
	}
	for _, all := range s.strays {
		slices.Sort(all)
	}
}

// statOf reads the command and the parent of a process; parent 0: unknown.
func statOf(proc, pid string) (command string, parent int) {
	text, err := os.ReadFile(filepath.Join(proc, pid, "stat"))
	if err != nil {
		return "", 0
	}
	open, end := strings.IndexByte(string(text), '('), strings.LastIndexByte(string(text), ')')
	if open < 0 || end < open {
		return "", 0
	}
	fields := strings.Fields(string(text[end+1:]))
	if len(fields) < 2 {
		return "", 0
	}
	parent, _ = strconv.Atoi(fields[1])
	return strings.ToValidUTF8(string(text[open+1:end]), "?"), parent
}

// stranger says which groups that are no workload's share the limit of a parent group, and how much
// of it they get by their weights.
func (s *census) stranger(above string) string {
	if above == "" {
		return ""
	}
	if said, known := s.beside[above]; known {
		return said
	}
	s.beside[above] = ""
	names, err := s.root.Dirs(above)
	if err != nil || len(names) > maxGroups {
		return ""
	}
	sum, theirs, first, n := 0.0, 0.0, "", 0
	for _, name := range names {
		at := path.Join(above, name)
		weight, ok := s.weight(at)
		if !ok {
			return ""
		}
		if s.peopled(at) {
			if sum += weight; !s.ours[at] {
				theirs, first, n = theirs+weight, cmp.Or(first, at), n+1
			}
		}
	}
	if part := 100 * theirs / sum; n == 1 && sum > 0 {
		s.beside[above] = fmt.Sprintf("1 group that is no workload's shares the limit of %s, %s: by its weight it gets %.0f%% of it whenever it wants that", above, first, part)
	} else if n > 0 && sum > 0 {
		s.beside[above] = fmt.Sprintf("%d groups that are no workload's share the limit of %s, such as %s: by their weight they get %.0f%% of it whenever they want that", n, above, first, part)
	}
	return s.beside[above]
}

// weight reads the weight of a group, in the kernel's unit of its version.
func (s *census) weight(group string) (float64, bool) {
	for _, file := range []string{"cpu.weight", "cpu.shares"} {
		if text, err := s.root.Read(path.Join(group, file)); err == nil {
			v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			return v, err == nil && v >= 0
		}
	}
	return 0, false
}

// peopled reports whether a group, or one beneath it, has a process.
func (s *census) peopled(group string) bool {
	err := waits.Numbers(s.root, group, "cgroup.procs", &s.dirs, func(int) error { return fs.SkipAll })
	return errors.Is(err, fs.SkipAll)
}

// groupless says that processes in no group compete with the top-level groups.
func (s *census) groupless() string {
	if !s.root.Whole() {
		return ""
	}
	text, err := s.root.Read("cgroup.procs")
	if err != nil {
		return ""
	}
	n := 0
	for pid := range strings.FieldsSeq(text) {
		if line, err := os.ReadFile(filepath.Join(s.proc, pid, "cmdline")); err == nil && len(line) > 0 { // the kernel's threads have none
			if n++; n == maxMembers {
				break
			}
		}
	}
	if n == 0 {
		return ""
	}
	least, each := "", "each of them"
	if n == maxMembers {
		least = "at least "
	}
	if on, err := os.ReadFile(filepath.Join(s.proc, "sys/kernel/sched_autogroup_enabled")); err == nil && strings.TrimSpace(string(on)) == "1" {
		each = "each session of them (autogroup)"
	}
	return fmt.Sprintf("the CPUs of the host are used up, and %s%s in no group: %s competes with the groups at the top as one of the usual weight", least, counted(n, "process is", "processes are"), each)
}

// counted is a number with the word for one, or for several.
func counted(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
}
