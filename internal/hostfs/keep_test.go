package hostfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// groupOf makes a group in the hierarchy with the cpu controller, which goes with the test.
func groupOf(t *testing.T) (dir string) {
	t.Helper()
	at, err := CPUHierarchy()
	if err != nil {
		t.Skip(err)
	}
	if dir, err = os.MkdirTemp(at, "trimtab-keep-"); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = os.Remove(dir) })
	return dir
}

func TestAFileThatIsKeptOpenIsReadAsOneThatIsOpenedEachTime(t *testing.T) {
	dir := groupOf(t)
	open := func() *Root {
		r, err := OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close() })
		return r
	}
	keeps, fresh := open(), open()
	keeps.KeepOpen()
	group := filepath.Join(dir, "g")
	t.Cleanup(func() { _ = os.Remove(group) })
	same := func(what string) {
		t.Helper()
		for range openReads + 2 {
			got, err := keeps.Quota("g")
			want, bad := fresh.Quota("g")
			if got != want || (err == nil) != (bad == nil) || errors.Is(err, os.ErrNotExist) != errors.Is(bad, os.ErrNotExist) {
				t.Errorf("%s: %v %v, want %v %v", what, got, err, want, bad)
			}
		}
	}
	same("no group yet")
	for life := range 3 {
		if err := os.Mkdir(group, 0o755); err != nil {
			t.Fatal(err)
		}
		same("a new group")
		q, err := fresh.Quota("g")
		if err != nil {
			t.Skip(err) // the controller is not there for groups in it
		}
		q.Micros = q.Period * int64(life+1)
		name, value := "g/cpu.max", q.CPUMax()
		if fresh.Filesystem() == Cgroup1 {
			name, value = "g/cpu.cfs_quota_us", q.CFSQuota()
		}
		if err := fresh.Write(name, value); err != nil {
			t.Fatal(err)
		}
		same("a quota")
		if err := os.Remove(group); err != nil {
			t.Fatal(err)
		}
		same("a group that was removed")
	}
}

// dup returns a descriptor of its own.
func dup(f *os.File) (int, error) { return syscall.Dup(int(f.Fd())) }

func TestARootKeepsNoMoreThanItMayOpenAndNothingAfterItIsClosed(t *testing.T) {
	k := &kept{files: map[string]*keptFile{}}
	open := func() int {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		fd, err := dup(f)
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		return fd
	}
	for i := range maxOpen + 10 {
		if !k.keep(fmt.Sprint(i), open()) || len(k.files) > maxOpen {
			t.Fatalf("%d are open after %d", len(k.files), i+1)
		}
	}
	if len(k.files) != 10 {
		t.Errorf("%d are open", len(k.files))
	}
	k.forget()
	if _, there := k.read("515"); there || k.keep("x", -1) {
		t.Error("something is kept after the end")
	}
}
