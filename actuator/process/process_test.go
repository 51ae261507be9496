package process_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/knobtest"
	"github.com/trimtab/trimtab/actuator/process"
	"github.com/trimtab/trimtab/internal/leak"
)

// TestMain also is the supervisor that a test kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv("TEST_SUPERVISE"); dir != "" {
		err := process.Supervise(context.Background(), process.Supervisor{Dir: dir, Command: []string{"sleep", "1000"}, Max: 4})
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	leak.Main(m)
}

func reopen(undo []byte) (actuator.Knob, error) { return process.Reopen(undo) }

// supervise runs a supervisor for the test and returns its knob.
func supervise(t *testing.T, c process.Supervisor) *process.Workers {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	c.Poll, c.Max = 5*time.Millisecond, 6
	go func() { done <- process.Supervise(ctx, c) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	w, err := process.Open(process.Config{Root: filepath.Dir(c.Dir), Dir: filepath.Base(c.Dir)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	eventually(t, func() error { return w.Probe(t.Context()) })
	return w
}

// eventually waits until f returns nil.
func eventually(t *testing.T, f func() error) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		err := f()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("still: %v", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// runs returns nil once exactly n workers run and none besides them.
func runs(w *process.Workers, n int) func() error {
	return func() error {
		s, err := w.State()
		if err != nil {
			return err
		}
		if s.Running() != n || len(s.Workers) != n {
			return fmt.Errorf("%+v, want %d running", s, n)
		}
		return nil
	}
}

func TestWorkersMeetTheContractOfKnobs(t *testing.T) {
	knobtest.Run(t, func(t *testing.T) knobtest.Fixture {
		dir := t.TempDir()
		c := process.Config{Root: dir, Dir: "."}
		w, err := process.Open(c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { w.Close() })
		os.WriteFile(filepath.Join(dir, process.MaxFile), []byte("3\n"), 0o644)
		state := fmt.Sprintf(`{"supervisor":%d,"want":3,"workers":[]}`, os.Getpid())
		os.WriteFile(filepath.Join(dir, process.CurrentFile), []byte(state), 0o644)
		return knobtest.Fixture{Knob: w, Reopen: reopen, Least: 1, Most: 50, Vanish: func() {
			os.Remove(filepath.Join(dir, process.MaxFile))
		}}
	})
}

func TestTheNumberOfWorkersFollowsTheKnob(t *testing.T) {
	w := supervise(t, process.Supervisor{Dir: filepath.Join(t.TempDir(), "s"), Command: []string{"sleep", "1000"}, Start: 2})
	eventually(t, runs(w, 2))
	for _, n := range []float64{5, 1, 3, 0, 6} {
		if err := w.Write(t.Context(), trimtab.Units(n)); err != nil {
			t.Fatal(err)
		}
		eventually(t, runs(w, int(n)))
	}
	// Beyond the supervisor's own bounds it does what it may, and says so.
	if err := w.Write(t.Context(), trimtab.Units(60)); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if s, err := w.State(); err != nil || s.Problem == "" || s.Want != 6 {
			return fmt.Errorf("%+v, %v", s, err)
		}
		return nil
	})
}

func TestEachWorkerKnowsItsIndex(t *testing.T) {
	var out lockedBuffer
	w := supervise(t, process.Supervisor{
		Dir: filepath.Join(t.TempDir(), "s"), Start: 3, Output: &out, Env: []string{"COLOUR=blue"},
		Command: []string{"sh", "-c", `echo "[$TRIMTAB_WORKER $COLOUR]"; exec sleep 1000`},
	})
	eventually(t, runs(w, 3))
	eventually(t, func() error {
		for i := range 3 {
			if text := out.String(); !strings.Contains(text, fmt.Sprintf("[%d blue]", i)) {
				return errors.New(text)
			}
		}
		return nil
	})
}

func TestAWorkerThatIgnoresSIGTERMIsKilledAfterItsGrace(t *testing.T) {
	w := supervise(t, process.Supervisor{
		Dir: filepath.Join(t.TempDir(), "s"), Start: 1, Grace: 50 * time.Millisecond,
		Command: []string{"sh", "-c", `trap "" TERM; while :; do sleep 1000; done`},
	})
	eventually(t, runs(w, 1))
	s, err := w.State()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(t.Context(), trimtab.Units(0)); err != nil {
		t.Fatal(err)
	}
	eventually(t, runs(w, 0))
	eventually(t, gone(s.Workers[0].PID))
}

// gone returns nil once no process has the id.
func gone(pid int) func() error {
	return func() error {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil || bytes.Contains(b, []byte(") Z ")) {
			return nil
		}
		return fmt.Errorf("process %d is there: %s", pid, b)
	}
}

func TestACrashingWorkerIsStartedAgainMoreAndMoreSlowly(t *testing.T) {
	starts := filepath.Join(t.TempDir(), "starts")
	w := supervise(t, process.Supervisor{
		Dir: filepath.Join(t.TempDir(), "s"), Start: 1, Backoff: 10 * time.Millisecond,
		Command: []string{"sh", "-c", "echo x >> " + starts + "; exit 3"},
	})
	eventually(t, func() error {
		s, err := w.State()
		if err != nil || len(s.Workers) != 1 || s.Workers[0].Crashes < 5 {
			return fmt.Errorf("%+v, %v", s, err)
		}
		return nil
	})
	b, err := os.ReadFile(starts)
	if err != nil || bytes.Count(b, []byte("x")) < 5 {
		t.Errorf("%q, %v: want 5 starts", b, err)
	}
}

func TestAFileThatCannotBeReadChangesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	w := supervise(t, process.Supervisor{Dir: dir, Command: []string{"sleep", "1000"}, Start: 2})
	eventually(t, runs(w, 2))
	before, _ := w.State()
	if err := os.WriteFile(filepath.Join(dir, process.MaxFile), []byte("-7 or so"), 0o644); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if s, err := w.State(); err != nil || s.Problem == "" {
			return fmt.Errorf("%+v, %v", s, err)
		}
		return nil
	})
	after, _ := w.State()
	for i := range before.Workers {
		if before.Workers[i].PID != after.Workers[i].PID {
			t.Errorf("worker %d: process %d became %d", i, before.Workers[i].PID, after.Workers[i].PID)
		}
	}
}

