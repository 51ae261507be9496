package actuator

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// pack is the two watchdogs of one actuator, as each of the three processes
// sees it. A watchdog that dies is started again by the actuator, and by the
// other watchdog when the actuator is dead or slow:
//
//	          starts            starts
//	watchdog 0 ◄──── actuator ────► watchdog 1
//	    ▲                               │
//	    └────────── start each other ───┘
//
// Each watchdog has the lock of its slot from before its start until its death. So even a process
// that is not its parent sees its death at once, and no slot is filled twice. If all three die
// within the time that a process needs to start, only the service manager can restore
// (ExecStopPost=trimtab restore).
type pack struct {
	command []string
	// slot is the number of this watchdog; -1: this process is the actuator.
	slot int
	// parent is the read end of a pipe that is closed when the actuator dies.
	parent *os.File
	// slots are two files in memory that only these three processes share. The watchdog of a slot
	// has a lock on its file.
	slots [2]*os.File
}

// slotVariable is the environment variable with a watchdog's slot.
const slotVariable = "TRIMTAB_WATCHDOG"

// The file descriptors that a watchdog starts with, in addition to the parent's pipe as its
// standard input: the slots, and the lock on its own.
const (
	firstSlotFD = 3
	ownLockFD   = 5
)

// newPack creates the pack of an actuator, and returns the write end of the pipe, which the
// actuator keeps open.
func newPack(command []string) (p *pack, pipe *os.File, err error) {
	p = &pack{command: command, slot: -1}
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

// inheritedPack returns the pack of a process that was started as a watchdog; nil: it was started
// by hand.
func inheritedPack(parent io.Reader) *pack {
	slot, err := strconv.Atoi(os.Getenv(slotVariable))
	pipe, ok := parent.(*os.File)
	if err != nil || slot < 0 || slot > 1 || !ok {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	p := &pack{command: append([]string{self}, os.Args[1:]...), slot: slot, parent: pipe}
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
func (p *pack) open(slot int, wait bool) (*os.File, error) {
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
func (p *pack) start(slot int, lock *os.File) (ended chan error, err error) {
	defer lock.Close()
	cmd := exec.Command(p.command[0], p.command[1:]...)
	// A session of its own, so that Ctrl-C on the terminal reaches only the actuator. Its errors do
	// not go to a pipe: writing to a pipe whose reader died would kill it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Env = append(os.Environ(), slotVariable+"="+strconv.Itoa(slot))
	cmd.Stdin, cmd.Stderr = p.parent, os.Stderr
	cmd.ExtraFiles = []*os.File{p.slots[0], p.slots[1], lock}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start watchdog: %w", err)
	}
	ended = make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return ended, nil
}

func (p *pack) close() {
	for _, f := range append(p.slots[:], p.parent) {
		if f != nil {
			f.Close()
		}
	}
}

// actuatorFirst is how long the actuator has to start a watchdog again before
// the other watchdog does.
const actuatorFirst = 100 * time.Millisecond

// guardPartner starts the other watchdog again whenever it dies: as long as the actuator lives, and
// after its death as long as there is something to restore. It does not do so while a new actuator
// runs, for which the partner ended: the two would otherwise start each other for ever.
func (p *pack) guardPartner(ended <-chan struct{}, waits, there func() bool) {
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
			case <-time.After(actuatorFirst):
			}
			lock, err = p.open(1-p.slot, false)
		}
		switch {
		case errors.Is(err, trimtab.ErrRefused):
			continue // it was started
		case err != nil:
			return // without /proc or memory the actuator runs without this watchdog
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

// guarded keeps the pack running while an actuator is open.
type guarded struct {
	*base
	pack *pack
	pipe *os.File
	stop chan struct{}
	done chan struct{}
}

// guard starts both watchdogs before it returns, and starts each again whenever it ends, until
// release.
func guard(b *base) *guarded {
	g := &guarded{base: b, stop: make(chan struct{}), done: make(chan struct{}, 2)}
	if len(g.config.Watchdog) == 0 {
		return g
	}
	var err error
	if g.pack, g.pipe, err = newPack(g.config.Watchdog); err != nil {
		g.logger.Error("there is no watchdog", "err", err)
		g.pack = nil
		return g
	}
	for slot := range g.pack.slots {
		ended, err := g.start(slot)
		go func() {
			g.attend(slot, ended, err)
			g.done <- struct{}{}
		}()
	}
	return g
}

// start starts the watchdog of a slot. The error is trimtab.ErrRefused if the other watchdog has
// done so.
func (g *guarded) start(slot int) (ended chan error, err error) {
	lock, err := g.pack.open(slot, false)
	if err != nil {
		return nil, err
	}
	g.metrics.Counter("trimtab_actuator_watchdog_starts_total").Inc()
	return g.pack.start(slot, lock)
}

// lookAgain is how often the actuator checks a watchdog that is not its own child.
const lookAgain = 50 * time.Millisecond

// attend starts the watchdog of a slot again whenever it ends, until stop.
func (g *guarded) attend(slot int, ended chan error, err error) {
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
			g.logger.Warn("a watchdog ended and is started again", "slot", slot, "err", err)
		} else if !errors.Is(err, trimtab.ErrRefused) {
			wait = pause.next()
			g.logger.Error("start watchdog", "slot", slot, "err", err)
		}
		select {
		case <-g.stop:
			return
		case <-time.After(wait):
		}
		ended, err = g.start(slot)
	}
}

// release closes the pipe. Watchdogs that find nothing to restore then end at once, and release
// waits for them. Those that must wait for the lease go on.
func (g *guarded) release(leave bool) {
	close(g.stop)
	if g.pack == nil {
		return
	}
	for range g.pack.slots {
		<-g.done
	}
	g.pipe.Close()
	for limit := time.Now().Add(lockWait); !leave && time.Now().Before(limit); time.Sleep(5 * time.Millisecond) {
		if g.pack.ended() {
			break
		}
	}
	g.pack.close()
}

// ended reports whether both slots are free.
func (p *pack) ended() bool {
	for slot := range p.slots {
		lock, err := p.open(slot, false)
		if err != nil {
			return false
		}
		lock.Close()
	}
	return true
}
