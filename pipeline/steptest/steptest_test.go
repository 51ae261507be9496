package steptest

import (
	"flag"
	"fmt"
	"hash/crc32"
	"runtime"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/quantity"
)

// tally is a step that adds up the loads of workload w and says on each tick what
// it has. It breaks the part of the contract that flaw names.
type tally struct {
	flaw   string
	sum    float64
	seen   map[time.Time]bool
	said   *trimtab.Estimate
	frame  []byte
	last   time.Time
	counts float64
	made   *int
}

func (s *tally) is(flaw string) bool { return s.flaw == flaw }

func (s *tally) Step(now time.Time, in trimtab.Value) []trimtab.Value {
	if s.is("stumbles over time") && now.Before(s.last) {
		panic("time goes backwards")
	}
	s.last = now
	switch v := in.(type) {
	case nil:
		return s.tell(now)
	case *trimtab.SpanFrame:
		if s.is("keeps the bytes of a frame") {
			s.frame = v.Data
		}
	case *trimtab.Sample:
		if v.Quantity == quantity.Load && (v.Workload == "w" || s.is("listens to others")) && (!s.seen[v.Time] || s.is("counts twice") || s.is("adds up without end")) {
			s.add(v)
		}
	}
	return nil
}

func (s *tally) add(v *trimtab.Sample) {
	s.seen[v.Time] = true
	switch {
	case s.is("panics") && v.Value > 1e6:
		panic("so much")
	case s.is("changes what it took"):
		v.Value++
	case s.is("adds up without end"):
	case v.Value+s.sum > 1e12:
		return
	}
	if s.sum += v.Value; s.is("has a total that falls") {
		s.sum -= 2
	}
	s.counts++
}

func (s *tally) tell(now time.Time) []trimtab.Value {
	e := &trimtab.Estimate{Workload: "w", Time: now, Model: "tally", Requests: s.sum}
	switch {
	case s.is("depends on what is no input"):
		*s.made++
		e.Reports = *s.made
	case s.is("says what is not valid"):
		e.Time = time.Time{}
	case s.is("changes what it gave") && s.said != nil:
		s.said.Requests++
	case s.is("keeps the bytes of a frame"):
		e.Reports = len(slices.Compact(slices.Clone(s.frame)))
	}
	s.said = e
	return []trimtab.Value{e}
}

func (s *tally) Counts(yield func(string, float64, ...string)) {
	if s.is("is changed by a look") {
		s.sum++
	}
	yield("sum_total", s.sum)
}

func (s *tally) Snapshot() map[string][]byte {
	if s.is("saves what changes by itself") {
		*s.made++
		return s.sealed(fmt.Sprint(s.sum, *s.made))
	}
	if s.is("saves nothing of it") {
		return s.sealed("0")
	}
	return s.sealed(fmt.Sprint(s.sum))
}

func (s *tally) sealed(text string) map[string][]byte {
	if s.is("takes damaged states") {
		return map[string][]byte{"sum": []byte(text)}
	}
	return map[string][]byte{"sum": fmt.Appendf(nil, "%08x %s", crc32.ChecksumIEEE([]byte(text)), text)}
}

func (s *tally) Restore(name string, state []byte) error {
	text := string(state)
	if !s.is("takes damaged states") && len(text) > 9 {
		text = text[9:]
	}
	var sum float64
	if _, err := fmt.Sscan(text, &sum); err != nil && !s.is("takes damaged states") {
		return trimtab.Invalidf("restore %q: %v", state, err)
	}
	if name != "sum" || string(s.sealed(text)["sum"]) != string(state) && !s.is("takes half a state") {
		return trimtab.Invalidf("restore %q", state)
	}
	s.sum = sum
	if s.is("forgets what it restored") {
		s.sum = 0
	}
	return nil
}

// suite is that of a tally.
func suite(flaw string) Suite {
	made := 0
	return Suite{
		New: func() trimtab.Step { return &tally{flaw: flaw, seen: map[time.Time]bool{}, made: &made} },
		Live: func(t *rapid.T, l *Life) {
			now := time.Unix(1_000_000_000, 0).UTC()
			for range rapid.IntRange(1, 10).Draw(t, "values") {
				now = now.Add(time.Duration(rapid.IntRange(1, 1000).Draw(t, "ms")) * time.Millisecond)
				l.Give(now, &trimtab.Sample{Workload: "w", Quantity: quantity.Load, Source: "test", Time: now, Value: float64(rapid.IntRange(1, 9).Draw(t, "load"))})
				l.Give(now, &trimtab.SpanFrame{Data: []byte(rapid.StringN(2, 9, 9).Draw(t, "frame"))})
				l.Give(now, nil)
				l.Rest()
			}
		},
		Repeats: []trimtab.Kind{trimtab.KindSample},
		Foreign: func(_ *rapid.T, now time.Time) trimtab.Value {
			return &trimtab.Sample{Workload: "x", Quantity: quantity.Load, Source: "test", Time: now, Value: 1}
		},
	}
}

