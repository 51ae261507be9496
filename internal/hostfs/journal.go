package hostfs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/trimtab/trimtab"
)

const (
	// DefaultJournalSize is the size of each of a journal's two copies, in bytes:
	// room for the state of about a thousand knobs.
	DefaultJournalSize = 1 << 20
	// maxJournal is the largest part of a copy that is read, in bytes: four times the largest that
	// trimtab makes. Anything beyond it is damage.
	maxJournal = 16 << 20
)

// ErrUnreadable says that a journal exists, and none of its records can be read.
var ErrUnreadable = errors.New("the journal is unreadable")

// sizeKey is of the first record of a journal, a deletion that has the size of the copies
// in bytes as its value. By it a new journal differs from one that was overwritten with
// zeros, and a whole copy from one that was cut.
const sizeKey = "size"

// sizeEntry returns the value of a size record.
func sizeEntry(size int) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(size)) }

// sizeIn returns the size in such a record; 0: there is none.
func sizeIn(m map[string]record) int {
	if r := m[sizeKey]; r.op == opDelete && len(r.value) == 4 {
		return int(min(binary.LittleEndian.Uint32(r.value), maxJournal))
	}
	return 0
}

// Entry is one change: Value nil deletes the key.
type Entry struct {
	Key   string
	Value []byte
}

// Journal is a small store of keyed values in two files of fixed size, filled with zeros when
// they are made, so that a disk that fills up later does not stop it. It is not safe for
// concurrent use; hold a [Lock].
//
// At any time at least one copy is complete: it holds the newest record of every key. A complete
// copy is rewritten only while the other is complete, so that an interruption loses nothing.
type Journal struct {
	copies [2]*copyFile
	// newest has the newest record of every key, including deletions: they override what an
	// interrupted rewrite may leave behind, until both copies are free of such leftovers.
	newest map[string]record
	next   uint64
	size   int
	damage Damage
}

