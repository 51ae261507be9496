package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// Program is how a process is started.
type Program struct {
	// Args are the command and its arguments.
	Args []string
	// Dir is its working directory, Log the file that gets what it prints.
	Dir, Log string
	// As is the user that it runs as; nil: that of this process.
	As *syscall.Credential
	// Stop is the signal that ends it in order.
	Stop syscall.Signal
}

// logEnd is how many bytes of a log an error has.
const logEnd = 4000

// Process is a program that runs.
type Process struct {
	name string
	log  string
	stop syscall.Signal
	cmd  *exec.Cmd
	done chan struct{}
	err  error // of Wait, after done
}

// Start runs the program in the group from its first instruction on: a shell
// waits until it was moved there, and then becomes the program. Without Setpgid
// the terminal's Ctrl-C would reach it before this process can end it in order.
func Start(p Program, in *Group) (*Process, error) {
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	defer log.Close()
	cmd := exec.Command("/bin/sh", append([]string{"-c", `read go && exec "$@"`, "sh"}, p.Args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.Dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: p.As}
	gate, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", p.Args[0], err)
	}
	out := &Process{name: filepath.Base(p.Args[0]), log: p.Log, stop: p.Stop, cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	// Pdeathsig follows the thread that started the child: this one stays.
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			out.err = cmd.Wait()
		}
		close(out.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", p.Args[0], err)
	}
	if in != nil {
		err = in.AddProcess(cmd.Process.Pid)
	}
	if err == nil {
		_, err = gate.Write([]byte("\n"))
	}
	if err != nil {
		out.Close()
		return nil, fmt.Errorf("start %s: %w", p.Args[0], err)
	}
	return out, nil
}

// StartAt starts a program as [Start] does, and returns when a page of it answers with
// 200. A program that does not get there is ended.
func StartAt(ctx context.Context, p Program, in *Group, url string) (*Process, error) {
	out, err := Start(p, in)
	if err != nil {
		return nil, err
	}
	if err := out.Await(ctx, func(ctx context.Context) error { _, err := Get(ctx, url); return err }); err != nil {
		out.Close()
		return nil, err
	}
	return out, nil
}

// Close ends the process: in order, and after a minute by force.
func (p *Process) Close() {
	_ = p.cmd.Process.Signal(p.stop) // it may be gone
	select {
	case <-p.done:
	case <-time.After(time.Minute):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// ErrGone says that a process ended which should not have.
var ErrGone = errors.New("it ended by itself")

// Await polls until it succeeds, at most for readyWithin. A process that ended
// will not become ready. The error has the end of the log.
func (p *Process) Await(ctx context.Context, poll func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := poll(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-p.done:
			return fmt.Errorf("wait for %s: %w: %w\n%s", p.name, ErrGone, errors.Join(p.err, err), p.said())
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w: %w\n%s", p.name, ctx.Err(), err, p.said())
		}
	}
}

// Gone returns the error of a process that ended though it should not have, with the
// end of its log. It may be asked once Done is closed.
func (p *Process) Gone() error {
	return fmt.Errorf("%s: %w: %w\n%s", p.name, ErrGone, p.err, p.said())
}

// said is the end of the log.
func (p *Process) said() []byte {
	text, _ := os.ReadFile(p.log) // without it the error says less
	return text[max(0, len(text)-logEnd):]
}

// Done is closed when the process has ended; then Err is what Wait said.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err is why the process ended; nil after exit code 0. It may be asked once Done
// is closed.
func (p *Process) Err() error { return p.err }

// PID is the process's number.
func (p *Process) PID() int { return p.cmd.Process.Pid }
