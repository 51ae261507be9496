package spanfile

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/collector/internal/jsonvalue"
	"github.com/trimtab/trimtab/collector/otlp"
	"github.com/trimtab/trimtab/collector/zipkin"
)

const (
	// maxLevels is the deepest nesting of an object that contains spans.
	maxLevels = 8
	// heldBack is the number of spans after which a packer is emptied.
	heldBack = 4096
	// window is the longest element of OTLP that is read in one piece, in bytes.
	window = 1 << 20
)

// decoder reads one file.
type decoder struct {
	*text
	reader *Reader
	packer *collector.Packer
	// jaeger, otlp and zipkin know the senders of the file.
	jaeger, otlp, zipkin collector.ResourceCache
	format               Format
	// formats are all formats found in the file.
	formats []Format
	level   int
	notes   []string
}

// errAlien says that the file has another, known format, and which.
type errAlien struct{ error }

// Unwrap returns the cause.
func (e errAlien) Unwrap() error { return e.error }

// alien returns the error for a document that is no span.
func (d *decoder) alien(what string) error {
	return errAlien{d.locate(0, "this is "+what)}
}

// is records the format of the next object, on which the meaning of span IDs depends.
func (d *decoder) is(f Format) error {
	if d.format == f {
		return nil
	}
	err := d.release(true)
	d.format = f
	if !slices.Contains(d.formats, f) {
		d.formats = append(d.formats, f)
	}
	return err
}

// documents reads the documents of a file, one after the other. Of a cut document it reads the
// complete elements; if there are none, it is skipped if there are other documents.
func (d *decoder) documents() error {
	for whole := 0; ; whole++ {
		switch _, err := d.peek(); {
		case errors.Is(err, io.EOF) && whole > 0:
			return nil
		case errors.Is(err, io.EOF):
			return d.locate(0, "the file is empty")
		case err != nil:
			return d.cut(err)
		}
		if err := d.release(true); err != nil {
			return err
		}
		mark, rejected := d.reader.spans.n, d.reader.rejected
		err := d.document()
		switch {
		case err != nil && isCut(err) && d.packer.Spans()+d.reader.spans.n > mark:
			d.notes = append(d.notes, "the text is cut, and what stands whole before the cut is read: "+reasonOf(err))
			return d.release(true)
		case err != nil && isCut(err) && whole > 0:
			d.packer.Reset()
			d.reader.spans.cut(mark)
			d.reader.rejected = rejected
			d.notes = append(d.notes, fmt.Sprintf("the last of %d documents is passed over: %s", whole+1, reasonOf(err)))
			return nil
		case err != nil:
			return err
		}
	}
}

// isCut reports whether the error means that the rest is missing.
func isCut(err error) bool { return errors.Is(err, errCut) || errors.Is(err, io.ErrUnexpectedEOF) }

// document reads one document, or an element of a list of any kind of them.
func (d *decoder) document() error {
	c, err := d.peek()
	if err != nil {
		return d.cut(err)
	}
	if d.level++; d.level > maxLevels {
		return d.locate(0, fmt.Sprintf("lists and objects that hold spans are nested more than %d deep", maxLevels))
	}
	defer func() { d.level-- }()
	switch c {
	case '{':
		return d.object()
	case '[':
		return d.elements(d.document)
	}
	if what := strange(d.buf[d.at:]); what != "" {
		return d.alien(what)
	}
	if c == '"' && d.level > 1 {
		return d.alien("a list of names, which has no spans")
	}
	return d.locate(0, fmt.Sprintf("neither an object nor a list of JSON begins with %.40q", d.buf[d.at:min(len(d.buf), d.at+40)]))
}

// object reads an object of any kind.
func (d *decoder) object() error {
	for {
		k, n, err := shape(d.buf[d.at:], true)
		switch {
		case err != nil:
			if err = d.goOn(err); err != nil {
				return err
			}
		case k == container:
			return d.contained()
		default:
			return d.whole(k, n)
		}
	}
}

