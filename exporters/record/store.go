package record

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const plain, packed, packing = ".ndjson", ".ndjson.gz", ".ndjson.gz.part"

// file is one segment's file.
type file struct {
	number int
	path   string
	size   int64
}

// files lists the segments of dir in order, the packed form where both exist.
func files(dir string) ([]file, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read recording: %w", err)
	}
	name := regexp.MustCompile(`^trimtab-([0-9]{8,9})\.ndjson(\.gz)?$`)
	var out []file
	for _, e := range entries {
		m := name.FindStringSubmatch(e.Name())
		if m == nil || !e.Type().IsRegular() {
			continue
		}
		n, err := strconv.Atoi(m[1])
		info, gone := e.Info()
		if err != nil || gone != nil {
			continue
		}
		out = append(out, file{n, filepath.Join(dir, e.Name()), info.Size()})
	}
	// The packed form has the longer name; it was renamed when complete.
	slices.SortFunc(out, func(a, b file) int {
		if a.number != b.number {
			return a.number - b.number
		}
		return len(b.path) - len(a.path)
	})
	return slices.CompactFunc(out, func(a, b file) bool { return a.number == b.number }), nil
}

// store keeps the segments of one directory.
type store struct {
	config *Config
	last   int   // the last number used
	closed int64 // size of all segments but the open one
}

func (s *store) path(number int, form string) string {
	return filepath.Join(s.config.Dir, fmt.Sprintf("trimtab-%08d%s", number, form))
}

// segment is the one that is written.
type segment struct {
	number int
	began  time.Time
	size   int64
	header int64
	f      *os.File
	w      *bufio.Writer
}

// create begins the next segment with its header.
func (s *store) create(now time.Time) (*segment, error) {
	have, err := files(s.config.Dir)
	if err != nil {
		return nil, err
	}
	if n := len(have); n > 0 {
		s.last = max(s.last, have[n-1].number)
	}
	s.last++
	f, err := os.OpenFile(s.path(s.last, plain), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("begin segment: %w", err)
	}
	out := &segment{number: s.last, began: now, f: f, w: bufio.NewWriterSize(f, 64<<10)}
	b, err := json.Marshal(Header{Recording: Version, Build: s.config.Build, Config: s.config.Digest, Segment: s.last, Began: now.UTC()})
	if err == nil {
		err = out.append(append(b, '\n'))
	}
	if err == nil {
		err = out.flush()
	}
	if err != nil {
		out.abandon()
		return nil, fmt.Errorf("begin segment: %w", err)
	}
	out.header = out.size
	s.shrink(s.last)
	return out, nil
}

func (g *segment) append(b []byte) error {
	n, err := g.w.Write(b)
	g.size += int64(n)
	if err != nil {
		return fmt.Errorf("write segment %d: %w", g.number, err)
	}
	return nil
}

// lines reports whether the segment has more than the header.
func (g *segment) lines() bool { return g.size > g.header }

func (g *segment) flush() error {
	if err := g.w.Flush(); err != nil {
		return fmt.Errorf("write segment %d: %w", g.number, err)
	}
	return nil
}

// close makes the segment durable.
func (g *segment) close() error {
	if err := errors.Join(g.flush(), g.f.Sync(), g.f.Close()); err != nil {
		return fmt.Errorf("close segment %d: %w", g.number, err)
	}
	return nil
}

// abandon closes without asking whether it is all there.
func (g *segment) abandon() { _ = g.f.Close() }

// compress compresses a complete segment, and deletes the plain file only when the compressed one
// is durable under its name.
func (s *store) compress(number int) error {
	from, part, to := s.path(number, plain), s.path(number, packing), s.path(number, packed)
	if err := pack(from, part); err != nil {
		_ = os.Remove(part)
		return fmt.Errorf("compress segment %d: %w", number, err)
	}
	if err := errors.Join(os.Rename(part, to), s.sync(), os.Remove(from)); err != nil {
		return fmt.Errorf("compress segment %d: %w", number, err)
	}
	return nil
}

func pack(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	z, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
	if err == nil {
		_, err = io.Copy(z, in)
		err = errors.Join(err, z.Close(), out.Sync())
	}
	return errors.Join(err, out.Close())
}

// sync makes names durable.
func (s *store) sync() error {
	d, err := os.Open(s.config.Dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// tidy completes what an earlier process left half done, except for the segment open.
func (s *store) tidy(open int) {
	entries, err := os.ReadDir(s.config.Dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "trimtab-") && strings.HasSuffix(e.Name(), packing) {
			_ = os.Remove(filepath.Join(s.config.Dir, e.Name()))
		}
	}
	have, err := files(s.config.Dir)
	if err != nil {
		return
	}
	for _, f := range have {
		switch {
		case f.number == open:
		case strings.HasSuffix(f.path, packed):
			_ = os.Remove(s.path(f.number, plain)) // packed, and not yet removed
		default:
			// Left as it is when the disk is full: it can be read all the same.
			_ = s.compress(f.number)
		}
	}
	s.shrink(open)
}

// shrink deletes the oldest segments until the open one and its compressed form fit. open is its
// number; 0: none.
func (s *store) shrink(open int) {
	have, err := files(s.config.Dir)
	if err != nil {
		return
	}
	s.closed = 0
	for _, f := range have {
		if f.number != open {
			s.closed += f.size
		}
	}
	for _, f := range have {
		if s.closed+2*s.config.SegmentBytes <= s.config.MaxBytes || f.number == open {
			return
		}
		if os.Remove(f.path) == nil {
			s.closed -= f.size
		}
	}
}
