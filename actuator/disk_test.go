package actuator_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/trial"
)

// fillDisk takes what is left of a file system, but for some bytes.
func fillDisk(t *testing.T, dir string, but int) {
	t.Helper()
	name := filepath.Join(dir, "fill")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size := 0
	for err == nil {
		var n int
		n, err = f.Write(make([]byte, 4096))
		size += n
	}
	if err := os.Truncate(name, int64(max(0, size-but))); err != nil {
		t.Fatal(err)
	}
}

// R17: on a file system of 8 MiB the disk fills at any time, the last write of a
// journal is torn, or a bit of it flips, again and again, between kills. Without
// a journal nothing is written; what was written is restored, on the full disk.
// The times are those of a restore.
func TestFaultsOfTheDiskLeaveEveryBaselineToBeRestored(t *testing.T) {
	tr := trial.Start(t, trial.Some(16, 50))
	random := tr.Rand
	baselines := []trimtab.Amount{units(2), trimtab.Unlimited(), units(1.25)}
	h := newHost(t, baselines...)
	h.config.Dir = t.TempDir()
	if err := unix.Mount("tmpfs", h.config.Dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("cannot mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(h.config.Dir, unix.MNT_DETACH) })
	kinds := map[string]int{}
	for range tr.N {
		kind := []string{"full before the start", "full between two plans", "a torn copy", "a flipped bit"}[random.IntN(4)]
		kinds[kind]++
		if random.IntN(4) == 0 { // a new host: its journal is not there yet
			for _, name := range []string{"journal.0", "journal.1", "actuator"} {
				if err := os.Remove(filepath.Join(h.config.Dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
			}
		}
		if kind == "full before the start" {
			fillDisk(t, h.config.Dir, random.IntN(200<<10))
		}
		h.turnedUntilKilled(tr, kind)
		if kind == "a torn copy" || kind == "a flipped bit" {
			h.damage(tr, kind)
		}
		began := time.Now()
		if _, err := actuator.Restore(t.Context(), h.config.Dir, reopen); err != nil {
			tr.Failf("%s: %v", kind, err)
		}
		tr.Took(time.Since(began))
		for i, k := range h.knobs {
			if got, err := k.Read(t.Context()); err != nil || got != baselines[i] {
				tr.Failf("%s: w%d holds %v (%v), want %v", kind, i, got, err, baselines[i])
				h.put(k, baselines[i])
			}
		}
		if err := os.Remove(filepath.Join(h.config.Dir, "fill")); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	tr.Notef("%v", kinds)
}

// turnedUntilKilled opens the actuator, carries out some plans and kills it.
// Where there is no room for a journal it does not open.
func (h *host) turnedUntilKilled(tr *trial.Trial, kind string) {
	h.t.Helper()
	a, err := actuator.OpenAt(h.t.Context(), h.config, func() time.Time { return h.wall }, func() time.Duration { return h.boot }, h.bootID)
	if err != nil {
		if kind != "full before the start" {
			tr.Failf("%s: %v", kind, err)
		}
		return
	}
	h.Actuator = a
	for sequence := range uint64(1 + tr.Rand.IntN(40)) {
		if kind == "full between two plans" && sequence == 1 {
			fillDisk(h.t.(*testing.T), h.config.Dir, tr.Rand.IntN(8<<10))
		}
		at := a.Holding()
		p := h.plan(at.Epoch+1, sequence+1)
		for i, held := range at.Targets {
			p.Actions = append(p.Actions, set(i, held.Now, units(3+float64((sequence+uint64(i))%5))))
		}
		writes := 0
		for _, k := range h.knobs {
			writes -= k.writes
		}
		o := a.Handle(h.t.Context(), p)
		for _, k := range h.knobs {
			writes += k.writes
		}
		if o.Refused != "" && writes > 0 {
			tr.Failf("%s: a refused plan wrote %d values: %s", kind, writes, o.Refused)
		}
		h.pass(time.Second)
	}
	h.crash()
}

// damage spoils one of the two copies of the journal.
func (h *host) damage(tr *trial.Trial, kind string) {
	h.t.Helper()
	name := filepath.Join(h.config.Dir, []string{"journal.0", "journal.1"}[tr.Rand.IntN(2)])
	b, err := os.ReadFile(name)
	if err != nil || len(b) == 0 {
		h.t.Fatalf("%s has %d bytes: %v", name, len(b), err)
	}
	if kind == "a torn copy" {
		b = b[:tr.Rand.IntN(len(b))]
	} else {
		b[tr.Rand.IntN(len(b))] ^= 1 << tr.Rand.IntN(8)
	}
	if err := os.WriteFile(name, b, 0o600); err != nil {
		h.t.Fatal(err)
	}
}
