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
	l, err := hostfs.AcquireFile(t.Context(), path, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.SetContent([]byte("a long mark")), l.SetContent([]byte("short"))); err != nil {
		t.Fatal(err)
	}
	if _, err := hostfs.AcquireFile(t.Context(), path, 0); !errors.Is(err, trimtab.ErrRefused) || !hostfs.Locked(t.Context(), path) {
		t.Errorf("taken twice: %v", err)
	}
	if b, err := os.ReadFile(path); err != nil || strings.TrimRight(string(b), " ") != "short" {
		t.Errorf("content %q, %v", b, err)
	}
	l.Close()
	if hostfs.Locked(t.Context(), path) {
		t.Error("still taken")
	}
}

func TestALockFileThatWasReplacedIsNotThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "knob.lock")
	l, err := hostfs.AcquireFile(t.Context(), path, 0)
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
	first, err := hostfs.AcquireFile(t.Context(), path, 0)
	if err != nil {
		t.Fatal(err)
	}
	taken := make(chan *hostfs.Lock, 2)
	for range 2 {
		go func() {
			l, err := hostfs.AcquireFile(t.Context(), path, time.Minute)
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

func TestWhatIsInPlaceOfALockFileIsRenamedAndNeverFollowed(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(dir, "precious")
	if err := os.WriteFile(victim, []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	for kind, put := range map[string]func(path string) error{
		"link":        func(path string) error { return os.Symlink(victim, path) },
		"broken link": func(path string) error { return os.Symlink(filepath.Join(dir, "none"), path) },
		"loop":        func(path string) error { return os.Symlink(path, path) },
		"device":      func(path string) error { return os.Symlink("/dev/zero", path) },
		"pipe":        func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"directory":   func(path string) error { return os.Mkdir(path, 0o700) },
		"directory with files": func(path string) error {
			return errors.Join(os.Mkdir(path, 0o700), os.WriteFile(filepath.Join(path, "x"), nil, 0o600))
		},
	} {
		path := filepath.Join(dir, kind)
		for round := range 2 { // also where one was renamed before
			if err := put(path); err != nil {
				t.Fatal(err)
			}
			if hostfs.Locked(t.Context(), path) {
				t.Errorf("%s: counts as taken", kind)
			}
			l, err := hostfs.AcquireFile(t.Context(), path, 0)
			if err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
			want := []string{path + ".damaged", path + ".damaged-2"}[round]
			if _, err := os.Lstat(want); err != nil || l.Aside() != want {
				t.Errorf("%s: renamed to %q: %v", kind, l.Aside(), err)
			}
			if _, err := hostfs.AcquireFile(t.Context(), path, 0); !errors.Is(err, trimtab.ErrRefused) {
				t.Errorf("%s: taken twice: %v", kind, err)
			}
			if err := l.Remove(); err != nil {
				t.Error(err)
			}
		}
	}
	if b, err := os.ReadFile(victim); err != nil || string(b) != "data" {
		t.Errorf("a link was followed: %q, %v", b, err)
	}
}

func TestWhatCannotBeRenamedIsNamedAndSaysWhatToDo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	for _, name := range append([]string{path, path + ".damaged"}, asides(path)...) {
		if err := os.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	_, err := hostfs.AcquireFile(t.Context(), path, 0)
	if !errors.Is(err, trimtab.ErrInvalid) || !strings.Contains(err.Error(), path+": it is a directory") || !strings.Contains(err.Error(), "move it away") {
		t.Errorf("error %v", err)
	}
}

// asides are the names that are left for what is renamed.
func asides(path string) (all []string) {
	for n := 2; n <= 9; n++ {
		all = append(all, path+".damaged-"+strconv.Itoa(n))
	}
	return all
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
	l, err := hostfs.AcquireFile(t.Context(), path, 0)
	if err != nil {
		t.Fatal(err)
	}
	copyOf(t, path)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if hostfs.Locked(t.Context(), path) {
		t.Error("still taken")
	}
}
