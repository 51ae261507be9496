package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// niceOf returns the rank of every thread of a process.
func niceOf(t *testing.T, pid int) (all []int) {
	t.Helper()
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(stats) == 0 {
		t.Fatal(stats, err)
	}
	for _, file := range stats {
		b, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it ended
		}
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(b), ") ")
		n, err := strconv.Atoi(strings.Fields(after)[16])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, n)
	}
	return all
}

func TestAProgramRaisesItsOwnWeightWhereItMayAndRunsWhereItMayNot(t *testing.T) {
	t.Parallel()
	mine, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := prepare(t, fixtureQuotas(t), "")
	p.start()
	all := niceOf(t, p.cmd.Process.Pid)
	want := ownNice
	if nice := 20 - mine; nice != 0 {
		want = nice // somebody ranked this process, as `nice` does
	} else if out, err := exec.Command("nice", "-n", strconv.Itoa(ownNice), "nice").Output(); err != nil || strings.TrimSpace(string(out)) != strconv.Itoa(ownNice) {
		want = 0 // nobody may here
	}
	for _, n := range all {
		if n != want {
			t.Fatalf("threads have nice %v, want %d", all, want)
		}
	}
	p.stop()
}
