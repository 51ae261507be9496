package hostfs_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

func TestDirectoriesAreListedByNameAndFilesAreNot(t *testing.T) {
	dir := t.TempDir()
	err := errors.Join(os.MkdirAll(filepath.Join(dir, "a/c"), 0o755), os.Mkdir(filepath.Join(dir, "a/b"), 0o755), os.WriteFile(filepath.Join(dir, "a/file"), nil, 0o644),
		os.Symlink("c", filepath.Join(dir, "a/link")))
	if err != nil {
		t.Fatal(err)
	}
	r := open(t, dir)
	if got, err := r.Dirs("a"); err != nil || !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := r.Dirs("a/none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	if _, err := r.Dirs("../.."); !errors.Is(err, trimtab.ErrRefused) {
		t.Errorf("error %v", err)
	}
}

func open(t *testing.T, dir string) *hostfs.Root {
	t.Helper()
	r, err := hostfs.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func TestALongFileIsReadUpToItsLimit(t *testing.T) {
	dir := t.TempDir()
	text := strings.Repeat("12345\n", 20000)
	if err := os.WriteFile(filepath.Join(dir, "tasks"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	r := open(t, dir)
	if got, err := r.ReadLong("tasks", 1<<20); err != nil || got != text {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if _, err := r.ReadLong("tasks", 1000); !errors.Is(err, trimtab.ErrInvalid) {
		t.Errorf("error %v", err)
	}
}

func TestTheLockOfADirectoryKeepsOthersOut(t *testing.T) {
	dir := t.TempDir()
	first, second := open(t, dir), open(t, dir)
	unlock, err := first.Flock(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.Flock(t.Context(), 0); !errors.Is(err, trimtab.ErrRefused) {
		t.Errorf("error %v", err)
	}
	unlock()
	again, err := second.Flock(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	again()
}

func TestAFollowerFindsWhatIsThereNow(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	plain, pattern := hostfs.Follower{Path: "web"}, hostfs.Follower{Path: "web@*"}
	if got, err := plain.Look(r); !errors.Is(err, os.ErrNotExist) || len(got) > 0 {
		t.Errorf("%v, %v", got, err)
	}
	for _, name := range []string{"web", "web@a"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := plain.Look(r); err != nil || len(got) != 1 || got[0].Path != "web" || got[0].Name != "" || got[0].ID == 0 {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := pattern.Look(r); err != nil || len(got) != 1 || got[0].Path != "web@a" || got[0].Name != "a" {
		t.Errorf("%v, %v", got, err)
	}
}
