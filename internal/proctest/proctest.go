// Package proctest finds and ends the processes that a test started, and those that
// these started in turn, and gives them directories for sockets.
//
// A watchdog starts another one for one that is killed: to list processes once and to
// kill these leaves the one that was started in between. So End kills until none is left.
package proctest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// patience limits the wait for processes to end; typical waits are milliseconds.
const patience = 5 * time.Minute

// With lists the other processes that have every word among their arguments.
func With(words ...string) (pids []int) { return search([]string{"cmdline"}, words) }

// Left is nil once With finds none.
func Left(words ...string) error {
	if pids := With(words...); len(pids) > 0 {
		return fmt.Errorf("processes %v are left", pids)
	}
	return nil
}

// End kills the processes that have a word among their arguments or in their environment until
// none is left. A forked process has only its parent's environment until it executes its program,
// and neither just then, so End waits for those of this program that have none, and looks twice.
func End(t testing.TB, word string) {
	t.Helper()
	deadline := time.After(patience)
	for clean := 0; ; {
		pids := search([]string{"cmdline", "environ"}, []string{word})
		if clean++; len(pids) > 0 || beginning() {
			clean = 0
		} else if clean == 2 {
			return
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL) // on an error it has ended
		}
		select {
		case <-deadline:
			t.Errorf("end processes: %v are left after %v", pids, patience)
			return
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// beginning reports whether a process has begun this program and has no arguments yet. What
// has ended has no program.
func beginning() bool {
	self, err := os.Readlink("/proc/self/exe")
	entries, _ := os.ReadDir("/proc")
	return err == nil && slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		program, err := os.Readlink(filepath.Join("/proc", e.Name(), "exe"))
		if err != nil || program != self {
			return false
		}
		words, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		return err == nil && len(words) == 0
	})
}

// search lists the other processes of which one of the files in /proc has every word.
// One that has ended has empty files.
func search(files, words []string) (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if slices.ContainsFunc(files, func(file string) bool {
			b, err := os.ReadFile(filepath.Join("/proc", e.Name(), file))
			return err == nil && len(b) > 0 && !slices.ContainsFunc(words, func(w string) bool { return !bytes.Contains(b, []byte(w)) })
		}) {
			pids = append(pids, pid)
		}
	}
	return pids
}
