package overload_test

import (
	"testing"
	"time"

	"github.com/trimtab/trimtab/planner/overload"
	"github.com/trimtab/trimtab/planner/welfare"
)

// count has the kernel count what each member used, and who was stopped.
func (w *world) count(used float64, stopped bool) {
	for i := range w.members {
		w.members[i].Used, w.members[i].Stopped = used, stopped
	}
}

// late has one second pass in which all three want half of the pool, and half of their requests
// are in time.
func (w *world) late(second int) overload.Verdict {
	return w.second(second, []float64{.5, .5, .5}, []float64{.5, .5, .5})
}

func TestALimitThatIsUsedUpForLessThanFiveSecondsGivesNobodyUp(t *testing.T) {
	w := newWorld(welfare.Social{}, 3)
	for second := range 30 {
		w.count(.33, second%10 < 4) // a pause of three seconds and more is the end of a queue
		if !w.members[0].Stopped {
			w.count(.2, false)
		}
		if got := w.late(second); got != overload.Fits {
			t.Fatalf("second %d: verdict %d", second, got)
		}
	}
	for second := 30; second < 36; second++ {
		w.count(.33, true)
		if got, want := w.late(second), second >= 35; (got == overload.Chosen) != want {
			t.Errorf("second %d: verdict %d", second, got)
		}
	}
}

func TestAnOverloadEndsOnceTheKernelStopsNobodyWhateverReportsStillTell(t *testing.T) {
	w := newWorld(welfare.Social{}, 3)
	for second := range 20 {
		w.count(.33, true)
		w.late(second)
	}
	if w.ranks()[0] == 0 {
		t.Fatalf("nobody is served: %v", w.ranks())
	}
	for second := 20; second < 24; second++ {
		w.count(.1, false)
		if got, over := w.late(second), second >= 22; (got == overload.Fits) != over {
			t.Errorf("second %d: verdict %d", second, got)
		}
	}
	for second := 24; second < 40; second++ { // all of the pool is used though no limit stops anybody: they wait for CPUs
		w.count(.33, false)
		w.late(second)
	}
	if w.ranks()[0] == 0 {
		t.Error("a pool whose CPUs are used up counts as one in which everybody has enough")
	}
}

// Reports of a time that overlaps tell of the end of an overload after that time alone.
func TestAPoolThatIdlesBesideTheLimitsOfTurnsHasNoOverload(t *testing.T) {
	for used, over := range map[float64]bool{.2: true, .4: false} {
		w := newWorld(welfare.Social{}, 3)
		for second := range 20 {
			w.count(.33, true)
			w.late(second)
		}
		if capped := w.capped(); !capped[1] && !capped[2] {
			t.Fatalf("nobody has a limit: %v", w.members)
		}
		verdict := overload.Chosen
		for second := 20; second < 24; second++ {
			for i := range w.members {
				m := &w.members[i]
				if m.Used, m.Stopped = .01, m.State.Capped; !m.State.Capped {
					m.Used = used
				}
			}
			verdict = w.late(second)
		}
		if (verdict == overload.Fits) != over {
			t.Errorf("%v of the pool used: verdict %d, over: %v", used, verdict, over)
		}
	}
}

func TestWhileThePoolIsUsedUpNeedsFitOnceReportsCoverNothingElse(t *testing.T) {
	for window, ends := range map[time.Duration]int{0: 8, 20 * time.Second: 20} {
		w := newWorld(welfare.Social{}, 3)
		for i := range w.members {
			w.members[i].Window = window
		}
		for second := range 30 {
			w.count(.33, true)
			w.late(second)
		}
		if w.ranks()[0] == 0 {
			t.Fatalf("nobody is served: %v", w.ranks())
		}
		fits, since := 0, 0
		for second := 30; second < 300 && fits == 0; second++ {
			w.count(.33, true)
			verdict, wants := w.second(second, []float64{.1, .1, .1}, []float64{1, 1, 1}), 0.0
			for i := range w.members {
				wants += max(w.members[i].State.Wants, w.members[i].State.Held)
			}
			if since == 0 && wants < .92 {
				since = second
			}
			if verdict == overload.Fits {
				fits = second
			}
		}
		if got := fits - since; got < ends-1 || got > ends+1 {
			t.Errorf("reports of %v: it ended %d s after needs fit, want %d", window, got, ends)
		}
	}
}
