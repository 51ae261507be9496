package record

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/trimtab/trimtab"
)

// Window is the number of lines that a reader looks ahead to give them in order of time.
const Window = 256

const (
	// windowBytes bounds the same in bytes.
	windowBytes = 8 << 20
	// maxSegment is the largest segment that is read, in bytes.
	maxSegment = 2 << 30
)

// Reader reads a recording in order of time. Make one with Open.
type Reader struct {
	rest    []file
	current *scanner
	closer  io.Closer
	header  Header

	// size is the size of all segments; bytesRead is how much of them was read.
	size, bytesRead int64

	window []*Line // in order of Received; of equal ones as they were written
	bytes  int
	counts Counts
}

// Counts sums up the lines that a reader read.
type Counts struct {
	// Segments and Lines were read, Damaged lines passed over: cut, not
	// readable, or of a kind that this version does not know.
	Segments, Lines, Damaged int
	// Lost is the number of calls that were never written, according to the lines.
	Lost uint64
}

// Open returns a reader of the segments in a directory, or of one segment's
// file.
func Open(path string) (*Reader, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read recording: %w", err)
	}
	r := &Reader{rest: []file{{path: path, size: info.Size()}}}
	if info.IsDir() {
		if r.rest, err = files(path); err != nil {
			return nil, err
		}
		if len(r.rest) == 0 {
			return nil, trimtab.Invalidf("read recording: no segment in %s", path)
		}
	}
	for _, f := range r.rest {
		r.size += f.size
	}
	return r, nil
}

// Next returns the next line, or io.EOF. Other errors: a file that cannot be read, and
// trimtab.ErrUnsupported for a recording of a newer format.
func (r *Reader) Next() (*Line, error) {
	for len(r.window) < Window && r.bytes < windowBytes {
		l, size, err := r.read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		i := len(r.window)
		for i > 0 && r.window[i-1].Received.After(l.Received) {
			i--
		}
		r.window = slices.Insert(r.window, i, l)
		r.bytes += size
	}
	if len(r.window) == 0 {
		return nil, io.EOF
	}
	l := r.window[0]
	r.window = r.window[1:]
	r.bytes -= len(l.Raw) + len(l.State)
	return l, nil
}

// Header returns the header of the newest opened segment.
func (r *Reader) Header() Header { return r.header }

// Part returns the part of the recording that was read, by bytes, in [0, 1].
func (r *Reader) Part() float64 { return min(1, float64(r.bytesRead)/float64(max(r.size, 1))) }

// counting counts the bytes read from a segment.
type counting struct {
	io.Reader
	n *int64
}

// Read counts.
func (c counting) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	*c.n += int64(n)
	return n, err
}

// Counts returns the counts so far.
func (r *Reader) Counts() Counts { return r.counts }

// Close closes the open file.
func (r *Reader) Close() error {
	r.rest, r.window = nil, nil
	return r.end()
}

func (r *Reader) end() error {
	if r.current = nil; r.closer == nil {
		return nil
	}
	err := r.closer.Close()
	r.closer = nil
	return err
}

// read returns the next good line as it was written.
func (r *Reader) read() (l *Line, size int, err error) {
	for {
		if r.current == nil {
			if len(r.rest) == 0 {
				return nil, 0, io.EOF
			}
			if err := r.begin(); err != nil {
				return nil, 0, err
			}
			continue
		}
		b, ok := r.current.next()
		if !ok {
			r.counts.Damaged += r.current.damaged
			if err := r.end(); err != nil {
				return nil, 0, fmt.Errorf("read recording: %w", err)
			}
			continue
		}
		if r.current.lines == 1 && r.takeHeader(b) {
			if r.header.Recording > Version {
				return nil, 0, fmt.Errorf("read recording: form %d, this build reads 1 to %d: %w", r.header.Recording, Version, trimtab.ErrUnsupported)
			}
			continue
		}
		l, err := decode(b)
		if err != nil {
			r.counts.Damaged++
			continue
		}
		r.counts.Lines++
		r.counts.Lost += l.Lost
		return l, len(l.Raw) + len(l.State), nil
	}
}

// takeHeader reports whether b is a header, and keeps it.
func (r *Reader) takeHeader(b []byte) bool {
	var h Header
	if json.Unmarshal(b, &h) != nil || h.Recording < 1 {
		return false
	}
	r.header = h
	return true
}

// begin opens the next segment.
func (r *Reader) begin() error {
	next := r.rest[0]
	r.rest = r.rest[1:]
	f, err := os.Open(next.path)
	if errors.Is(err, os.ErrNotExist) && strings.HasSuffix(next.path, plain) {
		next.path += ".gz" // it was compressed since the listing
		f, err = os.Open(next.path)
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil // deleted since
	}
	if err != nil {
		return fmt.Errorf("read recording: %w", err)
	}
	r.counts.Segments++
	r.closer, r.current = f, newScanner(counting{f, &r.bytesRead}, strings.HasSuffix(next.path, ".gz"))
	return nil
}

// scanner cuts a segment into lines.
type scanner struct {
	in             *bufio.Reader
	line           []byte
	lines, damaged int
}

// newScanner reads plain or packed bytes; what is packed and is no gzip is one
// damaged line.
func newScanner(in io.Reader, zipped bool) *scanner {
	s := &scanner{}
	if zipped {
		z, err := gzip.NewReader(in)
		if err != nil {
			s.damaged, in = 1, strings.NewReader("")
		} else {
			in = z
		}
	}
	s.in = bufio.NewReaderSize(io.LimitReader(in, maxSegment), 64<<10)
	return s
}

// next returns the next complete line, valid until the next call; ok is false at the end, or
// where the last line is cut off.
func (s *scanner) next() (line []byte, ok bool) {
	s.line = s.line[:0]
	long := false
	for {
		part, err := s.in.ReadSlice('\n')
		if long = long || len(s.line)+len(part) > maxLine; !long {
			s.line = append(s.line, part...)
		}
		switch {
		case err == nil && long:
			s.damaged++
			s.line, long = s.line[:0], false
		case err == nil:
			s.lines++
			return s.line[:len(s.line)-1], true
		case !errors.Is(err, bufio.ErrBufferFull):
			if len(s.line) > 0 || long || !errors.Is(err, io.EOF) {
				s.damaged++ // the end of a process, or of its disk
			}
			return nil, false
		}
	}
}
