package spanfile

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/trimtab/trimtab"
)

// inputError is an error below the text: of the file, or of its compression.
type inputError struct{ cause error }

// Error says so.
func (e *inputError) Error() string { return "read: " + e.cause.Error() }

// Unwrap returns the cause.
func (e *inputError) Unwrap() error { return e.cause }

// unpacker reads a compressed file. Its errors are of the file, not of its end.
type unpacker struct {
	in   io.Reader
	form string
}

// Read reads, and names the form in errors.
func (u unpacker) Read(b []byte) (int, error) {
	n, err := u.in.Read(b)
	if err != nil && !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		what := "is damaged"
		if errors.Is(err, io.ErrUnexpectedEOF) {
			what = "is cut: its end is missing"
		}
		err = &inputError{fmt.Errorf("the %s file %s: %w: %w", u.form, what, trimtab.ErrInvalid, err)}
	}
	return n, err
}

// Magic numbers of compressed files.
const (
	gzipMagic = "\x1f\x8b"
	zstdMagic = "\x28\xb5\x2f\xfd"
)

// maxLayers is the largest number of compressions of a file.
const maxLayers = 2

// unpack returns the content of a file that may be compressed.
func unpack(in io.Reader) (*bufio.Reader, func(), error) {
	buffered, closers := bufio.NewReaderSize(in, 64<<10), []func(){}
	done := func() {
		for _, f := range closers {
			f()
		}
	}
	for range maxLayers {
		head, _ := buffered.Peek(4)
		switch {
		case bytes.HasPrefix(head, []byte(gzipMagic)):
			z, err := gzip.NewReader(buffered)
			if err != nil {
				return nil, done, fmt.Errorf("the gzip file has no whole header: %w: %w", trimtab.ErrInvalid, err)
			}
			buffered = bufio.NewReaderSize(unpacker{z, "gzip"}, 64<<10)
		case string(head) == zstdMagic:
			z, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxValue))
			if err != nil {
				return nil, done, fmt.Errorf("the zstd file: %w: %w", trimtab.ErrInvalid, err)
			}
			closers = append(closers, z.Close)
			buffered = bufio.NewReaderSize(unpacker{z, "zstd"}, 64<<10)
		default:
			return buffered, done, nil
		}
	}
	return buffered, done, nil
}

// utf8Of returns a text in UTF-8, whatever it is written in, without the mark of its
// byte order.
func utf8Of(in *bufio.Reader) (io.Reader, error) {
	head, _ := in.Peek(4)
	has := func(prefix string) bool { return bytes.HasPrefix(head, []byte(prefix)) }
	switch {
	case has("\xff\xfe\x00\x00"), has("\x00\x00\xfe\xff"):
		return nil, trimtab.Invalidf("the text is in UTF-32: write it in UTF-8")
	case has("\xef\xbb\xbf"):
		_, err := in.Discard(3)
		return in, err
	case has("\xff\xfe"), has("{\x00"), has("[\x00"):
		return &utf16Reader{in: in, order: binary.LittleEndian}, nil
	case has("\xfe\xff"), has("\x00{"), has("\x00["):
		return &utf16Reader{in: in, order: binary.BigEndian}, nil
	}
	return in, nil
}

// utf16Reader makes UTF-8 of UTF-16.
type utf16Reader struct {
	in    *bufio.Reader
	order binary.ByteOrder
	out   []byte
	begun bool
}

// Read reads.
func (u *utf16Reader) Read(b []byte) (int, error) {
	for len(u.out) == 0 {
		if err := u.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(b, u.out)
	u.out = u.out[n:]
	return n, nil
}

// fill decodes the bytes at hand; half of a surrogate pair becomes the replacement character.
func (u *utf16Reader) fill() error {
	head, err := u.in.Peek(2)
	if err != nil {
		if len(head) > 0 && errors.Is(err, io.EOF) {
			return &inputError{trimtab.Invalidf("the text in UTF-16 ends within a character")}
		}
		return err
	}
	units := make([]uint16, 0, 4096)
	for len(units) < cap(units)-1 && (len(units) == 0 || u.in.Buffered() >= 4) {
		pair, err := u.in.Peek(2)
		if err != nil {
			return err
		}
		c := u.order.Uint16(pair)
		_, _ = u.in.Discard(2) // it was peeked at
		if !u.begun {
			if u.begun = true; c == 0xfeff {
				continue
			}
		}
		if units = append(units, c); utf16.IsSurrogate(rune(c)) && c < 0xdc00 {
			if pair, err = u.in.Peek(2); err == nil {
				units = append(units, u.order.Uint16(pair))
				_, _ = u.in.Discard(2)
			}
		}
	}
	u.out = u.out[:0]
	for _, r := range utf16.Decode(units) {
		u.out = utf8.AppendRune(u.out, r)
	}
	return nil
}

// alien is a kind of file that is recognised and not read, with its first bytes.
type alien struct{ prefix, name string }

// aliens lists the kinds of files that errors name.
func aliens() []alien {
	return []alien{
		{"\x0c\x00\x00", "spans of Zipkin in Thrift, which are not read: ask for JSON (GET /api/v2/traces)"},
		{"\x82\x21", "a Thrift message, as agents of Jaeger get it, which is not read: download JSON (GET /api/traces)"},
		{"\x80\x01\x00", "a Thrift message, which is not read: download JSON"},
		{"PAR1", "a Parquet file, such as a block of Tempo, which is not read: download traces (GET /api/v2/traces/ID)"},
		{"PK\x03\x04", "a zip archive, which is not read: unpack it"},
		{"\xfd7zXZ", "an xz file, which is not read: unpack it"},
		{"BZh", "a bzip2 file, which is not read: unpack it"},
		{"\x04\x22\x4d\x18", "an lz4 file, which is not read: unpack it"},
		{"\xff\x06\x00\x00sNaPpY", "a snappy file, which is not read: unpack it"},
		{"7z\xbc\xaf", "a 7z archive, which is not read: unpack it"},
		{"Obj\x01", "an Avro file, which is not read: write JSON"},
		{"SQLite format 3", "an SQLite database, which is not read"},
		{"%PDF", "a PDF document, which has no spans"},
		{"\x89PNG", "a picture, which has no spans"},
		{"\x7fELF", "a program, which has no spans"},
		{"<", "HTML or XML, such as a page to log in at, which has no spans"},
		{"HTTP/", "an answer with HTTP's own lines, which are not read: write the body alone (curl without -i)"},
	}
}

// strange names the type of a file that begins with head and is not JSON; "": unknown.
func strange(head []byte) string {
	for _, a := range aliens() {
		if bytes.HasPrefix(head, []byte(a.prefix)) {
			return a.name
		}
	}
	line, _, _ := bytes.Cut(head, []byte("\n"))
	switch {
	case bytes.Contains(head, []byte("ResourceSpans #")) && !bytes.Contains(line, []byte("{")):
		return "the log of the Collector's debug exporter, which is not read: use its file exporter"
	case bytes.HasPrefix(head, []byte("go 1.")) && bytes.Contains(line, []byte(" trace\x00")):
		return "a trace of Go's runtime, which is no distributed trace"
	case bytes.Count(line, []byte(",")) > 2 && !bytes.ContainsAny(line, "{}[]"):
		return "a table with commas between its columns (CSV), which is not read"
	}
	if len(head) > 262 && string(head[257:262]) == "ustar" {
		return "a tar archive, which is not read: unpack it"
	}
	return ""
}
