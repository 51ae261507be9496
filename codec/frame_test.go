package codec

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
)

func drawFrame(t *rapid.T) ([]trimtab.Span, [][]trimtab.Attr, *trimtab.SpanFrame) {
	var w FrameWriter
	text := rapid.StringN(0, 20, 40)
	resources := make([][]trimtab.Attr, rapid.IntRange(1, 4).Draw(t, "resources"))
	for i := range resources {
		resources[i] = make([]trimtab.Attr, rapid.IntRange(0, 3).Draw(t, "attributes"))
		for k := range resources[i] {
			resources[i][k] = trimtab.Attr{Key: text.Draw(t, "key"), Value: text.Draw(t, "value")}
		}
		if index, ok := w.AddResource(resources[i]); !ok || int(index) != i {
			t.Fatal("resource", index, ok)
		}
	}
	spans := make([]trimtab.Span, rapid.IntRange(0, 20).Draw(t, "spans"))
	for i := range spans {
		s := &spans[i]
		copy(s.TraceID[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "trace"))
		copy(s.SpanID[:], rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "id"))
		s.Start, s.End = rapid.Int64().Draw(t, "start"), rapid.Int64().Draw(t, "end")
		s.Adjusted = float32(rapid.Float64Range(1, 1e6).Draw(t, "adjusted"))
		s.Resource = uint16(rapid.IntRange(0, len(resources)-1).Draw(t, "resource"))
		s.Kind, s.Flags = trimtab.SpanKind(rapid.IntRange(0, 5).Draw(t, "kind")), uint8(rapid.IntRange(0, 31).Draw(t, "flags"))
		s.Peer = uint8(rapid.IntRange(0, MaxPeers).Draw(t, "peer"))
		if !w.Add(s) {
			t.Fatal("frame full")
		}
	}
	return spans, resources, w.Frame(3)
}

// valid is what a receiver says of a frame.
func valid(f *trimtab.SpanFrame) error {
	_, err := Frame(f.Partition, f.Data)
	return err
}

func TestAFrameReadsBackAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spans, resources, f := drawFrame(t)
		if err := valid(f); err != nil {
			t.Fatal(err)
		}
		r, err := ReadFrame(f.Data)
		if err != nil || r.Len() != len(spans) {
			t.Fatal(r.Len(), err)
		}
		got := make([][]trimtab.Attr, 0)
		r.Resources(func(i int, packed []byte) bool {
			if !bytes.Equal(packed, PackResource(resources[i])) {
				t.Fatal("packed resource differs")
			}
			got = append(got, UnpackResource(packed))
			return true
		})
		if d := cmp.Diff(resources, got); d != "" {
			t.Fatal(d)
		}
		for i := range spans {
			var s trimtab.Span
			if !r.Next(&s) || s != spans[i] {
				t.Fatalf("span %d: %v, want %v", i, s, spans[i])
			}
		}
		if r.Next(new(trimtab.Span)) {
			t.Fatal("one span too many")
		}
	})
}

func TestAPeerReadsBackAndIsNoSenderToWhoDoesNotKnowPeers(t *testing.T) {
	var w FrameWriter
	shop, _ := w.AddResource([]trimtab.Attr{{Key: "service.name", Value: "shop"}})
	for _, name := range []string{"redis cache", "postgresql orders-db"} {
		if !w.AddPeer(shop, []byte(name)) {
			t.Fatal("refused", name)
		}
	}
	if w.AddPeer(shop, nil) || w.AddPeer(shop, make([]byte, math.MaxUint16-1)) {
		t.Error("took a peer without a name that can be written")
	}
	want := trimtab.Span{Adjusted: 1, Resource: shop, Kind: trimtab.SpanClient, Flags: trimtab.FlagError, Peer: 2}
	w.Add(&want)
	f := w.Frame(0)
	if f.Data[3] != 1 || valid(f) != nil {
		t.Errorf("version %d, %v", f.Data[3], valid(f))
	}
	r, err := ReadFrame(f.Data)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	r.Resources(func(i int, packed []byte) bool {
		of, name, ok := UnpackPeer(packed)
		if ok != (i > 0) || of != shop {
			t.Errorf("entry %d: %v, of %d", i, ok, of)
		}
		if names = append(names, string(name)); ok {
			if attrs := UnpackResource(packed); len(attrs) != 1 || attrs[0].Key != "" {
				t.Errorf("without peers it is %v", attrs)
			}
		}
		return true
	})
	if d := cmp.Diff([]string{"", "redis cache", "postgresql orders-db"}, names); d != "" {
		t.Error(d)
	}
	var got trimtab.Span
	if !r.Next(&got) || got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestAFrameCutOffAnywhereIsRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, _, f := drawFrame(t)
		at := rapid.IntRange(0, len(f.Data)-1).Draw(t, "at")
		if _, err := ReadFrame(f.Data[:at]); !errors.Is(err, trimtab.ErrInvalid) {
			t.Fatalf("cut at %d of %d: %v", at, len(f.Data), err)
		}
		if _, err := Encode(&trimtab.SpanFrame{Data: f.Data[:at]}, trimtab.Origin{}); !errors.Is(err, trimtab.ErrInvalid) {
			t.Fatalf("cut at %d of %d and encoded: %v", at, len(f.Data), err)
		}
	})
}

func TestAFullFrameRefusesMore(t *testing.T) {
	var w FrameWriter
	w.AddResource(nil)
	s := trimtab.Span{Adjusted: 1}
	for range MaxFrameSpans {
		if !w.Add(&s) {
			t.Fatal("full too early")
		}
	}
	if w.Add(&s) || valid(w.Frame(0)) != nil {
		t.Error("limit not kept")
	}
}

func FuzzReadFrame(f *testing.F) {
	var w FrameWriter
	w.AddResource([]trimtab.Attr{{Key: "service.name", Value: "a"}})
	w.AddPeer(0, []byte("redis"))
	w.Add(&trimtab.Span{Adjusted: 1, Start: 1, End: 2, Peer: 1})
	f.Add(w.Frame(0).Data)
	f.Add([]byte(frameMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ReadFrame(b)
		if err != nil {
			return
		}
		r.Resources(func(_ int, p []byte) bool { UnpackResource(p); UnpackPeer(p); return true })
		var s trimtab.Span
		n := 0
		for r.Next(&s) {
			n++
			if !(s.Adjusted >= 1) || math.IsInf(float64(s.Adjusted), 0) {
				t.Fatal("adjusted", s.Adjusted)
			}
		}
		if n > MaxFrameSpans {
			t.Fatal(n)
		}
	})
}
