package spanfile

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/collector/internal/wire"
	"github.com/trimtab/trimtab/collector/otlp"
	"github.com/trimtab/trimtab/collector/zipkin"
)

// firstField is the beginning of a protobuf message whose first field is number 1 and has a
// length, as lists of spans in all formats.
const firstField = "\x0a"

// isMessages reports whether a file is messages, each with its length in 4 bytes before,
// the highest first: what the Collector's file exporter writes in protobuf, and in any
// form where it compresses.
//
// Source: opentelemetry-collector-contrib, exporter/fileexporter/file_writer.go.
func isMessages(head []byte) bool {
	if len(head) < 8 || binary.BigEndian.Uint32(head) > maxValue {
		return false
	}
	rest := head[4:]
	return string(rest) == zstdMagic || rest[0] == '{' || string(rest[:1]) == firstField
}

// isProtobuf reports whether a file may be one protobuf message, and not a text that begins with
// an empty line.
func isProtobuf(head []byte) bool {
	if !bytes.HasPrefix(head, []byte(firstField)) {
		return false
	}
	return bytes.ContainsFunc(head, func(r rune) bool { return r < ' ' && r != '\n' && r != '\r' && r != '\t' })
}

// messages reads messages with length prefixes. The last one may be cut.
func (d *decoder) messages(in *bufio.Reader) error {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxValue))
	if err != nil {
		return err
	}
	defer z.Close()
	var message, plain []byte
	for n := 1; ; n++ {
		var size [4]byte
		read, err := io.ReadFull(in, size[:])
		if errors.Is(err, io.EOF) {
			return nil
		}
		length := binary.BigEndian.Uint32(size[:])
		if err == nil && length > maxValue {
			return trimtab.Invalidf("message %d has %d bytes by what stands before it: more than %d MiB are none", n, length, maxValue>>20)
		}
		if err == nil {
			message = append(message[:0], make([]byte, length)...)
			read, err = io.ReadFull(in, message)
		}
		switch {
		case (errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)) && n > 1:
			d.notes = append(d.notes, fmt.Sprintf("message %d is cut and is passed over: the file ends %d bytes behind its beginning", n, read))
			return nil
		case err != nil:
			return fmt.Errorf("message %d: %w: %w", n, trimtab.ErrInvalid, err)
		}
		plain = message
		if bytes.HasPrefix(message, []byte(zstdMagic)) {
			if plain, err = z.DecodeAll(message, nil); err != nil {
				return fmt.Errorf("message %d: decompress: %w: %w", n, trimtab.ErrInvalid, err)
			}
		}
		if err := d.message(plain); err != nil {
			return fmt.Errorf("message %d: %w", n, err)
		}
	}
}

// message reads one of several, in JSON or in protobuf.
func (d *decoder) message(b []byte) error {
	if bytes.HasPrefix(b, []byte(firstField)) {
		return d.decodeProtobuf(b)
	}
	d.text = &text{buf: b, line: 1, end: io.EOF}
	return d.documents()
}

// protobuf reads a file that is one message.
func (d *decoder) protobuf(in io.Reader) error {
	b, err := io.ReadAll(io.LimitReader(in, maxValue+1))
	switch {
	case err != nil:
		return fmt.Errorf("read: %w", err)
	case len(b) > maxValue:
		return trimtab.Invalidf("a message of protobuf of more than %d MiB", maxValue>>20)
	}
	return d.decodeProtobuf(b)
}

// decodeProtobuf tries the formats one after the other: a message does not name its format.
func (d *decoder) decodeProtobuf(b []byte) error {
	forms := []struct {
		format Format
		scan   func([]byte, *collector.ResourceCache, *collector.Packer) error
	}{
		{OTLP, otlp.ScanRequest}, {OTLP, scanWrapped}, {Zipkin, zipkin.ScanProto},
	}
	for _, form := range forms {
		trial := collector.NewPacker(1)
		if err := form.scan(b, &collector.ResourceCache{}, trial); err != nil || trial.Spans() == 0 || trial.Rejected() > 0 {
			continue
		}
		if err := d.is(form.format); err != nil {
			return err
		}
		return d.reader.hold(trial.Frames(), form.format == Zipkin)
	}
	return trimtab.Invalidf("this is protobuf, or another binary format, and holds no spans as OTLP, Tempo or Zipkin have them in it: ask for JSON (Accept: application/json)")
}

// scanWrapped reads a request that is the first field of another message, as in the second
// version of Tempo's API.
func scanWrapped(b []byte, cache *collector.ResourceCache, p *collector.Packer) error {
	return wire.Fields(b, func(tag uint64, value []byte, _ uint64) error {
		if tag != 1<<3|wire.Bytes {
			return nil
		}
		return otlp.ScanRequest(value, cache, p)
	})
}
