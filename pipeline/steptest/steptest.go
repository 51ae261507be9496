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

// Suite says how to make a step, and what inputs it gets.
type Suite struct {
	// New makes the step, which has seen nothing. All are alike.
	New func() trimtab.Step
	// Live gives the step inputs for a while: valid, in order of time, and depending only on t
	// and the outputs. Some dozens of values are enough.
	Live func(t *rapid.T, l *Life)
	// Repeats are the kinds of which a value that is delivered again, at once or
	// later, changes nothing.
	Repeats []trimtab.Kind
	// Foreign draws a valid value that the step ignores: of another workload or pool, or of a
	// kind that it does not read.
	Foreign func(t *rapid.T, now time.Time) trimtab.Value
	// Forgets says what a restart loses, where so much is lost that a restored step does not go
	// on as the old one would. Empty: nothing, and Live calls Rest.
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

// properties are those that this step must have.
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
