package runtimes

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/trimtab/trimtab/memlimit"
)

// TestMain is also the Go program that tests set the limit of: this test binary, started again.
func TestMain(m *testing.M) {
	if socket := os.Getenv("TRIMTAB_TEST_MEMLIMIT"); socket != "" {
		fmt.Fprintln(os.Stderr, memlimit.ListenAndServe(socket))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// serveGo starts it, and waits until it listens.
func serveGo(t *testing.T, socket string) *exec.Cmd {
	t.Helper()
	_ = os.Remove(socket)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TRIMTAB_TEST_MEMLIMIT="+socket)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for range 2000 {
		if _, err := os.Stat(socket); err == nil {
			return cmd
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("it does not listen")
	return nil
}
