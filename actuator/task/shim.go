package task

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab"
)

// order is the instruction to the shim, in a file in memory: the shim's own environment and
// arguments contain nothing of the task.
type order struct {
	Command []string
	Env     []string
	Dir     string
	// Entrances is how many cgroup.procs it has inherited, open.
	Entrances int
	// First tells the kernel to take this task first when the host is out of memory.
	First bool
}

// The descriptors that the shim starts with, in addition to the task's own three.
const (
	orderFD = 3 + iota
	// statusFD takes the text of an error; it ends without one when the command runs.
	statusFD
	firstEntranceFD
)

// maxOrder bounds what the shim reads: JSON makes six bytes of one, at most.
const maxOrder = 8 * maxText

// Exec is the shim: it makes this process the first of a task, and returns only when that
// is impossible. Then the process must exit at once.
func Exec() error {
	status := os.NewFile(statusFD, "status")
	err := execute()
	if status != nil {
		_, _ = io.WriteString(status, err.Error()) // its reader ended: nobody to tell
	}
	return fmt.Errorf("start task: %w", err)
}

func execute() error {
	var o order
	b, err := io.ReadAll(io.LimitReader(os.NewFile(orderFD, "order"), maxOrder))
	if err == nil {
		err = json.Unmarshal(b, &o)
	}
	if err != nil {
		return fmt.Errorf("read order: %w", err)
	}
	for i := range o.Entrances {
		// 0 is the writer. The file is of the very group, not of one that has its name.
		if _, err := unix.Write(firstEntranceFD+i, []byte("0")); err != nil {
			return fmt.Errorf("enter group: %w", err)
		}
	}
	if o.First {
		_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) // a kernel that has it not does without
	}
	if err := os.Chdir(o.Dir); err != nil {
		return err
	}
	program, err := find(o.Command[0], o.Env)
	if err != nil {
		return err
	}
	if err := closeOnExec(); err != nil {
		return err
	}
	// It is of a thread, and the thread that executes is the one that stays.
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	return &os.PathError{Op: "execute", Path: program, Err: syscall.Exec(program, o.Command, o.Env)}
}

// closeOnExec leaves the command only its three descriptors, and closes those that this program
// inherited too.
func closeOnExec() error {
	if unix.CloseRange(orderFD, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return nil
	}
	all, err := os.ReadDir("/proc/self/fd") // before Linux 5.11
	if err != nil {
		return fmt.Errorf("list descriptors: %w", err)
	}
	for _, entry := range all {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd >= orderFD {
			syscall.CloseOnExec(fd)
		}
	}
	return nil
}

// find looks up a name in the PATH of an environment. It skips relative directories, whose
// meaning depends on the current one.
func find(program string, env []string) (string, error) {
	if strings.Contains(program, "/") {
		return program, nil
	}
	for _, variable := range env {
		list, ok := strings.CutPrefix(variable, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(list) {
			name := filepath.Join(dir, program)
			info, err := os.Stat(name)
			if err == nil && filepath.IsAbs(dir) && info.Mode().IsRegular() && unix.Access(name, unix.X_OK) == nil {
				return name, nil
			}
		}
	}
	return "", fmt.Errorf("find %.200q in PATH: %w", program, errors.Join(trimtab.ErrInvalid, os.ErrNotExist))
}