// verdict is a test that notes whether it failed.
type verdict struct {
	testing.TB
	failed bool
}

func (v *verdict) Errorf(string, ...any) { v.failed = true }
func (v *verdict) Error(...any)          { v.failed = true }
func (v *verdict) Fatalf(string, ...any) { v.FailNow() }
func (v *verdict) Fatal(...any)          { v.FailNow() }
func (v *verdict) Fail()                 { v.failed = true }
func (v *verdict) Failed() bool          { return v.failed }
func (v *verdict) Logf(string, ...any)   {}
func (v *verdict) Log(...any)            {}
func (v *verdict) FailNow() {
	v.failed = true
	runtime.Goexit()
}

// fails returns the names of the properties, of all or of one, that a suite fails.
func fails(t *testing.T, s Suite, one string) (out []string) {
	for _, p := range s.properties() {
		if one != "" && p.name != one {
			continue
		}
		v := &verdict{TB: t}
		done := make(chan struct{})
		go func() {
			defer close(done)
			rapid.Check(v, func(t *rapid.T) { p.hold(t, &s) })
		}()
		<-done
		if v.failed {
			out = append(out, p.name)
		}
	}
	return out
}

// quietly makes rapid repeat itself, and leave no files.
func quietly(t *testing.T) {
	t.Helper()
	for name, value := range map[string]string{"rapid.nofailfile": "true", "rapid.shrinktime": "0s", "rapid.seed": "1"} {
		before := flag.Lookup(name).Value.String()
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = flag.Set(name, before) })
	}
}

func TestALifeThatHappensToGiveNothingIsNoFlaw(t *testing.T) {
	quietly(t)
	sparse := func(given int) Suite {
		s := suite("")
		whole := s.Live
		s.Live = func(t *rapid.T, l *Life) {
			if rapid.IntRange(0, 3).Draw(t, "is given") < given {
				whole(t, l)
			}
		}
		return s
	}
	if found := fails(t, sparse(2), ""); len(found) > 0 {
		t.Errorf("where some lives give nothing, %v fail", found)
	}
	none := sparse(0)
	if found := fails(t, none, ""); len(found) != len(none.properties()) {
		t.Errorf("where no life gives anything, only %v fail", found)
	}
}

func TestEachFlawIsFound(t *testing.T) {
	quietly(t)
	for flaw, property := range map[string]string{
		"":                             "",
		"depends on what is no input":  "TheSameInputsGiveTheSameBytes",
		"keeps the bytes of a frame":   "TheSameInputsGiveTheSameBytes",
		"changes what it took":         "WhatItTakesAndWhatItGaveAreNotChanged",
		"changes what it gave":         "WhatItTakesAndWhatItGaveAreNotChanged",
		"says what is not valid":       "WhatItGivesIsValidAndTravels",
		"listens to others":            "AForeignValueChangesNothing",
		"panics":                       "NoValidValueMakesItPanic",
		"adds up without end":          "NoValidValueMakesItPanic",
		"stumbles over time":           "TimeThatGoesBackwardsDoesNotMakeItPanic",
		"counts twice":                 "ARepeatedDeliveryChangesNothing",
		"has a total that falls":       "ItsTotalsNeverFall",
		"is changed by a look":         "ToLookAtItChangesNothing",
		"saves what changes by itself": "ToLookAtItChangesNothing",
		"forgets what it restored":     "WhatIsRestoredIsSavedAgain",
		"saves nothing of it":          "ARestoredStepGoesOnWhereItRested",
		"takes damaged states":         "ADamagedStateIsRefusedAndChangesNothing",
		"takes half a state":           "ADamagedStateIsRefusedAndChangesNothing",
	} {
		switch found := fails(t, suite(flaw), property); {
		case flaw == "" && len(found) > 0:
			t.Errorf("a step without a flaw fails %v", found)
		case flaw != "" && len(found) == 0:
			t.Errorf("a step that %s passes %s", flaw, property)
		}
	}
}
