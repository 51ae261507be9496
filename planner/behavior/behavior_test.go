package behavior

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
)

func start() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

func after(seconds int) time.Time { return start().Add(time.Duration(seconds) * time.Second) }

// block reads a block as a user writes it.
func block(t *testing.T, text string) *Behavior {
	t.Helper()
	if text == "" {
		return nil
	}
	b := &Behavior{}
	if err := json.Unmarshal([]byte(text), b); err != nil {
		t.Fatal(err)
	}
	if err := b.Validate(); err != nil {
		t.Fatal(err)
	}
	return b
}

// move is one look of the autoscaler, and what it shall do.
type move struct{ at, wanted, want int }

// follow plays an autoscaler whose numbers are written at once.
func follow(t *testing.T, text string, in Bounds, current int, moves []move) {
	t.Helper()
	b, s := block(t, text), &State{}
	for i, m := range moves {
		d := s.Step(after(m.at), b, in, current, m.wanted)
		if d.Replicas != m.want {
			t.Errorf("%s: move %d: from %d, %d wanted, at %d s: %d (%s), want %d", text, i, current, m.wanted, m.at, d.Replicas, d.Reason, m.want)
		}
		s.Changed(after(m.at), b, current, d.Replicas)
		current = d.Replicas
	}
}

func wide() Bounds { return Bounds{1, 1000} }

func TestRule1DefaultRulesFillInOnlyIfBehaviorIsGivenAtAll(t *testing.T) {
	// Up: at most the greater of 4 pods and 100% in 15 s.
	follow(t, `{}`, wide(), 3, []move{{0, 50, 7}, {1, 50, 7}, {15, 50, 14}, {30, 50, 28}})
	follow(t, `{"scaleUp": {}}`, wide(), 10, []move{{0, 50, 20}, {14, 50, 20}})
	// Down: a window of 300 s, then everything at once.
	follow(t, `{"scaleUp": {"stabilizationWindowSeconds": 0}}`, wide(), 30, []move{{0, 2, 30}, {299, 2, 30}, {300, 2, 2}})
	// Without: at most max(2 x current, 4) up at every look, nothing else limits it.
	follow(t, "", wide(), 1, []move{{0, 50, 4}, {1, 50, 8}, {2, 50, 16}, {3, 50, 32}, {4, 50, 50}})
	// Down at once after the same window, to any number.
	follow(t, "", wide(), 30, []move{{0, 2, 30}, {300, 2, 30}, {301, 2, 2}})
}

func TestRule1NoPoliciesAreAnError(t *testing.T) {
	b := &Behavior{}
	if err := json.Unmarshal([]byte(`{"scaleUp": {"policies": []}}`), b); err != nil {
		t.Fatal(err)
	}
	if err := b.Validate(); !errors.Is(err, trimtab.ErrInvalid) || !strings.Contains(err.Error(), "behavior.scaleUp.policies") {
		t.Errorf("error %v", err)
	}
}

func TestRule2NothingChangesWithinTheToleranceBothEndsIncluded(t *testing.T) {
	// Powers of two, so that a sum is what it looks like.
	up, down := 0.25, 0.5
	b := &Behavior{Up: &Rules{Tolerance: &up}, Down: &Rules{Tolerance: &down}}
	for _, c := range []struct {
		t     Tolerance
		ratio float64
		holds bool
	}{
		{b.Tolerance(), 1.25, true}, {b.Tolerance(), 1.2501, false}, {b.Tolerance(), 0.5, true}, {b.Tolerance(), 0.4999, false},
		{(*Behavior)(nil).Tolerance(), 1.1, true}, {(*Behavior)(nil).Tolerance(), 1.11, false},
		{(*Behavior)(nil).Tolerance(), 0.9, true}, {(*Behavior)(nil).Tolerance(), 0.89, false},
		{(&Behavior{}).Tolerance(), 1.1, true}, {(&Behavior{Up: b.Up}).Tolerance(), 0.9, true}, {(&Behavior{Up: b.Up}).Tolerance(), 0.8, false},
		{Tolerance{}, 1, true}, {Tolerance{}, 1.0001, false},
	} {
		if got := c.t.Holds(c.ratio); got != c.holds {
			t.Errorf("%+v at %v: %v, want %v", c.t, c.ratio, got, c.holds)
		}
	}
}

