package prometheus

import (
	"errors"
	"testing"
	"time"
)

func TestASampleCountsOnlyWhenItsWindowIsCoveredSinceTheGap(t *testing.T) {
	at := func(second int) time.Time { return time.Unix(int64(1000+second), 0) }
	s := state{window: 60 * time.Second}
	ok := func(second int, age time.Duration) bool {
		return s.covered(nil, at(second), targetState{age: age, live: true}) == nil
	}
	if !ok(0, 5*time.Second) || !ok(5, 10*time.Second) {
		t.Fatal("the first answers were refused")
	}
	if s.covered(errors.New("no server"), at(10), targetState{}) == nil {
		t.Fatal("no answer is no value")
	}
	for _, second := range []int{15, 40, 74} {
		if ok(second, 0) {
			t.Errorf("%d s after the gap, of a window of 60 s: the rate counts", second-15)
		}
	}
	if !ok(75, 0) {
		t.Error("the window is covered, and the rate does not count")
	}
}

func TestAnOldScrapeIsAGapAndNoRequestsAreNone(t *testing.T) {
	at := func(second int) time.Time { return time.Unix(int64(1000+second), 0) }
	s := state{window: 20 * time.Second}
	if s.covered(nil, at(0), targetState{live: true}) != nil {
		t.Fatal("the first answer was refused")
	}
	if s.covered(nil, at(20), targetState{age: 15 * time.Second}) == nil {
		t.Error("three quarters of the window are without scrapes, and the rate counts")
	}
	if s.covered(nil, at(25), targetState{live: true}) == nil {
		t.Error("the first scrape after a gap counts")
	}
	if s.covered(nil, at(45), targetState{live: true}) != nil {
		t.Fatal("the window is covered")
	}
	if s.covered(&fault{kindNotFinite, "0/0"}, at(50), targetState{live: true}) == nil {
		t.Error("0/0 is a value")
	}
	if err := s.covered(nil, at(55), targetState{live: true}); err != nil {
		t.Errorf("after a time without requests: %v", err)
	}
}
