package rig

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWhatProcSaysOfAProcessIsRead(t *testing.T) {
	if v := Number("/proc/self/status", "VmRSS:"); !(v > 100) {
		t.Errorf("%v KiB resident", v)
	}
	if v := Number("/proc/self/status", "NoSuchKey:"); v != 0 {
		t.Errorf("%v of what is not there", v)
	}
	if v, err := CPUSeconds(os.Getpid()); err != nil || v < 0 {
		t.Errorf("%v s, %v", v, err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("12345"), 0o600); err != nil || Stored(dir) != 5 {
		t.Errorf("%d bytes, %v", Stored(dir), err)
	}
}

func TestFreeAddressesDiffer(t *testing.T) {
	all, err := FreeAddresses(20)
	seen := map[string]bool{}
	for _, a := range all {
		seen[a] = true
	}
	if err != nil || len(seen) != 20 {
		t.Errorf("%v, %v", all, err)
	}
}
