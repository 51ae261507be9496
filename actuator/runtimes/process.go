package runtimes

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab"
)

// Process identifies one process. A later process with the same PID has another start.
type Process struct {
	PID int `json:"pid"`
	// Start is when it started, in clock ticks since the boot: field 22 of /proc/PID/stat.
	Start uint64 `json:"start"`
}

// processOf returns the process that has the PID now. The error is os.ErrNotExist if there is none.
func processOf(pid int) (Process, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Process{}, gone(pid, err)
	}
	// The name, in parentheses, may have spaces and parentheses itself.
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 20 {
		return Process{}, trimtab.Invalidf("read start of process %d: %.80q", pid, b)
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return Process{}, trimtab.Invalidf("read start of process %d: %w", pid, err)
	}
	return Process{pid, start}, nil
}

// gone adds os.ErrNotExist to ESRCH, the kernel's answer if a process ends while its file is read.
func gone(pid int, err error) error {
	if strings.Contains(err.Error(), unix.ESRCH.Error()) {
		return fmt.Errorf("process %d ended: %w: %w", pid, err, os.ErrNotExist)
	}
	return fmt.Errorf("read process %d: %w", pid, err)
}

// alive returns os.ErrNotExist if the process ended, even if another one has its PID.
func (p Process) alive() error {
	now, err := processOf(p.PID)
	if err == nil && now != p {
		err = fmt.Errorf("process %d ended, and another one has its number: %w", p.PID, os.ErrNotExist)
	}
	return err
}

// status has what /proc/PID/status says of a process.
type status struct {
	// uid is its effective user.
	uid uint32
	// inner is its PID in its own PID namespace.
	inner int
	// caught are the signals that it handles: bit n−1 for signal n.
	caught uint64
	// anon is its anonymous memory in RAM, in bytes.
	anon float64
}

func (p Process) status() (s status, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID))
	if err != nil {
		return s, gone(p.PID, err)
	}
	s, err = parseStatus(string(b))
	if err != nil {
		return s, fmt.Errorf("read status of process %d: %w", p.PID, err)
	}
	return s, p.alive()
}

// parseStatus reads lines of a name, a colon and words.
func parseStatus(text string) (s status, err error) {
	s.inner = -1
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(line, ":")
		words := strings.Fields(rest)
		if len(words) == 0 {
			continue
		}
		bad := error(nil)
		switch name {
		case "Uid": // real, effective, saved, of the file system
			var v uint64
			v, bad = strconv.ParseUint(words[min(1, len(words)-1)], 10, 32)
			s.uid = uint32(v)
		case "NSpid": // from the outermost namespace to the innermost
			s.inner, bad = strconv.Atoi(words[len(words)-1])
		case "SigCgt":
			s.caught, bad = strconv.ParseUint(words[0], 16, 64)
		case "RssAnon":
			var v uint64
			v, bad = strconv.ParseUint(words[0], 10, 44)
			s.anon = float64(v) * 1024
		}
		if bad != nil {
			return s, trimtab.Invalidf("%.80q: %w", line, bad)
		}
	}
	if s.inner <= 0 {
		return s, trimtab.Invalidf("it has no NSpid")
	}
	return s, nil
}

// open opens a path inside the root directory of the process, for use as a location only. Links are
// followed inside that directory; the last part must not be one.
func (p Process) open(path string) (fd int, err error) {
	root, err := unix.Open(fmt.Sprintf("/proc/%d/root", p.PID), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open root of process %d: %w", p.PID, err)
	}
	defer func() { _ = unix.Close(root) }()
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	fd, err = unix.Openat2(root, path, &how)
	if err != nil {
		return -1, fmt.Errorf("open %s of process %d: %w", path, p.PID, err)
	}
	if err := p.alive(); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// dial connects to a Unix socket inside the root directory of the process. The socket must belong to
// the user of the process. It returns the PID of the process that listens there.
func (p Process) dial(ctx context.Context, path string) (c net.Conn, listener int, err error) {
	fd, err := p.open(path)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = unix.Close(fd) }()
	s, err := p.status()
	if err != nil {
		return nil, 0, err
	}
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		return nil, 0, fmt.Errorf("look at %s of process %d: %w", path, p.PID, err)
	}
	if info.Mode&unix.S_IFMT != unix.S_IFSOCK || info.Uid != s.uid {
		return nil, 0, fmt.Errorf("%s of process %d is not a socket of its user %d, but of user %d: %w", path, p.PID, s.uid, info.Uid, trimtab.ErrRefused)
	}
	c, err = new(net.Dialer).DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return nil, 0, fmt.Errorf("connect to %s of process %d: %w", path, p.PID, err)
	}
	if listener, err = listenerOf(c); err != nil {
		c.Close()
		return nil, 0, fmt.Errorf("connect to %s of process %d: %w", path, p.PID, err)
	}
	// The deadline of the context also holds for what is read and written later.
	if until, ok := ctx.Deadline(); ok {
		_ = c.SetDeadline(until)
	}
	return c, listener, nil
}

// listenerOf returns the PID of the process that made the socket at the other end listen.
func listenerOf(c net.Conn) (pid int, err error) {
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	if bad := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); bad != nil {
		return 0, bad
	}
	if err != nil {
		return 0, err
	}
	return int(cred.Pid), nil
}

// listening connects to a Unix socket of one of the processes, and returns which one listens. All of
// them may see the path, and each in a root directory of its own.
func listening(ctx context.Context, members []int, path string) (net.Conn, Process, error) {
	var last error
	for _, pid := range members {
		p, err := processOf(pid)
		if err != nil {
			continue // it ended
		}
		c, listener, err := p.dial(ctx, path)
		if err != nil {
			last = err
			continue
		}
		if !slices.Contains(members, listener) {
			c.Close()
			last = fmt.Errorf("%s: process %d listens there, which is not in the group: %w", path, listener, trimtab.ErrRefused)
			continue
		}
		if p, err = processOf(listener); err == nil {
			return c, p, nil
		}
		c.Close()
		last = err
	}
	if last == nil {
		last = fmt.Errorf("no process is in the group: %w", os.ErrNotExist)
	}
	return nil, Process{}, last
}

// inside returns the one of the processes that has a PID in its own namespace, and whose executable
// has one of the names. A server that is asked over TCP says that PID.
func inside(members []int, pid int) (Process, error) {
	var found []Process
	for _, m := range members {
		p, err := processOf(m)
		if err != nil {
			continue
		}
		if s, err := p.status(); err == nil && s.inner == pid {
			found = append(found, p)
		}
	}
	if len(found) != 1 {
		return Process{}, fmt.Errorf("it says that it is process %d, which names %d processes of the group: is the address that of another instance?: %w", pid, len(found), trimtab.ErrRefused)
	}
	return found[0], nil
}

// answerWithin bounds one question to a program.
const answerWithin = 2 * time.Second

// within bounds a context by the time for one answer.
func within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, answerWithin)
}