// whole reads an object that is in memory, and continues behind it.
func (d *decoder) whole(k kind, n int) error {
	if err := d.leaf(k, jsonvalue.Value(d.buf[d.at:d.at+n:d.at+n])); err != nil {
		return err
	}
	d.advance(n)
	return d.release(false)
}

// leaf reads an object that is in memory.
func (d *decoder) leaf(k kind, v jsonvalue.Value) error {
	switch k {
	case idle:
		return nil
	case jaegerTrace:
		return d.jaegerTrace(v)
	case jaegerSpan:
		if err := d.is(Jaeger); err != nil {
			return err
		}
		jaegerSpanOf(v, nil, &d.jaeger, d.packer)
		return nil
	case zipkinSpan:
		if err := d.is(Zipkin); err != nil {
			return err
		}
		return d.placed(zipkin.ScanElement(v, &d.zipkin, d.packer))
	case resourceSpans:
		if err := d.is(OTLP); err != nil {
			return err
		}
		return d.placed(otlp.ScanResourceSpansJSON(v, &d.otlp, d.packer))
	case packed:
		return d.unwrap(v)
	}
	return d.alien(nameOf(v))
}

// jaegerTrace reads a trace in Jaeger's form.
func (d *decoder) jaegerTrace(v jsonvalue.Value) error {
	var spans, processes jsonvalue.Value
	for key, m := range v.Fields() {
		switch string(key) {
		case "spans":
			spans = m
		case "processes":
			processes = m
		}
	}
	if first := spans.First(); first.IsObject() && processes.Absent() && first.Member("traceID").Absent() {
		return d.alien("a list of spans without Jaeger's ids: " + nameOf(first))
	}
	if err := d.is(Jaeger); err != nil {
		return err
	}
	return d.placed(jaegerTraceOf(spans, processes, &d.jaeger, d.packer))
}

// placed adds line and byte to an error about an object.
func (d *decoder) placed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("line %d, byte %d: %w", d.line, d.offset, err)
}

// unwrap reads the content of an object that is a document of a search engine, or a line of a
// log.
func (d *decoder) unwrap(v jsonvalue.Value) error {
	if source := v.Member("_source"); source.IsObject() {
		switch k := kindIn(source); {
		case k == packed:
			return d.alien("a document of a search engine that holds no span")
		case k == unknown && !source.Member("serviceName").Absent() && !source.Member("operationName").Absent():
			return nil // Jaeger's list of services, in an index of its own
		default:
			return d.leaf(k, source)
		}
	}
	for _, key := range []string{"log", "message", "body", "MESSAGE", "line"} {
		line, _ := v.Member(key).Text()
		if found := jsonIn([]byte(line)); found != nil {
			k, n, err := shape(found, false)
			if err == nil && k != unknown && k != packed {
				return d.leaf(k, found[:n])
			}
			if k, _, err = shape(found, true); err == nil && k == container {
				return d.inner(found)
			}
		}
	}
	return d.alien(nameOf(v))
}

// inner reads a document inside a text.
func (d *decoder) inner(piece []byte) error {
	outer := d.text
	defer func() { d.text = outer }()
	d.text = outer.within(piece)
	return d.document()
}

// contained reads an object that contains lists.
func (d *decoder) contained() error {
	var before holder
	return d.members(func(key string, first byte) error {
		h := holderOf(key, first)
		if h != holdsNothing && h != holdsAny {
			if before != holdsNothing && before != h {
				return d.locate(0, fmt.Sprintf("%.40q in one object with a list of another format: two formats in one", key))
			}
			before = h
		}
		switch h {
		case holdsOTLP:
			if err := d.is(OTLP); err != nil {
				return err
			}
			return d.elements(d.resourceSpans)
		case holdsJaeger:
			return d.elements(d.document)
		case holdsAny:
			return d.document()
		}
		return d.beside(key, first)
	})
}

