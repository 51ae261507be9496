package hostfs

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
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

// MaxInstances is the largest number of directories that one pattern may match.
const MaxInstances = 1000

// maxInstanceName bounds the name of an instance, as [trimtab.KnobID] does.
const maxInstanceName = 253

// Instance is a directory that a pattern matches.
type Instance struct {
	// Name is the part of the path that the * matched.
	Name string
	// Path is relative to the root.
	Path string
	// ID differs from that of an earlier directory of the same name.
	ID uint64
}

// Instances lists the directories that match a pattern now, by name. A pattern is a path relative
// to the root with one *, which matches at least one character of one part of the path, as in
// shop.slice/checkout@*.service; after " !" may follow names that it must not match. Monitors of
// containers do not match. Directories whose part is not printable UTF-8 of at most 253 bytes do
// not match, nor does what is reached by a link in or behind that part. A missing parent has
// none. If more than [MaxInstances] match, it returns none and an error that is
// trimtab.ErrRefused.
func (r *Root) Instances(pattern string) ([]Instance, error) {
	all, n, err := r.instances(pattern)
	if err != nil {
		return nil, fmt.Errorf("find instances of %s: %w", pattern, err)
	}
	if n > MaxInstances {
		return nil, fmt.Errorf("find instances of %s: %d directories match, at most %d may: %w", pattern, n, MaxInstances, trimtab.ErrRefused)
	}
	slices.SortFunc(all, func(a, b Instance) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// listed is how many entries of a directory are read at a time.
const listed = 256

func (r *Root) instances(pattern string) (all []Instance, n int, err error) {
	except, err := leftOut(pattern)
	if err != nil {
		return nil, 0, err
	}
	pattern = PlainPattern(pattern)
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
		entries, err := f.Readdirnames(listed) // directory checks the type of each
		for _, entry := range entries {
			name, ok := instanceName(entry, prefix, suffix)
			if !ok || companion(entry, prefix) || slices.ContainsFunc(except, func(p string) bool { return matches(p, name) }) {
				continue
			}
			id, ok := directory(int(f.Fd()), path.Join(entry, rest))
			if !ok {
				continue // it is no directory, was removed, or lacks the group
			}
			if n++; n <= MaxInstances { // the surplus is only counted
				all = append(all, Instance{name, path.Join(parent, entry, rest), id})
			}
		}
		if errors.Is(err, io.EOF) {
			return all, n, nil
		}
		if err != nil {
			return nil, 0, err
		}
	}
}

// directory returns the identity of the directory at a path beneath an open one; ok is false if
// there is none, or a link is on the way: by links two names could be one instance.
func directory(at int, name string) (id uint64, ok bool) {
	var x unix.Statx_t
	for end := 0; end < len(name); end++ {
		if next := strings.IndexByte(name[end:], '/'); next >= 0 {
			end += next
		} else {
			end = len(name)
		}
		err := unix.Statx(at, name[:end], unix.AT_SYMLINK_NOFOLLOW, unix.STATX_TYPE|unix.STATX_INO|unix.STATX_BTIME, &x)
		if err != nil || x.Mode&unix.S_IFMT != unix.S_IFDIR {
			return 0, false
		}
	}
	return identity(&x), true
}

// identity distinguishes a file from an earlier one of the same name. The kernel never reuses the
// numbers of cgroups; ordinary file systems reuse them soon, but record when a file was created.
func identity(x *unix.Statx_t) uint64 {
	if x.Mask&unix.STATX_BTIME == 0 || x.Btime == (unix.StatxTimestamp{}) {
		return x.Ino
	}
	h := fnv.New64a()
	fmt.Fprint(h, x.Ino, x.Btime.Sec, x.Btime.Nsec)
	return h.Sum64()
}

// instanceName returns the text that the * matches in part, between prefix and suffix.
func instanceName(part, prefix, suffix string) (name string, ok bool) {
	name, ok = strings.CutPrefix(part, prefix)
	if ok {
		name, ok = strings.CutSuffix(name, suffix)
	}
	ok = ok && name != "" && len(name) <= maxInstanceName && utf8.ValidString(name) &&
		!strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) })
	return name, ok
}