// OpenJournal opens or makes the journal in dir, with copies of size bytes; 0: its present size,
// or [DefaultJournalSize] for a new one. It never shrinks.
func OpenJournal(dir string, size int) (*Journal, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	j := &Journal{}
	found := [2]copyContent{readCopy(dir, 0), readCopy(dir, 1)}
	anew := found[0].absent() && found[1].absent()
	j.load(&found)
	j.size = max(size, len(found[0].bytes), len(found[1].bytes), sizeIn(j.newest))
	if size <= 0 && len(j.newest) == 0 {
		j.size = max(j.size, DefaultJournalSize)
	}
	for i := range j.copies {
		file, err := openCopy(copyPath(dir, i), &found[i], j.size)
		if err != nil {
			j.Close()
			return nil, fmt.Errorf("open journal: %w", err)
		}
		j.copies[i] = &copyFile{file: file, there: file.there}
	}
	if err := syncDir(dir); err != nil {
		j.Close()
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if j.load(&found); anew {
		j.damage = Damage{}
	}
	j.heal()
	if sizeIn(j.newest) != j.size {
		// If it cannot be written now, the first entry will fail.
		_ = j.append(record{op: opDelete, key: sizeKey, value: sizeEntry(j.size)})
	}
	return j, nil
}

// ReadJournal returns the state of the journal in dir without changing anything, and
// what of it could not be read. Without any record the error is [ErrUnreadable].
func ReadJournal(dir string) (state map[string][]byte, damage Damage, err error) {
	found := [2]copyContent{readCopy(dir, 0), readCopy(dir, 1)}
	if found[0].absent() && found[1].absent() {
		return nil, Damage{}, fmt.Errorf("read journal: %w", found[0].why)
	}
	var j Journal
	if j.load(&found); len(j.newest) == 0 {
		return nil, j.damage, fmt.Errorf("read journal in %s: %s: %w", dir, &j.damage, ErrUnreadable)
	}
	state = map[string][]byte{}
	for _, k := range j.Keys("") {
		state[k] = j.newest[k].value
	}
	return state, j.damage, nil
}

// JournalReadable returns why neither copy of an existing journal can be read, for example because
// it belongs to another user; nil if there is no journal.
func JournalReadable(dir string) error {
	var errs [2]error
	for i := range errs {
		f, err := OpenFile(copyPath(dir, i))
		if err == nil {
			f.Close()
		}
		if errs[i] = err; err == nil || errors.Is(err, os.ErrNotExist) {
			return nil
		}
	}
	return errors.Join(errs[:]...)
}

// load merges the copies: the highest number wins, key by key.
func (j *Journal) load(found *[2]copyContent) {
	j.newest, j.damage = map[string]record{}, Damage{}
	var alone [2]map[string]record
	var damaged [2]int
	for i := range found {
		records, places, end := scan(found[i].bytes)
		alone[i], damaged[i] = map[string]record{}, places
		for _, r := range records {
			newer(alone[i], r)
			newer(j.newest, r)
			j.next = max(j.next, r.number+1)
		}
		if j.copies[i] != nil {
			j.copies[i].tail = end
		}
	}
	whole := max(len(found[0].bytes), len(found[1].bytes), sizeIn(j.newest))
	for i := range found {
		j.damage.add(i, &found[i], whole, len(alone[i]), damaged[i])
	}
	j.damage.Lost = len(j.damage.Words) == len(found)
	for i, c := range j.copies {
		if c != nil && found[i].moved {
			c.tail = 0
		} else if c != nil {
			c.complete = maps.EqualFunc(alone[i], j.newest, func(a, b record) bool { return a.number == b.number })
		}
	}
}

// newer stores r if it is newer than the record in m for its key.
func newer(m map[string]record, r record) {
	if old, ok := m[r.key]; !ok || old.number < r.number {
		m[r.key] = r
	}
}

// Damaged returns how many stretches could not be read when the journal was opened. Records that
// are readable in either copy are not lost.
func (j *Journal) Damaged() int { return j.damage.Places }

// Damage returns the damage found when the journal was opened.
func (j *Journal) Damage() Damage { return j.damage }

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

// Append makes the changes durable before it returns: in both copies, or in one if the other
// fails. On an error nothing changed in memory, and the disk holds either the old or the new
// value of each key.
func (j *Journal) Append(entries ...Entry) error {
	records := make([]record, 0, len(entries))
	for _, e := range entries {
		if len(e.Key) == 0 || len(e.Key)+len(e.Value) > MaxRecord {
			return trimtab.Invalidf("append to journal: %d bytes of key %.40q", len(e.Key)+len(e.Value), e.Key)
		}
		r := record{op: opPut, key: e.Key, value: slices.Clone(e.Value)}
		if e.Value == nil {
			r.op = opDelete
		}
		records = append(records, r)
	}
	return j.append(records...)
}

// append numbers the records and makes them durable.
func (j *Journal) append(records ...record) error {
	var b []byte
	for i := range records {
		// Used up even when the write fails: some of it may be on the disk.
		records[i].number = j.next
		j.next++
		b = appendRecord(b, records[i])
	}
	if err := j.write(b); err != nil {
		return fmt.Errorf("append to journal: %w", err)
	}
	for _, r := range records {
		newer(j.newest, r)
	}
	return nil
}

// write appends b to each copy. It succeeds if one complete copy has it; a copy without it is no
// longer complete.
func (j *Journal) write(b []byte) error {
	var errs [2]error
	for i, c := range j.copies {
		if errs[i] = j.makeSpace(c, j.copies[1-i], len(b)); errs[i] == nil {
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

// append writes after the last record and syncs. Readers skip the remains of a failed write.
func (c *copyFile) append(b []byte) error {
	at := c.tail
	c.tail += len(b)
	if _, err := c.file.WriteAt(b, int64(at)); err != nil {
		return err
	}
	return c.file.Sync()
}

// makeSpace makes c complete, with space for more bytes: it appends the missing records if they fit,
// else it rewrites the copy.
func (j *Journal) makeSpace(c, other *copyFile, more int) error {
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
	return j.rewrite(c, image)
}

// rewrite rewrites a copy: the image, and zeros behind it.
func (j *Journal) rewrite(c *copyFile, image []byte) error {
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

// heal rewrites a damaged copy from the other if that one is complete, as after a kill in the
// middle of a write. Otherwise programs that only read the journal would report the damage until
// that copy is full, which may be never.
func (j *Journal) heal() {
	for i, c := range j.copies {
		if image := j.image(); j.damage.copies[i] && !j.damage.Lost && j.copies[1-i].complete && len(image) <= j.size {
			_ = j.rewrite(c, image) // on an error, the next Append tries again
		}
	}
}

// prune drops deletions that no longer override anything, since both copies were rewritten after
// them.
func (j *Journal) prune() {
	before := min(j.copies[0].anew, j.copies[1].anew)
	maps.DeleteFunc(j.newest, func(k string, r record) bool {
		return r.op == opDelete && r.number <= before && k != sizeKey
	})
}

// image returns the newest records of all keys, with their own numbers.
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