// beside reads a member next to the one that contains spans.
func (d *decoder) beside(key string, first byte) error {
	v, err := d.value()
	if err != nil {
		return err
	}
	switch key {
	case "errors", "error":
		if text := complaintOf(v); text != "" {
			d.notes = append(d.notes, "the store that gave the answer says: "+text)
		}
	case "status":
		if text, _ := v.Text(); text == "PARTIAL" {
			d.notes = append(d.notes, "the store that gave the answer says that the trace is partial")
		}
	}
	if first == '{' || first == '[' {
		otlp.PassOverJSON(key, v, d.packer)
	}
	return nil
}

// resourceSpans reads an element of OTLP: in one piece, or, where it is long, bit by bit.
func (d *decoder) resourceSpans() error {
	if c, err := d.peek(); err != nil {
		return d.cut(err)
	} else if c != '{' {
		return d.locate(0, fmt.Sprintf("unexpected %q in a list of resources with their spans", c))
	}
	for len(d.buf)-d.at < window {
		n, err := jsonvalue.End(d.buf[d.at:])
		if err == nil {
			v := jsonvalue.Value(d.buf[d.at : d.at+n : d.at+n])
			if err := d.placed(otlp.ScanResourceSpansJSON(v, &d.otlp, d.packer)); err != nil {
				return err
			}
			d.advance(n)
			return d.release(false)
		}
		if err := d.goOn(err); err != nil {
			return err
		}
	}
	return d.longResource()
}

// longResource reads a resource with more spans than should be in memory at one time. If they
// come before the resource itself, as in JSON with sorted keys, they are held in memory.
func (d *decoder) longResource() error {
	known := false
	var early []jsonvalue.Value // lists of scopes
	err := d.members(func(key string, first byte) error {
		switch {
		case otlp.IsResource(key):
			v, err := d.value()
			if err != nil {
				return err
			}
			known = true
			return d.placed(otlp.SetResourceJSON(v, &d.otlp, d.packer))
		case first == '[' && otlp.HoldsScopes(key) && known:
			return d.elements(d.longScope)
		case first == '[' && otlp.HoldsScopes(key):
			v, err := d.value()
			early = append(early, slices.Clone(v))
			return err
		}
		return d.beside(key, first)
	})
	if err != nil || len(early) == 0 {
		return err
	}
	if !known {
		d.packer.SetResource(collector.NewResource(nil))
	}
	for _, v := range early {
		if err := d.placed(otlp.ScanScopesJSON(v, d.packer)); err != nil {
			return err
		}
	}
	return d.release(true)
}

// longScope reads the spans of a library, of a long resource.
func (d *decoder) longScope() error {
	return d.members(func(key string, first byte) error {
		if key == "spans" && first == '[' {
			return d.elements(d.otlpSpan)
		}
		return d.beside(key, first)
	})
}

// otlpSpan reads a span of a long resource.
func (d *decoder) otlpSpan() error {
	v, err := d.value()
	if err != nil {
		return err
	}
	if err := d.placed(otlp.ScanSpanJSON(v, d.packer)); err != nil {
		return err
	}
	if d.packer.Spans() < heldBack {
		return nil
	}
	resource := d.packer.Resource()
	if err := d.release(false); err != nil {
		return err
	}
	d.packer.SetResource(resource)
	return nil
}

// release takes the spans out of the packer, if all is set or they are many.
func (d *decoder) release(all bool) error {
	if !all && d.packer.Spans()+int(d.packer.Rejected()) < heldBack {
		return nil
	}
	r := d.reader
	if complaint := d.packer.Complaint(); complaint != "" && r.complaint == "" {
		r.complaint = complaint
	}
	r.rejected += d.packer.Rejected()
	err := r.hold(d.packer.Frames(), d.format == Zipkin)
	d.packer.Reset()
	if err == nil && r.spans.n > r.options.MaxSpans {
		err = trimtab.Invalidf("more than %d spans: give fewer traces, such as those of a shorter time", r.options.MaxSpans)
	}
	return err
}

// reasonOf returns the text of an error, without its kind.
func reasonOf(err error) string {
	return strings.TrimSuffix(strings.ReplaceAll(err.Error(), trimtab.ErrInvalid.Error()+": ", ""), ": "+trimtab.ErrInvalid.Error())
}
