package hostfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"

	"github.com/trimtab/trimtab"
)

// MaxDirs is the largest number of directories that [Root.Walk] visits.
const MaxDirs = 10_000

// Walk calls visit for a directory and all beneath it, a parent before its children, which come in
// order of name; if visit returns [fs.SkipDir], Walk skips the directories below. It follows no
// link, and skips directories that disappear meanwhile. More than [MaxDirs] are an error that is
// trimtab.ErrRefused.
func (r *Root) Walk(name string, visit func(dir string) error) error {
	left := MaxDirs
	if err := r.walk(name, visit, &left); err != nil {
		return fmt.Errorf("walk %s: %w", r.join(name), err)
	}
	return nil
}

func (r *Root) walk(name string, visit func(dir string) error, left *int) error {
	if *left--; *left < 0 {
		return fmt.Errorf("more than %d directories: %w", MaxDirs, trimtab.ErrRefused)
	}
	switch err := visit(name); {
	case errors.Is(err, fs.SkipDir):
		return nil
	case err != nil:
		return err
	}
	children, err := r.dirs(name, syscall.O_NOFOLLOW, *left)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENODEV) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, child := range children {
		if err := r.walk(path.Join(name, child), visit, left); err != nil {
			return err
		}
	}
	return nil
}

// dirs lists the directories in a directory by name; more than limit may be incomplete.
func (r *Root) dirs(name string, flags, limit int) (all []string, err error) {
	f, err := r.open(name, os.O_RDONLY|syscall.O_DIRECTORY|flags)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for len(all) <= limit {
		entries, err := f.ReadDir(listed)
		for _, e := range entries {
			if e.IsDir() {
				all = append(all, e.Name())
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, cause(err)
		}
	}
	slices.Sort(all)
	return all, nil
}
