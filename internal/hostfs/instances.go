package hostfs

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab"
)

// MaxInstances is how many directories one pattern may match.
const MaxInstances = 1000

// maxInstanceName bounds the name of an instance, as [trimtab.KnobID] does.
const maxInstanceName = 253

// Instance is a directory that a pattern matches.
type Instance struct {
	// Name is what the * of the pattern stands for.
	Name string
	// Path is relative to the root.
	Path string
	// ID tells a directory from an earlier one of the same name.
	ID uint64
}

// Instances lists the directories that match a pattern now, by name: a path
// relative to the root with one *, which stands for at least one character of
// one part of the path, as in shop.slice/checkout@*.service. Directories whose
// part is not printable UTF-8 of at most 253 bytes do not match. A parent that
// is not there has none. More than [MaxInstances] are counted, none is
// returned, and the error is trimtab.ErrRefused.
func (r *Root) Instances(pattern string) ([]Instance, error) {
	all, n, err := r.instances(pattern)
	if err != nil {
		return nil, fmt.Errorf("find instances of %s: %w", pattern, err)
	}
	if n > MaxInstances {
		return nil, fmt.Errorf("find instances of %s: %d groups match, at most %d may: %w", pattern, n, MaxInstances, trimtab.ErrRefused)
	}
	slices.SortFunc(all, func(a, b Instance) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// listed is how many entries of a directory are read at a time.
const listed = 256

func (r *Root) instances(pattern string) (all []Instance, n int, err error) {
	before, after, ok := strings.Cut(pattern, "*")
	if !ok || strings.Contains(after, "*") || path.Clean(pattern) != pattern {
		return nil, 0, trimtab.Invalidf("want a plain path with one *")
	}
	parent, prefix := path.Split(before)
	suffix, rest, _ := strings.Cut(after, "/")
	f, err := r.open(path.Join(".", parent), os.O_RDONLY|syscall.O_DIRECTORY)
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	for {
		entries, err := f.ReadDir(listed)
		for _, e := range entries {
			name, ok := instanceName(e.Name(), prefix, suffix)
			if !ok || !e.IsDir() {
				continue
			}
			if n >= MaxInstances {
				n++ // what is too much is only counted
				continue
			}
			var s unix.Stat_t
			if err := unix.Fstatat(int(f.Fd()), path.Join(e.Name(), rest), &s, unix.AT_SYMLINK_NOFOLLOW); err != nil || s.Mode&unix.S_IFMT != unix.S_IFDIR {
				continue // it went, or has no such group in it
			}
			n++
			all = append(all, Instance{name, path.Join(parent, e.Name(), rest), s.Ino})
		}
		if errors.Is(err, io.EOF) {
			return all, n, nil
		}
		if err != nil {
			return nil, 0, err
		}
	}
}

// instanceName returns what the * stands for in part, between prefix and suffix.
func instanceName(part, prefix, suffix string) (name string, ok bool) {
	name, ok = strings.CutPrefix(part, prefix)
	if ok {
		name, ok = strings.CutSuffix(name, suffix)
	}
	ok = ok && name != "" && len(name) <= maxInstanceName && utf8.ValidString(name) &&
		!strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) })
	return name, ok
}
