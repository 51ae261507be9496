package task

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/actuator/freezer"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// tree is the runner's own control groups on one host.
type tree struct {
	base    string
	version int
	// main is the hierarchy that decides which processes belong to a group: on version 1 the
	// freezer's. Processes enter and leave it first.
	main *hostfs.Root
	// cpu, memory and pids are nil if the host lacks the controller; on version 2 they equal main.
	cpu, memory, pids *hostfs.Root
	// accounts is the hierarchy with the CPU time of groups.
	accounts *hostfs.Root
	// sets is the hierarchy with the CPUs of groups; nil: the host lacks it, or it cannot be used.
	sets *hostfs.Root
	// all are the distinct hierarchies, main first.
	all []*hostfs.Root
}

// openTree opens the hierarchies and makes the groups of the classes.
func openTree(root, base string) (*tree, error) {
	if root == "" {
		var err error
		if root, err = hostfs.CPUHierarchy(); err != nil {
			return nil, err
		}
	}
	t := &tree{base: base, version: 1}
	err := t.openRoots(root)
	if err == nil {
		err = t.owned()
	}
	if err == nil {
		err = t.makeClasses()
	}
	if err != nil {
		t.close()
		return nil, fmt.Errorf("open groups of tasks %s in %s: %w", base, root, err)
	}
	return t, nil
}

// owned returns an error if the groups belong to a systemd unit that was not delegated, before a
// task is started there: it could not be killed.
func (t *tree) owned() error {
	f, err := cgroup.OpenFiles(cgroup.Config{Root: t.main.Path(), Path: t.base})
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only used to ask
	return f.Owned()
}

func (t *tree) openRoots(root string) error {
	first, err := t.open(root)
	if err != nil {
		return err
	}
	if first.CgroupVersion(".") == 2 || first.Filesystem() == hostfs.Cgroup2 {
		t.version, t.main, t.cpu, t.memory, t.pids, t.sets, t.accounts = 2, first, first, first, first, first, first
		return nil
	}
	t.cpu, t.accounts = first, first
	if t.main, err = t.twin(root, "freezer"); err != nil {
		return err
	}
	if t.main == nil {
		return fmt.Errorf("no freezer of version 1 beside it: %w", trimtab.ErrUnsupported)
	}
	if t.memory, err = t.twin(root, "memory"); err != nil {
		return err
	}
	if t.pids, err = t.twin(root, "pids"); err != nil {
		return err
	}
	if err = t.openSets(root); err != nil {
		return err
	}
	if dir := hostfs.Accounting(root); dir != "" {
		if t.accounts, err = t.open(dir); err != nil {
			return err
		}
	}
	slices.SortStableFunc(t.all, func(a, b *hostfs.Root) int {
		return map[bool]int{true: -1}[a == t.main] - map[bool]int{true: -1}[b == t.main]
	})
	return nil
}

// open opens a hierarchy once.
func (t *tree) open(dir string) (*hostfs.Root, error) {
	r, err := hostfs.OpenRoot(dir)
	if err == nil {
		t.all = append(t.all, r)
	}
	return r, err
}

// twin opens the hierarchy of another controller; nil: there is none.
func (t *tree) twin(root, controller string) (*hostfs.Root, error) {
	dir := hostfs.Sibling(root, controller)
	if dir == "" {
		return nil, nil
	}
	return t.open(dir)
}

func (t *tree) close() {
	for _, r := range t.all {
		r.Close()
	}
}

// lock excludes other runners, until unlock or the end of this process.
func (t *tree) lock(ctx context.Context, wait time.Duration) (unlock func(), err error) {
	sub, err := t.main.Sub(t.base)
	if err != nil {
		return nil, err
	}
	defer sub.Close()
	return sub.Flock(ctx, wait)
}

// makeClasses makes the groups of both classes with their weights. The groups are kept when they
// are empty.
func (t *tree) makeClasses() error {
	if err := t.make(t.base); err != nil {
		return err
	}
	for class, weight := range classes() {
		group := t.path(class, "")
		if err := t.make(group); err != nil {
			return err
		}
		if err := t.weigh(group, weight); err != nil {
			return err
		}
	}
	return nil
}

