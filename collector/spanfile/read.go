package spanfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector"
)

// Format is the format of a file.
type Format string

// The formats.
const (
	Jaeger Format = "jaeger"
	Zipkin Format = "zipkin"
	OTLP   Format = "otlp"
)

// Options limit what is read and configure the frames. The zero value is usable.
type Options struct {
	// MaxBytes bounds the decompressed file, which is never in memory as a whole; 0: 64 GiB.
	MaxBytes int64
	// MaxSpans bounds the spans of all files, which are held, 80 bytes each; 0: 8 million.
	MaxSpans int
	// Partitions is the number of partitions of the frames; 0: 1.
	Partitions int
}

// Recording is the content of one or several files.
type Recording struct {
	// Formats are the formats of the files, in their order.
	Formats []Format
	Frames  []*trimtab.SpanFrame
	// Spans is how many spans the frames hold, Rejected how many had no ids, and Repeated how
	// many duplicates were left out.
	Spans    int
	Rejected uint64
	Repeated uint64
	// Notes say, by file, what else was left out, and why.
	Notes []string
}

// Reader joins files: a trace may be spread over several files, or be in more than one. The
// result does not depend on their order.
type Reader struct {
	options     Options
	formats     []Format
	notes       []string
	rejected    uint64
	complaint   string
	spans       store
	senders     []sender
	numbers     map[string]uint32
	peers       []string
	peerNumbers map[string]uint32
}

// NewReader returns a reader of nothing so far.
func NewReader(o Options) *Reader {
	o.MaxBytes = cmp.Or(o.MaxBytes, 64<<30)
	o.MaxSpans = cmp.Or(o.MaxSpans, 8_000_000)
	return &Reader{options: o, numbers: map[string]uint32{}, peerNumbers: map[string]uint32{}}
}

// Open reads the file at path. Errors and notes name it.
func (r *Reader) Open(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open recording: %w", err)
	}
	defer f.Close()
	known := len(r.notes)
	if err := r.Read(f); err != nil {
		return fmt.Errorf("read recording %s: %w", path, err)
	}
	for i, note := range r.notes[known:] {
		r.notes[known+i] = path + ": " + note
	}
	return nil
}

// Read reads all of in. Input in none of the formats is ErrInvalid, and adds nothing.
func (r *Reader) Read(in io.Reader) error {
	had, rejected := r.spans.n, r.rejected
	r.complaint = ""
	d := &decoder{reader: r, packer: collector.NewPacker(1)}
	err := d.file(in)
	if err == nil {
		err = d.release(true)
	}
	if err == nil && r.spans.n == had && r.rejected > rejected {
		err = trimtab.Invalidf("%s", r.complaint)
	}
	if err != nil {
		r.spans.cut(had)
		r.rejected = rejected
		return err
	}
	r.formats = append(r.formats, d.formats...)
	r.notes = append(r.notes, d.notes...)
	return nil
}

// file reads a file of any form.
func (d *decoder) file(in io.Reader) error {
	unpacked, done, err := unpack(in)
	defer done()
	if err != nil {
		return err
	}
	if head, _ := unpacked.Peek(8); isMessages(head) {
		return d.messages(unpacked)
	}
	if head, _ := unpacked.Peek(512); isProtobuf(head) {
		return d.protobuf(unpacked)
	} else if what := strange(head); what != "" {
		return trimtab.Invalidf("this is %s", what)
	}
	plain, err := utf8Of(unpacked)
	if err != nil {
		return err
	}
	d.text = &text{in: plain, line: 1, left: d.reader.options.MaxBytes}
	if _, err := d.peek(); err != nil && !errors.Is(err, io.EOF) {
		return d.cut(err)
	}
	if d.inLines() {
		return d.lines()
	}
	return d.documents()
}

// Spans returns how many spans are held, including duplicates.
func (r *Reader) Spans() int { return r.spans.n }

// Recording returns the spans of all files. The reader is then done.
func (r *Reader) Recording() *Recording {
	p := collector.NewPacker(r.options.Partitions)
	out := r.each(func(spans []held, _ bool) { r.pack(spans, p) })
	out.Frames = p.Frames()
	return out
}

// Frames calls f with the spans of some traces at a time, all spans of a trace in one call, and
// returns the recording without its frames. The frames are valid during the call.
func (r *Reader) Frames(f func([]*trimtab.SpanFrame)) *Recording {
	p := collector.NewPacker(r.options.Partitions)
	return r.each(func(spans []held, last bool) {
		if r.pack(spans, p); last || p.Spans() >= heldBack {
			f(p.Frames())
			p.Reset()
		}
	})
}

// each calls f with the spans of one trace after the other, and says whether it is the last.
func (r *Reader) each(f func(spans []held, last bool)) *Recording {
	out := &Recording{Formats: r.formats, Rejected: r.rejected, Notes: r.notes}
	seen := 0
	r.groups(func(group []held) {
		seen += len(group)
		spans, repeated := r.joined(group)
		out.Spans += len(spans)
		out.Repeated += uint64(repeated)
		f(spans, seen == r.spans.n)
	})
	return out
}

// pack puts spans into frames.
func (r *Reader) pack(spans []held, p *collector.Packer) {
	for i := range spans {
		s := &spans[i]
		p.SetResource(r.senders[s.sender].Resource)
		p.AddCall(&s.Span, []byte(r.peerName(s.peer)))
	}
}

// Open reads one file.
func Open(path string, o Options) (*Recording, error) {
	r := NewReader(o)
	if err := r.Open(path); err != nil {
		return nil, err
	}
	return r.Recording(), nil
}
