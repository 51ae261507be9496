package spanfile

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/collector/internal/jsonvalue"
	"github.com/trimtab/trimtab/collector/otlp"
	"github.com/trimtab/trimtab/collector/zipkin"
)

// Format is what a file was written in.
type Format string

// The formats.
const (
	Jaeger Format = "jaeger"
	Zipkin Format = "zipkin"
	OTLP   Format = "otlp"
)

// Options bound what is read and say how it is cut. The zero value is usable.
type Options struct {
	// MaxBytes bounds the decompressed file; 0: 1 GiB.
	MaxBytes int64
	// Partitions is for how many analyzers the frames are; 0: 1.
	Partitions int
}

// Recording is what was in one or several files.
type Recording struct {
	// Formats are those of the files, in their order.
	Formats []Format
	Frames  []*trimtab.SpanFrame
	// Spans is how many spans the frames hold, Rejected how many had no ids, and
	// Repeated how many were there more than once and are left out.
	Spans    int
	Rejected uint64
	Repeated uint64
}

// Reader joins files: a trace may be spread over several of them, or be in more
// than one. What it makes of them does not depend on their order.
type Reader struct {
	options  Options
	formats  []Format
	rejected uint64
	spans    []held
	senders  []sender
	numbers  map[string]uint32
}

// NewReader returns a reader of nothing so far.
func NewReader(o Options) *Reader {
	if o.MaxBytes == 0 {
		o.MaxBytes = 1 << 30
	}
	return &Reader{options: o, numbers: map[string]uint32{}}
}

// Open reads the file at path. Errors name it.
func (r *Reader) Open(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open recording: %w", err)
	}
	defer f.Close()
	if err := r.Read(f); err != nil {
		return fmt.Errorf("read recording %s: %w", path, err)
	}
	return nil
}

// Read reads all of in. Input that is none of the formats is ErrInvalid.
func (r *Reader) Read(in io.Reader) error {
	doc, err := load(in, r.options.MaxBytes)
	if err != nil {
		return err
	}
	p := collector.NewPacker(1)
	format, err := decode(doc, p)
	if err != nil {
		return err
	}
	if p.Spans() == 0 && p.Rejected() > 0 {
		return trimtab.Invalidf("%s", p.Complaint())
	}
	r.formats = append(r.formats, format)
	r.rejected += p.Rejected()
	return r.hold(p.Frames(), format == Zipkin)
}

// Recording returns the spans of all files. The reader is then done.
func (r *Reader) Recording() *Recording {
	r.uniteIDs()
	out := &Recording{Formats: r.formats, Rejected: r.rejected, Repeated: uint64(r.order())}
	r.separate()
	out.Spans, out.Frames = len(r.spans), r.pack()
	return out
}

// Open reads one file.
func Open(path string, o Options) (*Recording, error) {
	r := NewReader(o)
	if err := r.Open(path); err != nil {
		return nil, err
	}
	return r.Recording(), nil
}

// load returns the decompressed input.
func load(in io.Reader, limit int64) ([]byte, error) {
	buffered := bufio.NewReader(in)
	in = buffered
	if magic, _ := buffered.Peek(2); string(magic) == "\x1f\x8b" {
		z, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, fmt.Errorf("decompress: %w: %w", trimtab.ErrInvalid, err)
		}
		in = z
	}
	doc, err := io.ReadAll(io.LimitReader(in, limit+1))
	switch {
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("decompress: %w: %w", trimtab.ErrInvalid, err)
	case err != nil:
		return nil, fmt.Errorf("read: %w", err)
	case int64(len(doc)) > limit:
		return nil, trimtab.Invalidf("more than %d bytes", limit)
	}
	return doc, nil
}

// decode finds the format of doc and packs its spans.
func decode(doc []byte, p *collector.Packer) (Format, error) {
	v, err := jsonvalue.Parse(doc)
	switch {
	case err != nil:
		return OTLP, decodeLines(doc, p, err)
	case v.IsArray():
		return Zipkin, zipkin.ScanJSON(doc, &collector.ResourceCache{}, p)
	case v.Member("data").IsArray():
		return Jaeger, decodeJaeger(v, p)
	case otlp.IsRequest(v):
		return OTLP, otlp.ScanJSON(doc, &collector.ResourceCache{}, p)
	}
	return "", trimtab.Invalidf("neither Jaeger's, Zipkin's nor OTLP's JSON")
}

// decodeLines reads one OTLP request a line; cause is why doc is no single one.
func decodeLines(doc []byte, p *collector.Packer, cause error) error {
	var cache collector.ResourceCache
	n, read := 0, 0
	for line := range bytes.Lines(doc) {
		if n++; len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := otlp.ScanJSON(line, &cache, p); err != nil {
			if read == 0 {
				return cause
			}
			return fmt.Errorf("line %d: %w", n, err)
		}
		read++
	}
	if read == 0 {
		return cause
	}
	return nil
}
