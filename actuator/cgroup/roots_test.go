package cgroup

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// Ten thousand knobs must not take ten thousand times what one root takes.
func TestKnobsOfOneRootShareWhatIsOpenOfIt(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "shop"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "shop", "cpu.max"), []byte("50000 100000\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	open := func() int {
		all, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip(err)
		}
		n := 0
		for _, e := range all {
			if to, err := os.Readlink(filepath.Join("/proc/self/fd", e.Name())); err == nil && to == root {
				n++
			}
		}
		return n
	}
	var roots Roots
	var knobs []*CPU
	for i := range 100 {
		k, err := Open(Config{Root: root, Path: "shop", Roots: &roots})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := OpenMemory(Config{Root: root, Path: "w" + strconv.Itoa(i), Roots: &roots}); err != nil {
			t.Fatal(err)
		}
		knobs = append(knobs, k)
	}
	if n := open(); n > 2 {
		t.Errorf("%d descriptors", n)
	}
	for _, k := range knobs[1:] {
		if err := k.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if v, err := knobs[0].Read(t.Context()); err != nil || v.Value != 0.5 {
		t.Errorf("read %v, %v after others were closed", v, err)
	}
}

func TestARootThatWasClosedIsOpenedAnew(t *testing.T) {
	var roots Roots
	for range 2 {
		k, err := Open(Config{Root: t.TempDir(), Path: "shop", Roots: &roots})
		if err != nil {
			t.Fatal(err)
		}
		again, err := Open(Config{Root: k.config.Root, Path: "shop", Roots: &roots})
		if err != nil {
			t.Fatal(err)
		}
		if k.root != again.root || k.Close() != nil || again.Close() != nil {
			t.Fatal("not shared, or not closed by both")
		}
		last, err := Open(Config{Root: k.config.Root, Path: "shop", Roots: &roots})
		if err != nil || last.root == k.root {
			t.Fatalf("%v: a closed root is used", err)
		}
		if err := last.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
