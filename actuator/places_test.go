package actuator_test

import (
	"os"
	"testing"

	"github.com/trimtab/trimtab/actuator"
)

func TestAPlaceIsSomebodysWhileItsOwnerLivesOrAJournalHasItsBaseline(t *testing.T) {
	h := newHost(t, units(2), units(2)).open()
	h.statuses(h.plan(1, 1, set(0, units(2), units(1))))
	want := func(when string, first, second bool) {
		t.Helper()
		got, err := actuator.Locations(t.Context(), h.config.LockDir, "cpu")
		if err != nil || len(got) != 2 || got[h.knobs[0].Path] != first || got[h.knobs[1].Path] != second {
			t.Errorf("%s: %v, %v", when, got, err)
		}
	}
	want("it lives", true, true)
	if got, err := actuator.Locations(t.Context(), h.config.LockDir, "llc", "membw"); err != nil || len(got) > 0 {
		t.Errorf("of other resources: %v, %v", got, err)
	}
	h.crash()
	want("it died, and left one baseline", true, false)
	if _, err := actuator.Restore(t.Context(), h.config.Dir, reopen); err != nil {
		t.Fatal(err)
	}
	want("that was restored", false, false)
	h.tear(1)
	want("it was killed in the middle of its last write", false, false)
	if err := os.RemoveAll(h.config.Dir); err != nil {
		t.Fatal(err)
	}
	want("the journal is gone", false, false)
	if got, err := actuator.Locations(t.Context(), h.dir+"/nowhere", "cpu"); err != nil || len(got) > 0 {
		t.Errorf("of no directory: %v, %v", got, err)
	}
}