func TestRule3ANumberIsRaisedToTheLowestOfTheUpWindowAndLoweredToTheHighestOfTheDownWindow(t *testing.T) {
	both := `{"scaleUp": {"stabilizationWindowSeconds": 60, "policies": [{"type": "Pods", "value": 100, "periodSeconds": 1}]},
		"scaleDown": {"stabilizationWindowSeconds": 120}}`
	// The lowest of the last 60 s counts for a rise; a window's own end is out of it.
	follow(t, both, wide(), 5, []move{{0, 9, 5}, {15, 7, 5}, {30, 12, 5}, {59, 12, 5}, {60, 12, 7}, {75, 12, 12}})
	// The highest of the last 120 s counts for a fall.
	follow(t, both, wide(), 10, []move{{0, 4, 10}, {60, 6, 10}, {119, 3, 10}, {120, 3, 6}, {179, 3, 6}, {180, 3, 3}})
	// The first sight counts as a recommendation of the number that is there.
	follow(t, `{"scaleUp": {"stabilizationWindowSeconds": 30}}`, wide(), 5, []move{{0, 8, 5}, {29, 8, 5}, {30, 8, 8}})
}

func TestRule4EachPolicyCountsFromTheNumberAtTheBeginningOfItsPeriod(t *testing.T) {
	now := `{"scaleUp": {"policies": [{"type": "Pods", "value": 4, "periodSeconds": 60}]}, "scaleDown": {"stabilizationWindowSeconds": 0, "policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}]}}`
	follow(t, now, wide(), 10, []move{{0, 13, 13}, {15, 20, 14}, {30, 20, 14}, {60, 20, 17}, {75, 20, 18}})
	// What this autoscaler removed in the period counts as there at its beginning.
	follow(t, now, wide(), 10, []move{{0, 5, 8}, {30, 5, 8}, {45, 30, 14}, {60, 5, 6}})
	// Percent is rounded up on the way up, towards zero on the way down.
	follow(t, `{"scaleUp": {"policies": [{"type": "Percent", "value": 10, "periodSeconds": 15}]}, "scaleDown": {"stabilizationWindowSeconds": 0, "policies": [{"type": "Percent", "value": 10, "periodSeconds": 15}]}}`,
		wide(), 11, []move{{0, 50, 13}, {15, 50, 15}, {30, 1, 13}, {45, 1, 11}, {60, 1, 9}})
}

func TestRule4MaxTakesTheGreatestChangeMinTheLeastDisabledNone(t *testing.T) {
	rule := func(choice string) string {
		p := `"policies": [{"type": "Pods", "value": 3, "periodSeconds": 60}, {"type": "Percent", "value": 50, "periodSeconds": 60}]`
		return `{"scaleUp": {"selectPolicy": "` + choice + `", ` + p + `}, "scaleDown": {"stabilizationWindowSeconds": 0, "selectPolicy": "` + choice + `", ` + p + `}}`
	}
	follow(t, rule("Max"), wide(), 20, []move{{0, 100, 30}})
	follow(t, rule("Max"), wide(), 20, []move{{0, 1, 10}})
	follow(t, rule("Min"), wide(), 20, []move{{0, 100, 23}})
	follow(t, rule("Min"), wide(), 20, []move{{0, 1, 17}})
	follow(t, rule("Disabled"), wide(), 20, []move{{0, 100, 20}, {60, 1, 20}})
}

func TestRule4ANumberNeverGoesPastTheCurrentOneInTheWrongDirection(t *testing.T) {
	b := block(t, `{"scaleUp": {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}]}, "scaleDown": {"stabilizationWindowSeconds": 0, "policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}]}}`)
	s := &State{}
	s.Changed(after(0), b, 5, 15) // more than a policy allows, as when the block was changed
	if d := s.Step(after(1), b, wide(), 15, 20); d.Replicas != 15 || d.Reason != UpLimit {
		t.Errorf("rise: %+v, want 15", d)
	}
	s = &State{}
	s.Changed(after(0), b, 15, 5)
	if d := s.Step(after(1), b, wide(), 5, 2); d.Replicas != 5 || d.Reason != DownLimit {
		t.Errorf("fall: %+v, want 5", d)
	}
}

func TestRule4ACurrentNumberOutOfBoundsIsSetToTheBoundAtOnce(t *testing.T) {
	for _, text := range []string{"", `{}`, `{"scaleUp": {"selectPolicy": "Disabled"}, "scaleDown": {"selectPolicy": "Disabled"}}`} {
		follow(t, text, Bounds{4, 10}, 2, []move{{0, 2, 4}})
		follow(t, text, Bounds{4, 10}, 30, []move{{0, 30, 10}})
		// Somebody has switched it off.
		follow(t, text, Bounds{4, 10}, 0, []move{{0, 9, 0}})
	}
	follow(t, `{}`, Bounds{4, 10}, 9, []move{{0, 30, 10}, {299, 1, 10}, {300, 1, 4}})
}

func TestRule5WhatIsKnownOfThePastSurvivesARestart(t *testing.T) {
	b := block(t, `{"scaleDown": {"stabilizationWindowSeconds": 120, "policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}}`)
	s := &State{}
	s.Step(after(0), b, wide(), 10, 14)
	s.Changed(after(0), b, 10, 14)
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	again := &State{}
	if err := json.Unmarshal(text, again); err != nil {
		t.Fatal(err)
	}
	for at := 15; at < 300; at += 15 {
		d, e := s.Step(after(at), b, wide(), 14, 5), again.Step(after(at), b, wide(), 14, 5)
		if d != e {
			t.Fatalf("at %d s: %+v, after a restart %+v", at, d, e)
		}
	}
	if !reflect.DeepEqual(s, again) {
		t.Errorf("states differ: %+v, %+v", s, again)
	}
}

