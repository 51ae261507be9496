// Package rdttest is resctrl in memory, for tests: a [Tree] answers each read and write
// as the kernel does, errors and last_cmd_status included, where the code under test
// uses [rdt.Files]. It is written from the kernel's documentation (resctrl.rst) and the
// texts of its sources (ctrlmondata.c, rdtgroup.c of Linux 6.6 to 6.16), not from a
// machine: nobody has compared it with hardware.
//
// Known differences: no pseudo-locking, no cpus files, no monitor-only groups, and a
// CPU that counts bandwidth in eighths of GB/s (AMD) is only as far there as the
// refusal of it needs.
package rdttest

import (
	"context"
	"fmt"
	"maps"
	"math/bits"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/rdt"
)

// Spec describes the CPU and the mount options.
type Spec struct {
	// Ways of the last-level cache; 0: no cache allocation.
	Ways int
	// MinBits is the least number of bits of a mask, 1 if 0; Shareable are the ways that devices
	// use.
	MinBits   int
	Shareable uint64
	// CDP is the mount option cdp: code and data apart.
	CDP bool
	// NoBandwidth says that the CPU has no memory bandwidth allocation. Gran and Min are 10 if 0.
	NoBandwidth bool
	Gran, Min   int
	// MBps is the mount option mba_MBps; Old a kernel without its file.
	MBps, Old bool
	// AMD counts bandwidth in eighths of GB/s.
	AMD bool
	// MPAM is the number of bits of a percentage that an Arm CPU stores, as in Linux 7.1
	// (arch/arm64, mpam_resctrl.c). Gran and Min follow from it.
	MPAM int
	// IOAlloc is the mask that devices fill, of all caches (Linux 6.19); 0: there is no io_alloc.
	IOAlloc uint64
	// RMIDs is the largest number of groups by monitors; 0: as many as CLOSIDs.
	RMIDs int
	// CLOSIDs is the largest number of groups, including the default one; 16 if 0.
	CLOSIDs int
	// Domains are the ids of the L3 caches; 0 alone if nil.
	Domains []int
	// Monitors are the events of mon_data.
	Monitors []string
}

// group is one group; closid 0 is the default one.
type group struct {
	closid int
	mode   string
	// values are by resource and domain.
	values map[string]map[int]uint64
	// monitors are by domain and event; a missing one reads 0.
	monitors map[string]string
}

// Tree is a resctrl tree.
type Tree struct {
	mu     sync.Mutex
	spec   Spec
	groups map[string]*group
	// tasks has the group of each living task.
	tasks  map[int]string
	status string
	// locked contains an element while the tree is locked.
	locked chan struct{}
	gone   bool
	// fail is called before each write, mkdir and rmdir; its error is the result.
	fail func(op, name, value string) error
	// before is called before each, without the lock: it may change the tree.
	before func(op, name string)
	writes []string
}

// New mounts a tree.
func New(s Spec) *Tree {
	s.MinBits, s.CLOSIDs = max(1, s.MinBits), cmpOr(s.CLOSIDs, 16)
	s.Gran, s.Min = cmpOr(s.Gran, 10), cmpOr(s.Min, 10)
	if s.CDP {
		s.CLOSIDs /= 2
	}
	if s.AMD {
		s.Gran, s.Min = 1, 0
	}
	if s.MPAM > 0 {
		all := 1 << s.MPAM
		s.Gran, s.Min = (100+all-1)/all, (200+all)/(2*all)
	}
	if s.Domains == nil {
		s.Domains = []int{0}
	}
	t := &Tree{spec: s, groups: map[string]*group{}, tasks: map[int]string{}, locked: make(chan struct{}, 1)}
	root := &group{mode: "shareable", values: map[string]map[int]uint64{}, monitors: map[string]string{}}
	for _, name := range t.resources() {
		root.values[name] = map[int]uint64{}
		for _, d := range s.Domains {
			root.values[name][d] = t.most(name)
		}
	}
	t.groups[""] = root
	return t
}

func cmpOr(a, b int) int {
	if a != 0 {
		return a
	}
	return b
}

// caches are the resources of the cache, resources all in the kernel's order.
func (t *Tree) caches() []string {
	switch {
	case t.spec.Ways == 0:
		return nil
	case t.spec.CDP:
		return []string{"L3CODE", "L3DATA"}
	}
	return []string{"L3"}
}

func (t *Tree) resources() []string {
	if t.spec.NoBandwidth {
		return t.caches()
	}
	return append([]string{"MB"}, t.caches()...)
}

