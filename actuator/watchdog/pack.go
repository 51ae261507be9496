// Package watchdog runs child processes that undo a process's changes on a host after its death,
// whatever the cause: one watchdog, or two of which each restarts the other.
//
//	g, err := watchdog.Guard(watchdog.Config{Command: []string{"trimtab", "watchdog", …}, Slots: 2})
//	…
//	g.Release(false)
//
// The standard input of a watchdog is a pipe that ends when its parent dies ([Watch]). The command of
// the watchdog then undoes the changes; this package does not know them.
package watchdog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// Pack is the watchdogs of one process, the parent, as each of these processes sees it. A watchdog
// that dies is started again by the parent, and by the other watchdog when the parent is dead or
// slow:
//
//	          starts          starts
//	watchdog 0 ◄──── parent ────► watchdog 1
//	    ▲                             │
//	    └───────── start each other ──┘
//
// Each watchdog has the lock of its slot from before its start until its death. So even a process
// that is not its parent sees its death at once, and no slot is filled twice. If all three die
// within the time that a process needs to start, only the service manager can restore
// (ExecStopPost=trimtab restore).
type Pack struct {
	command []string
	// slot is the number of this watchdog; -1: this process is the parent.
	slot int
	// parent is the read end of a pipe that is closed when the parent dies.
	parent *os.File
	// slots are files in memory, one for each watchdog, that only these processes share. The watchdog
	// of a slot has a lock on its file.
	slots []*os.File
}

// slotVariable is the environment variable with a watchdog's slot.
const slotVariable = "TRIMTAB_WATCHDOG"

// pair is the number of watchdogs that start each other again.
const pair = 2

// The file descriptors that each of two watchdogs starts with, in addition to the parent's pipe as its
// standard input: the slots, and the lock on its own.
const (
	firstSlotFD = 3
	ownLockFD   = firstSlotFD + pair
)

// newPack creates the pack of a parent, and returns the write end of the pipe, which the parent
// keeps open.
func newPack(command []string, slots int) (p *Pack, pipe *os.File, err error) {
	p = &Pack{command: command, slot: -1, slots: make([]*os.File, slots)}
	for i := range p.slots {
		if p.slots[i], err = hostfs.MemoryFile("trimtab-watchdog-" + strconv.Itoa(i)); err != nil {
			p.close()
			return nil, nil, fmt.Errorf("make slot of watchdog: %w", err)
		}
	}
	if p.parent, pipe, err = os.Pipe(); err != nil {
		p.close()
		return nil, nil, fmt.Errorf("make pipe to watchdog: %w", err)
	}
	return p, pipe, nil
}

// Inherited returns the pack of a process that was started as one of two watchdogs; nil: it was
// started by hand.
func Inherited(parent io.Reader) *Pack {
	slot, err := strconv.Atoi(os.Getenv(slotVariable))
	pipe, ok := parent.(*os.File)
	if err != nil || slot < 0 || slot > 1 || !ok {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	p := &Pack{command: append([]string{self}, os.Args[1:]...), slot: slot, parent: pipe, slots: make([]*os.File, pair)}
	for i := range p.slots {
		syscall.CloseOnExec(firstSlotFD + i)
		p.slots[i] = os.NewFile(uintptr(firstSlotFD+i), "slot")
	}
	// The lock lasts until this process dies.
	syscall.CloseOnExec(ownLockFD)
	return p
}

// open locks a slot, through an open file description of its own. If the slot is taken and wait is
// false, the error is trimtab.ErrRefused.
func (p *Pack) open(slot int, wait bool) (*os.File, error) {
	f, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", p.slots[slot].Fd()), os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("take slot of watchdog: %w", err)
	}
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	for {
		err = syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("take slot %d of watchdog: %w", slot, trimtab.ErrRefused)
	}
	return nil, fmt.Errorf("take slot %d of watchdog: %w", slot, err)
}

// start starts the watchdog of a slot, and passes the lock on to it.
func (p *Pack) start(slot int, lock *os.File) (ended chan error, err error) {
	defer lock.Close()
	cmd := exec.Command(p.command[0], p.command[1:]...)
	// A session of its own, so that Ctrl-C on the terminal reaches only the parent. Its errors do
	// not go to a pipe: writing to a pipe whose reader died would kill it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Env = append(os.Environ(), slotVariable+"="+strconv.Itoa(slot))
	cmd.Stdin, cmd.Stderr = p.parent, os.Stderr
	cmd.ExtraFiles = append(slices.Clone(p.slots), lock)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start watchdog: %w", err)
	}
	ended = make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return ended, nil
}

func (p *Pack) close() {
	for _, f := range append(slices.Clone(p.slots), p.parent) {
		if f != nil {
			f.Close()
		}
	}
}

// parentFirst is how long the parent has to start a watchdog again before
// the other watchdog does.
const parentFirst = 100 * time.Millisecond

