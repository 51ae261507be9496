package learn_test

import (
	"fmt"
	"testing"

	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/gp"
	"github.com/trimtab/trimtab/analyzer/learn/learntest"
)

// patient is a learner that changes another: a fraction of fewer than five
// requests says too little to be learnt. The embedded Learner keeps the rest of
// the contract, also what is added to it later.
type patient struct {
	learn.Learner
}

// Name differs from that of the learner within, whose snapshots it keeps.
func (p patient) Name() string { return "patient-" + p.Learner.Name() }

// Observe still refuses what is no report.
func (p patient) Observe(o learn.Observation) error {
	if err := o.Validate(); err != nil {
		return err
	}
	if o.Requests > 0 && o.Requests < 5 {
		return nil
	}
	return p.Learner.Observe(o)
}

func newPatient() learn.Learner {
	inner, err := gp.New(0.9)
	if err != nil {
		panic(err) // the level is a constant
	}
	return patient{inner}
}

func TestThePatientLearnerIsALearner(t *testing.T) {
	learntest.Run(t, newPatient)
}

func ExampleLearner() {
	l := newPatient()
	for _, o := range []learn.Observation{
		{Allocation: 2, Load: 50, Performance: 0.97, Requests: 400},
		{Allocation: 2, Load: 50, Performance: 0, Requests: 1}, // too few
		{Allocation: -2, Load: 50},                             // no report
	} {
		fmt.Println(l.Observe(o), l.Reports())
	}
	band := l.Predict(2, 50)
	fmt.Println(band.Lower <= band.Mean && band.Mean <= band.Upper, l.Falls())
	// Output:
	// <nil> 1
	// <nil> 1
	// allocation -2: invalid 1
	// true false
}
