package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/trimtab/trimtab/lab/bench/rig"
)

// child is a process of this program that answers each line on its input
// with one line of JSON.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// spawn starts a child and reads its first line into first.
func (o *options) spawn(first any, env []string, args ...string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find myself: %w", err)
	}
	c := &child{cmd: exec.Command(self, args...)}
	c.cmd.Stderr = os.Stderr
	c.cmd.Env = append(os.Environ(), env...)
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("open pipe: %w", err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("open pipe: %w", err)
	}
	c.out = bufio.NewScanner(out)
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", self, err)
	}
	if first == nil {
		return c, nil
	}
	return c, c.read(first)
}

func (c *child) read(answer any) error {
	if !c.out.Scan() {
		return fmt.Errorf("read answer of a child: %w", io.ErrUnexpectedEOF)
	}
	if err := json.Unmarshal(c.out.Bytes(), answer); err != nil {
		return fmt.Errorf("read answer of a child: %w", err)
	}
	return nil
}

func (c *child) ask(line string, answer any) error {
	if _, err := fmt.Fprintln(c.in, line); err != nil {
		return fmt.Errorf("ask a child: %w", err)
	}
	return c.read(answer)
}

// close ends the child by closing its input.
func (c *child) close() error {
	c.in.Close()
	if err := c.cmd.Wait(); err != nil {
		return fmt.Errorf("child: %w", err)
	}
	return nil
}

// try runs one trial.
func (o *options) try(t trial) (result, error) {
	var ready struct{ Address string }
	args := []string{"-role", t.receiver, "-slow", t.slow.String()}
	if t.profile && o.Profile != "" {
		args = append(args, "-cpuprofile", o.Profile)
	}
	receiver, err := o.spawn(&ready, []string{"GOMEMLIMIT=" + o.MemLimit}, args...)
	if err != nil {
		return result{}, err
	}
	defer receiver.in.Close()
	var before, after state
	if err := receiver.ask("mark", &before); err != nil {
		return result{}, err
	}
	own := before.CPU
	machine, err := rig.NewMeter(func() (time.Duration, error) { return own, nil })
	if err != nil {
		return result{}, err
	}
	var sent sending
	sender, err := o.spawn(&sent, nil, "-role", "sender", "-address", ready.Address, "-for", o.For.String(),
		"-batch", strconv.Itoa(t.batch), "-connections", strconv.Itoa(o.Conns), "-calls", strconv.Itoa(o.Calls), "-rate", strconv.Itoa(t.rate))
	if err != nil {
		return result{}, err
	}
	if err := sender.close(); err != nil {
		return result{}, err
	}
	if err := receiver.ask("mark", &after); err != nil {
		return result{}, err
	}
	cpu := after.CPU - before.CPU
	own = after.CPU + sent.CPU
	others, _, err := machine.Others()
	if err != nil {
		return result{}, err
	}
	if err := receiver.ask("drain", &after); err != nil {
		return result{}, err
	}
	spans := float64(max(1, sent.Sent))
	r := result{
		Name: t.name, Batch: t.batch, SpansPerS: spans / sent.Elapsed.Seconds(),
		ReceiverNS: float64(cpu) / spans, SenderNS: float64(sent.CPU) / spans, Ratio: float64(cpu) / float64(sent.CPU),
		ReceiverCores: cpu.Seconds() / sent.Elapsed.Seconds(), OthersCores: others * float64(runtime.NumCPU()), SpansPerCPUSecond: spans / (cpu + sent.CPU).Seconds(),
		PeakMiB: float64(after.PeakKiB) / 1024, Sent: sent.Sent, Retried: sent.Retried, P99AnswerMS: sent.P99.Seconds() * 1000,
		Analysed: after.Analysed, Duplicates: after.Duplicates, Dropped: after.Dropped, Held: after.Held, Requests: after.Requests, SketchesLost: after.SketchesLost,
	}
	r.Accounted = r.Sent == r.Analysed+r.Dropped && r.Held == 0 && after.Received == r.Sent+r.Duplicates
	return r, receiver.close()
}

// state is what a receiver says about itself.
type state struct {
	CPU     time.Duration
	PeakKiB int

	Received, Analysed, Duplicates, Dropped, Held uint64
	Requests                                      float64
	SketchesLost                                  uint64
}

// cpuTime returns the user and system time of this process.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// serveStates answers the parent's lines until they end.
func serveStates(drain func(), fill func(*state)) error {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if lines.Text() == "drain" {
			drain()
		}
		s := state{CPU: cpuTime(), PeakKiB: int(rig.Number("/proc/self/status", "VmHWM:"))}
		fill(&s)
		if err := json.NewEncoder(os.Stdout).Encode(s); err != nil {
			return fmt.Errorf("answer the parent: %w", err)
		}
	}
	return nil
}
