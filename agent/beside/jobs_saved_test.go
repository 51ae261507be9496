package beside

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/bus/bustest"
	"github.com/trimtab/trimtab/planner/colocate"
)

// learnedWorld is a host on which something was learned, and what.
func learnedWorld(t *testing.T) (*jobWorld, []byte) {
	w := newJobWorld(t, "act", 2)
	w.pass(30, 20, 0.4)
	w.pass(1, 130, 0.6) // a miss: there is a ceiling
	return w, w.step.Snapshot()[colocate.SnapshotName]
}

func TestWhatAControllerFoundOutlivesItAndTheDiskOfItsHost(t *testing.T) {
	w, state := learnedWorld(t)
	memory := bustest.NewMemory()
	defer memory.Close()
	dir := t.TempDir()
	w.savedState = newSavedState(dir, "default", "h", memory)
	if err := w.close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, lose := range map[string]func(file string) error{
		"a restart":      func(string) error { return nil },
		"a lost disk":    os.Remove,
		"a damaged file": func(file string) error { return os.WriteFile(file, []byte("{"), 0o600) },
	} {
		if err := lose(filepath.Join(dir, thresholdsFile)); err != nil {
			t.Fatal(err)
		}
		next := newJobWorld(t, "act", 2)
		next.savedState = newSavedState(dir, "default", "h", memory)
		next.takeBack(t.Context())
		if diff := cmp.Diff(string(state), string(next.step.Snapshot()[colocate.SnapshotName])); diff != "" {
			t.Errorf("after %s: %s", name, diff)
		}
		if err := next.close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// errCut is what a bus says whose link is cut.
var errCut = errors.New("cut")

func TestWhileTheLinkIsCutTheFileAloneIsEnough(t *testing.T) {
	w, state := learnedWorld(t)
	cut := func(context.Context) (bus.Bucket, error) { return nil, errCut }
	w.savedState = &savedState{dir: t.TempDir(), open: cut}
	if err := w.close(t.Context()); !errors.Is(err, errCut) {
		t.Errorf("%v: want to hear that the copy is missing", err)
	}
	next := newJobWorld(t, "act", 2)
	next.savedState = w.savedState
	if err := next.savedState.load(t.Context(), func(b []byte) error { return next.step.Restore(colocate.SnapshotName, b) }); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(string(state), string(next.step.Snapshot()[colocate.SnapshotName])); diff != "" {
		t.Error(diff)
	}
}

func TestTheFirstStartHasNothingToTakeBackAndIsNoError(t *testing.T) {
	memory := bustest.NewMemory()
	defer memory.Close()
	k := newSavedState(t.TempDir(), "default", "h", memory)
	if err := k.load(t.Context(), func([]byte) error { t.Error("something is restored"); return nil }); err != nil {
		t.Error(err)
	}
}

// Each minute of the loop saves, beside the decisions.
func TestWhatIsFoundIsSavedEachMinute(t *testing.T) {
	w, _ := learnedWorld(t)
	memory := bustest.NewMemory()
	defer memory.Close()
	w.savedState = newSavedState(t.TempDir(), "default", "h", memory)
	file := filepath.Join(w.savedState.dir, thresholdsFile)
	w.pass(1, 20, 0.4)
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v: saved at the first decision", err)
	}
	w.now = w.now.Add(saveThresholds)
	w.pass(1, 20, 0.4)
	w.savedState.saving.running.Wait()
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}
