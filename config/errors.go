package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hint"
)

// Error is one mistake in a file.
type Error struct {
	File string
	// Line and Col count from 1; Col counts characters, not bytes.
	Line, Col int
	// Message says what is wrong; Hint, what to write instead.
	Message, Hint string
}

// Error prints "file:line:col: message", and the hint on a second line.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Message)
	if e.Hint != "" {
		s += "\n  hint: " + e.Hint
	}
	return s
}

// Unwrap returns [trimtab.ErrInvalid].
func (e *Error) Unwrap() error { return trimtab.ErrInvalid }

// Errors are the mistakes of one file in order of position.
type Errors []*Error

// Error prints one mistake after the other.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the mistakes.
func (es Errors) Unwrap() []error {
	errs := make([]error, len(es))
	for i, e := range es {
		errs[i] = e
	}
	return errs
}

// maxErrors bounds what one file is answered with.
const maxErrors = 200

// ordered sorts by position, drops repetitions and cuts at maxErrors.
func (es Errors) ordered() Errors {
	slices.SortStableFunc(es, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col), cmp.Compare(a.Message, b.Message))
	})
	es = slices.CompactFunc(es, func(a, b *Error) bool { return *a == *b })
	return es[:min(len(es), maxErrors)]
}

// nearest returns the candidate that is at most a third of its length (and
// at least one edit) away from word, or "".
func nearest(word string, candidates []string) string {
	best, distance := "", 0
	lower := strings.ToLower(word)
	if len(word) > 64 {
		return ""
	}
	for _, c := range candidates {
		d := hint.Edits(lower, strings.ToLower(c))
		if (c == "min" || c == "max") && strings.HasPrefix(lower, c) {
			d = 1 // minimum, maxReplicas
		}
		closer := best == "" || d < distance || d == distance && letters(c) == letters(lower) && letters(best) != letters(lower)
		if d <= max(1, (len(c)+2)/3) && closer {
			best, distance = c, d
		}
	}
	return best
}

// letters are those of a word in order: two of them swapped are likelier a slip than one
// that is another.
func letters(word string) string {
	b := []byte(strings.ToLower(word))
	slices.Sort(b)
	return string(b)
}

// suggest returns a hint for a word that should have been a candidate.
func suggest(word string, candidates []string) string {
	if best := nearest(word, candidates); best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return "use one of: " + strings.Join(candidates, ", ")
}
