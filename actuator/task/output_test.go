package task

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"
)

// The slow way is to keep everything.
func TestTheFirstAndTheLastBytesAreKeptAndNeverMoreThanTheLimit(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(8, 400).Draw(t, "limit")
		o, w, err := openOutput(filepath.Join(dir, "out"), limit)
		if err != nil {
			t.Fatal(err)
		}
		var all []byte
		for _, b := range rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 150), 0, 20).Draw(t, "writes") {
			o.take(b)
			all = append(all, b...)
		}
		w.Close()
		o.end()
		var i Info
		o.told(&i)
		out, err := readOutput(o.dir)
		if err != nil || i.Problem != "" {
			t.Fatal(err, i.Problem)
		}
		half, kept := min(int64(len(all)), limit/2), int64(len(out.Head)+len(out.Tail))
		switch {
		case !bytes.Equal(out.Head, all[:half]):
			t.Fatalf("first bytes: %d, want %d", len(out.Head), half)
		case !bytes.HasSuffix(all, out.Tail):
			t.Fatalf("the last bytes are others")
		case kept > limit || i.Dropped != int64(len(all))-kept || i.Output != int64(len(all)):
			t.Fatalf("%d kept of %d, %d dropped, limit %d", kept, len(all), i.Dropped, limit)
		case i.Dropped > 0 && int64(len(out.Tail)) < limit/4:
			t.Fatalf("only %d last bytes are kept, limit %d", len(out.Tail), limit)
		}
	})
}

func TestOutputThatCannotBeStoredIsCountedAndReadOn(t *testing.T) {
	o, w, err := openOutput(filepath.Join(t.TempDir(), "out"), 4096)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(o.dir); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if _, err := w.Write(make([]byte, 10_000)); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	o.end()
	var i Info
	if o.told(&i); i.Problem == "" || i.Output != 1_000_000 || i.Dropped != i.Output {
		t.Errorf("%+v", i)
	}
}
