package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator/task"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// This test binary is trimtab: it is the shim and the watchdog, too.
func TestTheHiddenCommandsStartATaskAndGuardIt(t *testing.T) {
	root, err := hostfs.CPUHierarchy()
	if err != nil {
		t.Skip(err)
	}
	group, dir := fmt.Sprintf("trimtab-test-task-%d", os.Getpid()), t.TempDir()
	r, err := task.Open(t.Context(), task.Config{
		Root: root, Group: group, Dir: dir, Shim: []string{"task-exec"},
		Watchdog: []string{"task-watchdog", "--root", root, "--group", group, "--dir", dir},
	})
	if err != nil {
		t.Skipf("no writable cgroup: %v", err)
	}
	t.Cleanup(func() {
		// Returns once the watchdog has ended, and by itself.
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
		for _, part := range []string{"oversubscribed", "regular", "."} {
			all, _ := filepath.Glob("/sys/fs/cgroup/*/" + group)
			for _, g := range append(all, filepath.Join("/sys/fs/cgroup", group)) {
				_ = os.Remove(filepath.Join(g, part))
			}
		}
	})
	unlimited := trimtab.Amount{Unlimited: true}
	id := task.ID{Job: "job", Task: "1", Attempt: 1}
	_, err = r.Start(t.Context(), task.Spec{
		ID: id, Command: []string{"/bin/sh", "-c", "echo $0 $#; exit 3"}, Dir: "/",
		Resources: task.Resources{Cores: unlimited, Memory: unlimited},
	}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := r.Wait(t.Context(), id); err != nil || info.Code != 3 || len(info.LastLines) != 1 {
		t.Errorf("%+v, %v", info, err)
	}
}
