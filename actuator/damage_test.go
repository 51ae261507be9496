package actuator_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/proctest"
)

// growFile has the process that removes it from the directory of its knobs take memory
// without end, where the environment allows that.
const growFile = "grow"

func grow(dir string) {
	if os.Getenv("TEST_GROW") == "" || os.Remove(filepath.Join(dir, growFile)) != nil {
		return
	}
	debug.SetTraceback("none")
	for all := [][]byte{}; ; runtime.KeepAlive(all) {
		b := make([]byte, 1<<20)
		for i := range b {
			b[i] = 1
		}
		if all = append(all, b); len(all) > 1000 {
			panic("there is no limit")
		}
	}
}

// at says whether all knobs are at them.
func (h *host) at(baselines ...trimtab.Amount) error {
	for i, k := range h.knobs {
		if v, err := k.Read(h.t.Context()); err != nil || v != baselines[i] {
			return fmt.Errorf("w%d holds %v, %v", i, v, err)
		}
	}
	return nil
}

func TestAWatchdogWhoseMemoryGrowsEndsAndIsStartedAgain(t *testing.T) {
	t.Parallel()
	h, baselines := fallen(t)
	cmd := h.start(3, baselines, "TEST_ONCE=1", "TEST_GROW=1")
	before := h.dogs()
	if err := errors.Join(os.WriteFile(filepath.Join(h.dir, growFile), nil, 0o600), cmd.Process.Signal(syscall.SIGSTOP)); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error { return h.at(baselines...) })
	// The actuator is stopped: the other watchdog starts it.
	eventually(t, func() error {
		now := proctest.With(h.config.Dir)
		stayed := slices.DeleteFunc(slices.Clone(now), func(pid int) bool { return !slices.Contains(before, pid) })
		if len(now) != 2 || len(stayed) != 1 {
			return fmt.Errorf("watchdogs were %v and are %v", before, now)
		}
		return nil
	})
	cmd.Process.Signal(syscall.SIGKILL)
	cmd.Wait()
	eventually(t, noneLeft(h.dir))
}

func TestARestoreFromAJournalThatCannotBeReadSaysSoAndNeverThatAllIsWell(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"zeros":     func(path string) error { return os.WriteFile(path, make([]byte, 64<<10), 0o600) },
		"noise":     func(path string) error { return os.WriteFile(path, []byte("noise"), 0o600) },
		"cut":       func(path string) error { return os.Truncate(path, 0) },
		"directory": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
		"device":    func(path string) error { return errors.Join(os.Remove(path), os.Symlink("/dev/zero", path)) },
		"pipe":      func(path string) error { return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)) },
	} {
		h := newHost(t, units(2)).open()
		h.statuses(h.plan(1, 1, set(0, units(2), units(1))))
		h.crash()
		for i := range 2 {
			if err := damage(filepath.Join(h.config.Dir, fmt.Sprint("journal.", i))); err != nil {
				t.Fatal(err)
			}
		}
		r, err := actuator.Restore(t.Context(), h.config.Dir, reopen)
		if !errors.Is(err, hostfs.ErrUnreadable) || len(r.Items) > 0 {
			t.Errorf("%s: restored %v, error %v", name, r, err)
		}
		if err != nil && (!strings.Contains(err.Error(), "copy 0 ") || !strings.Contains(err.Error(), "copy 1 ")) {
			t.Errorf("%s: nothing said of a copy: %v", name, err)
		}
		if all := actuator.Written(h.config.LockDir, h.config.Dir); len(all) != 1 || !strings.Contains(all[0], "w0: "+h.knobs[0].Path) {
			t.Errorf("%s: turned last: %q", name, all)
		}
		h.want(units(1)) // which nobody knows anything of
		h.open()         // and an actuator starts on it all the same
		h.statuses(h.plan(2, 1, set(0, units(1), units(3))))
	}
}

func TestAWatchdogWhoseJournalIsLostRestoresWhatItHadReadOfIt(t *testing.T) {
	for name, lose := range map[string]func(path string) error{
		"zeros":   func(path string) error { return os.WriteFile(path, make([]byte, 64<<10), 0o600) },
		"removed": os.Remove,
		"device":  func(path string) error { return errors.Join(os.Remove(path), os.Symlink("/dev/zero", path)) },
	} {
		h := newHost(t, units(2)).open()
		h.statuses(h.plan(1, 1, set(0, units(2), units(1))))
		look, restore := actuator.Watch(h.config.Dir, "another boot", reopen)
		look(t.Context())
		h.crash()
		h.put(h.knobs[0], units(1))
		for i := range 2 {
			if err := lose(filepath.Join(h.config.Dir, fmt.Sprint("journal.", i))); err != nil {
				t.Fatal(err)
			}
		}
		if r, err := restore(t.Context()); err != nil || len(r.Items) != 1 {
			t.Errorf("%s: %v, %v", name, r, err)
		}
		h.want(units(2))
	}
}
