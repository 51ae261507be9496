package runtimes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab"
)

// This file speaks HotSpot's attach protocol, as jcmd does, so that neither a JDK in the container nor
// a start of another JVM for each question is needed. A request is
//
//	"1" NUL command NUL argument NUL argument NUL argument NUL
//
// and the answer a line with a number, 0 for success, and text up to the end. The JVM listens at
// /tmp/.java_pidPID in its root directory, with its PID in its own namespace. It begins to when it
// gets SIGQUIT while a file /tmp/.attach_pidPID of its user or of root is there. A JVM without that
// file answers SIGQUIT with a dump of its threads; one with -Xrs would end.

// maxAnswer is the longest answer that is read, in bytes. All flags of a JVM are about 90 KiB.
const maxAnswer = 1 << 20

// attach sends one command to the JVM of a process and returns the text of its answer.
func (p Process) attach(ctx context.Context, command string, arguments ...string) (string, error) {
	text, err := p.attached(ctx, command, arguments)
	if err != nil {
		return "", fmt.Errorf("ask JVM %d for %s: %w", p.PID, strings.TrimSpace(command+" "+strings.Join(arguments, " ")), err)
	}
	return text, nil
}

func (p Process) attached(ctx context.Context, command string, arguments []string) (string, error) {
	s, err := p.status()
	if err != nil {
		return "", err
	}
	path := fmt.Sprintf("/tmp/.java_pid%d", s.inner)
	c, listener, err := p.dial(ctx, path)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) {
		if err = p.wake(ctx, s, path); err == nil {
			c, listener, err = p.dial(ctx, path)
		}
	}
	if err != nil {
		return "", err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })()
	if listener != p.PID {
		return "", fmt.Errorf("process %d listens at its socket: %w", listener, trimtab.ErrRefused)
	}
	request := "1\x00" + command + "\x00"
	for i := range 3 {
		if i < len(arguments) {
			request += arguments[i]
		}
		request += "\x00"
	}
	if _, err := io.WriteString(c, request); err != nil {
		return "", fmt.Errorf("write: %w", err)
	}
	b, err := io.ReadAll(io.LimitReader(c, maxAnswer+1))
	if err != nil {
		return "", fmt.Errorf("read: %w", err)
	}
	return parseAnswer(string(b))
}

// parseAnswer splits an answer into its number and its text.
func parseAnswer(answer string) (text string, err error) {
	if len(answer) > maxAnswer {
		return "", trimtab.Invalidf("an answer of more than %d bytes", maxAnswer)
	}
	code, text, ok := strings.Cut(answer, "\n")
	switch {
	case !ok || strings.Trim(code, "-0123456789") != "" || code == "":
		return "", trimtab.Invalidf("it answers %.60q", answer)
	case code != "0":
		return "", fmt.Errorf("it answers %s: %.200q: %w", code, text, trimtab.ErrRefused)
	}
	return text, nil
}

// wake makes the JVM listen at path, and waits until it does.
func (p Process) wake(ctx context.Context, s status, path string) error {
	if s.caught&(1<<(unix.SIGQUIT-1)) == 0 {
		return fmt.Errorf("it does not handle SIGQUIT, as with -Xrs or while it starts, so it cannot be attached to: %w", trimtab.ErrUnsupported)
	}
	tmp, err := p.open("/tmp")
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(tmp) }()
	name := fmt.Sprintf(".attach_pid%d", s.inner)
	fd, err := unix.Openat(tmp, name, unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	switch {
	case err == nil:
		_ = unix.Close(fd)
		defer func() { _ = unix.Unlinkat(tmp, name, 0) }() // the JVM may have removed it
	case !errors.Is(err, unix.EEXIST): // else another program is attaching
		return fmt.Errorf("create /tmp/%s: %w", name, err)
	}
	if err := p.signal(unix.SIGQUIT); err != nil {
		return err
	}
	for {
		fd, err := p.open(path)
		if err == nil {
			_ = unix.Close(fd)
			return nil
		}
		if !errors.Is(err, os.ErrNotExist) || p.alive() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it does not begin to listen, as with -XX:+DisableAttachMechanism: %w", ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// signal sends a signal to this process, and never to a later one with its PID.
func (p Process) signal(s unix.Signal) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err == nil {
		defer func() { _ = unix.Close(fd) }()
		if err = p.alive(); err == nil {
			err = unix.PidfdSendSignal(fd, s, nil, 0)
		}
	}
	if err != nil {
		return fmt.Errorf("send %s to process %d: %w", unix.SignalName(s), p.PID, err)
	}
	return nil
}
