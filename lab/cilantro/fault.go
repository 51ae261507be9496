package cilantro

import (
	"errors"

	"github.com/trimtab/trimtab"
)

// Fault says what an experiment is refused for, for who wants to say what to do
// about it.
type Fault int

// The faults. Others are OtherFault.
const (
	OtherFault Fault = iota
	EnvironmentFault
	TraceFault
	ProfileFault
	// JobFault: an option names a job that there is not; LeaveFault: a job
	// leaves before it arrives, or not at all.
	JobFault
	LeaveFault
)

// faulty is an error whose fault is known.
type faulty struct {
	error
	fault Fault
}

func (f faulty) Unwrap() error { return f.error }

// invalidf is trimtab.Invalidf with a fault.
func invalidf(f Fault, format string, args ...any) error {
	return faulty{trimtab.Invalidf(format, args...), f}
}

// FaultOf returns the fault of an error of this package.
func FaultOf(err error) Fault {
	var f faulty
	if errors.As(err, &f) {
		return f.fault
	}
	return OtherFault
}
