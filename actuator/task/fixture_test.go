package task

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/leak"
)

// TestMain also is the shim, the watchdog, and an agent that is killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "task-exec":
			_ = Exec() // the runner reads why
			os.Exit(127)
		case "task-watchdog":
			c := Config{Root: os.Args[2], Group: os.Args[3], Dir: os.Args[4]}
			if err := Watchdog(context.Background(), c, os.Stdin); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		case "hog":
			hog()
		}
	}
	if text := os.Getenv("TEST_AGENT"); text != "" {
		fmt.Fprintln(os.Stderr, agent(text))
		os.Exit(1)
	}
	leak.Main(m)
}

// hog takes more and more memory.
func hog() {
	for all := [][]byte{}; ; {
		b := make([]byte, 1<<20)
		for i := range b {
			b[i] = byte(i)
		}
		all = append(all, b)
	}
}

// prey is what an agent that is to be killed is told.
type prey struct {
	Config Config
	Specs  []Spec
	Lease  time.Duration
}

// agent starts tasks and waits to be killed.
func agent(text string) error {
	var p prey
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return err
	}
	r, err := Open(context.Background(), p.Config)
	if err != nil {
		return err
	}
	for _, s := range p.Specs {
		if _, err := r.Start(context.Background(), s, p.Lease); err != nil {
			return err
		}
	}
	fmt.Println("ready")
	select {}
}

// host is a runner with groups of its own on a real hierarchy.
type host struct {
	*testing.T
	config  Config
	version int
	runner  *Runner
	// limited tells that the hierarchy has controllers.
	limited bool
	n       int
}

func configOf(t *testing.T, root string) Config {
	group := fmt.Sprintf("trimtab-test-%d-%d", os.Getpid(), groups.Add(1))
	c := Config{Root: root, Group: group, Dir: t.TempDir(), Shim: []string{"task-exec"}}
	c.Watchdog = []string{"task-watchdog", c.Root, c.Group, c.Dir}
	return c
}

var groups atomic.Int64

// each runs a test on every hierarchy that this host has, or skips with the proof.
func each(t *testing.T, test func(t *testing.T, h *host)) {
	for version := 1; version <= 2; version++ {
		t.Run(fmt.Sprintf("version%d", version), func(t *testing.T) { test(t, newHost(t, version)) })
	}
}

func newHost(t *testing.T, version int) *host {
	t.Helper()
	root, err := rootOf(version)
	c := configOf(t, root)
	var tr *tree
	if err == nil {
		tr, err = openTree(root, c.Group)
	}
	if err != nil {
		if os.Getenv("TRIMTAB_GUEST") != "" && version == 2 {
			t.Fatalf("no writable cgroup of version %d: %v", version, err)
		}
		t.Skipf("no writable cgroup of version %d: %v", version, err)
	}
	h := &host{T: t, config: c, version: version}
	h.limited, _ = tr.cpu.Exists(filepath.Join(tr.path(Oversubscribed, ""), map[int]string{1: "cpu.shares", 2: "cpu.weight"}[version]))
	t.Cleanup(func() {
		defer tr.close()
		for _, r := range tr.all {
			if err := removeAll(r, c.Group); err != nil {
				t.Error(err)
			}
		}
	})
	return h
}

// rootOf finds the hierarchy of the cpu controller, or one of version 2 without it.
func rootOf(version int) (string, error) {
	root, err := hostfs.CPUHierarchy()
	if err != nil {
		return "", err
	}
	for _, dir := range []string{root, "/sys/fs/cgroup/unified"} {
		r, err := hostfs.OpenRoot(dir)
		if err != nil {
			continue
		}
		kind := r.Filesystem()
		r.Close()
		if kind == map[int]hostfs.Filesystem{1: hostfs.Cgroup1, 2: hostfs.Cgroup2}[version] {
			return dir, nil
		}
	}
	return "", fmt.Errorf("none is mounted: %w", trimtab.ErrUnsupported)
}

// open opens the runner, which is closed with the test.
func (h *host) open() *Runner {
	h.Helper()
	r, err := Open(h.Context(), h.config)
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := r.Close(ctx); err != nil {
			h.Error(err)
		}
	})
	h.runner = r
	return r
}

// spec is of a task that may use what it likes.
func (h *host) spec(command ...string) Spec {
	h.n++
	return Spec{
		ID: ID{Job: "job", Task: strconv.Itoa(h.n), Attempt: 1}, Command: command, Dir: "/",
		Env:       map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin"},
		Resources: Resources{Cores: trimtab.Amount{Unlimited: true}, Memory: trimtab.Amount{Unlimited: true}},
	}
}

func (h *host) sh(script string) Spec { return h.spec("/bin/sh", "-c", script) }

func (h *host) start(s Spec) ID {
	h.Helper()
	if _, err := h.runner.Start(h.Context(), s, time.Minute); err != nil {
		h.Fatal(err)
	}
	return s.ID
}

// wait returns what became of a task.
func (h *host) wait(id ID) Info {
	h.Helper()
	info, err := h.runner.Wait(h.Context(), id)
	if err != nil {
		h.Fatal(err)
	}
	return info
}

// run starts a task and returns what became of it, and all that it printed.
func (h *host) run(s Spec) (Info, string) {
	h.Helper()
	info := h.wait(h.start(s))
	return info, h.printed(s.ID)
}

func (h *host) printed(id ID) string {
	h.Helper()
	out, err := h.runner.Output(h.Context(), id)
	if err != nil {
		h.Fatal(err)
	}
	return string(out.Head) + string(out.Tail)
}

func (h *host) infoOf(id ID) Info {
	h.Helper()
	all, err := h.runner.List(h.Context())
	if err != nil {
		h.Fatal(err)
	}
	for _, i := range all {
		if i.ID == id {
			return i
		}
	}
	h.Fatalf("%v is not listed", id)
	return Info{}
}

// fifo is a pipe with a name, through which a task tells what it has come to.
func (h *host) fifo() (name string, read func() string) {
	h.Helper()
	name = filepath.Join(h.TempDir(), "fifo")
	if err := syscall.Mkfifo(name, 0o622); err != nil {
		h.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0) // also to write, so that it never ends
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { f.Close() })
	lines := bufio.NewReader(f)
	return name, func() string {
		h.Helper()
		if err := f.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
			h.Fatal(err)
		}
		line, err := lines.ReadString('\n')
		if err != nil {
			h.Fatal(err)
		}
		return strings.TrimSpace(line)
	}
}

// process opens one that a task told of.
func (h *host) process(pid string) *os.File {
	h.Helper()
	n, err := strconv.Atoi(pid)
	var f *os.File
	if err == nil {
		f, err = openProcess(n)
	}
	if err != nil || f == nil {
		h.Fatalf("process %q: %v", pid, err)
	}
	h.Cleanup(func() { f.Close() })
	return f
}

// gone waits until a process has ended.
func (h *host) gone(process *os.File) {
	h.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := waitProcess(ctx, process); err != nil {
		h.Error("a process still runs:", err)
	}
}

// empty fails where a group of a task is left.
func (h *host) empty() {
	h.Helper()
	tr, err := openTree(h.config.Root, h.config.Group)
	if err != nil {
		h.Fatal(err)
	}
	defer tr.close()
	if left, err := tr.leftovers(); err != nil || len(left) > 0 {
		h.Errorf("left: %v, %v", left, err)
	}
}

func isA(err, kind error) bool { return errors.Is(err, kind) }