// weigh sets a weight if the host has the cpu controller.
func (t *tree) weigh(group string, weight float64) error {
	k, err := cgroup.OpenWeight(cgroup.Config{Root: t.cpu.Path(), Path: group})
	if err != nil {
		return err
	}
	defer func() { _ = k.Close() }() // the error of each write was checked
	ctx := context.Background()
	if err := k.Probe(ctx); errors.Is(err, trimtab.ErrUnsupported) {
		return nil
	}
	return k.Write(ctx, trimtab.Units(weight))
}

// path returns the group of a task, or, if leaf is "", of its class.
func (t *tree) path(class Class, leaf string) string { return path.Join(t.base, string(class), leaf) }

// make makes a group in all hierarchies, or uses the existing one.
func (t *tree) make(group string) error {
	if t.version == 2 {
		t.delegate(path.Dir(group))
	}
	for _, r := range slices.Backward(t.all) {
		if err := r.Mkdir(group); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	if t.version == 1 && t.sets != nil {
		return t.seed(group)
	}
	return nil
}

// delegate enables controllers for the children of a version 2 group. A missing controller shows
// when a limit is set.
func (t *tree) delegate(parent string) {
	for _, controller := range []string{"cpu", "memory", "pids", "cpuset"} {
		_ = t.main.Write(path.Join(parent, "cgroup.subtree_control"), "+"+controller)
	}
}

// limit sets a group's limits before it has a process. The error is trimtab.ErrUnsupported for a
// limit that the host cannot set, except the number of processes.
func (t *tree) limit(group string, s Spec) error {
	cores := hostfs.Quota{Micros: -1, Period: hostfs.DefaultPeriod}.With(s.Cores)
	bytes := strconv.FormatInt(int64(math.Min(s.Memory.Value, math.MaxInt64/2)), 10)
	processes := strconv.Itoa(s.Limits.Processes)
	type write struct {
		root       *hostfs.Root
		file, text string
		maker      string
	}
	writes := []write{}
	add := func(v1, v2 write) {
		writes = append(writes, map[int]write{1: v1, 2: v2}[t.version])
	}
	if !s.Cores.Unlimited {
		add(write{t.cpu, "cpu.cfs_quota_us", cores.CFSQuota(), "cpu"}, write{t.cpu, "cpu.max", cores.CPUMax(), "cpu"})
	}
	if !s.Memory.Unlimited {
		add(write{t.memory, "memory.limit_in_bytes", bytes, "memory"}, write{t.memory, "memory.max", bytes, "memory"})
	}
	add(write{t.pids, "pids.max", processes, ""}, write{t.pids, "pids.max", processes, ""})
	for _, w := range writes {
		err := os.ErrNotExist
		if w.root != nil {
			err = w.root.Write(path.Join(group, w.file), w.text)
		}
		switch {
		case err == nil || errors.Is(err, os.ErrNotExist) && w.maker == "":
		case errors.Is(err, os.ErrNotExist):
			return fmt.Errorf("limit group %s: the host has no %s, which the %s controller makes: %w", group, w.file, w.maker, trimtab.ErrUnsupported)
		default:
			return fmt.Errorf("limit group %s: %w", group, err)
		}
	}
	if s.CPUs != "" {
		if err := t.pin(group, s.CPUs); err != nil {
			return fmt.Errorf("limit group %s: %w", group, err)
		}
	}
	if t.version == 2 { // if one process is killed, kill the whole task (since Linux 4.19)
		_ = t.memory.Write(path.Join(group, "memory.oom.group"), "1")
	}
	return nil
}

// entrances opens the files through which a process enters the group, the main hierarchy's first.
// On version 2 it is the group itself, into which a process can be cloned.
func (t *tree) entrances(group string) (files []*os.File, err error) {
	for _, r := range t.all {
		name, how := filepath.Join(r.Path(), group, "cgroup.procs"), os.O_WRONLY
		if t.version == 2 {
			name, how = filepath.Join(r.Path(), group), os.O_RDONLY|syscall.O_DIRECTORY
		}
		f, err := os.OpenFile(name, how, 0)
		if err != nil {
			closeFiles(files)
			return nil, fmt.Errorf("open group: %w", err)
		}
		files = append(files, f)
	}
	return files, nil
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// oomKills returns how many processes of the group the kernel killed at its memory limit.
func (t *tree) oomKills(group string) int {
	file := map[int]string{1: "memory.oom_control", 2: "memory.events"}[t.version]
	if t.memory == nil {
		return 0
	}
	text, err := t.memory.Read(path.Join(group, file))
	if err != nil {
		return 0 // without the controller no process is killed for it
	}
	for line := range strings.Lines(text) {
		if count, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok {
			n, _ := strconv.Atoi(count) // 0 if it is not a number
			return n
		}
	}
	return 0
}

// used returns the CPU time that a group has used; nil: the host does not report it.
func (t *tree) used(group string) *time.Duration {
	file, unit := "cpuacct.usage", time.Nanosecond
	if t.version == 2 {
		file, unit = "cpu.stat", time.Microsecond
	}
	text, err := t.accounts.Read(path.Join(group, file))
	if err != nil {
		return nil // the task has ended, or has changed its class
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(text, "usage_usec "), "\n")
	n, err := strconv.ParseInt(strings.TrimSpace(first), 10, 64)
	if err != nil {
		return nil
	}
	d := time.Duration(n) * unit
	return &d
}

// processes lists the processes of a group and of all groups in it. It returns none for a group
// that is gone.
func (t *tree) processes(group string) ([]int, error) { return processesIn(t.main, group) }

func processesIn(r *hostfs.Root, group string) ([]int, error) {
	all, err := cgroup.Processes(r, group)
	if gone(err) {
		return nil, nil
	}
	return all, err
}

func gone(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENODEV)
}

// kill ends all processes of a group with SIGKILL. If some are left after a few seconds, it returns
// an error.
func (t *tree) kill(ctx context.Context, group string) error {
	k, err := freezer.OpenAlive(freezer.Config{Root: t.main.Path(), Path: group})
	if err != nil {
		return err
	}
	defer func() { _ = k.Close() }() // the error of each write was checked
	if err := k.Write(ctx, trimtab.Units(0)); err != nil && !gone(err) {
		return err
	}
	return t.thaw(ctx, group)
}

// thaw thaws a killed group so that its processes can end: on version 1 SIGKILL does not end frozen
// processes, and the kill freezes those again that have not ended in time.
func (t *tree) thaw(ctx context.Context, group string) error {
	k, err := freezer.OpenRunning(freezer.Config{Root: t.main.Path(), Path: group})
	if err != nil {
		return err
	}
	defer func() { _ = k.Close() }() // the error of each write was checked
	if v, err := k.Read(ctx); gone(err) || err == nil && v.Value == 1 {
		return nil
	}
	if err := k.Write(ctx, trimtab.Units(1)); err != nil && !gone(err) {
		return err
	}
	return nil
}

// remove removes an empty group with all groups that a task made in it, in the main hierarchy
// first: from then on no shim can enter. Success proves that the task has ended.
func (t *tree) remove(ctx context.Context, group string) error {
	for _, r := range t.all {
		for {
			err := removeAll(r, group)
			if err == nil || gone(err) {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("remove group %s: %w", group, errors.Join(err, ctx.Err()))
			case <-time.After(5 * time.Millisecond): // ended processes leave the group a little later
			}
		}
	}
	return nil
}

func removeAll(r *hostfs.Root, group string) error {
	var dirs []string
	err := r.Walk(group, func(dir string) error {
		dirs = append(dirs, dir)
		return nil
	})
	for _, dir := range slices.Backward(dirs) {
		if bad := r.Rmdir(dir); bad != nil && !gone(bad) {
			return bad
		}
	}
	return err
}

// leftover is a group found in a hierarchy.
type leftover struct {
	class Class
	leaf  string
}

// leftovers lists the groups in the classes that are in any hierarchy.
func (t *tree) leftovers() ([]leftover, error) {
	found := map[leftover]bool{}
	for class := range classes() {
		for _, r := range t.all {
			leaves, err := r.Dirs(t.path(class, ""))
			if err != nil && !gone(err) {
				return nil, err
			}
			for _, leaf := range leaves {
				found[leftover{class, leaf}] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b leftover) int {
		return strings.Compare(string(a.class)+"/"+a.leaf, string(b.class)+"/"+b.leaf)
	}), nil
}

// bury kills the processes of a group and removes it. It makes one attempt, which takes up to some
// seconds.
func (t *tree) bury(ctx context.Context, group string) error {
	if err := t.kill(ctx, group); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, buryWait)
	defer cancel()
	return t.remove(ctx, group)
}

// buryWait is how long the kernel may take to release processes that have ended.
const buryWait = 2 * time.Second
