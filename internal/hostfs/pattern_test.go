package hostfs

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
)

func TestAPatternLeavesOutWhatItNamesAndMonitorsOfContainers(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"libpod-0a.scope", "libpod-1b.scope", "libpod-conmon-0a.scope", "crio-2c.scope", "crio-conmon-2c.scope", "libpod-test-1.scope", "libpod-test.scope"} {
		if err := os.MkdirAll(filepath.Join(dir, "machine.slice", name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	root, err := OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for pattern, want := range map[string]string{
		"machine.slice/libpod-*.scope":               "0a 1b test test-1",
		"machine.slice/libpod-*.scope !test-* !1b":   "0a test",
		"machine.slice/libpod-*.scope !test*":        "0a 1b",
		"machine.slice/*.scope !libpod-test*":        "crio-2c libpod-0a libpod-1b",
		"machine.slice/libpod-conmon-*.scope":        "0a",
		"machine.slice/crio-*.scope":                 "2c",
		"machine.slice/libpod-*.scope !*":            "",
		"machine.slice/libpod-*.scope !test-1 !test": "0a 1b",
	} {
		found, err := root.Instances(pattern)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, f := range found {
			names = append(names, f.Name)
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
	}
	for _, bad := range []string{"machine.slice/libpod-*.scope !", "machine.slice/libpod-*.scope !a*b*", "machine.slice/libpod-*.scope !a/b"} {
		if _, err := root.Instances(bad); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
