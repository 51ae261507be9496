package actuator_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// oldJournal is the journal of a build from before knobs had one name: w0 was
// written from 2 to 1, with a lease to the given boot time.
func oldJournal(h *host, until string) {
	h.t.Helper()
	h.put(h.knobs[0], units(1))
	j, err := hostfs.OpenJournal(h.config.Dir, h.config.JournalSize)
	if err != nil {
		h.t.Fatal(err)
	}
	undo := base64.StdEncoding.EncodeToString(h.knobs[0].Undo())
	if err := j.Append(
		hostfs.Entry{Key: "position", Value: []byte(`{"epoch":1,"sequence":7,"step":1}`)},
		hostfs.Entry{Key: "lease", Value: []byte(`{"boot":"boot-1","until_ns":` + until + `,"length_s":30}`)},
		hostfs.Entry{Key: "knob/cpu/w0", Value: fmt.Appendf(nil, `{"target":"w0","resource":"cpu","undo":%q,"baseline":2,"wrote":[1]}`, undo)},
	); err != nil {
		h.t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		h.t.Fatal(err)
	}
}

func TestTheJournalOfAnOlderBuildIsTakenOver(t *testing.T) {
	h := newHost(t, units(2))
	oldJournal(h, "3610000000000") // 10 s from now
	h.open()
	if k := h.Holding().Targets[0]; k.Baseline != units(2) || k.Now != units(1) || k.Problem != "" {
		t.Errorf("knob %+v: want a baseline of 2, not restored", k)
	}
	// What it writes again replaces the old record: it restores once.
	if got := h.statuses(h.plan(1, 8, set(0, units(1), units(1.5)))); got[0] != trimtab.Written {
		t.Errorf("status %v", got)
	}
	h.crash().open()
	if err := h.Close(context.Background()); err != nil {
		t.Error(err)
	}
	h.want(units(2))
	if r, err := actuator.Restore(t.Context(), h.config.Dir, reopen); err != nil || len(r.Items) != 0 || r.Damaged != 0 {
		t.Errorf("left in the journal: %+v, %v", r, err)
	}
}

func TestTheBaselineInAJournalOfAnOlderBuildIsRestoredWhenTheLeaseEndsAndByHand(t *testing.T) {
	for name, restore := range map[string]func(*host) error{
		"at start": func(h *host) error { h.open(); return nil },
		"by hand": func(h *host) error {
			_, err := actuator.Restore(t.Context(), h.config.Dir, reopen)
			return err
		},
		"of a knob that is not declared any more": func(h *host) error {
			h.config.Targets = nil
			h.open()
			return nil
		},
	} {
		h := newHost(t, units(2))
		oldJournal(h, "1")
		if err := restore(h); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		h.want(units(2))
	}
}

func TestAJournalIsThatOfTheKnobsThoughHostAndPoolAreNamedAnew(t *testing.T) {
	h := newHost(t, units(2)).open()
	h.statuses(h.plan(1, 1, set(0, units(2), units(1))))
	h.crash()
	h.config.Host, h.config.Pool = "renamed", "renamed"
	h.open()
	if k := h.Holding().Targets[0]; k.Baseline != units(2) || k.Now != units(1) || k.Host != "renamed" || k.Pool != "renamed" {
		t.Errorf("knob %+v: want the baseline of 2, under the new names", k)
	}
}
