package cgroup

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// nowhere drops what it gets.
type nowhere struct{}

func (nowhere) Publish(context.Context, trimtab.Value) error { return nil }

// BenchmarkRound reads 100 groups with a process each once: none of them may wait, and all do.
func BenchmarkRound(b *testing.B) {
	root, err := hostfs.CPUHierarchy()
	if err != nil {
		b.Skip(err)
	}
	var c Config
	for i := range 100 {
		name := fmt.Sprintf("trimtab-bench-%d-%d", os.Getpid(), i)
		sleep := exec.Command("sleep", "1000")
		if err := sleep.Start(); err != nil {
			b.Fatal(err)
		}
		var dirs []string
		for _, root := range []string{root, hostfs.Accounting(root)} {
			if root == "" {
				continue
			}
			dir := filepath.Join(root, name)
			if err := os.Mkdir(dir, 0o755); err != nil {
				b.Skip(err)
			}
			dirs = append(dirs, dir)
			if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(fmt.Sprint(sleep.Process.Pid)), 0); err != nil {
				b.Fatal(err)
			}
		}
		b.Cleanup(func() {
			sleep.Process.Kill()
			sleep.Wait()
			for _, dir := range dirs {
				for range 1000 {
					if os.Remove(dir) == nil {
						break
					}
				}
			}
		})
		c.Targets = append(c.Targets, Target{Workload: fmt.Sprint(i), Path: strings.TrimPrefix(name, "/")})
	}
	c.Root, c.Bus = root, nowhere{}
	for _, wait := range []bool{false, true} {
		b.Run(fmt.Sprintf("all wait: %v", wait), func(b *testing.B) {
			k, err := Open(c)
			if err != nil {
				b.Fatal(err)
			}
			defer k.Close()
			k.round(b.Context())
			var before, after unix.Rusage
			_ = unix.Getrusage(unix.RUSAGE_SELF, &before)
			for b.Loop() {
				k.waiter.idle, k.waiter.at = 0, 0 // whether the host is full is none of its business
				for i := range k.groups {
					if k.groups[i][""].suspect = 0; wait {
						k.groups[i][""].suspect = suspectFor
					}
				}
				k.round(b.Context())
			}
			_ = unix.Getrusage(unix.RUSAGE_SELF, &after)
			used := unix.TimevalToNsec(after.Utime) + unix.TimevalToNsec(after.Stime) - unix.TimevalToNsec(before.Utime) - unix.TimevalToNsec(before.Stime)
			b.ReportMetric(float64(used)/float64(b.N)/1e6, "cpu-ms/round")
		})
	}
}
