package hostfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/trimtab/trimtab"
)

func TestAWalkVisitsParentsFirstAndFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b/x", "b/gone", "a", "skipped/inside"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("/", filepath.Join(dir, "link")), os.WriteFile(filepath.Join(dir, "file"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	r, err := OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var got []string
	err = r.Walk(".", func(name string) error {
		got = append(got, name)
		switch name {
		case "skipped":
			return fs.SkipDir
		case "b/gone":
			return os.Remove(filepath.Join(dir, name))
		}
		return nil
	})
	if want := []string{".", "a", "b", "b/gone", "b/x", "skipped"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	failed := errors.New("seen enough")
	if err := r.Walk("b", func(string) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("error %v", err)
	}
	if err := r.Walk("..", func(string) error { return nil }); !errors.Is(err, trimtab.ErrRefused) {
		t.Errorf("it left its root: %v", err)
	}
}

func TestAWalkEndsWhereThereAreTooMany(t *testing.T) {
	dir := t.TempDir()
	for i := range 300 {
		if err := os.Mkdir(filepath.Join(dir, fmt.Sprint(i)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r, err := OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	left, seen := 250, 0
	err = r.walk(".", func(string) error { seen++; return nil }, &left)
	if !errors.Is(err, trimtab.ErrRefused) || seen != 250 {
		t.Errorf("%d directories, %v", seen, err)
	}
}