// GuardPartner starts the other watchdog again whenever it dies: as long as the parent lives, and
// after its death while waits reports that changes are left to undo. It starts none while there reports
// a new parent: each watchdog ends for that one, and the two would start each other for ever.
func (p *Pack) GuardPartner(ended <-chan struct{}, waits, there func() bool) {
	over := func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	}
	var pause backoff
	for {
		lock, err := p.open(1-p.slot, true)
		if err == nil && !over() {
			lock.Close()
			select {
			case <-ended:
			case <-time.After(parentFirst):
			}
			lock, err = p.open(1-p.slot, false)
		}
		switch {
		case errors.Is(err, trimtab.ErrRefused):
			continue // the parent has started it
		case err != nil:
			return // without /proc or memory the parent runs without this watchdog
		case over() && !waits():
			lock.Close()
			return
		case over() && there():
			lock.Close()
			time.Sleep(lookAgain)
			continue
		}
		time.Sleep(pause.next())
		_, _ = p.start(1-p.slot, lock)
	}
}

// backoff computes the wait before a watchdog is started again: none the first time, then longer
// and longer, so that one that cannot start does not fill the log. After one that lived for a while
// the wait is none again.
type backoff struct {
	last  time.Time
	pause time.Duration
}

const (
	firstPause   = 20 * time.Millisecond
	longestPause = 5 * time.Second
)

func (b *backoff) next() time.Duration {
	now := time.Now()
	switch {
	case now.Sub(b.last) > 2*b.pause+time.Second:
		b.pause = 0
	case b.pause == 0:
		b.pause = firstPause
	default:
		b.pause = min(2*b.pause, longestPause)
	}
	b.last = now
	return b.pause
}

// Config says which watchdogs guard this process.
type Config struct {
	// Command runs a watchdog; nil: there is none.
	Command []string
	// Slots is the number of watchdogs, 1 or 2. Each of two calls [Pack.GuardPartner].
	Slots int
	// Started is called at each start of one; it may be nil.
	Started func()
	Logger  *slog.Logger
}

// Guarded keeps the watchdogs of this process running.
type Guarded struct {
	Config
	pack *Pack
	pipe *os.File
	stop chan struct{}
	done chan struct{}
}

// Guard starts the watchdogs before it returns, and starts each again whenever it ends, until
// Release. After an error there is none, and Release does nothing.
func Guard(c Config) (*Guarded, error) {
	g := &Guarded{Config: c, stop: make(chan struct{}), done: make(chan struct{}, pair)}
	if len(c.Command) == 0 {
		return g, nil
	}
	pack, pipe, err := newPack(c.Command, c.Slots)
	if err != nil {
		return g, err
	}
	g.pack, g.pipe = pack, pipe
	for slot := range g.pack.slots {
		ended, err := g.start(slot)
		go func() {
			g.attend(slot, ended, err)
			g.done <- struct{}{}
		}()
	}
	return g, nil
}

// start starts the watchdog of a slot. The error is trimtab.ErrRefused if the other watchdog has
// done so.
func (g *Guarded) start(slot int) (ended chan error, err error) {
	lock, err := g.pack.open(slot, false)
	if err != nil {
		return nil, err
	}
	if g.Started != nil {
		g.Started()
	}
	return g.pack.start(slot, lock)
}

// lookAgain is how often the parent checks a watchdog that is not its own child.
const lookAgain = 50 * time.Millisecond

// attend starts the watchdog of a slot again whenever it ends, until stop.
func (g *Guarded) attend(slot int, ended chan error, err error) {
	var pause backoff
	for {
		wait := lookAgain
		if err == nil {
			select {
			case <-g.stop:
				return
			case err = <-ended:
			}
			wait = pause.next()
			g.Logger.Warn("a watchdog ended and is started again", "slot", slot, "err", err)
		} else if !errors.Is(err, trimtab.ErrRefused) {
			wait = pause.next()
			g.Logger.Error("start watchdog", "slot", slot, "err", err)
		}
		select {
		case <-g.stop:
			return
		case <-time.After(wait):
		}
		ended, err = g.start(slot)
	}
}

// releaseWait is how long Release waits for watchdogs to end.
const releaseWait = 3 * time.Second

// Release closes the pipe. Watchdogs that find nothing to undo then end at once, and Release waits
// for them, unless leave says that there is something left for them.
func (g *Guarded) Release(leave bool) {
	close(g.stop)
	if g.pack == nil {
		return
	}
	for range g.pack.slots {
		<-g.done
	}
	g.pipe.Close()
	for limit := time.Now().Add(releaseWait); !leave && time.Now().Before(limit); time.Sleep(5 * time.Millisecond) {
		if g.pack.ended() {
			break
		}
	}
	g.pack.close()
}

// ended reports whether both slots are free.
func (p *Pack) ended() bool {
	for slot := range p.slots {
		lock, err := p.open(slot, false)
		if err != nil {
			return false
		}
		lock.Close()
	}
	return true
}

// Watch returns when the parent has ended, and calls look every second until then. parent is the
// standard input of a watchdog; its content is ignored.
func Watch(ctx context.Context, parent io.Reader, look func()) error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, parent) // an error counts as the end
	}()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			look()
		}
	}
}
