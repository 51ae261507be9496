package resctrl

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/rdt"
)

// maxTaskBytes is the longest list of tasks that is read, in bytes: a million tasks.
const maxTaskBytes = 8 << 20

// taskSet is a set of thread IDs.
type taskSet map[int]bool

// add reads a list of tasks, one a line.
func (s taskSet) add(text string) error {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		id, err := strconv.ParseUint(line, 10, 31)
		if err != nil {
			return trimtab.Invalidf("list of tasks: %.40q", line)
		}
		if id > 0 { // 0: the thread is in another PID namespace, and has no number here
			s[int(id)] = true
		}
	}
	return nil
}

// wanted lists the threads of the workload's control group and of the groups below it.
func (k *Knob) wanted() (taskSet, error) {
	root, err := hostfs.OpenRoot(k.config.Root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	all := taskSet{}
	return all, root.Walk(k.config.Path, func(dir string) error {
		text, err := root.ReadLong(path.Join(dir, "cgroup.threads"), maxTaskBytes)
		if errors.Is(err, os.ErrNotExist) { // version 1
			text, err = root.ReadLong(path.Join(dir, "tasks"), maxTaskBytes)
		}
		if dir != k.config.Path && (errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENODEV)) {
			return nil // it was removed meanwhile
		}
		if err != nil {
			return err
		}
		return all.add(text)
	})
}

// tasksOf lists the tasks of a resource group.
func tasksOf(f rdt.Files, group string) (taskSet, error) {
	text, err := f.Read(path.Join(group, "tasks"))
	if err != nil {
		return nil, err
	}
	all := taskSet{}
	return all, all.add(text)
}

// gather moves the workload's tasks into its group, and those that left the workload back into
// the default group. It returns how many it moved in. Tasks that another program put into a group
// stay there.
func (k *Knob) gather(f rdt.Files, l *look) (moved int, err error) {
	name := k.group()
	// In this order: a task that was in the resource group and is then not in the control group has
	// left it, or has ended. The next look finds tasks that started in between.
	has, err := tasksOf(f, name)
	if err != nil {
		return 0, err
	}
	wanted, err := k.wanted()
	if err != nil {
		return 0, err
	}
	for id := range has {
		if wanted[id] {
			delete(wanted, id)
		} else if err := move(f, "tasks", id); err != nil {
			return 0, err
		}
	}
	if len(wanted) == 0 {
		return 0, nil
	}
	elsewhere, _, err := k.elsewhere(f, l)
	if err != nil {
		return 0, err
	}
	for id := range wanted {
		if elsewhere[id] {
			continue
		}
		if err := move(f, path.Join(name, "tasks"), id); err != nil {
			return moved, err
		}
		moved++
	}
	return moved, nil
}

// move moves one task, since older kernels accept one at a time. A task that has ended is no
// error.
func move(f rdt.Files, file string, id int) error {
	err := f.Write(file, strconv.Itoa(id)+"\n")
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// maxPasses is how often new threads are looked for while a workload is moved. A thread that was
// moved starts new ones only in the resource group, so the passes find fewer and fewer.
const maxPasses = 20

// gatherAll moves tasks until no new ones are found.
func (k *Knob) gatherAll(f rdt.Files, l *look) error {
	for range maxPasses {
		if n, err := k.gather(f, l); err != nil || n == 0 {
			return err
		}
	}
	return nil
}

// elsewhere lists the tasks that are in groups of other programs, or of other control
// groups, with the name of one of them.
func (k *Knob) elsewhere(f rdt.Files, l *look) (taskSet, map[int]string, error) {
	all, in := taskSet{}, map[int]string{}
	own := k.group()
	for _, groups := range [][]resourceGroup{l.others, l.own} {
		for _, g := range groups {
			if g.name == own {
				continue
			}
			tasks, err := tasksOf(f, g.name)
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, nil, err
			}
			for id := range tasks {
				all[id], in[id] = true, g.name
			}
		}
	}
	return all, in, nil
}

// free returns an error if the workload has tasks in another program's group.
func (k *Knob) free(f rdt.Files, l *look) error {
	if len(l.others)+len(l.own) == 0 {
		return nil
	}
	_, in, err := k.elsewhere(f, l)
	if err != nil {
		return err
	}
	if len(in) == 0 {
		return nil
	}
	wanted, err := k.wanted()
	if err != nil {
		return err
	}
	for id := range wanted {
		if name := in[id]; name != "" {
			return fmt.Errorf("its task %d is in the resctrl group %s, which is not this knob's: take it out, or leave the workload to who put it there: %w", id, name, trimtab.ErrRefused)
		}
	}
	return nil
}
