package cli

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hint"
)

// Names are separated by commas, except within parentheses.
type Names []string

// Decode is called by kong, each time that the flag is given.
func (p *Names) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("policies", &text); err != nil {
		return fmt.Errorf("read policies: %w", err)
	}
	depth, start := 0, 0
	for i, r := range text + "," {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ',' && (depth <= 0 || i == len(text)):
			*p = append(*p, strings.TrimSpace(text[start:i]))
			start = i + 1
		}
	}
	return nil
}

// Ranged is a flag with the least and the greatest value that make sense; its
// help names them.
type Ranged struct {
	Flag             string
	Value, Low, High float64
}

// In is a flag with its range.
func In(flag string, value, low, high float64) Ranged { return Ranged{flag, value, low, high} }

// Within returns an error for the first flag that is not in its range.
func Within(flags ...Ranged) error {
	for _, f := range flags {
		if !(f.Value >= f.Low && f.Value <= f.High) {
			return trimtab.Invalidf("--%s is %v: want %s", f.Flag, f.Value, f.Span())
		}
	}
	return nil
}

// Span is the range as it is written.
func (f *Ranged) Span() string {
	return Plain(f.Low) + " to " + Plain(f.High)
}

// Plain writes a number without an exponent.
func Plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// Plottable makes the directory for figures and tries to write there, so that a bad
// one is refused before a run of minutes.
func Plottable(dir string) error {
	if dir == "" {
		return nil
	}
	const what = "name a directory that can be made and written with --plot"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return hint.Add(fmt.Errorf("make directory for figures: %w", err), what)
	}
	f, err := os.CreateTemp(dir, ".figure-*")
	if err != nil {
		return hint.Add(fmt.Errorf("write into directory for figures: %w", err), what)
	}
	if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
		return fmt.Errorf("write into directory for figures: %w", err)
	}
	return nil
}

// DidYouMean returns a hint for an unknown word.
func DidYouMean(word string, known []string) string {
	best, least := "", len(word)/2+1
	for _, k := range known {
		if d := hint.Edits(word, k); d < least {
			best, least = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %q? There are: %s", best, strings.Join(known, ", "))
	}
	return "there are: " + strings.Join(known, ", ")
}
