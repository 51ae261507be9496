package hostfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab"
)

// copyFile is one of the two copies.
type copyFile struct {
	file storage
	// there says whether the file is still the one at its path.
	there    func() error
	tail     int
	complete bool
	// anew is the highest record number at its last rewrite. Of records up to that number, the copy
	// has only those that were the newest then. 0: it was never rewritten.
	anew uint64
}

// storage is the part of a file that a journal needs.
type storage interface {
	io.WriterAt
	Sync() error
	Close() error
}

// copyContent is the readable content of a copy; why is the reason if the rest could not be read.
type copyContent struct {
	bytes []byte
	why   error
	// moved says that the file at its path is a new one.
	moved bool
}

func (c *copyContent) absent() bool { return errors.Is(c.why, os.ErrNotExist) }

// readCopy reads one copy, and follows a link to it.
func readCopy(dir string, i int) (c copyContent) {
	c.bytes, c.why = readUpTo(copyPath(dir, i), maxJournal)
	if len(c.bytes) > maxJournal {
		c.bytes, c.why = c.bytes[:maxJournal], trimtab.Invalidf("read %s: more than %d bytes", copyPath(dir, i), maxJournal)
	}
	return c
}

func copyPath(dir string, i int) string {
	return filepath.Join(dir, fmt.Sprintf("journal.%d", i))
}

// openCopy opens the copy that found was read from, and extends it to at least that size.
func openCopy(path string, found *copyContent, size int) (*dataFile, error) {
	if found.why != nil && !found.absent() && !errors.Is(found.why, trimtab.ErrInvalid) {
		return nil, found.why // it may be readable later, for example if it belongs to another user
	}
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		return makeCopy(path, found, size)
	}
	f, aside, err := OpenOwn(path)
	if err != nil {
		return nil, err
	}
	there := len(found.bytes)
	if found.moved = aside != ""; found.moved {
		there, found.why = 0, trimtab.Invalidf("was no file and is %s now", aside)
	}
	info, err := f.Stat()
	if err == nil && info.Size() > maxJournal {
		err = f.Truncate(maxJournal) // bytes beyond this are never read
	}
	if err == nil && there < size {
		_, err = f.WriteAt(make([]byte, size-there), int64(there))
		err = errors.Join(err, f.Sync())
		// A journal that was cut and cannot grow again can still be read: Append finds out.
		if err != nil && there > 0 {
			err = nil
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &dataFile{f, path}, nil
}

// makeCopy makes a copy that is whole, or none: zeros alone are of a journal that was lost.
func makeCopy(path string, found *copyContent, size int) (*dataFile, error) {
	found.bytes = make([]byte, size)
	if first := appendRecord(nil, record{op: opDelete, key: sizeKey, value: sizeEntry(size)}); len(first) <= size {
		copy(found.bytes, first)
	}
	f, _, err := OpenOwn(path + ".new")
	if err != nil {
		return nil, err
	}
	if err = f.Truncate(0); err == nil {
		_, err = f.WriteAt(found.bytes, 0)
	}
	if err = errors.Join(err, f.Sync()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(f.Name()), f.Close())
	}
	return &dataFile{f, path}, nil
}

// dataFile is the file at a path. It syncs without the times of the inode.
type dataFile struct {
	*os.File
	path string
}

// there returns an error if the file was removed or replaced, so that later writes to it would be
// lost.
func (f *dataFile) there() error {
	own, err := f.Stat()
	if err != nil {
		return err
	}
	at, err := os.Lstat(f.path)
	if err == nil && !os.SameFile(own, at) {
		err = fmt.Errorf("%s was replaced: %w", f.path, trimtab.ErrStale)
	}
	return err
}

func (f *dataFile) Sync() error {
	if err := unix.Fdatasync(int(f.Fd())); err != nil {
		return fmt.Errorf("sync %s: %w", f.path, err)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Damage is the unreadable part of a journal.
type Damage struct {
	// Places counts it, over both copies.
	Places int
	// Lost says that neither copy is whole: records may be missing.
	Lost bool
	// Words describes the damage of each incomplete copy.
	Words []string
	// copies says which copies these are.
	copies [2]bool
}

// String describes the damage of both copies, for people.
func (d *Damage) String() string { return strings.Join(d.Words, "; ") }

// add describes the damage of one copy, with its number of keys and of damaged places; whole is
// the length of a complete one.
func (d *Damage) add(i int, c *copyContent, whole, keys, damaged int) {
	var why string
	switch {
	case c.why != nil:
		why = c.why.Error()
	case len(c.bytes) == 0:
		why = "is empty"
	case keys == 0 && damaged == 0:
		why = "has zeros only"
	case keys == 0:
		why = "has no record"
	case damaged > 0:
		why = fmt.Sprintf("is damaged in %d places", damaged)
	case len(c.bytes) < whole:
		why = fmt.Sprintf("was cut from %d bytes to %d", whole, len(c.bytes))
	default:
		return
	}
	d.copies[i] = true
	d.Places += max(1, damaged)
	d.Words = append(d.Words, fmt.Sprintf("copy %d %s", i, why))
}
