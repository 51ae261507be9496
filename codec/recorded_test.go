package codec

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/quantile"
)

// recorded is testdata/v1.jsonl as values: the examples, and a sketch with a
// histogram of many buckets.
func recorded() []trimtab.Value {
	var wide quantile.Histogram
	for v, i := 1e-10, 0; v < 1e10; v, i = v*1.7, i+1 {
		wide.Add(v, 1+float64(i)/8)
	}
	return append(examples(), &trimtab.Sketch{Workload: "wide", From: noon, To: noon.Add(10 * time.Second), Requests: 100, Spans: 100,
		Latency: wide, Begun: []float64{90, 10}, Versions: []string{"c 1.2"},
		Exemplars: []trimtab.Exemplar{{TraceID: "0123456789abcdef0123456789abcdef", SpanID: "0123456789abcdef", Latency: 1.5}}})
}

// The file was written by the build before the codecs had a package of their
// own. What is stored and what other builds send must read back, and what this
// build sends must be what those read.
func TestEveryKindHasTheRecordedForm(t *testing.T) {
	text, err := os.ReadFile("testdata/v1.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	values := recorded()
	if len(lines) != len(values) {
		t.Fatalf("%d lines of %d values", len(lines), len(values))
	}
	for i, v := range values {
		b, err := Encode(v, trimtab.Origin{Source: "test", Incarnation: 7, Sequence: uint64(i + 1)})
		if err != nil || !bytes.Equal(b, lines[i]) {
			t.Errorf("%s: %v\n%s\nrecorded\n%s", v.Kind(), err, b, lines[i])
		}
		read, o, err := Decode(v.Kind(), lines[i])
		if err != nil {
			t.Fatalf("%s: %v", v.Kind(), err)
		}
		if b, err = Encode(read, o); err != nil || !bytes.Equal(b, lines[i]) {
			t.Errorf("%s, read and written: %v\n%s\nrecorded\n%s", v.Kind(), err, b, lines[i])
		}
	}
}

func TestAFrameHasTheRecordedForm(t *testing.T) {
	want, err := os.ReadFile("testdata/v1.frame")
	if err != nil {
		t.Fatal(err)
	}
	r, err := ReadFrame(want)
	if err != nil {
		t.Fatal(err)
	}
	var w FrameWriter
	r.Resources(func(_ int, packed []byte) bool {
		w.AddResource(UnpackResource(packed))
		return true
	})
	for i := range byte(3) {
		span := trimtab.Span{TraceID: [16]byte{1, 2, i}, SpanID: [8]byte{i + 1}, Parent: [8]byte{i}, Start: int64(i) * 1000, End: int64(i)*1000 + 500,
			Adjusted: 1.5, Resource: uint16(i % 2), Kind: trimtab.SpanServer, Flags: trimtab.FlagError | trimtab.FlagAdjusted}
		var got trimtab.Span
		if !r.Next(&got) || got != span {
			t.Errorf("span %d: %+v, want %+v", i, got, span)
		}
		w.Add(&span)
	}
	if got := w.Frame(3).Data; !bytes.Equal(got, want) {
		t.Errorf("%x, recorded %x", got, want)
	}
}
