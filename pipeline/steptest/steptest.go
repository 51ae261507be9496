// Package steptest is the contract of [trimtab.Step], and of
// [trimtab.Snapshotter] and [trimtab.Counted] where a step is one, as a test
// suite. Every step runs it.
//
// The suite lets a step live in surroundings that the step's own test plays,
// notes what it was given, and gives the same, or something else, to steps that
// were made anew. It does not test what a step is for.
//
//	func TestPlannerMeetsTheContractOfSteps(t *testing.T) {
//		steptest.Run(t, steptest.Suite{New: …, Live: …, Repeats: …, Foreign: …})
//	}
package steptest

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
)

// Suite says how to make a step and what its surroundings are like.
type Suite struct {
	// New makes the step, which has seen nothing. All are alike.
	New func() trimtab.Step
	// Live plays the surroundings for a while. What it gives is valid, comes in
	// order of time, and depends on nothing but t and what came out. A life of
	// some dozens of values is enough.
	Live func(t *rapid.T, l *Life)
	// Repeats are the kinds of which a value that is delivered again, at once or
	// later, changes nothing.
	Repeats []trimtab.Kind
	// Foreign draws a valid value that the step has nothing to do with: of a
	// workload or pool that is not its own, or of a kind that it does not take.
	Foreign func(t *rapid.T, now time.Time) trimtab.Value
	// Forgets says what a restart loses, where that is so much that a restored
	// step does not go on as it would have. Empty: nothing, and Live rests.
	Forgets string

	// cases are how many the property at hand was tried on.
	cases int
}

// Run runs the suite.
func Run(t *testing.T, s Suite) {
	for _, p := range s.properties() {
		t.Run(p.name, func(t *testing.T) {
			s.cases = 0
			rapid.Check(t, func(t *rapid.T) { p.hold(t, &s) })
			if s.cases == 0 && !t.Failed() {
				t.Error("no life had a case of it")
			}
		})
	}
}

// properties are those that a step of its kind has.
func (s *Suite) properties() []property {
	all := []property{
		{"TheSameInputsGiveTheSameBytes", sameBytes},
		{"WhatItTakesAndWhatItGaveAreNotChanged", unchanged},
		{"WhatItGivesIsValidAndTravels", travels},
		{"AForeignValueChangesNothing", foreign},
		{"NoValidValueMakesItPanic", anyValue},
		{"TimeThatGoesBackwardsDoesNotMakeItPanic", backwards},
	}
	if len(s.Repeats) > 0 {
		all = append(all, property{"ARepeatedDeliveryChangesNothing", repeated})
	}
	step := s.New()
	if _, ok := step.(trimtab.Counted); ok {
		all = append(all, property{"ItsTotalsNeverFall", totals})
	}
	if _, ok := step.(trimtab.Snapshotter); !ok {
		return all
	}
	all = append(all,
		property{"ToLookAtItChangesNothing", looked},
		property{"WhatIsRestoredIsSavedAgain", savedAgain},
		property{"ADamagedStateIsRefusedAndChangesNothing", damaged})
	if s.Forgets == "" {
		all = append(all, property{"ARestoredStepGoesOnWhereItRested", goesOn})
	}
	return all
}

// property is one sentence of the contract.
type property struct {
	name string
	hold func(t *rapid.T, s *Suite)
}
