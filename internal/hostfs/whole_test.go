package hostfs

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTheRootOfAHierarchyOfControlGroupsIsToldFromWhatIsInIt(t *testing.T) {
	whole := func(dir string) bool {
		r, err := OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		return r.Whole()
	}
	if dir := t.TempDir(); whole(dir) {
		t.Errorf("%s is no control group", dir)
	}
	mount, err := CPUHierarchy()
	if err != nil {
		t.Skip(err)
	}
	group, err := os.MkdirTemp(mount, "trimtab-whole-test-")
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = os.Remove(group) }()
	if whole(group) {
		t.Errorf("%s is in a hierarchy, and counts as its root", group)
	}
	// The kernel makes no limit of CPU time for the whole, or lets nobody set it.
	if _, err := os.Stat(filepath.Join(mount, "cpu.max")); err == nil && whole(mount) {
		t.Errorf("%s has a limit, and counts as the root of its hierarchy", mount)
	}
}