// most is the first value of the default group.
func (t *Tree) most(name string) uint64 {
	switch {
	case name != "MB":
		return 1<<t.spec.Ways - 1
	case t.spec.MBps:
		return rdt.NoLimitMBps
	case t.spec.AMD:
		return 2048
	}
	return 100
}

// Close does nothing: the tree stays mounted.
func (t *Tree) Close() error { return nil }

// Unmount makes every operation fail from now on.
func (t *Tree) Unmount() { t.do(func() { t.gone = true }) }

// Fail sets a function that is called before each write, mkdir and rmdir; its error is the result.
func (t *Tree) Fail(with func(op, name, value string) error) { t.do(func() { t.fail = with }) }

// Before sets a function that is called before the next write, mkdir or rmdir of others, as
// another program may act just then. Its own calls do not call it.
func (t *Tree) Before(call func(op, name string)) { t.do(func() { t.before = call }) }

// Writes returns the writes, mkdirs and rmdirs that had an effect, in order.
func (t *Tree) Writes() (all []string) {
	t.do(func() { all = slices.Clone(t.writes) })
	return all
}

// Spawn starts tasks, in the default group.
func (t *Tree) Spawn(tasks ...int) {
	t.do(func() {
		for _, id := range tasks {
			t.tasks[id] = ""
		}
	})
}

// Fork starts a task in the group of its parent.
func (t *Tree) Fork(parent, child int) { t.do(func() { t.tasks[child] = t.tasks[parent] }) }

// Exit ends tasks.
func (t *Tree) Exit(tasks ...int) {
	t.do(func() {
		for _, id := range tasks {
			delete(t.tasks, id)
		}
	})
}

// GroupOf returns the group of a task.
func (t *Tree) GroupOf(task int) (name string, there bool) {
	t.do(func() { name, there = t.tasks[task] })
	return name, there
}

// Monitor sets the content of a file of mon_data.
func (t *Tree) Monitor(group string, domain int, event, text string) {
	t.do(func() {
		if g := t.groups[group]; g != nil {
			g.monitors[fmt.Sprint(domain, event)] = text
		}
	})
}

// Offline removes the last CPU of a cache, and so its domain.
func (t *Tree) Offline(domain int) {
	t.do(func() {
		t.spec.Domains = slices.DeleteFunc(slices.Clone(t.spec.Domains), func(d int) bool { return d == domain })
		for _, g := range t.groups {
			for _, values := range g.values {
				delete(values, domain)
			}
		}
	})
}

func (t *Tree) do(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f()
}

// Lock takes the lock, or fails at once, so that a test does not wait a second.
func (t *Tree) Lock(ctx context.Context) (func(), error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case t.locked <- struct{}{}:
		return func() { <-t.locked }, nil
	default:
		return nil, fmt.Errorf("lock: another program holds the lock (flock): %w", trimtab.ErrRefused)
	}
}

// parse parts a name into group and file. The files of info have the group "info".
func (t *Tree) parse(name string) (g *group, dir, file string, err error) {
	if t.gone {
		return nil, "", "", syscall.ENOENT
	}
	name = path.Clean(name)
	if head, rest, _ := strings.Cut(name, "/"); head == "info" {
		return nil, "info", rest, nil
	}
	if head, rest, ok := strings.Cut(name, "/"); ok && t.groups[head] != nil {
		return t.groups[head], head, rest, nil
	}
	return t.groups[""], "", name, nil
}

// Read reads a file.
func (t *Tree) Read(name string) (text string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g, dir, file, err := t.parse(name)
	switch {
	case err != nil:
	case dir == "info":
		text, err = t.info(file)
	case file == "schemata":
		text = t.show(g, func(_ string, v uint64) uint64 { return v }, true)
	case file == "size":
		text = t.show(g, func(name string, v uint64) uint64 {
			if name == "MB" {
				return v
			}
			return uint64(bits.OnesCount64(v)) << 20 // a way has 1 MiB
		}, false)
	case file == "tasks":
		for _, id := range slices.Sorted(maps.Keys(t.tasks)) {
			if t.tasks[id] == dir {
				text += fmt.Sprintln(id)
			}
		}
	case file == "mode":
		text = g.mode + "\n"
	case file == "mba_MBps_event" && t.spec.MBps && !t.spec.Old:
		text = "mbm_local_bytes\n"
	default:
		text, err = t.monData(g, file)
	}
	if err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	return text, nil
}

// monData reads mon_data/mon_L3_00/llc_occupancy.
func (t *Tree) monData(g *group, file string) (string, error) {
	for _, d := range t.spec.Domains {
		for _, event := range t.spec.Monitors {
			if file != fmt.Sprintf("mon_data/mon_L3_%02d/%s", d, event) {
				continue
			}
			if text, ok := g.monitors[fmt.Sprint(d, event)]; ok {
				return text + "\n", nil
			}
			return "0\n", nil
		}
	}
	return "", syscall.ENOENT
}

