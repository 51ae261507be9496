package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab/internal/trial"
)

// spoil is what may become of a file of the storage directory.
type spoil struct {
	name string
	// away tells that the file itself is removed first.
	away bool
	do   func(random *rand.Rand, path string) error
}

func spoils() []spoil {
	change := func(f func(random *rand.Rand, b []byte) []byte) func(*rand.Rand, string) error {
		return func(random *rand.Rand, path string) error {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			out, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			b = f(random, b)
			_, err = out.Write(b)
			return errors.Join(err, out.Truncate(int64(len(b))), out.Close())
		}
	}
	return []spoil{
		{name: "flipped bits", do: change(func(random *rand.Rand, b []byte) []byte {
			for range min(len(b), 1+random.IntN(40)) {
				b[random.IntN(min(len(b), 4<<10))] ^= 1 << random.IntN(8)
			}
			return b
		})},
		{name: "cut", do: change(func(random *rand.Rand, b []byte) []byte { return b[:random.IntN(len(b)+1)] })},
		{name: "zeros", do: change(func(_ *rand.Rand, b []byte) []byte { clear(b); return b })},
		{name: "noise", do: change(func(random *rand.Rand, b []byte) []byte {
			for i := range b {
				b[i] = byte(random.Uint32())
			}
			return b
		})},
		{name: "huge", do: func(_ *rand.Rand, path string) error { return os.Truncate(path, 1<<36) }},
		{name: "removed", away: true, do: func(*rand.Rand, string) error { return nil }},
		{name: "a directory", away: true, do: func(_ *rand.Rand, path string) error { return os.Mkdir(path, 0o700) }},
		{name: "a directory with a file", away: true, do: func(_ *rand.Rand, path string) error {
			return errors.Join(os.Mkdir(path, 0o700), os.WriteFile(filepath.Join(path, "x"), []byte("x"), 0o600))
		}},
		{name: "a pipe", away: true, do: func(_ *rand.Rand, path string) error { return syscall.Mkfifo(path, 0o600) }},
		{name: "a link to /dev/zero", away: true, do: func(_ *rand.Rand, path string) error { return os.Symlink("/dev/zero", path) }},
		{name: "a link to /dev/urandom", away: true, do: func(_ *rand.Rand, path string) error { return os.Symlink("/dev/urandom", path) }},
		{name: "a broken link", away: true, do: func(_ *rand.Rand, path string) error { return os.Symlink("none", path) }},
		{name: "a link to itself", away: true, do: func(_ *rand.Rand, path string) error { return os.Symlink(filepath.Base(path), path) }},
		{name: "a link to another file", away: true, do: func(_ *rand.Rand, path string) error {
			return os.Symlink(filepath.Join(filepath.Dir(path), "lock"), path)
		}},
	}
}

// spoil spoils some files of the program's, those of the actuator more often than others,
// and returns what it did.
func (p *program) spoil(random *rand.Rand) (did []string) {
	p.Helper()
	var files, own []string
	for _, dir := range []string{p.storage(), p.locks()} {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) || err == nil && !e.Type().IsRegular() {
				return nil // the bus removes some
			}
			files = append(files, path)
			return err
		})
		if err != nil {
			p.Fatal(err)
		}
	}
	for _, f := range files {
		if !strings.HasPrefix(f, filepath.Join(p.storage(), "bus")) {
			own = append(own, f)
		}
	}
	kinds := spoils()
	for range 1 + random.IntN(4) {
		from := own
		if random.IntN(3) == 0 {
			from = files
		}
		path, kind := from[random.IntN(len(from))], kinds[random.IntN(len(kinds))]
		// One that was spoilt before may be a pipe, or too large to read.
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() || info.Size() > 64<<20 {
			continue
		}
		if kind.away {
			err = os.Remove(path)
		}
		if err = errors.Join(err, kind.do(random, path)); errors.Is(err, fs.ErrNotExist) {
			continue // the bus has removed it
		} else if err != nil {
			p.Fatal(err)
		}
		name, _ := filepath.Rel(p.dir, path)
		did = append(did, name+": "+kind.name)
	}
	return did
}

func (p *program) locks() string { return filepath.Join(p.dir, "locks") }

// most is what a process of the program may have resident, in bytes.
const most = 400 << 20

// bounded kills every process of the program that takes too much, until stop.
func (p *program) bounded() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	var grown atomic.Pointer[string]
	go func() {
		defer close(done)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			for _, pid := range p.processes() {
				b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid)) // "": it ended
				f := strings.Fields(string(b))
				if len(f) < 2 {
					continue
				}
				if pages, _ := strconv.ParseInt(f[1], 10, 64); pages*int64(os.Getpagesize()) > most {
					line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
					what := strings.ReplaceAll(string(line), "\x00", " ")
					grown.Store(&what)
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	}()
	return func() {
		cancel()
		<-done
		if what := grown.Load(); what != nil {
			p.Errorf("more than %d MiB: %s", most>>20, *what)
		}
	}
}

