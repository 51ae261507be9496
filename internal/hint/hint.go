// Package hint gives an error a second line for the person at the command line: what to do. The
// first line stays the error's own. [Edits] finds the known word that is closest to an unknown one.
package hint

import (
	"errors"
	"fmt"
)

// hinted is an error with its hint.
type hinted struct {
	error
	text string
}

// Unwrap returns the cause.
func (h hinted) Unwrap() error { return h.error }

// Loopback is the hint if 127.0.0.1 cannot be reached at all.
const Loopback = "bring it up: ip link set lo up (as root, in this network namespace)"

// Add returns err with a hint; a nil err stays nil.
func Add(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return hinted{err, fmt.Sprintf(format, args...)}
}

// Else is Add if err has no hint yet: one that was added nearer to the cause, such as that
// nothing listens there, is better.
func Else(err error, format string, args ...any) error {
	if Of(err) != "" {
		return err
	}
	return Add(err, format, args...)
}

// Of returns the outermost hint of err, "" if it has none.
func Of(err error) string {
	h, _ := errors.AsType[hinted](err)
	return h.text
}

// Edits is the number of insertions, deletions, replacements and swaps of
// neighbours between a and b (optimal string alignment).
func Edits(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	var last []int
	for i := 1; i <= len(a); i++ {
		last, before, row = before, row, make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(before[j]+1, row[j-1]+1, before[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], last[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
