package record

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/leak"
	"github.com/trimtab/trimtab/internal/metric"
	"github.com/trimtab/trimtab/quantity"
)

func TestMain(m *testing.M) { leak.Main(m) }

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func at(i int) time.Time { return noon.Add(time.Duration(i) * time.Millisecond) }

// echo is a step that numbers what it is given, and keeps the number.
type echo struct{ n int }

func (e *echo) Step(now time.Time, in trimtab.Value) []trimtab.Value {
	if in == nil {
		return nil
	}
	e.n++
	return []trimtab.Value{&trimtab.Estimate{Workload: in.Key(), Time: now, Reports: e.n, Model: "echo"}}
}
func (e *echo) Snapshot() map[string][]byte { return map[string][]byte{"n": fmt.Append(nil, e.n)} }
func (e *echo) Restore(_ string, state []byte) error {
	_, err := fmt.Sscan(string(state), &e.n)
	return err
}

func sample(i int) *trimtab.Sample {
	return &trimtab.Sample{Workload: fmt.Sprintf("w%d", i), Quantity: quantity.Load, Source: "test", Time: at(i), Value: float64(i)}
}

func start(t *testing.T, c Config) *Recorder {
	t.Helper()
	if c.Metrics == nil {
		c.Metrics = metric.NewSet()
	}
	r, err := Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// record feeds n samples through a tapped step and closes.
func record(t *testing.T, c Config, n int) {
	t.Helper()
	r := start(t, c)
	tap := NewTap("learn", &echo{}, func() *Recorder { return r })
	for i := range n {
		tap.Step(at(i), sample(i))
		tap.Step(at(i), nil)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

func readAll(t *testing.T, path string) ([]*Line, *Reader) {
	t.Helper()
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var lines []*Line
	for {
		l, err := r.Next()
		if errors.Is(err, io.EOF) {
			return lines, r
		}
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
}

// replay runs the inputs through a fresh step and compares what comes out.
func replay(t *testing.T, lines []*Line) (outputs int) {
	t.Helper()
	step := &echo{}
	var due []trimtab.Value
	for _, l := range lines {
		if l.Role != Out {
			if len(due) > 0 {
				t.Fatalf("%d outputs were not recorded", len(due))
			}
			var err error
			if due, err = l.Apply(step); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if len(due) == 0 {
			t.Fatalf("recorded %s, replay gives nothing", l.Raw)
		}
		b, err := json.Marshal(due[0])
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(b, l.Raw) {
			t.Fatalf("recorded %s, replay gives %s", l.Raw, b)
		}
		due = due[1:]
		outputs++
	}
	return outputs
}

func TestWhatWasRecordedGivesTheSameBytesAgain(t *testing.T) {
	dir := t.TempDir()
	record(t, Config{Dir: dir, SegmentBytes: 4 << 10, Build: "v9", Digest: "sha256:abc"}, 500)
	lines, r := readAll(t, dir)
	if n := replay(t, lines); n != 500 {
		t.Errorf("%d outputs, want 500", n)
	}
	if h := r.Header(); h.Build != "v9" || h.Config != "sha256:abc" || h.Recording != Version {
		t.Errorf("header %+v", h)
	}
	if c := r.Counts(); c.Damaged != 0 || c.Lost != 0 || c.Segments < 10 || c.Lines != 1501 {
		t.Errorf("counts %+v", c)
	}
	if lines[0].Role != Begin || !lines[0].Fresh {
		t.Errorf("begins with %+v", lines[0])
	}
}

func TestAStepThatRunsAlreadyIsRecordedFromItsSnapshot(t *testing.T) {
	dir := t.TempDir()
	var r *Recorder
	tap := NewTap("learn", &echo{}, func() *Recorder { return r })
	for i := range 7 {
		tap.Step(at(i), sample(i))
	}
	r = start(t, Config{Dir: dir})
	tap.Step(at(8), sample(8))
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	lines, _ := readAll(t, dir)
	if lines[0].Fresh || replay(t, lines) != 1 {
		t.Errorf("begins with %+v", lines[0])
	}
}

func TestARestoredStateIsPartOfTheRecording(t *testing.T) {
	dir := t.TempDir()
	r := start(t, Config{Dir: dir})
	tap := NewTap("learn", &echo{}, func() *Recorder { return r })
	if err := tap.Restore("n", []byte("41")); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Hour).UTC()
	tap.Step(later, sample(1))
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	lines, _ := readAll(t, dir)
	if replay(t, lines) != 1 || lines[len(lines)-1].Value.(*trimtab.Estimate).Reports != 42 {
		t.Errorf("lines %v", lines)
	}
}

func TestARecordingCutAtAnyByteIsReadableUpToThere(t *testing.T) {
	dir := t.TempDir()
	record(t, Config{Dir: dir}, 3)
	have, err := files(dir)
	if err != nil || len(have) != 1 {
		t.Fatal(have, err)
	}
	zipped, err := os.ReadFile(have[0].path)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(t.TempDir(), "trimtab-00000001.ndjson")
	for n := range whole {
		if err := os.WriteFile(cut, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		lines, r := readAll(t, cut)
		complete := bytes.Count(whole[:n], []byte("\n"))
		damaged := min(1, n-(bytes.LastIndexByte(whole[:n], '\n')+1))
		if len(lines) != max(0, complete-1) || r.Counts().Damaged != damaged {
			t.Fatalf("cut at %d: %d lines, %d damaged, want %d and %d", n, len(lines), r.Counts().Damaged, complete-1, damaged)
		}
	}
	for n := range zipped {
		if err := os.WriteFile(cut+".gz", zipped[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, r := readAll(t, cut+".gz"); r.Counts().Damaged == 0 {
			t.Fatalf("packed and cut at %d of %d: nothing was said", n, len(zipped))
		}
	}
}

func TestDamagedLinesAreCountedAndPassedOver(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "trimtab-00000001.ndjson")
	good := `{"received":"2026-03-04T12:00:00Z","stage":"learn","role":"tick"}`
	text := strings.Join([]string{`{"trimtab_recording":1}`, good, "nonsense", `{}`, `null`, "", strings.Replace(good, "tick", "tock", 1),
		strings.Replace(good, `"tick"`, `"in","kind":"sample","version":1,"value":{"workload":"w"}`, 1),
		strings.Replace(good, `"tick"`, `"in","kind":"sample","version":2,"value":{}`, 1),
		strings.Replace(good, `"tick"`, `"in","kind":"spans","version":1,"value":{}`, 1),
		strings.Repeat("x", maxLine+1), good}, "\n") + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	lines, r := readAll(t, dir)
	if c := r.Counts(); len(lines) != 2 || c.Damaged != 9 {
		t.Errorf("%d lines, %+v", len(lines), c)
	}
}

func TestARecordingOfANewerFormIsNotGuessedAt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trimtab-00000001.ndjson")
	if err := os.WriteFile(path, []byte("{\"trimtab_recording\":2}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Next(); !errors.Is(err, trimtab.ErrUnsupported) {
		t.Errorf("%v", err)
	}
}

func TestTheOldestSegmentsGoWhenTheSpaceIsUsedUp(t *testing.T) {
	dir := t.TempDir()
	const most = 64 << 10
	record(t, Config{Dir: dir, MaxBytes: most, SegmentBytes: 8 << 10}, 3500)
	var sum int64
	have, err := files(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range have {
		sum += f.size
	}
	if sum > most || have[0].number == 1 {
		t.Errorf("%d bytes of %d, segments %d to %d", sum, most, have[0].number, have[len(have)-1].number)
	}
	lines, r := readAll(t, dir)
	if last := lines[len(lines)-1]; !last.Received.Equal(at(3499)) || r.Counts().Damaged != 0 {
		t.Errorf("the newest line is of %v", last.Received)
	}
}

func TestASecondLifeGoesOnInTheNextSegmentAndPacksTheFirst(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, "trimtab-00000007.ndjson")
	text := "{\"trimtab_recording\":1}\n{\"received\":\"2026-03-04T11:00:00Z\",\"stage\":\"learn\",\"role\":\"tick\"}\n{\"rec"
	if err := errors.Join(os.WriteFile(left, []byte(text), 0o600), os.WriteFile(filepath.Join(dir, "trimtab-00000006.ndjson.gz.part"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	record(t, Config{Dir: dir}, 1)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{"trimtab-00000007.ndjson.gz", "trimtab-00000008.ndjson.gz"}, names); diff != "" {
		t.Error(diff)
	}
	if lines, r := readAll(t, dir); len(lines) != 5 || r.Counts().Damaged != 1 {
		t.Errorf("%d lines, %+v", len(lines), r.Counts())
	}
}

func TestTwoStagesAreReadInOrderOfTime(t *testing.T) {
	dir := t.TempDir()
	r := start(t, Config{Dir: dir, SegmentBytes: 2 << 10})
	a, b := NewTap("a", &echo{}, func() *Recorder { return r }), NewTap("b", &echo{}, func() *Recorder { return r })
	for i := range 100 {
		b.Step(at(2*i+1), sample(i)) // comes before what is older
		a.Step(at(2*i), sample(i))
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	lines, _ := readAll(t, dir)
	for i := 1; i < len(lines); i++ {
		if lines[i].Received.Before(lines[i-1].Received) {
			t.Fatalf("line %d is of %v, after %v", i, lines[i].Received, lines[i-1].Received)
		}
	}
	var one []*Line
	for _, l := range lines {
		if l.Stage == "a" {
			one = append(one, l)
		}
	}
	if replay(t, one) != 100 {
		t.Error("stage a lost its order")
	}
}

func TestWhatCannotBeWrittenIsCountedAndSaid(t *testing.T) {
	dir := t.TempDir()
	set := metric.NewSet()
	r := start(t, Config{Dir: dir, SegmentBytes: 2 << 10, Metrics: set})
	tap := NewTap("learn", &echo{}, func() *Recorder { return r })
	tap.Step(at(1), sample(1))
	huge := sample(2)
	huge.Missing, huge.Value = strings.Repeat("x", 4<<10), 0
	tap.Step(at(2), huge)
	tap.Step(at(3), sample(3))
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	_, in := readAll(t, dir)
	if n := testutil.ToFloat64(set.Counter("trimtab_exporter_dropped_total", "record")); n != 1 || in.Counts().Lost != 1 {
		t.Errorf("%v dropped, %d said to be lost, want 1", n, in.Counts().Lost)
	}
}

func TestABrokenDiskStopsNoStep(t *testing.T) {
	set := metric.NewSet()
	dir := filepath.Join(t.TempDir(), "gone")
	r := start(t, Config{Dir: dir, SegmentBytes: 1 << 10, Metrics: set})
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	tap := NewTap("learn", &echo{}, func() *Recorder { return r })
	for i := range 3 * queued {
		if out := tap.Step(at(i), sample(i)); len(out) != 1 {
			t.Fatal("the step gave nothing")
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if n := testutil.ToFloat64(set.Counter("trimtab_exporter_dropped_total", "record")); n < 3*queued-10 {
		t.Errorf("%v dropped, want nearly all of %d", n, 3*queued)
	}
}

func TestSettingsThatCannotBeKeptAreRefused(t *testing.T) {
	for _, c := range []Config{{}, {Dir: t.TempDir()}, {Dir: t.TempDir(), Metrics: metric.NewSet(), MaxBytes: 1 << 20, SegmentBytes: 1 << 20}} {
		if _, err := Start(c); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, err := Open(t.TempDir()); !errors.Is(err, trimtab.ErrInvalid) {
		t.Errorf("an empty directory: %v", err)
	}
}

func FuzzARecordingIsReadWithoutHarm(f *testing.F) {
	f.Add([]byte("{\"trimtab_recording\":1}\n{\"received\":\"2026-03-04T11:00:00Z\",\"stage\":\"learn\",\"role\":\"tick\"}\n"), false)
	f.Add([]byte("{\"received\":\"2026-03-04T11:00:00Z\",\"stage\":\"p\",\"role\":\"in\",\"kind\":\"leader\",\"version\":1,\"value\":{\"pool\":\"p\",\"epoch\":1}}\n"), false)
	f.Add([]byte{0x1f, 0x8b, 8, 0}, true)
	f.Fuzz(func(t *testing.T, data []byte, zipped bool) {
		s := newScanner(bytes.NewReader(data), zipped)
		for {
			b, ok := s.next()
			if !ok {
				return
			}
			l, err := decode(b)
			if err != nil {
				if !errors.Is(err, trimtab.ErrInvalid) {
					t.Fatalf("error of no kind: %v", err)
				}
				continue
			}
			if (l.Role == In || l.Role == Out) != (l.Value != nil) || l.Value != nil && l.Value.Validate() != nil {
				t.Fatalf("line %+v", l)
			}
			if _, err := l.encode(); err != nil && !errors.Is(err, trimtab.ErrInvalid) {
				t.Fatal(err)
			}
		}
	})
}
