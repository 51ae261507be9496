package hostfs_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/trimtab/trimtab/internal/hostfs"
)

func TestTheTwinOfAGroupLiesInTheOtherControllersHierarchy(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"cpu,cpuacct/shop", "memory/shop", "unified/shop"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("cpu,cpuacct", filepath.Join(root, "cpu")); err != nil {
		t.Fatal(err)
	}
	for from, want := range map[string]string{
		"cpu/shop": "memory/shop", "cpu,cpuacct/shop": "memory/shop", "cpu,cpuacct": "memory",
		"unified/shop": "", "cpu/other": "", "memory/shop": "",
	} {
		got := hostfs.Sibling(filepath.Join(root, from), "memory")
		if want != "" {
			want = filepath.Join(root, want)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", from, got, want)
		}
	}
}
