package perf

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab"
)

// confined is set in a process that has restarted itself without privileges.
const confined = "TRIMTAB_PERF_CONFINED"

// nobody is the ID of the user and group that own no files.
const nobody = 65534

// Confine drops all privileges of this process but CAP_PERFMON, if it has that: it restarts
// itself as the same program with the same arguments, and as nobody if it was root. It returns
// nil in the restarted process, or if there was nothing to drop, and else why it failed.
//
// It restarts because capabilities belong to a thread, and a Go program has several before its
// first line: execve(2) ends all threads but the calling one, which has dropped its capabilities.
func Confine() error {
	if err := bare(); err == nil || os.Getenv(confined) != "" {
		return err // there is nothing to give up: a sandbox may forbid to
	}
	runtime.LockOSThread() // never unlocked, since the function does not return
	if err := shed(); err != nil {
		return fmt.Errorf("give up privileges: %w", err)
	}
	err := unix.Exec("/proc/self/exe", os.Args, append(os.Environ(), confined+"=1"))
	return fmt.Errorf("begin again without privileges: %w", err)
}

// shed leaves this thread with CAP_PERFMON at most, also after execve(2).
func shed() error {
	had, err := capabilities()
	if err != nil {
		return err
	}
	keep := had & (1 << unix.CAP_PERFMON)
	if had&(1<<unix.CAP_SETPCAP) != 0 {
		for c := range uintptr(64) {
			if c != unix.CAP_PERFMON {
				_ = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0) // some have no such number
			}
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	if err := becomeNobody(had); err != nil {
		return err
	}
	// Version 3 holds 64 capabilities, in two halves.
	h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var d [2]unix.CapUserData
	for i := range d {
		half := uint32(keep >> (32 * i))
		d[i] = unix.CapUserData{Effective: half, Permitted: half, Inheritable: half}
	}
	if err := unix.Capset(&h, &d[0]); err != nil {
		return fmt.Errorf("set capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("clear ambient capabilities: %w", err)
	}
	if keep != 0 {
		if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, unix.CAP_PERFMON, 0, 0); err != nil {
			return fmt.Errorf("keep CAP_PERFMON: %w", err)
		}
	}
	return nil
}

// becomeNobody changes the user of this thread to nobody if it is root, may change it, and nobody
// may run the program.
func becomeNobody(had uint64) error {
	const needed = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID
	self, err := os.Stat("/proc/self/exe")
	if unix.Geteuid() != 0 || had&needed != needed || err != nil || self.Mode()&1 == 0 {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_KEEPCAPS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("keep capabilities: %w", err)
	}
	// Not those of package syscall, which change all threads.
	for _, call := range []struct {
		name    string
		number  uintptr
		a, b, c uintptr
	}{
		{"setgroups", unix.SYS_SETGROUPS, 0, 0, 0},
		{"setresgid", unix.SYS_SETRESGID, nobody, nobody, nobody},
		{"setresuid", unix.SYS_SETRESUID, nobody, nobody, nobody},
	} {
		if _, _, errno := unix.RawSyscall(call.number, call.a, call.b, call.c); errno != 0 {
			return fmt.Errorf("%s: %w", call.name, errno)
		}
	}
	return nil
}

// bare checks that nothing but CAP_PERFMON is left.
func bare() error {
	has, err := capabilities()
	if err != nil {
		return err
	}
	if more := has &^ (1 << unix.CAP_PERFMON); more != 0 {
		return fmt.Errorf("give up privileges: capabilities %#x are left: %w", more, trimtab.ErrRefused)
	}
	return nil
}

// capabilities returns those that this thread may use.
func capabilities() (uint64, error) {
	text, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		return 0, fmt.Errorf("read capabilities: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "CapPrm:"); ok {
			v, err := strconv.ParseUint(strings.TrimSpace(rest), 16, 64)
			if err != nil {
				return 0, fmt.Errorf("read capabilities: %w", err)
			}
			return v, nil
		}
	}
	return 0, errors.New("read capabilities: /proc/thread-self/status has no CapPrm")
}