func TestRule5ChangesByOthersAreNotCounted(t *testing.T) {
	b := block(t, `{"scaleUp": {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}]}}`)
	s := &State{}
	s.Step(after(0), b, wide(), 4, 4)
	// Somebody else set 10: the rate counts from there.
	if d := s.Step(after(15), b, wide(), 10, 20); d.Replicas != 12 {
		t.Errorf("%+v, want 12", d)
	}
}

func TestRule6OfAMetricThatCannotBeReadUpIsAllowedAndDownIsNot(t *testing.T) {
	missing := Reading{Missing: true}
	for _, c := range []struct {
		readings []Reading
		want     int
		ok       bool
	}{
		{[]Reading{{Replicas: 8}, {Replicas: 6}}, 8, true}, {[]Reading{{Replicas: 3}}, 3, true},
		{[]Reading{missing, {Replicas: 8}}, 8, true}, {[]Reading{{Replicas: 3}, missing}, 5, false},
		{[]Reading{{Replicas: 5}, missing}, 5, true}, {[]Reading{missing, missing}, 5, false}, {nil, 5, false},
	} {
		if got, ok := Combine(5, c.readings); got != c.want || ok != c.ok {
			t.Errorf("%v: %d, %v, want %d, %v", c.readings, got, ok, c.want, c.ok)
		}
	}
}

func TestRule7TheControllerLooksEvery15SecondsAndAtOnceAtWhatChanged(t *testing.T) {
	if Due(after(14), start(), false) || !Due(after(15), start(), false) || !Due(after(1), start(), true) || !Due(start(), time.Time{}, false) {
		t.Error("want a look after 15 s, at the first sight and at a change, and no other")
	}
}

func TestABlockThatTheAPIServerRefusesIsRefusedWithItsPlace(t *testing.T) {
	for text, place := range map[string]string{
		`{"scaleUp": {"stabilizationWindowSeconds": 3601}}`:                                       "scaleUp.stabilizationWindowSeconds",
		`{"scaleDown": {"stabilizationWindowSeconds": -1}}`:                                       "scaleDown.stabilizationWindowSeconds",
		`{"scaleUp": {"selectPolicy": "max"}}`:                                                    "scaleUp.selectPolicy",
		`{"scaleUp": {"policies": [{"type": "Pod", "value": 1, "periodSeconds": 1}]}}`:            "policies[0].type",
		`{"scaleUp": {"policies": [{"type": "Pods", "value": 0, "periodSeconds": 1}]}}`:           "policies[0].value",
		`{"scaleDown": {"policies": [{"type": "Percent", "value": 1, "periodSeconds": 1801}]}}`:   "policies[0].periodSeconds",
		`{"scaleDown": {"policies": [{"type": "Percent", "value": 1, "periodSeconds": 0}]}}`:      "policies[0].periodSeconds",
		`{"scaleDown": {"tolerance": -0.1}}`:                                                      "scaleDown.tolerance",
		`{"scaleUp": {"policies": [{"type": "Pods", "value": 3000000000, "periodSeconds": 15}]}}`: "policies[0].value",
	} {
		b := &Behavior{}
		if err := json.Unmarshal([]byte(text), b); err != nil {
			t.Fatal(err)
		}
		if err := b.Validate(); !errors.Is(err, trimtab.ErrInvalid) || !strings.Contains(err.Error(), place) {
			t.Errorf("%s: error %v, want %s named", text, err, place)
		}
	}
}

func TestANumberOfPodsLimitsNoSize(t *testing.T) {
	if err := block(t, `{"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 1}]}}`).ForSize(); err == nil || !strings.Contains(err.Error(), "a number of pods limits replicas") {
		t.Errorf("error %v", err)
	}
	if err := block(t, `{"scaleUp": {"policies": [{"type": "Percent", "value": 1, "periodSeconds": 1}]}}`).ForSize(); err != nil {
		t.Error(err)
	}
}

func TestAClockThatWasSetBackHoldsNothingLongerThanAWindow(t *testing.T) {
	b, s := block(t, `{}`), &State{}
	s.Step(after(86400), b, wide(), 20, 30)
	s.Changed(after(86400), b, 20, 30)
	for at := 0; at < 300; at += 15 {
		if d := s.Step(after(at), b, wide(), 30, 5); d.Replicas != 30 {
			t.Fatalf("at %d s: %+v", at, d)
		}
	}
	if d := s.Step(after(300), b, wide(), 30, 5); d.Replicas != 5 {
		t.Errorf("after a window: %+v, want 5", d)
	}
}
