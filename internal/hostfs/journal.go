package hostfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab"
)

// DefaultJournalSize is the size of each of a journal's two copies, in bytes:
// room for the state of about a thousand knobs.
const DefaultJournalSize = 1 << 20

// Entry is one change: Value nil deletes the key.
type Entry struct {
	Key   string
	Value []byte
}

// Journal is a small store of keyed values in two files of fixed size, which
// are filled with zeros when they are made, so that a disk that is full later
// does not stop it. It is not safe for concurrent use; hold a [Lock].
type Journal struct {
	copies  [2]*copyFile
	state   map[string][]byte
	next    uint64
	size    int
	damaged int
}

// copyFile is one of the two copies. A copy that failed is left alone until
// the next compaction.
type copyFile struct {
	file   storage
	tail   int
	failed error
}

// storage is the part of a file that a journal needs.
type storage interface {
	io.WriterAt
	Sync() error
	Close() error
}

// OpenJournal opens or makes the journal in dir, with copies of size bytes (0:
// [DefaultJournalSize]; a larger one that is there keeps its size).
func OpenJournal(dir string, size int) (*Journal, error) {
	if size <= 0 {
		size = DefaultJournalSize
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	j := &Journal{size: size}
	var contents [2][]byte
	for i := range j.copies {
		file, content, err := openCopy(copyPath(dir, i), size)
		if err != nil {
			j.Close()
			return nil, fmt.Errorf("open journal: %w", err)
		}
		j.copies[i], contents[i] = &copyFile{file: file}, content
		j.size = max(j.size, len(content))
	}
	if err := syncDir(dir); err != nil {
		j.Close()
		return nil, fmt.Errorf("open journal: %w", err)
	}
	j.load(contents[:])
	return j, nil
}

// ReadJournal returns the state of the journal in dir without changing
// anything, and how many stretches of it could not be read.
func ReadJournal(dir string) (state map[string][]byte, damaged int, err error) {
	var contents [2][]byte
	var missing int
	for i := range contents {
		contents[i], err = os.ReadFile(copyPath(dir, i))
		if errors.Is(err, os.ErrNotExist) {
			missing++
		} else if err != nil {
			damaged++
		}
	}
	if missing == 2 {
		return nil, 0, fmt.Errorf("read journal: %w", err)
	}
	var j Journal
	j.load(contents[:])
	return j.state, damaged + j.damaged, nil
}

func copyPath(dir string, i int) string {
	return filepath.Join(dir, fmt.Sprintf("journal.%d", i))
}

// openCopy opens one copy and fills it up to size.
func openCopy(path string, size int) (storage, []byte, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, err
	}
	content, err := io.ReadAll(io.LimitReader(f, 64<<20))
	if err == nil && len(content) < size {
		_, err = f.WriteAt(make([]byte, size-len(content)), int64(len(content)))
		err = errors.Join(err, f.Sync())
		// A journal that was cut and cannot grow again is still good for what
		// it holds: Append finds out.
		if err != nil && len(content) > 0 {
			err = nil
		}
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return dataFile{f}, content, nil
}

// dataFile syncs without the times of the inode.
type dataFile struct{ *os.File }

func (f dataFile) Sync() error {
	if err := unix.Fdatasync(int(f.Fd())); err != nil {
		return fmt.Errorf("sync %s: %w", f.Name(), err)
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

// load merges the copies: the highest number wins, key by key.
func (j *Journal) load(contents [][]byte) {
	var all []record
	for i, b := range contents {
		records, damaged, end := scan(b)
		all = append(all, records...)
		j.damaged += damaged
		if j.copies[i] != nil {
			j.copies[i].tail = end
		}
	}
	slices.SortStableFunc(all, func(a, b record) int {
		if a.number < b.number {
			return -1
		}
		if a.number > b.number {
			return 1
		}
		return 0
	})
	var floor uint64
	for _, r := range all {
		if r.op == opFloor {
			floor = max(floor, r.number)
		}
	}
	j.state = map[string][]byte{}
	for _, r := range all {
		j.next = max(j.next, r.number)
		switch {
		case r.number < floor || r.op == opFloor:
		case r.op == opDelete:
			delete(j.state, r.key)
		default:
			j.state[r.key] = r.value
		}
	}
	j.next++
}

// Damaged returns how many stretches could not be read when the journal was
// opened. What could be read from either copy is not lost by it.
func (j *Journal) Damaged() int { return j.damaged }

// Get returns the value of a key.
func (j *Journal) Get(key string) ([]byte, bool) {
	v, ok := j.state[key]
	return v, ok
}

// Keys lists the keys that start with prefix, in order.
func (j *Journal) Keys(prefix string) []string {
	var keys []string
	for k := range j.state {
		if strings.HasPrefix(k, prefix) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// Append makes the changes durable before it returns: in both copies, or in
// one when the other fails. On an error nothing changed in memory, and
// what the disk holds is either the old or the new value of each key.
func (j *Journal) Append(entries ...Entry) error {
	var b []byte
	number := j.next
	for _, e := range entries {
		if len(e.Key) == 0 || len(e.Key)+len(e.Value) > MaxRecord {
			return trimtab.Invalidf("append to journal: %d bytes of key %.40q", len(e.Key)+len(e.Value), e.Key)
		}
		op := opPut
		if e.Value == nil {
			op = opDelete
		}
		b = appendRecord(b, record{op: op, number: number, key: e.Key, value: e.Value})
		number++
	}
	if err := j.write(b); err != nil {
		// Some of b may have reached the disk: leave a gap, so that whatever
		// comes later outranks it.
		j.next = number + 1
		return fmt.Errorf("append to journal: %w", err)
	}
	j.next = number
	for _, e := range entries {
		if e.Value == nil {
			delete(j.state, e.Key)
		} else {
			j.state[e.Key] = slices.Clone(e.Value)
		}
	}
	return nil
}

// write appends b to each copy, compacting copies that have no room or failed.
func (j *Journal) write(b []byte) error {
	var errs [2]error
	for i, c := range j.copies {
		if c.failed != nil || c.tail+len(b) > j.size {
			if errs[i] = j.compact(c, len(b)); errs[i] != nil {
				c.failed = errs[i]
				continue
			}
		}
		if errs[i] = c.append(b); errs[i] != nil {
			c.failed = errs[i]
		}
	}
	if errs[0] != nil && errs[1] != nil {
		return errors.Join(errs[0], errs[1])
	}
	return nil
}

func (c *copyFile) append(b []byte) error {
	if _, err := c.file.WriteAt(b, int64(c.tail)); err != nil {
		return err
	}
	if err := c.file.Sync(); err != nil {
		return err
	}
	c.tail += len(b)
	return nil
}

// compact rewrites one copy with the live records alone, leaving room for
// more bytes. The other copy stays whole meanwhile. The floor, which outdates
// the records that it replaces, is written last.
func (j *Journal) compact(c *copyFile, more int) error {
	// Not below any number in use, and below the batch that is coming.
	number := j.next - 1
	floor := appendRecord(nil, record{op: opFloor, number: number})
	b := make([]byte, len(floor), j.size)
	for _, k := range j.Keys("") {
		b = appendRecord(b, record{op: opPut, number: number, key: k, value: j.state[k]})
	}
	if len(b)+more > j.size {
		return fmt.Errorf("%d bytes do not fit into %d: %w", len(b)+more, j.size, trimtab.ErrRefused)
	}
	tail := len(b)
	if _, err := c.file.WriteAt(b[:j.size], 0); err != nil {
		return err
	}
	if err := c.file.Sync(); err != nil {
		return err
	}
	if _, err := c.file.WriteAt(floor, 0); err != nil {
		return err
	}
	if err := c.file.Sync(); err != nil {
		return err
	}
	c.tail, c.failed = tail, nil
	return nil
}

// Close releases the files.
func (j *Journal) Close() error {
	var errs []error
	for _, c := range j.copies {
		if c != nil {
			errs = append(errs, c.file.Close())
		}
	}
	return errors.Join(errs...)
}
