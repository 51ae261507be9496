package hostfs

import (
	"errors"
	"fmt"
	"io"
	"maps"
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
//
// At any time at least one copy is complete: it holds the newest record of
// every key. A complete copy is rewritten only while the other is complete,
// so that being stopped in the middle loses nothing.
type Journal struct {
	copies [2]*copyFile
	// newest has the newest record of every key, deletions too: they outrank
	// what a torn rewrite may leave behind, until neither copy has any of it.
	newest  map[string]record
	next    uint64
	size    int
	damaged int
}

// copyFile is one of the two copies.
type copyFile struct {
	file storage
	// there says whether the file is still the one at its path.
	there    func() error
	tail     int
	complete bool
	// anew is the highest number in it when it was last written anew: of the
	// numbers up to it, it has what was the newest then, and nothing older. 0: never.
	anew uint64
}

// storage is the part of a file that a journal needs.
type storage interface {
	io.WriterAt
	Sync() error
	Close() error
}

// OpenJournal opens or makes the journal in dir, with copies of size bytes; 0:
// as large as it is, [DefaultJournalSize] when there is none. It never shrinks.
func OpenJournal(dir string, size int) (*Journal, error) {
	if size <= 0 {
		size = sizeOf(dir)
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
		j.copies[i], contents[i] = &copyFile{file: file, there: file.there}, content
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
	// Whole copies have one size; one that was cut between two records is told
	// by nothing else.
	if a, b := len(contents[0]), len(contents[1]); a != b || a == 0 {
		damaged++
	}
	var j Journal
	j.load(contents[:])
	state = map[string][]byte{}
	for _, k := range j.Keys("") {
		state[k] = j.newest[k].value
	}
	return state, damaged + j.damaged, nil
}

// JournalReadable returns why a journal that is there can be read by neither of
// its copies, as one of another user; nil when there is none.
func JournalReadable(dir string) error {
	var errs [2]error
	for i := range errs {
		f, err := os.Open(copyPath(dir, i))
		if err == nil {
			f.Close()
		}
		if errs[i] = err; err == nil || errors.Is(err, os.ErrNotExist) {
			return nil
		}
	}
	return errors.Join(errs[:]...)
}

func copyPath(dir string, i int) string {
	return filepath.Join(dir, fmt.Sprintf("journal.%d", i))
}

// sizeOf returns the size of the larger copy in dir.
func sizeOf(dir string) int {
	var size int64
	for i := range 2 {
		if info, err := os.Stat(copyPath(dir, i)); err == nil {
			size = max(size, info.Size())
		}
	}
	if size == 0 {
		return DefaultJournalSize
	}
	// At least a little, for one that was cut.
	return max(int(size), 32<<10)
}

// openCopy opens one copy and fills it up to size.
func openCopy(path string, size int) (*dataFile, []byte, error) {
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
	return &dataFile{f}, content, nil
}

// dataFile syncs without the times of the inode.
type dataFile struct{ *os.File }

// there returns an error when the file was removed or replaced: what is
// written to it then, nobody finds again.
func (f *dataFile) there() error {
	own, err := f.Stat()
	if err != nil {
		return err
	}
	at, err := os.Stat(f.Name())
	if err == nil && !os.SameFile(own, at) {
		err = fmt.Errorf("%s was replaced: %w", f.Name(), trimtab.ErrStale)
	}
	return err
}

func (f *dataFile) Sync() error {
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
	j.newest = map[string]record{}
	var alone [2]map[string]record
	for i, b := range contents {
		records, damaged, end := scan(b)
		alone[i] = map[string]record{}
		for _, r := range records {
			newer(alone[i], r)
			newer(j.newest, r)
			j.next = max(j.next, r.number)
		}
		j.damaged += damaged
		if j.copies[i] != nil {
			j.copies[i].tail = end
		}
	}
	j.next++
	for i, c := range j.copies {
		if c != nil {
			c.complete = maps.EqualFunc(alone[i], j.newest, func(a, b record) bool { return a.number == b.number })
		}
	}
}

// newer keeps r if it outranks what m has for its key.
func newer(m map[string]record, r record) {
	if old, ok := m[r.key]; !ok || old.number < r.number {
		m[r.key] = r
	}
}

// Damaged returns how many stretches could not be read when the journal was
// opened. What could be read from either copy is not lost by it.
func (j *Journal) Damaged() int { return j.damaged }

// Get returns the value of a key.
func (j *Journal) Get(key string) ([]byte, bool) {
	r, ok := j.newest[key]
	return r.value, ok && r.op == opPut
}

// Keys lists the keys that start with prefix, in order.
func (j *Journal) Keys(prefix string) []string {
	var keys []string
	for k, r := range j.newest {
		if r.op == opPut && strings.HasPrefix(k, prefix) {
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
	records := make([]record, 0, len(entries))
	for _, e := range entries {
		if len(e.Key) == 0 || len(e.Key)+len(e.Value) > MaxRecord {
			return trimtab.Invalidf("append to journal: %d bytes of key %.40q", len(e.Key)+len(e.Value), e.Key)
		}
		r := record{op: opPut, number: j.next, key: e.Key, value: slices.Clone(e.Value)}
		if e.Value == nil {
			r.op = opDelete
		}
		// Used up even when the write fails: some of it may be on the disk.
		j.next++
		records, b = append(records, r), appendRecord(b, r)
	}
	if err := j.write(b); err != nil {
		return fmt.Errorf("append to journal: %w", err)
	}
	for _, r := range records {
		newer(j.newest, r)
	}
	return nil
}

// write appends b to each copy. It succeeds when one complete copy has it; a
// copy that has not is no longer complete.
func (j *Journal) write(b []byte) error {
	var errs [2]error
	for i, c := range j.copies {
		if errs[i] = j.room(c, j.copies[1-i], len(b)); errs[i] == nil {
			errs[i] = c.append(b)
		}
	}
	if errs[0] != nil && errs[1] != nil {
		return errors.Join(errs[0], errs[1])
	}
	for i, c := range j.copies {
		c.complete = errs[i] == nil
	}
	return nil
}

// append writes behind the tail and syncs. What a failed write left there is
// jumped over.
func (c *copyFile) append(b []byte) error {
	at := c.tail
	c.tail += len(b)
	if _, err := c.file.WriteAt(b, int64(at)); err != nil {
		return err
	}
	return c.file.Sync()
}

// room makes c complete, with room for more bytes: by appending what it lacks
// where that fits, else by writing it anew.
func (j *Journal) room(c, other *copyFile, more int) error {
	if err := c.there(); err != nil {
		return err
	}
	if c.complete && c.tail+more <= j.size {
		return nil
	}
	j.prune()
	image := j.image()
	if !c.complete && c.tail+len(image)+more <= j.size {
		err := c.append(image)
		c.complete = err == nil
		return err
	}
	if len(image)+more > j.size {
		return fmt.Errorf("%d bytes do not fit into %d: %w", len(image)+more, j.size, trimtab.ErrRefused)
	}
	if c.complete && !other.complete {
		return fmt.Errorf("no room, and the other copy cannot be written: %w", trimtab.ErrRefused)
	}
	c.complete, c.tail, c.anew = false, len(image), 0
	_, err := c.file.WriteAt(append(image, make([]byte, j.size-len(image))...), 0)
	if err == nil {
		err = c.file.Sync()
	}
	if c.complete = err == nil; c.complete {
		for _, r := range j.newest {
			c.anew = max(c.anew, r.number)
		}
	}
	return err
}

// prune forgets deletions that outrank nothing: since they were made, both
// copies were written anew.
func (j *Journal) prune() {
	before := min(j.copies[0].anew, j.copies[1].anew)
	maps.DeleteFunc(j.newest, func(_ string, r record) bool { return r.op == opDelete && r.number <= before })
}

// image returns the newest records of all keys, under their own numbers.
func (j *Journal) image() []byte {
	var b []byte
	for _, k := range slices.Sorted(maps.Keys(j.newest)) {
		b = appendRecord(b, j.newest[k])
	}
	return b
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