func TestWorkersDieWithAKilledSupervisorAndTheNextOneStartsWhatTheFileAsks(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	start := func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "TEST_SUPERVISE="+dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		return cmd
	}
	cmd := start()
	eventually(t, func() error { _, err := os.Stat(filepath.Join(dir, process.CurrentFile)); return err })
	w, err := process.Open(process.Config{Root: dir, Dir: "."})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	eventually(t, runs(w, 4))
	if err := w.Write(t.Context(), trimtab.Units(2)); err != nil {
		t.Fatal(err)
	}
	eventually(t, runs(w, 2))
	s, _ := w.State()
	cmd.Process.Signal(syscall.SIGKILL)
	cmd.Wait()
	for _, v := range s.Workers {
		eventually(t, gone(v.PID))
	}
	if err := w.Probe(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("probe without a supervisor: %v", err)
	}
	start()
	eventually(t, func() error { return w.Probe(t.Context()) })
	eventually(t, runs(w, 2))
}

func TestAServiceThatIsNotThereYetIsAProblemAndTakenOverOnceItAppears(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run", "s")
	w, err := process.Open(process.Config{Root: dir, Dir: "."})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Read(t.Context())
	for _, err := range []error{err, w.Probe(t.Context()), w.MayWrite(t.Context()), w.Write(t.Context(), trimtab.Units(2))} {
		if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), dir) {
			t.Errorf("error %v, want that %s does not exist", err, dir)
		}
	}
	// Twice: a directory below /run is another one after each start.
	for range 2 {
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- process.Supervise(ctx, process.Supervisor{Dir: dir, Command: []string{"sleep", "1000"}, Max: 4, Poll: 5 * time.Millisecond})
		}()
		eventually(t, func() error { return w.Probe(t.Context()) })
		if err := w.Write(t.Context(), trimtab.Units(2)); err != nil {
			t.Error(err)
		}
		eventually(t, runs(w, 2))
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := os.RemoveAll(filepath.Dir(dir)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestASecondSupervisorIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	supervise(t, process.Supervisor{Dir: dir, Command: []string{"sleep", "1000"}})
	err := process.Supervise(t.Context(), process.Supervisor{Dir: dir, Command: []string{"sleep", "1000"}, Max: 1})
	if !errors.Is(err, trimtab.ErrRefused) {
		t.Errorf("error %v, want refused", err)
	}
}

func FuzzWorkerFilesAreTotal(f *testing.F) {
	for _, s := range []string{"3\n", "max", "", "-1", "99999999999999999999", `{"supervisor":1,"want":2,"workers":[{"index":0,"pid":7}]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if v, err := process.ParseMax(string(b)); err == nil && v.Validate() != nil {
			t.Errorf("%q: %v", b, v)
		}
		if s, err := process.ParseState(b); err == nil && s.Running() > len(s.Workers) {
			t.Errorf("%q: %+v", b, s)
		}
	})
}

// lockedBuffer is a buffer for several writers.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
