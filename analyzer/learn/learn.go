// Package learn defines the interface of learners of performance curves. A curve is p(a, l), the
// performance of one workload at allocation a under load l, with bounds that hold at a stated
// confidence level. It is learned online.
//
// Source: Cilantro (OSDI'23), sections 4.1.2 and 4.2: a learner turns noisy reports into an
// estimate with lower and upper confidence bounds, and the policies plan with the bounds.
//
// The subfolders hold the learners; learntest has the tests that each must pass. The package does
// not decide which reports are good enough to learn from: see analyzer.
//
// [Learner] also has methods that only some learners can implement: whether the curve falls, where
// it bends, how often it changed, and the change of a version. Each has an answer that is right for
// a learner without that ability, which [Plain] gives. A type that wraps a learner by embedding
// Learner thus keeps all of them, and a learner that lacks one does not compile.
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

// Greatest and Least are the limits of valid numbers. They keep sums of squares from overflowing.
const Greatest, Least = 1e15, 1e-12

// Validate returns an error that is trimtab.ErrInvalid if a number is NaN, infinite or out of
// range: the allocation must be in [Least, Greatest], the others 0 or in that range, and the
// performance at most 1 if Requests is set.
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
	// Name returns the name of the learner with its version, as in "bintree/1".
	Name() string
	// Observe reads one report, in any order of time. It returns an error
	// that is trimtab.ErrInvalid, and learns nothing, when a number is NaN,
	// infinite or out of range.
	Observe(o Observation) error
	// Predict returns the band at the given allocation and load. It answers for all finite
	// arguments >= 0. Where nothing is known, the band is the whole possible range of the
	// performance.
	Predict(allocation, load float64) trimtab.Band
	// Reports returns the number of observations that the learner keeps.
	Reports() int
	// Snapshot and Restore save and restore the state over a restart: a restored learner predicts
	// exactly the same. Restore returns an error that is trimtab.ErrInvalid, and changes nothing,
	// if the bytes are not a snapshot of this learner.
	Snapshot() ([]byte, error)
	Restore(state []byte) error

	// Falls reports whether more resource makes the performance worse, with statistical
	// certainty. Otherwise curves are made non-decreasing.
	Falls() bool
	// Bends returns the allocations at which the curve bends under a load, in any order; nil if
	// unknown. A curve that is read at these points and interpolated is exactly the learner's own,
	// steps included. The caller may modify the slice.
	Bends(load float64) []float64
	// Changes returns how often the learner forgot what it knew because the curve had changed.
	Changes() int
	// Revise tells the learner that another version of the workload runs from now on. The learner
	// may keep the curve as a guess, with a wider band, that new observations soon outweigh; or it
	// may do nothing.
	Revise()
}

// Plain is for embedding by learners whose curve never falls, whose bends are unknown, and that
// detect no changes.
type Plain struct{}

// Falls returns false.
func (Plain) Falls() bool { return false }

// Bends returns nil.
func (Plain) Bends(float64) []float64 { return nil }

// Changes returns 0.
func (Plain) Changes() int { return 0 }

// Revise does nothing.
func (Plain) Revise() {}
