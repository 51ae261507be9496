package hostfs_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

func TestALockExcludesOthersAndSaysWhatItsOwnerWrote(t *testing.T) {
	path := filepath.Join(t.TempDir(), "knob.lock")
	l, err := hostfs.TakeFile(t.Context(), path, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.SetContent([]byte("a long mark")), l.SetContent([]byte("short"))); err != nil {
		t.Fatal(err)
	}
	if _, err := hostfs.TakeFile(t.Context(), path, 0); !errors.Is(err, trimtab.ErrRefused) || !hostfs.Taken(t.Context(), path) {
		t.Errorf("taken twice: %v", err)
	}
	if b, err := os.ReadFile(path); err != nil || strings.TrimRight(string(b), " ") != "short" {
		t.Errorf("content %q, %v", b, err)
	}
	l.Close()
	if hostfs.Taken(t.Context(), path) {
		t.Error("still taken")
	}
}

func TestALockFileThatWasReplacedIsNotThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "knob.lock")
	l, err := hostfs.TakeFile(t.Context(), path, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if !l.There() {
		t.Error("not there from the start")
	}
	if err := errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if l.There() {
		t.Error("another file counts as this one")
	}
}

func TestALockThatIsRemovedLetsOneOtherIn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "knob.lock")
	first, err := hostfs.TakeFile(t.Context(), path, 0)
	if err != nil {
		t.Fatal(err)
	}
	taken := make(chan *hostfs.Lock, 2)
	for range 2 {
		go func() {
			l, err := hostfs.TakeFile(t.Context(), path, time.Minute)
			if err != nil {
				t.Error(err)
			}
			taken <- l
		}()
	}
	if err := first.Remove(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		l := <-taken
		if l == nil {
			continue
		}
		if !l.There() || len(taken) > 0 {
			t.Error("who waited has a file that excludes nobody")
		}
		l.Close()
	}
}

func TestALockFileThatIsALinkIsNotFollowed(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(dir, "precious")
	if err := errors.Join(os.WriteFile(victim, []byte("data"), 0o600), os.Symlink(victim, filepath.Join(dir, "knob.lock"))); err != nil {
		t.Fatal(err)
	}
	if l, err := hostfs.TakeFile(t.Context(), filepath.Join(dir, "knob.lock"), 0); err == nil {
		l.Close()
		t.Error("followed")
	}
}

// copyOf returns another descriptor of a file that this process has open, as a
// child has one between fork and exec.
func copyOf(t *testing.T, path string) {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range open {
		if at, err := os.Readlink("/proc/self/fd/" + e.Name()); err != nil || at != path {
			continue
		}
		n, err := strconv.Atoi(e.Name())
		if err == nil {
			n, err = syscall.Dup(n)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Close(n) })
		return
	}
	t.Fatalf("%s is not open", path)
}

func TestALockIsLetGoAlthoughAChildHasACopyOfItsDescriptor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "knob.lock")
	l, err := hostfs.TakeFile(t.Context(), path, 0)
	if err != nil {
		t.Fatal(err)
	}
	copyOf(t, path)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if hostfs.Taken(t.Context(), path) {
		t.Error("still taken")
	}
}
