package hostfs

import (
	"fmt"
	"maps"
	"os"
	"testing"

	"pgregory.net/rapid"
)

// A follower has the state that reading all has, whatever was written between two
// looks: appended, written anew since a copy was full, damaged before it was first
// looked at, or replaced by another journal.
func TestAFollowerOfAJournalHasItsStateAfterAnyWrite(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "journal")
		if err != nil {
			r.Fatal(err)
		}
		f := JournalFollower{Dir: dir}
		if _, err := f.Read(); err == nil {
			r.Fatal("there is no journal yet")
		}
		j, err := OpenJournal(dir, 2000)
		if err != nil {
			r.Fatal(err)
		}
		defer func() { j.Close() }()
		for range rapid.IntRange(1, 20).Draw(r, "steps") {
			switch rapid.IntRange(0, 9).Draw(r, "what") {
			case 0: // another process has it, maybe after one that removed it
				j.Close()
				if rapid.Bool().Draw(r, "moved") {
					_ = os.Rename(copyPath(dir, 0), copyPath(dir, 0)+".old")
					_ = os.Rename(copyPath(dir, 1), copyPath(dir, 1)+".old")
				}
				if j, err = OpenJournal(dir, 2000); err != nil {
					r.Fatal(err)
				}
			case 1: // a byte is damaged; who had read it before still knows it
				f = JournalFollower{Dir: dir}
				at := copyPath(dir, rapid.IntRange(0, 1).Draw(r, "copy"))
				file, err := os.OpenFile(at, os.O_RDWR, 0)
				if err != nil {
					r.Fatal(err)
				}
				_, _ = file.WriteAt([]byte{0xa5}, int64(rapid.IntRange(0, 1999).Draw(r, "offset")))
				file.Close()
			default:
				e := Entry{Key: fmt.Sprint("k", rapid.IntRange(0, 4).Draw(r, "key"))}
				if rapid.IntRange(0, 3).Draw(r, "put") > 0 {
					e.Value = make([]byte, rapid.IntRange(0, 120).Draw(r, "length"))
				}
				_ = j.Append(e) // one that does not fit changes nothing
			}
			if rapid.Bool().Draw(r, "looks") {
				continue
			}
			got, err := f.Read()
			want, _, bad := ReadJournal(dir)
			if (err == nil) != (bad == nil) || !maps.EqualFunc(got, want, func(a, b []byte) bool { return string(a) == string(b) }) {
				r.Fatalf("%v %v, want %v %v", got, err, want, bad)
			}
		}
	})
}