// info reads a file beneath info.
func (t *Tree) info(file string) (string, error) {
	dir, file := path.Split(file)
	dir = strings.TrimSuffix(dir, "/")
	files := map[string]string{}
	switch {
	case dir == "":
		files["last_cmd_status"] = t.status
		if t.status == "" {
			files["last_cmd_status"] = "ok\n"
		}
	case slices.Contains(t.caches(), dir):
		files["cbm_mask"] = fmt.Sprintf("%x\n", t.most(dir))
		files["min_cbm_bits"] = fmt.Sprintln(t.spec.MinBits)
		files["shareable_bits"] = fmt.Sprintf("%x\n", t.spec.Shareable)
		files["num_closids"] = fmt.Sprintln(t.spec.CLOSIDs)
		if t.spec.IOAlloc != 0 {
			files["io_alloc"], files["io_alloc_cbm"] = "enabled\n", ""
			for i, d := range t.spec.Domains {
				files["io_alloc_cbm"] += []string{"", ";"}[min(i, 1)] + fmt.Sprintf("%d=%x", d, t.spec.IOAlloc)
			}
			files["io_alloc_cbm"] += "\n"
		}
	case dir == "MB" && !t.spec.NoBandwidth:
		files["min_bandwidth"] = fmt.Sprintln(t.spec.Min)
		files["bandwidth_gran"] = fmt.Sprintln(t.spec.Gran)
		files["delay_linear"] = "1\n"
		files["num_closids"] = fmt.Sprintln(t.spec.CLOSIDs)
	case dir == "L3_MON" && len(t.spec.Monitors) > 0:
		files["mon_features"] = strings.Join(t.spec.Monitors, "\n") + "\n"
		files["num_rmids"] = "128\n"
	}
	text, ok := files[file]
	if !ok {
		return "", syscall.ENOENT
	}
	return text, nil
}

// show prints the schemata or sizes: names as wide as the longest, masks with as many
// digits as they need.
func (t *Tree) show(g *group, of func(string, uint64) uint64, masks bool) string {
	names, width := t.resources(), 0
	for _, name := range names {
		width = max(width, len(name))
	}
	digits := (t.spec.Ways + 3) / 4
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "%*s:", width, name)
		for i, d := range slices.Sorted(maps.Keys(g.values[name])) {
			if i > 0 {
				b.WriteString(";")
			}
			v := of(name, g.values[name][d])
			switch {
			case !masks:
				fmt.Fprintf(&b, "%d=%d", d, v)
			case name == "MB":
				fmt.Fprintf(&b, "%d=%*d", d, digits, v)
			default:
				fmt.Fprintf(&b, "%d=%0*x", d, digits, v)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// Dirs lists the directories in a directory.
func (t *Tree) Dirs(name string) (all []string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone {
		return nil, fmt.Errorf("list %s: %w", name, syscall.ENOENT)
	}
	name = path.Clean("/" + name)[1:]
	dir, in := name, ""
	if head, rest, ok := strings.Cut(name, "/"); ok {
		dir, in = head, rest
	} else if name == "mon_data" {
		dir, in = "", name
	}
	switch {
	case name == "":
		all = slices.DeleteFunc(slices.Collect(maps.Keys(t.groups)), func(n string) bool { return n == "" })
		all = append(all, "info")
		if len(t.spec.Monitors) > 0 {
			all = append(all, "mon_data", "mon_groups")
		}
	case t.groups[dir] != nil && in == "" && len(t.spec.Monitors) > 0:
		all = []string{"mon_data", "mon_groups"}
	case t.groups[dir] != nil && in == "mon_data" && len(t.spec.Monitors) > 0:
		for _, d := range t.spec.Domains {
			all = append(all, fmt.Sprintf("mon_L3_%02d", d))
		}
	case t.groups[dir] == nil || in != "":
		return nil, fmt.Errorf("list %s: %w", name, syscall.ENOENT)
	}
	slices.Sort(all)
	return all, nil
}

// Writable says whether a file may be written.
func (t *Tree) Writable(name string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, dir, file, err := t.parse(name)
	switch {
	case err == nil && (dir == "info" || !slices.Contains([]string{"schemata", "tasks", "mode"}, file)):
		err = syscall.EACCES
	case err == nil && t.fail != nil:
		err = t.fail("writable", name, "")
	}
	if err != nil {
		return fmt.Errorf("may not write %s: %w", name, err)
	}
	return nil
}
