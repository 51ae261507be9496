package analyzer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
)

// toldOf enters the sketches of two minutes of seconds and returns what is said of them.
func toldOf(change func(*trimtab.Sketch)) *arrival {
	var a arrival
	for i := range 120 {
		from := time.Unix(int64(i), 0)
		s := &trimtab.Sketch{Workload: "w", From: from, To: from.Add(time.Second), Requests: 20, Wait: 0.3}
		change(s)
		a.observe(s)
	}
	return &a
}

func TestNotesSayWhatIsUnexpectedOfSpans(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*trimtab.Sketch)
		want   string
		held   bool
	}{
		{"quick", func(*trimtab.Sketch) {}, "", false},
		{"collected", func(s *trimtab.Sketch) { s.Wait = 5.1 }, "spans come up to 5s late", false},
		{"few too late", func(s *trimtab.Sketch) { s.Late = 0.6 }, "3% of the requests come too late to count", false},
		{"many too late", func(s *trimtab.Sketch) { s.Late = 20 }, "50% of the requests come too late to count", true},
		{"all too late", func(s *trimtab.Sketch) { s.Requests, s.Late = 0, 20 }, "100% of the requests come too late to count", true},
		{"a sender not waited for", func(s *trimtab.Sketch) { s.Missing = 0.25 }, "25% of the requests come too late to count", true},
		{"a wrong clock", func(s *trimtab.Sketch) { s.Flagged = map[string]uint64{"clock": 20} }, "the clock of a sender is wrong: its times are corrected", false},
		{"without kinds", func(s *trimtab.Sketch) { s.Unserved = 20 }, "100% of the requests are spans that serve nothing by their kind: background work, or a sender that sets no kind", false},
		{"sampled", func(s *trimtab.Sketch) { s.Adjusted = 20 }, "", false},
		{"sampled in part", func(s *trimtab.Sketch) { s.Adjusted = 12 }, "senders sample unequally: 40% of the requests come from some that do not say how, and may stand for more", false},
	} {
		a := toldOf(c.change)
		if got := strings.Join(a.notes(), "; "); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if held := a.missingInput(); (held != nil) != c.held {
			t.Errorf("%s: held %v, want %v", c.name, held, c.held)
		}
	}
}

// TestTheLoadOfASenderThatCollectsIsNeitherLateNorStale: reports come in bursts of five,
// and the workload is not held between them.
func TestTheLoadOfASenderThatCollectsIsNeitherLateNorStale(t *testing.T) {
	a, err := New(Config{Report: time.Second, Round: time.Second, Workloads: []Workload{{Name: "w"}}})
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Unix(1_800_000_000, 0)
	var held []string
	for tick := range 400 {
		now := begin.Add(time.Duration(tick) * 250 * time.Millisecond)
		if tick%20 == 0 && tick > 0 {
			for k := 5; k > 0; k-- {
				to := now.Add(-time.Duration(k-1) * time.Second)
				a.Step(now, &trimtab.Sketch{Workload: "w", From: to.Add(-time.Second), To: to, Requests: 20, Wait: trimtab.SecondsOf(now.Sub(to))})
			}
		}
		for _, v := range a.Step(now, nil) {
			if e := v.(*trimtab.Estimate); tick > 60 && e.Hold != nil {
				held = append(held, fmt.Sprint(now.Sub(begin), " ", e.Hold.Text))
			}
		}
	}
	if len(held) > 0 {
		t.Errorf("held: %v", held)
	}
}

func TestWhatHasComeSinceTheReportIsTold(t *testing.T) {
	within := func(n int, requests, under float64) []trimtab.Part {
		all := make([]trimtab.Part, n)
		for i := range all {
			all[i] = trimtab.Part{Requests: requests, Under: under}
		}
		return all
	}
	for _, c := range []struct {
		name      string
		newer     []trimtab.Part
		threshold trimtab.Seconds
		after     time.Duration
		want      *trimtab.Part
	}{
		{"a second that missed most does not count", append(within(3, 10, 10), trimtab.Part{Requests: 10}), 0.1, 0, &trimtab.Part{Requests: 30, Under: 30}},
		{"all miss", within(4, 10, 0), 0.1, 0, &trimtab.Part{Requests: 30, Under: 0}},
		{"too few", within(2, 3, 0), 0.1, 0, nil},
		{"nothing", nil, 0.1, 0, nil},
		{"another latency than the SLO's", within(4, 10, 0), 0.3, 0, nil},
		{"no sketch came lately", within(4, 10, 0), 0.1, time.Minute, nil},
	} {
		var a arrival
		to := time.Unix(1000, 0)
		s := &trimtab.Sketch{Workload: "w", From: to.Add(-time.Second), To: to, Requests: 20, Wait: 5, Threshold: c.threshold, Newer: c.newer}
		a.observe(s)
		a.foretell(s, 100*time.Millisecond, 1)
		got := a.newer(to.Add(5*time.Second + c.after))
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
