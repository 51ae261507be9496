package trimtab

import (
	"errors"

	"github.com/trimtab/trimtab/internal/valid"
)

// The five kinds of error. Every error that leaves a package wraps one of
// them where a caller could act on the difference; test with [errors.Is].
var (
	// ErrInvalid: the input breaks its own rules; the same input fails again.
	ErrInvalid = valid.ErrInvalid
	// ErrUnsupported: this host, kernel or build cannot do it.
	ErrUnsupported = errors.New("unsupported")
	// ErrInfeasible: no allocation satisfies the constraints.
	ErrInfeasible = errors.New("infeasible")
	// ErrStale: the input was overtaken: an older epoch, an expired lease, a changed state.
	ErrStale = errors.New("stale")
	// ErrRefused: understood, possible, and not done, because a promise forbids it.
	ErrRefused = errors.New("refused")
)

// Invalidf returns an error that reads "format: invalid" and is [ErrInvalid].
func Invalidf(format string, args ...any) error {
	return valid.Errorf(format, args...)
}
