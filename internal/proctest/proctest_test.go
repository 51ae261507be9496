package proctest_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/trimtab/trimtab/internal/proctest"
)

// TestMain also is the two processes that start each other again.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "guarded" {
		_, _ = io.Copy(io.Discard, os.Stdin) // until the other one has ended
		guard(os.Args[2])
	}
	if len(os.Args) == 3 && os.Args[1] == "waits" {
		select {}
	}
	os.Exit(m.Run())
}

// guard starts a process again as often as it ends; that one takes over when this one does.
func guard(word string) {
	for {
		cmd := exec.Command(os.Args[0], "guarded", word)
		in, err := cmd.StdinPipe()
		if err != nil || cmd.Start() != nil {
			os.Exit(1)
		}
		_ = cmd.Wait()
		_ = in.Close()
	}
}

func TestProcessesThatStartEachOtherAgainAreAllEnded(t *testing.T) {
	word := filepath.Join(t.TempDir(), "word")
	for range 5 {
		cmd := exec.Command(os.Args[0], "guarded", word)
		if err := cmd.Start(); err != nil { // nothing is on its standard input: it guards
			t.Fatal(err)
		}
		for len(proctest.With(word)) < 2 {
		}
		proctest.End(t, word)
		_ = cmd.Wait() // it was killed
		if err := proctest.Left(word); err != nil {
			t.Error(err)
		}
	}
}

// A process that is just beginning its program has neither arguments nor environment.
func TestAProcessThatIsJustBeginningItsProgramIsEnded(t *testing.T) {
	word := filepath.Join(t.TempDir(), "word")
	for range 200 {
		cmd := exec.Command(os.Args[0], "waits", word)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		proctest.End(t, word)
		if left := proctest.With(word); len(left) > 0 {
			t.Errorf("processes %v are left", left)
			proctest.End(t, word)
		}
		_ = cmd.Wait() // it was killed
	}
}

func TestAProcessIsFoundWhereEveryWordIsAmongItsArguments(t *testing.T) {
	word := filepath.Join(t.TempDir(), "word")
	cmd := exec.Command("sleep", "60")
	cmd.Args[0] = word
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for len(proctest.With(word)) == 0 {
		// It has just begun its program, and has no arguments yet.
	}
	if found := proctest.With(word, "60"); len(found) != 1 || found[0] != cmd.Process.Pid {
		t.Errorf("found %v, want %d", found, cmd.Process.Pid)
	}
	if found := proctest.With(word, "no such word"); len(found) != 0 {
		t.Errorf("found %v, which have only one of the words", found)
	}
}
