package perf

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/collector/waits"
)

// BenchmarkRound counts 100 real groups with one process each, which sleeps, and the host
// once: the time of the collector, and the CPU time of it and of the process that counts,
// which is also what a round each second takes of a core.
func BenchmarkRound(b *testing.B) {
	root, _ := cgroup2(b, "bench")
	var targets []poll.Target
	for i := range 100 {
		path := mkdir(b, root, strconv.Itoa(i))
		targets = append(targets, poll.Target{Workload: fmt.Sprint("w", i), Path: path})
		cmd := exec.Command("sleep", "1000")
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		if err := os.WriteFile(filepath.Join(root, path, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	c, _ := collecting(b, "", poll.Config{Root: root, Targets: targets})
	if c.helper.process == nil {
		b.Skip(c.Unavailable())
	}
	c.round(b.Context())
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", c.helper.process.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	begun := used() + usedBy(b, c.helper.process.Process.Pid)
	for b.Loop() {
		c.round(b.Context())
	}
	each := float64((used() + usedBy(b, c.helper.process.Process.Pid) - begun).Microseconds()) / float64(b.N)
	b.ReportMetric(each, "cpu-us/round")
	b.ReportMetric(each/1e4, "%core-at-1s")
	b.ReportMetric(float64(len(fds)), "fds")
}

// BenchmarkSwitch is the cost of switching between two processes in two groups, through
// a pipe and back, with and without counters on their groups.
func BenchmarkSwitch(b *testing.B) {
	for _, counted := range []bool{false, true} {
		b.Run(fmt.Sprint("counted=", counted), func(b *testing.B) {
			root, path := cgroup2(b, "switch")
			if counted {
				c, _ := collecting(b, "", poll.Config{Root: root, Targets: []poll.Target{{Workload: "w", Path: path}}})
				c.round(b.Context())
			}
			pingPong(b, filepath.Join(root, path))
		})
	}
}

// pingPong sends a byte to a process in a control group and back, on one CPU.
func pingPong(b *testing.B, group string) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var was, one unix.CPUSet
	one.Set(0)
	if err := unix.SchedGetaffinity(0, &was); err != nil {
		b.Fatal(err)
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		b.Skip(err)
	}
	defer unix.SchedSetaffinity(0, &was)
	cmd := exec.Command(os.Args[0], "as-echo")
	theirs, in, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout = theirs, theirOut
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	theirs.Close()
	theirOut.Close()
	defer cmd.Wait()
	defer in.Close()
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0o644); err != nil {
		b.Fatal(err)
	}
	to, from, buffer := int(in.Fd()), int(out.Fd()), make([]byte, 1) // blocking
	for b.Loop() {
		if _, err := unix.Write(to, buffer); err != nil {
			b.Fatal(err)
		}
		if _, err := unix.Read(from, buffer); err != nil {
			b.Fatal(err)
		}
	}
}

// usedBy is the CPU time of all threads of a process.
func usedBy(b *testing.B, pid int) (sum time.Duration) {
	dir := fmt.Sprintf("/proc/%d/task", pid)
	all, err := os.ReadDir(dir)
	if err != nil {
		b.Fatal(err)
	}
	r := waits.Threads{Proc: dir}
	for _, e := range all {
		tid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if v, err := r.One(tid); err == nil {
			sum += time.Duration(v.Ran)
		}
	}
	return sum
}
