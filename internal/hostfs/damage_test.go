package hostfs

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/metrics"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/trial"
)

// damages are what may become of a file.
var damages = map[string]func(random *rand.Rand, path string) error{
	"zeros": func(_ *rand.Rand, path string) error { return rewrite(path, func(b []byte) { clear(b) }) },
	"noise": func(random *rand.Rand, path string) error {
		return rewrite(path, func(b []byte) {
			for i := range b {
				b[i] = byte(random.Uint32())
			}
		})
	},
	"cut to nothing": func(_ *rand.Rand, path string) error { return os.Truncate(path, 0) },
	"huge":           func(_ *rand.Rand, path string) error { return os.Truncate(path, 1<<40) },
	"removed":        func(_ *rand.Rand, path string) error { return nil },
	"directory":      func(_ *rand.Rand, path string) error { return os.Mkdir(path, 0o700) },
	"full directory": func(_ *rand.Rand, path string) error {
		return errors.Join(os.Mkdir(path, 0o700), os.WriteFile(filepath.Join(path, "x"), nil, 0o600))
	},
	"pipe":           func(_ *rand.Rand, path string) error { return syscall.Mkfifo(path, 0o600) },
	"endless device": func(_ *rand.Rand, path string) error { return os.Symlink("/dev/zero", path) },
	"broken link":    func(_ *rand.Rand, path string) error { return os.Symlink("none", path) },
	"loop":           func(_ *rand.Rand, path string) error { return os.Symlink(filepath.Base(path), path) },
	"link to a file": func(_ *rand.Rand, path string) error { return os.Symlink("precious", path) },
}

func rewrite(path string, change func(b []byte)) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	change(b)
	return os.WriteFile(path, b, 0o600)
}

