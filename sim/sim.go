package sim

import (
	"errors"
	"fmt"
	"slices"

	"github.com/trimtab/trimtab"
)

// Runner calls work with 0 to n-1, once each, in any order and perhaps at the
// same time, and returns when all calls have.
type Runner func(n int, work func(i int))

// InOrder is a Runner that makes the calls one after the other.
func InOrder(n int, work func(i int)) {
	for i := range n {
		work(i)
	}
}

// ErrStopped is the error of a run that was told to stop.
var ErrStopped = errors.New("stopped")

// UnknownError says that a name is not that of any policy, load or the like.
type UnknownError struct {
	What, Name string
	Known      []string
}

// Error returns a message with the name.
func (e *UnknownError) Error() string { return fmt.Sprintf("%s %.60q: unknown", e.What, e.Name) }

// Unwrap returns trimtab.ErrInvalid.
func (*UnknownError) Unwrap() error { return trimtab.ErrInvalid }

// Known returns an *UnknownError for the first name that is not among the known ones.
func Known(what string, names, known []string) error {
	for _, name := range names {
		if !slices.Contains(known, name) {
			return &UnknownError{what, name, known}
		}
	}
	return nil
}