// limitsOf returns the soft limit of a process's own memory, "" when it has ended.
func limitsOf(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "Max data size"); ok {
			return strings.Fields(rest)[0]
		}
	}
	return ""
}

func TestAWatchdogHasALimitOfItsOwnMemory(t *testing.T) {
	t.Parallel()
	p := prepare(t, fixtureQuotas(t), "")
	p.start()
	p.until("two watchdogs with a limit", func() error {
		limited := 0
		for _, pid := range p.processes() {
			if n, err := strconv.ParseUint(limitsOf(pid), 10, 64); err == nil && n < 1<<30 && pid != p.cmd.Process.Pid {
				limited++
			}
		}
		if limited != 2 {
			return fmt.Errorf("%d of %d processes have one", limited, len(p.processes()))
		}
		return nil
	})
}

// Files of the storage directory and of the locks are spoilt around processes that run,
// are stopped or were killed. No process grows; `restore` comes to an end, and what it
// does not bring back it says; `run` starts on what is left.
func TestFilesThatAreSpoiltAroundKilledAndStoppedProcessesHarmNobody(t *testing.T) {
	t.Parallel()
	tr := trial.Start(t, trial.Some(2, 4))
	first := tr.Rand.IntN(4)
	for i := range tr.N {
		random := rand.New(rand.NewPCG(tr.Rand.Uint64(), 0))
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			spoilt(t, random, (first+i)%4)
			tr.Case()
		})
	}
}

func spoilt(t *testing.T, random *rand.Rand, fate int) {
	p := prepare(t, fixtureQuotas(t), "")
	p.text = strings.Replace(p.text, "actuator: {", fmt.Sprintf("actuator: {lock_dir: %q, ", p.locks()), 1)
	p.start()
	// Should this test not see in time that one grows: the kernel does.
	hard := unix.Rlimit{Cur: 2 << 30, Max: 2 << 30}
	for _, pid := range p.processes() {
		if err := unix.Prlimit(pid, unix.RLIMIT_DATA, &hard, nil); err != nil && pid == p.cmd.Process.Pid {
			t.Fatal(err)
		}
	}
	defer p.bounded()()
	stop := p.serve()
	p.until("both limits moved", p.moved)
	stop()
	dogs := slices.DeleteFunc(p.processes(), func(pid int) bool { return pid == p.cmd.Process.Pid })
	signal := func(s syscall.Signal, pids ...int) {
		for _, pid := range pids {
			_ = syscall.Kill(pid, s)
		}
	}
	var did []string
	some := time.Duration(random.Int64N(int64(3 * time.Second)))
	switch fate {
	case 0: // while all run
		did = p.spoil(random)
		p.during(6*time.Second, func() { p.limits() }) // the watchdogs look every 5 s
	case 1: // while the actuator is stopped, perhaps for longer than its lease
		signal(syscall.SIGSTOP, p.cmd.Process.Pid)
		did = p.spoil(random)
		p.during(5*some, func() { p.limits() })
		if random.IntN(2) == 0 {
			signal(syscall.SIGCONT, p.cmd.Process.Pid)
			p.during(some, func() { p.limits() })
		}
	case 2: // after the actuator was killed, while the watchdogs wait
		p.kill(false)
		did = p.spoil(random)
		p.during(5*some, func() { p.limits() })
	case 3: // while the watchdogs are stopped, which go on after the actuator was killed
		signal(syscall.SIGSTOP, dogs...)
		did = p.spoil(random)
		p.kill(false)
		signal(syscall.SIGCONT, dogs...)
		p.during(some, func() { p.limits() })
	}
	t.Logf("fate %d: %q", fate, did)
	p.kill(true)
	code, out := p.within(time.Minute, "restore", "--storage.path", p.storage())
	t.Logf("restore: code %d: %s", code, out)
	h, m := p.q.read("hungry"), p.q.read("modest")
	told := strings.Contains(out, "damaged") || strings.Contains(out, "refused") || strings.Contains(out, "failed")
	switch {
	case code != exitDone && (code != exitError || !strings.Contains(out, "trimtab: hint: ")):
		t.Errorf("restore ended with code %d and no hint", code)
	case code == exitDone && (h != 0.5 || m != 0.5) && !told:
		t.Errorf("hungry has %v and modest %v, and nothing was said", h, m)
	}
	for _, name := range []string{"hungry", "modest"} { // as its operator would
		if err := os.WriteFile(filepath.Join(p.q.root, name, "cpu.max"), []byte("50000 100000\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p.start()
	p.until("its watchdogs", func() error {
		if n := len(p.processes()); n < 3 {
			return fmt.Errorf("%d processes", n)
		}
		return nil
	})
	p.stop()
}

// within is command with an end.
func (p *program) within(limit time.Duration, args ...string) (code int, out string) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Dir = p.dir
	b, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		p.Fatal(err)
	}
	if ctx.Err() != nil {
		p.Errorf("%q has no end: %s", args, b)
	}
	return cmd.ProcessState.ExitCode(), string(b)
}