// damage does it; what is no change of the file itself is in its place.
func damage(t *testing.T, random *rand.Rand, kind, path string) {
	t.Helper()
	switch kind {
	case "zeros", "noise", "cut to nothing", "huge":
	default:
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if err := damages[kind](random, path); err != nil {
		t.Fatal(err)
	}
}

// allocated is how many bytes this process has allocated, ever.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// Whatever became of either copy or of both, a journal is read in bounded memory, says
// what is wrong, follows no link to write, and can be opened and used again.
func TestWhateverBecameOfItsFilesAJournalIsReadInBoundedMemoryAndSaysWhatIsWrong(t *testing.T) {
	tr := trial.Start(t, trial.Some(30, 90))
	random := tr.Rand
	const precious = "a file of somebody else's"
	for first := range damages {
		for second := range damages {
			for _, both := range []bool{false, true} {
				if !both && first != second || first > second {
					continue
				}
				if both && first != second && random.IntN(90) >= tr.N {
					continue // `make test` tries a third of the pairs
				}
				tr.Case()
				t.Run(fmt.Sprint(first, ", ", second, " ", both), func(t *testing.T) {
					dir, want := filled(t)
					follower := JournalFollower{Dir: dir}
					if _, err := follower.Read(); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(filepath.Join(dir, "precious"), []byte(precious), 0o600); err != nil {
						t.Fatal(err)
					}
					damage(t, random, first, copyPath(dir, 0))
					if both {
						damage(t, random, second, copyPath(dir, 1))
					}
					before := allocated()
					state, found, err := ReadJournal(dir)
					_, bad := follower.Read()
					if used := allocated() - before; used > 256<<20 {
						t.Errorf("%d MiB were allocated", used>>20)
					}
					gone := first != "removed" && first != "broken link" || second != "removed" && second != "broken link"
					switch lost := both && !(first == "huge" || second == "huge"); {
					case !lost && (err != nil || bad != nil || found.Places == 0 && !both || !cmp.Equal(want, state)):
						t.Errorf("read with one copy left: %v, %v, damage %+v: %s", err, bad, found, cmp.Diff(want, state))
					case lost && gone && (!errors.Is(err, ErrUnreadable) || bad == nil || !found.Lost || len(found.Words) != 2):
						t.Errorf("read with no copy left: %v, damage %+v", err, found)
					case lost && !gone && !errors.Is(err, os.ErrNotExist):
						t.Errorf("read with no copy left: %v", err)
					}
					usable(t, dir, both && !(first == "huge" || second == "huge"), want)
					if b, err := os.ReadFile(filepath.Join(dir, "precious")); err != nil || string(b) != precious {
						t.Errorf("a link was written through: %q, %v", b, err)
					}
				})
			}
		}
	}
}

func TestACopyThatIsDamagedIsWholeAgainOnceTheJournalIsOpened(t *testing.T) {
	for i := range 2 {
		dir, want := filled(t)
		if err := rewrite(copyPath(dir, i), func(b []byte) { copy(b[8:], "half of a record") }); err != nil {
			t.Fatal(err)
		}
		if _, found, err := ReadJournal(dir); err != nil || found.Places == 0 {
			t.Fatalf("copy %d: %+v, %v", i, found, err)
		}
		if j := openTest(t, dir); j.Damaged() == 0 {
			t.Errorf("copy %d: who opened it is told of no damage", i)
		}
		state, found, err := ReadJournal(dir)
		if err != nil || found.Places > 0 || !cmp.Equal(want, state) {
			t.Errorf("copy %d: %+v, %v, %s", i, found, err, cmp.Diff(want, state))
		}
	}
}

// usable opens the journal again and uses it.
func usable(t *testing.T, dir string, lost bool, want map[string][]byte) {
	t.Helper()
	j, err := OpenJournal(dir, testSize)
	if err != nil {
		t.Fatal(err)
	}
	if got := contents(j); !lost && !cmp.Equal(want, got) {
		t.Error(cmp.Diff(want, got))
	}
	if err := errors.Join(j.Append(Entry{"new", []byte("value")}), j.Close()); err != nil {
		t.Fatal(err)
	}
	for i := range 2 { // each copy by itself, a second time without damage but what lies in between
		alone := t.TempDir()
		b, err := ReadFile(copyPath(dir, i), maxJournal)
		if err == nil {
			err = os.WriteFile(copyPath(alone, i), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if state, _, err := ReadJournal(alone); err != nil || string(state["new"]) != "value" {
			t.Errorf("copy %d alone: %v, %v", i, state, err)
		}
	}
}

func TestAJournalThatIsNewHasNoDamageAndOneOfZerosIsUnreadable(t *testing.T) {
	dir := memoryDir(t)
	j := openTest(t, dir)
	j.Close()
	state, found, err := ReadJournal(dir)
	if err != nil || len(state) != 0 || found.Places != 0 || j.Damaged() != 0 {
		t.Errorf("a new journal: %v, damage %+v, %v", state, found, err)
	}
	for i := range 2 {
		damage(t, nil, "zeros", copyPath(dir, i))
	}
	if _, _, err := ReadJournal(dir); !errors.Is(err, ErrUnreadable) {
		t.Errorf("zeros only: %v", err)
	}
	if j := openTest(t, dir); !j.Damage().Lost {
		t.Errorf("opened: %+v", j.Damage())
	}
}

func TestAFileIsReadUpToItsLimitAndNothingElseIsOpened(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := ReadFile(path, 5); err != nil || string(b) != "12345" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := ReadFile(path, 4); !errors.Is(err, trimtab.ErrInvalid) {
		t.Errorf("a longer one: %v", err)
	}
	if _, err := ReadFile(filepath.Join(dir, "none"), 4); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
	for kind := range damages {
		switch kind {
		case "pipe", "endless device", "directory":
			damage(t, nil, kind, path)
			if _, err := ReadFile(path, 5); !errors.Is(err, trimtab.ErrInvalid) {
				t.Errorf("%s: %v", kind, err)
			}
		}
	}
}
