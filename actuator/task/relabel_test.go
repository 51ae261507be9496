package task

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
)

func TestATaskThatRunsGoesToAnotherClassWithAllThatItForked(t *testing.T) {
	each(t, func(t *testing.T, h *host) {
		r := h.open()
		fifo, read := h.fifo()
		// Forks without end, beside a process that forked away.
		id := h.start(h.sh(strings.ReplaceAll(away, "FIFO", fifo) + "while :; do /bin/true; done"))
		away := h.process(read())
		if err := r.Relabel(t.Context(), id, Regular); err != nil {
			t.Fatal(err)
		}
		if i := h.infoOf(id); i.Class != Regular || i.State != Running {
			t.Errorf("%v", i)
		}
		for _, root := range r.tree.all {
			old := filepath.Join(root.Path(), r.tree.path(Oversubscribed, leafOf(id)))
			if _, err := os.Stat(old); !os.IsNotExist(err) {
				t.Errorf("%s is there: %v", old, err)
			}
			text, err := os.ReadFile(filepath.Join(root.Path(), r.tree.path(Regular, leafOf(id)), "cgroup.procs"))
			if err != nil || len(strings.Fields(string(text))) < 2 {
				t.Errorf("%s: %q, %v", root.Path(), text, err)
			}
		}
		// It is frozen, thawed, taken back and killed there.
		if err := r.Freeze(t.Context(), id); err != nil {
			t.Error(err)
		}
		if err := r.Relabel(t.Context(), id, Oversubscribed); !isA(err, trimtab.ErrRefused) {
			t.Error(err)
		}
		if err := r.Thaw(t.Context(), id); err != nil {
			t.Error(err)
		}
		if err := r.Relabel(t.Context(), id, Oversubscribed); err != nil || h.infoOf(id).Class != Oversubscribed {
			t.Error(err)
		}
		if err := r.Relabel(t.Context(), id, "other"); !isA(err, trimtab.ErrInvalid) {
			t.Error(err)
		}
		if err := r.Relabel(t.Context(), id, Regular); err != nil {
			t.Error(err)
		}
		h.runner.known.tasks[id].spec.Limits.Grace = 1
		if info, err := r.Kill(t.Context(), id, ""); err != nil || info.Outcome != Killed || info.Class != Regular {
			t.Errorf("%+v, %v", info, err)
		}
		h.gone(away)
		h.empty()
	})
}

func TestATaskThatChangedItsClassTellsHowItEnded(t *testing.T) {
	each(t, func(t *testing.T, h *host) {
		r := h.open()
		fifo := filepath.Join(t.TempDir(), "go")
		id := h.start(h.sh("while ! test -e " + fifo + "; do /bin/true; done; exit 5"))
		if err := r.Relabel(t.Context(), id, Regular); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(fifo, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if i := h.wait(id); i.Outcome != Exited || i.Code != 5 || i.Class != Regular {
			t.Errorf("%+v", i)
		}
		h.empty()
	})
}
