package spanfile

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/collector/internal/jsonvalue"
	"github.com/trimtab/trimtab/collector/otlp"
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

// Recording is what was in a file.
type Recording struct {
	Format Format
	Frames []*trimtab.SpanFrame
	// Spans is how many spans the frames hold, Rejected how many had no ids.
	Spans    int
	Rejected uint64
}

// Open reads the file at path. Errors name it.
func Open(path string, o Options) (*Recording, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open recording: %w", err)
	}
	defer f.Close()
	r, err := Read(f, o)
	if err != nil {
		return nil, fmt.Errorf("read recording %s: %w", path, err)
	}
	return r, nil
}

// Read reads all of in. Input that is none of the formats is ErrInvalid.
func Read(in io.Reader, o Options) (*Recording, error) {
	if o.MaxBytes == 0 {
		o.MaxBytes = 1 << 30
	}
	doc, err := load(in, o.MaxBytes)
	if err != nil {
		return nil, err
	}
	p := collector.NewPacker(o.Partitions)
	format, err := decode(doc, p)
	if err != nil {
		return nil, err
	}
	r := &Recording{Format: format, Spans: p.Spans(), Frames: p.Frames()}
	r.Rejected, _ = p.Rejected()
	return r, nil
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
		return Zipkin, decodeZipkin(v, p)
	case v.Member("data").IsArray():
		return Jaeger, decodeJaeger(v, p)
	case !v.Member("resourceSpans").Absent():
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

// nanoseconds turns microseconds into nanoseconds without wrapping around.
func nanoseconds(micro int64) int64 {
	switch {
	case micro > math.MaxInt64/1000:
		return math.MaxInt64
	case micro < math.MinInt64/1000:
		return math.MinInt64
	}
	return micro * 1000
}

// endOf returns start + duration without wrapping around.
func endOf(start, duration int64) int64 {
	if end := start + duration; (end >= start) == (duration >= 0) {
		return end
	} else if duration > 0 {
		return math.MaxInt64
	}
	return math.MinInt64
}
