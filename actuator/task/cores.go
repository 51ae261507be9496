package task

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"regexp"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// The files for the CPUs of a group. Version 1 has a separate hierarchy for them, in which a new
// group has no CPUs and no memory node.
const (
	cpusFile  = "cpuset.cpus"
	memsFile  = "cpuset.mems"
	effective = "cpuset.cpus.effective" // in version 2
)

// cpuList matches the kernel's form of a set, such as "0-3,8".
const cpuList = `^[0-9]{1,5}(-[0-9]{1,5})?(,[0-9]{1,5}(-[0-9]{1,5})?)*$`

// maxCPUList is the longest text of a set, in bytes.
const maxCPUList = 4 << 10

func validCPUs(list string) bool {
	return list == "" || len(list) <= maxCPUList && regexp.MustCompile(cpuList).MatchString(list)
}

// openSets opens version 1's cpuset hierarchy. If it cannot be used, tasks run on all CPUs.
func (t *tree) openSets(root string) error {
	dir := hostfs.Sibling(root, "cpuset")
	if dir == "" {
		return nil
	}
	r, err := hostfs.OpenRoot(dir)
	if err != nil {
		return err
	}
	t.sets = r
	if err := r.Mkdir(t.base); err != nil && !errors.Is(err, os.ErrExist) {
		t.sets = nil
		return r.Close()
	}
	if err := t.seed(t.base); err != nil {
		t.sets = nil
		return r.Close()
	}
	if _, err := t.whole(); err != nil { // the root itself has no CPUs
		t.sets = nil
		return errors.Join(r.Rmdir(t.base), r.Close())
	}
	t.all = append(t.all, r)
	return nil
}

// seed gives a group of version 1 the CPUs and memory nodes of its parent: without them no process
// can enter it.
func (t *tree) seed(group string) error {
	for _, file := range []string{memsFile, cpusFile} {
		all, err := t.sets.Read(path.Join(path.Dir(group), file))
		if err == nil {
			err = t.sets.Write(path.Join(group, file), strings.TrimSpace(all))
		}
		if err != nil {
			return fmt.Errorf("give group its CPUs: %w", err)
		}
	}
	return nil
}

// whole returns the CPUs that groups of tasks may use.
func (t *tree) whole() (string, error) {
	if t.sets == nil {
		return "", fmt.Errorf("read CPUs of tasks: the host has no cpuset controller: %w", trimtab.ErrUnsupported)
	}
	text, err := t.sets.Read(path.Join(t.base, map[int]string{1: cpusFile, 2: effective}[t.version]))
	text = strings.TrimSpace(text)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("read CPUs of tasks: %w: %w", err, trimtab.ErrUnsupported)
	case err == nil && (text == "" || !validCPUs(text)):
		return "", trimtab.Invalidf("read CPUs of tasks: %.60q", text)
	}
	return text, err
}

// pin sets the CPUs of a group; "": all.
func (t *tree) pin(group, cpus string) error {
	whole, err := t.whole()
	if err != nil {
		return err
	}
	if cpus == "" {
		cpus = whole
	}
	return t.sets.Write(path.Join(group, cpusFile), cpus)
}

// CPUs lists the CPUs that tasks may have, as "0-3,8". The error is
// trimtab.ErrUnsupported where the host cannot bind groups to CPUs.
func (r *Runner) CPUs() (string, error) { return r.tree.whole() }

// Pin binds a running task to CPUs, such as "4-7"; "": all.
func (r *Runner) Pin(ctx context.Context, id ID, cpus string) error {
	t, err := r.known.find(id)
	if err == nil {
		err = errors.Join(ctx.Err(), unless(validCPUs(cpus), "CPUs %.60q: want a list such as 0-3,8", cpus))
	}
	if err != nil {
		return err
	}
	t.turning.Lock()
	defer t.turning.Unlock()
	for _, group := range r.groupsOf(t) {
		if err := r.tree.pin(group, cpus); err != nil {
			return fmt.Errorf("bind task %v to CPUs %s: %w", id, cpus, err)
		}
	}
	return nil
}
