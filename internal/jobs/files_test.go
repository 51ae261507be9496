package jobs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hungfs"
)

// told collects what a reader tells.
type told struct {
	mu  sync.Mutex
	all map[string][]string
}

func (t *told) take(id string, _ time.Time, r Report, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := textOf(err)
	if r.Done != nil {
		text = fmt.Sprint(*r.Done)
	}
	if t.all == nil {
		t.all = map[string][]string{}
	}
	t.all[id] = append(t.all[id], text)
}

func (t *told) of(id string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.all[id]...)
}

// idle waits until nothing is read any more but what is late.
func (f *Files) idle(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		f.mu.Lock()
		active := f.active
		f.mu.Unlock()
		if active == 0 {
			return
		}
	}
	t.Fatal("it still reads")
}

// waits says whether all that is read now does not answer, and the job is not among it.
func (f *Files) waits(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	unanswered := 0
	for _, r := range f.pending {
		if !r.late {
			unanswered++
		}
	}
	return f.pending[id] == nil && f.active == unanswered
}

func TestAFileSystemThatDoesNotAnswerDelaysTheOtherFilesBySecondsAndOnce(t *testing.T) {
	fs, dir := hungfs.Mount(t), t.TempDir()
	sources := map[string]Source{"z": {Name: filepath.Join(dir, "z")}}
	if err := os.WriteFile(sources["z"].Name, []byte(`{"done": 0.5}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 3 * maxReads {
		sources[fmt.Sprintf("hung%02d", i)] = Source{Name: filepath.Join(fs.Dir, fmt.Sprint(i)), Strict: i%2 == 0}
	}
	var got told
	f := NewFiles(got.take)
	now := noon
	for i := 0; len(got.of("z")) == 0; i++ {
		if i > 10_000 {
			t.Fatal("z is never read")
		}
		f.Poll(now, sources)
		now = now.Add(lateAfter)
		for !f.waits("z") { // z does answer: on a slow machine after a while
			time.Sleep(time.Millisecond)
		}
	}
	f.Poll(now.Add(lateAfter), sources)
	f.idle(t)
	f.mu.Lock()
	if n := len(f.pending); n != f.late || n > maxReads+3 { // as many as began before the first was late
		t.Errorf("%d reads hang, %d late: want one directory to take no more once it does not answer", n, f.late)
	}
	var hung string
	for id := range f.pending {
		hung = id
	}
	f.mu.Unlock()
	if text := got.of(hung); len(text) != 1 || !strings.Contains(text[0], "has not answered for 5s") {
		t.Errorf("%s: %q", hung, text)
	}
	if err := os.WriteFile(sources["z"].Name, []byte(`{"done": 0.75}`), 0o600); err != nil {
		t.Fatal(err)
	}
	f.Poll(now.Add(2*lateAfter), sources)
	f.idle(t)
	if text := got.of("z"); len(text) != 2 || text[1] != "0.75" {
		t.Errorf("z: %q", text)
	}
	if err := fs.Release(); err != nil {
		t.Error(err)
	}
}

func TestAFileIsToldWhenItIsNewAndAProblemOnce(t *testing.T) {
	dir := t.TempDir()
	s := map[string]Source{"a": {Name: filepath.Join(dir, "a")}}
	var got told
	f := NewFiles(got.take)
	for i, text := range []string{"", `{"done": 0.5}`, "", "nonsense", "", `{"done": 0.75}`, "", "gone", `{"done": 0.8}`} {
		switch {
		case text == "gone":
			if err := os.Remove(s["a"].Name); err != nil {
				t.Fatal(err)
			}
		case text != "":
			if err := os.WriteFile(s["a"].Name+".new", []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(s["a"].Name+".new", s["a"].Name); err != nil {
				t.Fatal(err)
			}
		}
		f.Poll(noon.Add(time.Duration(i)*time.Second), s)
		f.idle(t)
	}
	text := got.of("a")
	if len(text) != 4 || text[0] != "0.5" || !strings.Contains(text[1], "not a JSON object") || text[2] != "0.75" || text[3] != "0.8" {
		t.Errorf("%q", text)
	}
}

func TestAFileThatAStrangerNamedIsReachedThroughNoLinkAndTellsNotWhetherItIsThere(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "secret", "in"), 0o700), os.WriteFile(filepath.Join(dir, "secret", "good"), []byte(`{"done": 0.5}`), 0o600),
		os.WriteFile(filepath.Join(dir, "secret", "large"), make([]byte, MaxFile+1), 0o600), os.Symlink(filepath.Join(dir, "secret"), filepath.Join(dir, "link")),
		os.Symlink("good", filepath.Join(dir, "secret", "last"))); err != nil {
		t.Fatal(err)
	}
	if _, err := (Source{Name: filepath.Join(dir, "secret", "good"), Strict: true}).Read(); err != nil {
		t.Fatal(err)
	}
	texts := map[string]bool{}
	for _, name := range []string{"link/good", "link/missing", "link/in", "link/large", "secret/large", "secret/last", "secret/in", "secret/missing", "missing/x"} {
		_, err := (Source{Name: filepath.Join(dir, name), Strict: true}).Read()
		if !errors.Is(err, trimtab.ErrInvalid) || errors.Is(err, os.ErrNotExist) {
			t.Fatalf("%s: %v", name, err)
		}
		texts[strings.ReplaceAll(err.Error(), name, "NAME")] = true
	}
	if len(texts) != 1 {
		t.Errorf("the errors differ: %v", texts)
	}
}

func TestWithoutOpenat2TheSameNamesAreReached(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700), os.WriteFile(filepath.Join(dir, "a", "b", "f"), nil, 0o600), os.Symlink("a", filepath.Join(dir, "l"))); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"a/b/f": true, "a/b": true, "l/b/f": false, "l": true, "a/b/f/x": false, "a/none": false} {
		for which, look := range map[string]func(string) (int, error){"openat2": lookStrictly, "stepwise": lookStepwise} {
			fd, err := look(filepath.Join(dir, name))
			if (err == nil) != want {
				t.Errorf("%s, %s: %v", which, name, err)
			}
			if err == nil {
				if err := os.NewFile(uintptr(fd), name).Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}
