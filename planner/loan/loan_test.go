package loan_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/loan"
)

var t0 = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

func at(minutes int) time.Time { return t0.Add(time.Duration(minutes) * time.Minute) }

func alert(fingerprint string, firing bool) *trimtab.Alert {
	return &trimtab.Alert{Workload: "a", Name: "Slow", Fingerprint: fingerprint, Firing: firing, Time: t0, Started: t0}
}

func TestALoanLastsUntilTheLastAlertIsOverAndIsWhatCameOnTop(t *testing.T) {
	var l *loan.Loan
	var news bool
	for i, c := range []struct {
		a    *trimtab.Alert
		news bool
	}{
		{alert("1", false), false}, // the end of none
		{alert("1", true), true},
		{alert("1", true), false}, // once more
		{alert("2", true), true},
		{alert("1", false), false}, // the other still fires
		{alert("2", false), true},
	} {
		if l, news = l.Note(at(i), c.a, time.Hour); news != c.news {
			t.Errorf("alert %d: news %v", i, news)
		}
		if i == 1 {
			l.Begins(2)
			l.Begins(3) // it was noted before
		}
		if i > 0 && i < 5 && (!l.Fires() || l.Lent(5) != 0) {
			t.Errorf("alert %d: fires %v, %v lent", i, l.Fires(), l.Lent(5))
		}
	}
	if l.Fires() || !l.IsOver() || l.Lent(5) != 3 || l.Lent(1) != 0 {
		t.Errorf("%+v: %v of 5 lent", l, l.Lent(5))
	}
	if got := l.Because(true); got != "; it was lent for alert Slow, which is over" {
		t.Error(got)
	}
	if l, news = l.Note(at(9), alert("1", true), time.Hour); !news || !l.Fires() || l.Base != 2 {
		t.Errorf("it fires again: %+v", l)
	}
}

func TestAnAlertThatNobodySpeaksOfEnds(t *testing.T) {
	var l *loan.Loan
	l, _ = l.Note(t0, alert("1", true), time.Hour)
	early := alert("2", true)
	early.Until = at(10)
	l, _ = l.Note(t0, early, time.Hour)
	if a, fires := l.Alarm(); !fires || a.Name != "Slow" || a.More != 1 || !a.Until.Equal(at(60)) {
		t.Errorf("%+v", a)
	}
	if l.Lapse(at(11), time.Hour) {
		t.Error("both are over after 11 minutes")
	}
	if a, _ := l.Alarm(); a.More != 0 {
		t.Errorf("%+v", a)
	}
	if !l.Lapse(at(60), time.Hour) || l.Fires() || l.Lapse(at(61), time.Hour) {
		t.Errorf("%+v", l)
	}
}

func TestWhatFiresIsBounded(t *testing.T) {
	var l *loan.Loan
	for i := range 1000 {
		l, _ = l.Note(t0, alert(fmt.Sprint(i), true), time.Hour)
	}
	if len(l.Firing) > 64 || !l.Valid() {
		t.Errorf("%d fire", len(l.Firing))
	}
}

func TestALoanOfASnapshotGoesOnAndOneWithoutAnEndIsRefused(t *testing.T) {
	for state, valid := range map[string]bool{
		`null`: true,
		`{"name": "Slow", "firing": {"1": true}, "base": 1}`:          true, // of a build that knew of no end
		`{"name": "Slow", "base": 1}`:                                 false,
		`{"name": "Slow", "base": 1, "over": "2026-01-02T03:00:00Z"}`: true,
	} {
		var l *loan.Loan
		if err := json.Unmarshal([]byte(state), &l); err != nil || l.Valid() != valid {
			t.Errorf("%s: valid %v, %v", state, l.Valid(), err)
		}
		if l != nil && valid {
			l.Lapse(t0, time.Hour)
			if l, _ = l.Note(t0, alert("2", true), time.Hour); !l.Fires() {
				t.Errorf("%s: %+v", state, l)
			}
		}
	}
}
