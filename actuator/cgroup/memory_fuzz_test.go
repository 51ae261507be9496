package cgroup_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/trimtab/trimtab/actuator/cgroup"
)

// Whatever the files hold, a limit is a valid amount or an error, and a floor
// is at least the margin.
func FuzzMemoryFilesAreReadTotally(f *testing.F) {
	for _, s := range [][3]string{
		{"max\n", "0\n", "inactive_file 0\n"}, {"9223372036854771712", "1048576", "total_inactive_file 5\n"},
		{"18446744073709551615", "-1", ""}, {"1e9", "x", "inactive_file\ninactive_file 99999999999999999999\n"}, {"", "", ""},
	} {
		f.Add(s[0], s[1], s[2])
	}
	f.Fuzz(func(t *testing.T, limit, current, stat string) {
		root := t.TempDir()
		if err := os.Mkdir(filepath.Join(root, "a"), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"memory.max": limit, "memory.current": current, "memory.stat": stat} {
			if err := os.WriteFile(filepath.Join(root, "a", name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		k, err := cgroup.OpenMemory(cgroup.Config{Root: root, Path: "a"})
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		if v, err := k.Read(t.Context()); err == nil && v.Validate() != nil {
			t.Fatalf("limit %q is read as %v", limit, v)
		}
		if v, err := k.Floor(t.Context()); err == nil && (v.Validate() != nil || v.Value < 4<<20) {
			t.Fatalf("current %q, stat %q: floor %v", current, stat, v)
		}
	})
}
