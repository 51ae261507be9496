package planner_test

import (
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
)

// over lets time pass until the alert on a is over by what plans say, and returns after how long.
func (l *lender) over(step, most time.Duration) time.Duration {
	l.t.Helper()
	for from := l.now; l.now.Sub(from) <= most; {
		l.now = l.now.Add(step)
		l.take(l.host.holding(l.now))
		told(l.Planner, l.now, map[string]float64{"a": 0.5, "b": 2, "c": 2})
		for _, plan := range l.take(nil) {
			if _, fires := plan.Alarms["a"]; !fires {
				return l.now.Sub(from)
			}
		}
	}
	l.t.Fatalf("the alert still fires after %v", most)
	return 0
}

func TestAnAlertThatIsNeverResolvedEnds(t *testing.T) {
	for _, c := range []struct {
		name  string
		until time.Duration // of the sender; 0: it gives none
		want  time.Duration
	}{
		{"by our own bound", 0, 5 * time.Hour},
		{"at the end that its sender gave", 7 * time.Minute, 7 * time.Minute},
		{"by our own bound where the sender's end is later", 100 * time.Hour, 5 * time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := lend(t)
			l.after(time.Second, 3, true)
			a := slow(l.now, "f1", true)
			a.Started = l.now.Add(-time.Minute)
			if c.until > 0 {
				a.Until = l.now.Add(c.until)
			}
			l.take(a)
			plans := l.take(&trimtab.Command{Pool: "p", Verb: trimtab.Round, Time: l.now})
			if fires := plans[0].Alarms["a"]; fires.Name != "Slow" || fires.More != 0 || fires.Since.IsZero() || !fires.Until.Equal(l.now.Add(c.want)) {
				t.Errorf("the plan says %+v, want the end after %v", fires, c.want)
			}
			high := l.a()
			if got := l.over(time.Minute, 6*time.Hour); got < c.want || got > c.want+11*time.Minute {
				t.Errorf("over after %v, want %v and a round", got, c.want)
			}
			if l.a() >= high {
				t.Errorf("it still has %v", l.a())
			}
		})
	}
}

func TestARepeatedAlertHoldsForLongerAndStartsNoRound(t *testing.T) {
	l := lend(t)
	l.after(time.Second, 3, true)
	for range 3 { // 6 h, each time before its end
		l.now = l.now.Add(2 * time.Hour)
		if got := l.take(slow(l.now, "f1", true)); len(got) > 0 {
			t.Errorf("a repetition started %v", got[0].Cause)
		}
	}
	if got := l.over(time.Minute, 6*time.Hour); got < 5*time.Hour {
		t.Errorf("over %v after the last repetition", got)
	}
}

func TestTheEndOfAnAlertOutlivesARestart(t *testing.T) {
	for _, build := range []string{"this one", "one that knew no end"} {
		l := lend(t)
		l.after(time.Second, 3, true)
		state := l.Snapshot()["planner"]
		if build != "this one" {
			// Builds that sealed nothing wrote so.
			state = []byte(`{"a": {"unit": 0.1, "loan": {"name": "Slow", "firing": {"f1": true}, "base": 1}}}`)
		}
		next := lend(t)
		next.now = l.now.Add(time.Hour)
		p := next.Planner
		if err := p.Restore("planner", state); err != nil {
			t.Fatal(err)
		}
		want := 4 * time.Hour // of five
		if build != "this one" {
			want = 5 * time.Hour
		}
		if got := next.over(time.Minute, 6*time.Hour); got < want-time.Minute || got > want+11*time.Minute {
			t.Errorf("%s: over %v after the restart, want %v", build, got, want)
		}
	}
}

func TestAWorkloadThatStaysSaysThatAnAlertFires(t *testing.T) {
	l := lend(t)
	l.after(time.Second, 1, true)
	l.now = l.now.Add(15 * time.Second)
	told(l.Planner, l.now, map[string]float64{"a": 0.5, "b": 2, "c": 2})
	plans := l.take(&trimtab.Command{Pool: "p", Verb: trimtab.Round, Time: l.now})
	if why := plans[0].Unmoved["a"].Text; !strings.Contains(why, "alert Slow fires") {
		t.Errorf("a stays since %q", why)
	}
}
