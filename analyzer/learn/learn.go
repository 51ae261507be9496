// Package learn holds the seam behind which performance curves are learnt
// online: p(a, l), the performance of one workload at allocation a under load
// l, with bounds that hold at their stated level.
//
// Source: Cilantro (OSDI'23), sections 4.1.2 and 4.2: a learner turns noisy
// reports into an estimate with lower and upper confidence bounds, and the
// policies plan over the bounds.
//
// The subfolders hold the learners; learntest holds what each must satisfy.
// The package does not decide what is a good report: see analyzer.
//
// What only some learners can do (tell where the curve bends, that it falls, that
// it changed; take over another version) is part of [Learner] all the same, since
// each of these has an answer that is right for a learner that cannot: [Plain]
// gives it. A type that wraps a learner by embedding Learner so keeps all of them,
// and one that forgets any does not compile.
package learn

import (
	"time"

	"github.com/trimtab/trimtab"
)

// Observation is one report of one workload.
type Observation struct {
	Time time.Time
	// Allocation is in the pool's unit, > 0; Load in requests/s, >= 0.
	Allocation, Load float64
	// Performance is >= 0, higher is better.
	Performance float64
	// Requests is how many requests Performance is the fraction of; 0 if it is not a fraction.
	// Sigma is the standard deviation of its noise; 0 if unknown. With neither, the learner
	// estimates the noise.
	Requests, Sigma float64
}

// Greatest and Least bound the numbers that are learnt, so that no sum of
// squares overflows.
const Greatest, Least = 1e15, 1e-12

// Validate returns an error that is trimtab.ErrInvalid when a number is NaN,
// infinite or out of range: allocation in [Least, Greatest], the others 0 or in
// that range, the performance of requests at most 1.
func (o Observation) Validate() error {
	for _, v := range [...]struct {
		name     string
		v        float64
		least    float64
		zeroIsOK bool
	}{
		{"allocation", o.Allocation, Least, false},
		{"load", o.Load, Least, true},
		{"performance", o.Performance, 0, true},
		{"requests", o.Requests, Least, true},
		{"sigma", o.Sigma, Least, true},
	} {
		if v.zeroIsOK && v.v == 0 {
			continue
		}
		if !(v.v >= v.least && v.v <= Greatest) {
			return trimtab.Invalidf("%s %v", v.name, v.v)
		}
	}
	if o.Requests > 0 && o.Performance > 1+1e-9 {
		return trimtab.Invalidf("performance %v of %v requests: want a fraction", o.Performance, o.Requests)
	}
	return nil
}

// Learner learns one workload's curve. Implementations are deterministic,
// hold bounded memory, and are not safe for concurrent use.
type Learner interface {
	// Name is the learner and its version, as in "bintree/1".
	Name() string
	// Observe reads one report, in any order of time. It returns an error
	// that is trimtab.ErrInvalid, and learns nothing, when a number is NaN,
	// infinite or out of range.
	Observe(o Observation) error
	// Predict returns the band at the given allocation and load. It is total:
	// it answers for any finite arguments >= 0, with the vacuous band of the
	// performance's known range where nothing is known.
	Predict(allocation, load float64) trimtab.Band
	// Reports returns how many observations the learner holds.
	Reports() int
	// Snapshot and Restore carry the state over a restart: a restored learner
	// predicts the same bits. Restore returns an error that is
	// trimtab.ErrInvalid, and changes nothing, for bytes that are not a
	// snapshot of this learner.
	Snapshot() ([]byte, error)
	Restore(state []byte) error

	// Falls reports whether more resource makes the performance worse, with statistical
	// certainty. Otherwise curves are made non-decreasing.
	Falls() bool
	// Bends returns the allocations at which the curve bends under a load, in any order; nil if
	// unknown. A curve that is read at these is exactly the learner's own, steps included. The
	// slice is the caller's.
	Bends(load float64) []float64
	// Changes returns how often the learner forgot what it knew because the curve had changed.
	Changes() int
	// Revise says that another version of the workload runs from now on. The learner keeps the
	// curve as a guess, with a wider band, which new observations soon outweigh; or it does
	// nothing.
	Revise()
}

// Plain is embedded by a learner whose curve never falls, whose bends are unknown, and that
// detects no changes.
type Plain struct{}

// Falls returns false.
func (Plain) Falls() bool { return false }

// Bends returns nil.
func (Plain) Bends(float64) []float64 { return nil }

// Changes returns 0.
func (Plain) Changes() int { return 0 }

// Revise does nothing.
func (Plain) Revise() {}
