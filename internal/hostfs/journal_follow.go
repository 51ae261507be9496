package hostfs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
)

// JournalFollower repeatedly reads a journal that another process writes. After the first time it
// reads only the records appended since. It is not safe for concurrent use.
type JournalFollower struct {
	Dir    string
	copies [2]followed
	newest map[string]record
	buf    []byte
}

// followed says how far a copy was read.
type followed struct {
	info os.FileInfo // nil: read it from its beginning
	// last is the beginning of the last record read, at its position: a rewritten copy has
	// another one there, or none, since it was full.
	last [recordHeader]byte
	at   int64
	tail int64
}

// errAnew says that a copy must be read from its beginning.
var errAnew = errors.New("the journal was written anew")

// followChunk is how many bytes are read at a time: some rounds of a hundred knobs.
const followChunk = 64 << 10

// Read returns the state that [ReadJournal] would, valid until the next call.
func (f *JournalFollower) Read() (map[string][]byte, error) {
	for i := range f.copies {
		if err := f.follow(i); err != nil {
			return f.anew()
		}
	}
	return f.state(), nil
}

// anew reads the whole journal.
func (f *JournalFollower) anew() (map[string][]byte, error) {
	f.copies, f.newest = [2]followed{}, map[string]record{}
	var errs [2]error
	for i := range f.copies {
		c := &f.copies[i]
		info, unknown := os.Stat(copyPath(f.Dir, i)) // of one that is replaced now: found next time
		content := readCopy(f.Dir, i)
		errs[i] = content.why
		records, _, end := scan(content.bytes)
		for _, r := range records {
			newer(f.newest, r)
		}
		if content.why != nil || unknown != nil || len(records) == 0 {
			continue
		}
		last := &records[len(records)-1]
		at := end - recordHeader - len(last.key) - len(last.value)
		if r, n := readRecord(content.bytes[at:]); n > 0 && r.number == last.number { // no damage is behind it
			c.info, c.at, c.tail = info, int64(at), int64(end)
			copy(c.last[:], content.bytes[at:])
		}
	}
	if len(f.newest) == 0 {
		return nil, fmt.Errorf("follow journal: %w", cmp.Or(errors.Join(errs[:]...), ErrUnreadable))
	}
	return f.state(), nil
}

// follow reads the records appended to a copy.
func (f *JournalFollower) follow(i int) error {
	c := &f.copies[i]
	if c.info == nil {
		return errAnew
	}
	file, err := OpenFile(copyPath(f.Dir, i))
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !os.SameFile(info, c.info) || info.Size() != c.info.Size() {
		return errors.Join(errAnew, err)
	}
	var last [recordHeader]byte
	if _, err := file.ReadAt(last[:], c.at); err != nil || last != c.last {
		return errors.Join(errAnew, err)
	}
	if f.buf == nil {
		f.buf = make([]byte, followChunk+MaxRecord)
	}
	for {
		n, err := file.ReadAt(f.buf, c.tail)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("follow journal: %w", err)
		}
		if c.apply(f.buf[:n], f.newest) > 0 {
			continue
		}
		// Behind its last record a journal is empty. Else it is damaged, or being written.
		if len(bytes.TrimLeft(f.buf[:n], "\x00")) > 0 {
			return errAnew
		}
		return nil
	}
}

// apply reads the records at the tail, and returns their length in bytes.
func (c *followed) apply(b []byte, newest map[string]record) (took int) {
	for {
		r, n := readRecord(b[took:])
		if n == 0 {
			c.tail += int64(took)
			return took
		}
		newer(newest, r)
		c.at = c.tail + int64(took)
		copy(c.last[:], b[took:])
		took += n
	}
}

// state is the newest value of each key.
func (f *JournalFollower) state() map[string][]byte {
	out := make(map[string][]byte, len(f.newest))
	for k, r := range f.newest {
		if r.op == opPut {
			out[k] = r.value
		}
	}
	return out
}
