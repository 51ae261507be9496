package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// self is the path of this program, valid even after its file was replaced.
const self = "/proc/self/exe"

// launchWait is the time limit for a shim. It must wait while its class is frozen.
const launchWait = 10 * time.Second

// launch makes the group and starts the command in it. After an error a process may be running,
// which the keeper kills.
func (r *Runner) launch(ctx context.Context, t *task) error {
	group := r.tree.path(t.info.Class, t.leaf)
	err := r.tree.make(group)
	if err == nil {
		err = r.tree.limit(group, t.spec)
	}
	if err != nil {
		return err
	}
	out, printed, err := openOutput(r.outputDir(t.leaf), t.spec.Limits.Output)
	if err != nil {
		return err
	}
	r.known.mu.Lock()
	t.out = out
	r.known.mu.Unlock()
	defer printed.Close()
	status, told, err := os.Pipe()
	if err != nil {
		return err
	}
	defer status.Close()
	defer told.Close()
	if err := r.start(t, group, printed, told); err != nil {
		return err
	}
	told.Close()
	return started(ctx, status)
}

// start starts the shim. It must run on a thread that does not end, since its end would kill the
// shim.
func (r *Runner) start(t *task, group string, printed, told *os.File) error {
	entrances, err := r.tree.entrances(group)
	if err != nil {
		return err
	}
	defer closeFiles(entrances)
	cmd := &exec.Cmd{Path: self, Args: append([]string{os.Args[0]}, r.config.Shim...), Env: []string{}, Stdout: printed, Stderr: printed}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, Credential: t.who}
	inherited := entrances
	if r.tree.version == 2 {
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(entrances[0].Fd())
		inherited = nil
	}
	paper, err := t.order(len(inherited))
	if err != nil {
		return err
	}
	defer paper.Close()
	cmd.ExtraFiles = append([]*os.File{paper, told}, inherited...)
	failed := make(chan error, 1)
	select {
	case r.spawn <- func() { failed <- cmd.Start() }:
	case <-r.stop:
		return fmt.Errorf("tasks are closed: %w", trimtab.ErrRefused)
	}
	if err := <-failed; err != nil {
		return fmt.Errorf("start shim: %w", err)
	}
	t.cmd = cmd
	return nil
}

// order returns the file from which the shim reads its instructions.
func (t *task) order(entrances int) (*os.File, error) {
	b, err := json.Marshal(order{Command: t.spec.Command, Env: t.spec.environment(), Dir: t.spec.Dir, Entrances: entrances, First: t.spec.Class == Oversubscribed})
	if err != nil {
		return nil, err
	}
	f, err := hostfs.MemoryFile("trimtab-task")
	if err != nil {
		return nil, err
	}
	if _, err = f.Write(b); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("write order: %w", err)
	}
	return f, nil
}

// started waits until the shim has executed the command, or returns why it could not.
func started(ctx context.Context, status *os.File) error {
	ctx, cancel := context.WithTimeout(ctx, launchWait)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = status.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	text, err := io.ReadAll(io.LimitReader(status, 4<<10))
	switch {
	case len(text) > 0:
		return trimtab.Invalidf("%s", text)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("its command does not begin: %w", ctx.Err())
	}
	return err
}

// account returns the credentials of a task; nil: this process's own.
func account(name, group string) (*syscall.Credential, error) {
	if name == "" {
		return nil, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		if _, bad := strconv.ParseUint(name, 10, 31); bad != nil {
			return nil, trimtab.Invalidf("user %.80q: %w", name, err)
		}
		u = &user.User{Uid: name, Gid: name}
		if known, err := user.LookupId(name); err == nil {
			u = known
		}
	}
	gid := u.Gid
	if group != "" {
		gid = group
		if g, err := user.LookupGroup(group); err == nil {
			gid = g.Gid
		}
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 31)
	g, bad := strconv.ParseUint(gid, 10, 31)
	if err != nil || bad != nil {
		return nil, trimtab.Invalidf("user %.80q, group %.80q: not known here", name, group)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(g), Groups: []uint32{}}, nil
}
