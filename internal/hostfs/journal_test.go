package hostfs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
)

const testSize = 8 << 10

func openTest(t testing.TB, dir string) *Journal {
	t.Helper()
	j, err := OpenJournal(dir, testSize)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

// memoryDir is in memory where that is to be had: thousands of syncs are quick.
func memoryDir(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "trimtab-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// filled makes a journal with a few records, some replaced, some deleted.
func filled(t testing.TB) (dir string, want map[string][]byte) {
	t.Helper()
	dir = memoryDir(t)
	j := openTest(t, dir)
	for i := range 8 {
		if err := j.Append(Entry{fmt.Sprint("key", i%5), fmt.Appendf(nil, "value %d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Append(Entry{Key: "key4"}, Entry{"last", []byte("one")}); err != nil {
		t.Fatal(err)
	}
	want = contents(j)
	j.Close()
	return dir, want
}

// contents returns what the journal holds.
func contents(j *Journal) map[string][]byte {
	m := map[string][]byte{}
	for _, k := range j.Keys("") {
		m[k], _ = j.Get(k)
	}
	return m
}

func readState(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	state, _, err := ReadJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func TestAJournalIsAMapThatSurvivesReopening(t *testing.T) {
	base := memoryDir(t)
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp(base, "")
		if err != nil {
			r.Fatal(err)
		}
		want := map[string][]byte{}
		for range rapid.IntRange(1, 4).Draw(r, "lives") {
			j := openTest(t, dir)
			if !maps.EqualFunc(contents(j), want, func(a, b []byte) bool { return string(a) == string(b) }) {
				r.Fatalf("reopened: %s", cmp.Diff(want, contents(j)))
			}
			for range rapid.IntRange(0, 30).Draw(r, "appends") {
				k := fmt.Sprint("k", rapid.IntRange(0, 9).Draw(r, "key"))
				v := make([]byte, rapid.IntRange(0, 300).Draw(r, "length"))
				if rapid.IntRange(0, 4).Draw(r, "what") == 0 {
					delete(want, k)
					v = nil
				} else {
					want[k] = v
				}
				if err := j.Append(Entry{k, v}); err != nil {
					r.Fatal(err)
				}
			}
			j.Close()
		}
		if diff := cmp.Diff(want, readState(t, dir)); diff != "" {
			r.Fatal(diff)
		}
	})
}

func TestOneCopyCutAtAnyByteLosesNothing(t *testing.T) {
	dir, want := filled(t)
	whole, err := os.ReadFile(copyPath(dir, 0))
	if err != nil {
		t.Fatal(err)
	}
	_, _, end := scan(whole)
	for copy := range 2 {
		for cut := range end + 1 {
			if err := os.WriteFile(copyPath(dir, copy), whole[:cut], 0o600); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, readState(t, dir)); diff != "" {
				t.Fatalf("copy %d cut at %d: %s", copy, cut, diff)
			}
		}
		os.WriteFile(copyPath(dir, copy), whole, 0o600)
	}
}

func TestBothCopiesCutLoseOnlyWhatCameAfter(t *testing.T) {
	dir, _ := filled(t)
	whole, err := os.ReadFile(copyPath(dir, 0))
	if err != nil {
		t.Fatal(err)
	}
	records, _, end := scan(whole)
	for cut := range end + 1 {
		for i := range 2 {
			if err := os.WriteFile(copyPath(dir, i), whole[:cut], 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, at := map[string][]byte{}, 0
		for _, r := range records {
			if at += len(appendRecord(nil, r)); at > cut {
				break
			}
			if r.op == opDelete {
				delete(want, r.key)
			} else {
				want[r.key] = r.value
			}
		}
		j := openTest(t, dir)
		if diff := cmp.Diff(want, contents(j)); diff != "" {
			t.Fatalf("cut at %d: %s", cut, diff)
		}
		if err := j.Append(Entry{"more", []byte("x")}); err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		j.Close()
		want["more"] = []byte("x")
		if diff := cmp.Diff(want, readState(t, dir)); diff != "" {
			t.Fatalf("cut at %d and appended: %s", cut, diff)
		}
	}
}

func TestAnyFlippedBitLosesNothingAndIsCounted(t *testing.T) {
	dir, want := filled(t)
	whole, err := os.ReadFile(copyPath(dir, 0))
	if err != nil {
		t.Fatal(err)
	}
	_, _, end := scan(whole)
	for bit := range end * 8 {
		flipped := append([]byte{}, whole...)
		flipped[bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(copyPath(dir, bit%2), flipped, 0o600); err != nil {
			t.Fatal(err)
		}
		state, damaged, err := ReadJournal(dir)
		if err != nil || damaged.Places == 0 || !cmp.Equal(want, state) {
			t.Fatalf("bit %d: damage %+v, %v, %s", bit, damaged, err, cmp.Diff(want, state))
		}
		os.WriteFile(copyPath(dir, bit%2), whole, 0o600)
	}
}

func TestALostCopyIsMadeAgain(t *testing.T) {
	dir, want := filled(t)
	if err := os.Remove(copyPath(dir, 0)); err != nil {
		t.Fatal(err)
	}
	j := openTest(t, dir)
	want["new"] = []byte("x")
	if err := j.Append(Entry{"new", []byte("x")}); err != nil {
		t.Fatal(err)
	}
	j.Close()
	if err := os.Remove(copyPath(dir, 1)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, readState(t, dir)); diff != "" {
		t.Errorf("from the new copy alone: %s", diff)
	}
}

// faulty is a copy whose writes fail, or stop half way, when told to.
type faulty struct {
	storage
	fail func(b []byte) (keep int, err error)
}

func (f *faulty) WriteAt(b []byte, at int64) (int, error) {
	keep, err := f.fail(b)
	if err == nil {
		return f.storage.WriteAt(b, at)
	}
	n, _ := f.storage.WriteAt(b[:keep], at)
	return n, err
}

// Sync does nothing: the machine is not stopped in these tests.
func (f *faulty) Sync() error { return nil }

// What was acknowledged is there, what was not is old or new, and every file
// can be read; about 3,000 faults in random places.
func TestTornWritesLeaveTheOldValueOrTheNew(t *testing.T) {
	base := memoryDir(t)
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp(base, "")
		if err != nil {
			r.Fatal(err)
		}
		j := openTest(t, dir)
		for i := range j.copies {
			j.copies[i].file = &faulty{storage: j.copies[i].file, fail: func(b []byte) (int, error) {
				if rapid.IntRange(0, 3).Draw(r, "fault") < 3 {
					return 0, nil
				}
				return rapid.IntRange(0, len(b)).Draw(r, "kept"), syscall.EIO
			}}
		}
		acknowledged, tried := map[string]string{}, map[string]map[string]bool{}
		for i := range 60 {
			k, v := fmt.Sprint("k", i%4), fmt.Sprint("v", i)
			err := j.Append(Entry{k, []byte(v)})
			if err != nil {
				if tried[k] == nil {
					tried[k] = map[string]bool{}
				}
				tried[k][v] = true
				continue
			}
			acknowledged[k] = v
			delete(tried, k)
		}
		j.Close()
		state := readState(t, dir)
		for k, v := range acknowledged {
			if got := string(state[k]); got != v && !tried[k][got] {
				r.Fatalf("%s is %q, acknowledged %q, tried since %v", k, got, v, tried[k])
			}
		}
	})
}

// Keys that come and go for ever, as instances of a service do, with faults in a
// third of the changes: what was deleted does not come back, and does not fill it.
func TestKeysThatComeAndGoNeitherComeBackNorFillTheJournal(t *testing.T) {
	base := memoryDir(t)
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp(base, "")
		if err != nil {
			r.Fatal(err)
		}
		j := openTest(t, dir)
		broken := -1
		for i := range j.copies {
			j.copies[i].file = &faulty{storage: j.copies[i].file, fail: func(b []byte) (int, error) {
				if i != broken {
					return 0, nil
				}
				return rapid.IntRange(0, len(b)).Draw(r, "kept"), syscall.EIO
			}}
		}
		change := func(e Entry) {
			// One copy at a time; where the other has no room for more, it is refused
			// until the disk works again.
			if broken = rapid.IntRange(-4, 1).Draw(r, "broken"); j.Append(e) == nil {
				return
			}
			broken = -1
			if err := j.Append(e); err != nil {
				r.Fatal(err)
			}
		}
		there := map[string]string{}
		for i := range 300 {
			k, v := fmt.Sprint("instance", i), fmt.Sprint("v", i, string(make([]byte, 300)))
			change(Entry{k, []byte(v)})
			there[k] = v
			if old := fmt.Sprint("instance", i-3); there[old] != "" {
				change(Entry{Key: old})
				delete(there, old)
			}
			if i%50 != 49 {
				continue
			}
			state := readState(t, dir)
			if len(state) != len(there) {
				r.Fatalf("after %d there are %d keys, want %d", i, len(state), len(there))
			}
			for k, v := range there {
				if string(state[k]) != v {
					r.Fatalf("after %d %s is lost", i, k)
				}
			}
		}
	})
}

func TestAFullDiskStopsNothing(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("cannot mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	j := openTest(t, filepath.Join(dir, "journal"))
	fill, err := os.Create(filepath.Join(dir, "fill"))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = fill.Write(make([]byte, 4096))
	}
	fill.Close()
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	for i := range 1000 {
		if err := j.Append(Entry{fmt.Sprint("k", i%7), make([]byte, 100)}); err != nil {
			t.Fatalf("append %d: %v", i, err)
		}
	}
	j.Close()
	again := openTest(t, filepath.Join(dir, "journal"))
	if len(contents(again)) != 7 {
		t.Errorf("%d keys, want 7", len(contents(again)))
	}
	if _, err := OpenJournal(filepath.Join(dir, "other"), testSize); err == nil {
		t.Error("a journal was made on a full disk")
	}
}

func TestAJournalThatWasRemovedIsNotWrittenTo(t *testing.T) {
	dir := t.TempDir()
	j := openTest(t, dir)
	if err := os.Remove(copyPath(dir, 0)); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(Entry{"a", []byte("1")}); err != nil {
		t.Errorf("with one copy left: %v", err)
	}
	if err := os.Rename(copyPath(dir, 1), copyPath(dir, 0)); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(Entry{"b", []byte("1")}); err == nil {
		t.Error("it wrote to files that nobody finds")
	}
}

func TestWhatDoesNotFitIsRefusedAndChangesNothing(t *testing.T) {
	dir := t.TempDir()
	j := openTest(t, dir)
	if err := j.Append(Entry{"a", []byte("1")}); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(Entry{"a", make([]byte, testSize)}); !errors.Is(err, trimtab.ErrRefused) {
		t.Errorf("error %v, want refused", err)
	}
	if err := j.Append(Entry{"a", make([]byte, MaxRecord)}); !errors.Is(err, trimtab.ErrInvalid) {
		t.Errorf("error %v, want invalid", err)
	}
	if v, _ := j.Get("a"); string(v) != "1" {
		t.Errorf("a is %q", v)
	}
	if err := j.Append(Entry{"a", []byte("2")}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestAWriteThatStopsAnywhereMakesNoRecordOfAnOldBody(t *testing.T) {
	before := appendRecord(nil, record{op: opPut, number: 1, key: "knob/a", value: []byte("1.4")})
	after := appendRecord(nil, record{op: opPut, number: 2, key: "knob/b", value: []byte("2.5")})
	for kept := range after {
		torn := append(slices.Clone(after[:kept]), before[kept:]...)
		records, _, _ := scan(torn)
		for _, r := range records {
			if r.number != 1 || r.key != "knob/a" {
				t.Errorf("with %d bytes of the second, the first became %d of %s", kept, r.number, r.key)
			}
		}
	}
}

func TestRecordsOfEarlierBuildsAreRead(t *testing.T) {
	b := []byte("tjr1\x01\x07\x00\x00\x00\x00\x00\x00\x00\x01\x00\x02\x00\x00\x00")
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli()))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum([]byte("kvv"), castagnoli()))
	records, damaged, _ := scan(append(b, "kvv"...))
	if len(records) != 1 || damaged > 0 || records[0].number != 7 || records[0].key != "k" || string(records[0].value) != "vv" {
		t.Errorf("%+v, %d damaged", records, damaged)
	}
}

func FuzzJournalIsTotal(f *testing.F) {
	dir, _ := filled(f)
	whole, err := os.ReadFile(copyPath(dir, 0))
	if err != nil {
		f.Fatal(err)
	}
	_, _, end := scan(whole)
	f.Add(whole[:end], whole[:end/2])
	f.Add([]byte("tjr2tjr1tjr2"), []byte{})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var j Journal
		j.load(&[2]copyContent{{bytes: a}, {bytes: b}})
		for k, v := range contents(&j) {
			if len(k)+len(v) > MaxRecord {
				t.Errorf("key %q has %d bytes", k, len(v))
			}
		}
	})
}

func BenchmarkAppendWithSync(b *testing.B) {
	j := openTest(b, b.TempDir())
	v := make([]byte, 200)
	for b.Loop() {
		if err := j.Append(Entry{"position", v}, Entry{"knob/cpu/w", v}); err != nil {
			b.Fatal(err)
		}
	}
}
