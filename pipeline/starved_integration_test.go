//go:build integration

package pipeline

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus/natsbus"
)

// leaderEnv makes the test below a leader in a process of its own.
const leaderEnv = "TRIMTAB_TEST_LEADER"

// told prints what a step is told of its term.
func told(print func(uint64)) stepFunc {
	return func(_ time.Time, in trimtab.Value) []trimtab.Value {
		if l, ok := in.(*trimtab.Leader); ok {
			print(l.Epoch)
		}
		return nil
	}
}

func TestAProcessThatLeadsForAnotherTest(t *testing.T) {
	url := os.Getenv(leaderEnv)
	if url == "" {
		t.Skip("no other test started this process: " + leaderEnv + " is not set")
	}
	b, err := natsbus.Open(t.Context(), natsbus.Config{URL: url, Source: "starved"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGTERM)
	defer stop()
	err = Run(ctx, Stage{Name: "starved", Bus: b, Leader: &Leader{Pool: "p"}, Tick: 100 * time.Millisecond,
		Step: told(func(epoch uint64) { fmt.Printf("\nepoch %d\n", epoch) })})
	if err != nil {
		t.Error(err)
	}
}

// waitsForCPU tells whether a thread of the process would run if it were let.
func waitsForCPU(pid int) bool {
	stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	return slices.ContainsFunc(stats, func(file string) bool {
		b, _ := os.ReadFile(file) // it may have ended
		return strings.Contains(string(b), ") R ")
	})
}

// A process that is stopped for 95% of the time is one with a quota of 0.05
// cores, and costs the machine nothing. Where others want the machine, too, it runs
// until it has had what it wants; where that makes the stops much longer than they
// should be, nothing is shown.
func TestALeaderUnderCPUStarvationDoesNotLoseItself(t *testing.T) {
	b, err := natsbus.Open(t.Context(), natsbus.Config{Dir: t.TempDir(), Source: "server", Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	cmd := exec.Command(os.Args[0], "-test.run=^TestAProcessThatLeadsForAnotherTest$")
	cmd.Env = append(os.Environ(), leaderEnv+"="+b.URL())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 1000)
	var reading sync.WaitGroup
	reading.Go(func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			if strings.HasPrefix(s.Text(), "epoch ") {
				lines <- s.Text()
			}
		}
	})
	select {
	case first := <-lines:
		if first != "epoch 1" {
			t.Fatal(first)
		}
	case <-time.After(time.Minute):
		t.Fatal("it never leads")
	}
	var mu sync.Mutex
	var rival []uint64
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() {
		err := Run(ctx, Stage{Name: "rival", Bus: b, Leader: &Leader{Pool: "p"}, Tick: 100 * time.Millisecond,
			Step: told(func(epoch uint64) { mu.Lock(); defer mu.Unlock(); rival = append(rival, epoch) })})
		if err != nil {
			t.Error(err)
		}
	})
	rest := func(d time.Duration) { <-time.After(d) }
	for _, phase := range []struct{ stopped, runs, total time.Duration }{
		{950 * time.Millisecond, 50 * time.Millisecond, 10 * time.Second},
		{2500 * time.Millisecond, 130 * time.Millisecond, 15 * time.Second},
		{5 * time.Second, 260 * time.Millisecond, 40 * time.Second},
	} {
		late := time.Duration(0)
		for end := time.Now().Add(phase.total); time.Now().Before(end); {
			began := time.Now()
			if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			rest(phase.stopped)
			if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			rest(phase.runs)
			for waitsForCPU(cmd.Process.Pid) {
				rest(time.Millisecond)
			}
			late = max(late, time.Since(began)-phase.stopped-phase.runs)
		}
		if late > time.Second {
			_ = cmd.Process.Kill()
			reading.Wait()
			_ = cmd.Wait()
			t.Skipf("this machine is too busy: stops of %v took up to %v more", phase.stopped, late)
		}
		mu.Lock()
		if len(rival) > 0 || len(lines) > 0 {
			t.Errorf("stopped for %v of %v: the rival led in %v, and there is news of the leader: %d lines", phase.stopped, phase.stopped+phase.runs, rival, len(lines))
		}
		mu.Unlock()
		t.Logf("stopped for %v at a time, %v long: changes of leadership: %d", phase.stopped, phase.total, len(rival)+len(lines))
	}
	stop()
	running.Wait()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	reading.Wait()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
