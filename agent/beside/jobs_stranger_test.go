package beside

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestAFrozenJobThatIsRemovedIsThawedWithTheLeast(t *testing.T) {
	w := newJobWorld(t, "act", 0)
	w.group("train/a")
	if _, err := w.Register([]byte(`{"name": "a", "cgroup": "train/a"}`)); err != nil {
		t.Fatal(err)
	}
	file := func(name string) string {
		b, err := os.ReadFile(filepath.Join(w.root, "train/a", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	w.pass(1, 99, 0.9)
	if file("cgroup.freeze") != "1" {
		t.Fatalf("freeze %s", file("cgroup.freeze"))
	}
	if err := w.Remove("a"); err != nil {
		t.Fatal(err)
	}
	w.pass(3, 99, 0.9)
	if file("cgroup.freeze") != "0\n" && file("cgroup.freeze") != "0" || file("cpu.max") != "1000 100000" {
		t.Errorf("freeze %q, cpu.max %q", file("cgroup.freeze"), file("cpu.max"))
	}
}

func TestAFrozenJobThatFinishesIsThawed(t *testing.T) {
	w := newJobWorld(t, "act", 0)
	w.group("train/a")
	if _, err := w.Register([]byte(`{"name": "a", "cgroup": "train/a"}`)); err != nil {
		t.Fatal(err)
	}
	w.pass(1, 99, 0.9)
	if err := w.Report("a", []byte(`{"finished": true}`)); err != nil {
		t.Fatal(err)
	}
	w.pass(3, 99, 0.9)
	b, err := os.ReadFile(filepath.Join(w.root, "train/a/cgroup.freeze"))
	if err != nil || string(b)[:1] != "0" {
		t.Errorf("freeze %q, %v", b, err)
	}
}

func TestAFileOfProgressThatIsNoneStopsNothing(t *testing.T) {
	w := newJobWorld(t, "act", 3)
	if err := errors.Join(syscall.Mkfifo(filepath.Join(w.root, "progress-0"), 0o600), os.Mkdir(filepath.Join(w.root, "progress-1"), 0o700),
		os.Symlink("/etc/shadow", filepath.Join(w.root, "progress-2"))); err != nil {
		t.Fatal(err)
	}
	w.pass(20, 20, 0.4)
	if n := len(w.Colocation().Jobs); n != 3 || w.states()["running"] == 0 {
		t.Errorf("%d jobs, %v", n, w.states())
	}
}
