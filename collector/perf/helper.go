package perf

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/trimtab/trimtab/internal/hostfs"
)

// How long to wait for the counting process: for its first line, after it has probed, and for an
// answer. If it does not answer in time, it is killed and started again.
const (
	patienceFirst = 10 * time.Second
	patience      = 3 * time.Second
)

// The pauses before it is started again: twice as long each time, from the first on.
const (
	firstPause   = time.Second
	longestPause = time.Minute
)

// helper is the process that counts, as the collector sees it.
type helper struct {
	command []string
	logger  *slog.Logger
	started func()
	// able is what the last counting process could count.
	able Ability

	process *exec.Cmd // nil: none runs
	in, out *os.File
	lines   *bufio.Reader
	seq     uint64
	// pause is how long to wait after the next end of the process; due is when to start it again.
	pause, due time.Duration
	// died is why the last process ended.
	died error
}

// start starts the process and reads which events it can count.
func (h *helper) start(ctx context.Context) error {
	read, in, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make pipe: %w", err)
	}
	out, write, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make pipe: %w", errors.Join(err, read.Close(), in.Close()))
	}
	cmd := exec.Command(h.command[0], h.command[1:]...)
	// A session of its own, so that Ctrl-C on the terminal does not reach it. It ends when its
	// standard input does, however the agent dies. It gets no variables of this process, some of
	// which are secrets.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Env, cmd.Dir = []string{"GOMAXPROCS=1"}, "/"
	cmd.Stdin, cmd.Stdout, cmd.Stderr = read, write, os.Stderr
	err = cmd.Start()
	// The process alone has these ends: its death is then the end of out.
	err = errors.Join(err, read.Close(), write.Close())
	if err != nil {
		return fmt.Errorf("start process that counts: %w", errors.Join(err, in.Close(), out.Close()))
	}
	h.started()
	h.process, h.in, h.out, h.lines = cmd, in, out, bufio.NewReader(out)
	var able Ability
	if err := h.within(ctx, patienceFirst, func() error { return readMessage(h.lines, &able) }); err != nil {
		h.end()
		return fmt.Errorf("start process that counts: %w", err)
	}
	h.able = able
	return nil
}

// within runs f, whose reads and writes fail after a time, and when ctx ends.
func (h *helper) within(ctx context.Context, d time.Duration, f func() error) error {
	limit := func(t time.Time) {
		_ = h.in.SetWriteDeadline(t) // pipes have deadlines
		_ = h.out.SetReadDeadline(t)
	}
	limit(time.Now().Add(d))
	stop := context.AfterFunc(ctx, func() { limit(time.Unix(1, 0)) })
	defer stop()
	return f()
}

// ask asks for the counts of groups. It starts the process if none runs and its pause is over.
func (h *helper) ask(ctx context.Context, groups []group) ([]interval, error) {
	if h.process == nil {
		if hostfs.BootTime() < h.due {
			return nil, h.died
		}
		if err := h.start(ctx); err != nil {
			return nil, h.back(err)
		}
	}
	h.seq++
	q, a := request{h.seq, groups}, answer{}
	err := h.within(ctx, patience, func() error {
		if err := writeMessage(h.in, q); err != nil {
			return err
		}
		return readMessage(h.lines, &a)
	})
	if err == nil {
		err = a.validate(q, h.able)
	}
	if err != nil {
		h.end()
		return nil, h.back(fmt.Errorf("count: %w", err))
	}
	h.pause = 0
	return a.Groups, nil
}

// back puts the next start off, and returns why.
func (h *helper) back(err error) error {
	h.pause = min(longestPause, max(firstPause, 2*h.pause))
	h.due = hostfs.BootTime() + h.pause
	h.died = err
	return err
}

// end ends the process, if there is one.
func (h *helper) end() {
	if h.process == nil {
		return
	}
	err := errors.Join(h.in.Close(), h.out.Close())
	if kill := h.process.Process.Kill(); kill != nil && !errors.Is(kill, os.ErrProcessDone) {
		err = errors.Join(err, kill)
	}
	_ = h.process.Wait() // the process was killed
	h.process = nil
	if err != nil {
		h.logger.Warn("end process that counts", "err", err)
	}
}
