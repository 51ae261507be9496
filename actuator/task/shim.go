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
// arguments must not contain data of the task.
type order struct {
	Command []string
	Env     []string
	Dir     string
	// Entrances is the number of open cgroup.procs files that it has inherited.
	Entrances int
	// First tells the kernel to kill this task first when the host is out of memory.
	First bool
}

// The descriptors that the shim starts with, in addition to the task's own three.
const (
	orderFD = 3 + iota
	// statusFD receives the text of an error; it is closed without one when the command runs.
	statusFD
	firstEntranceFD
)

// maxOrder is the longest order that the shim reads, in bytes: JSON makes at most six bytes of one.
const maxOrder = 8 * maxText

// Exec is the shim: it turns this process into the first process of a task, and returns only if
// that fails. Then the process must exit at once.
func Exec() error {
	status := os.NewFile(statusFD, "status")
	err := execute()
	if status != nil {
		_, _ = io.WriteString(status, err.Error()) // on an error the reader has ended
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
		// 0 stands for the writing process. The open file belongs to the right group, even if
		// another of the same name exists now.
		if _, err := unix.Write(firstEntranceFD+i, []byte("0")); err != nil {
			return fmt.Errorf("enter group: %w", err)
		}
	}
	if o.First {
		_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) // some kernels lack the file
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
	// no_new_privs belongs to a thread, so the same thread must execute the command.
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	return &os.PathError{Op: "execute", Path: program, Err: syscall.Exec(program, o.Command, o.Env)}
}

// closeOnExec makes all descriptors except the command's three close when the command starts.
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
