// Package valid has the checks that the values on the wire share: names, texts and numbers
// within bounds. Each returns nil, or an error that is [ErrInvalid] and names what was checked.
// It knows no value itself; package trimtab, speculation and colocation do.
package valid

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

const (
	// MaxText is the longest text with a reason or a location, in bytes.
	MaxText = 32 << 10
	// MaxName bounds a name, in bytes.
	MaxName = 253
	// maxBrief bounds a text that [Brief] returns.
	maxBrief = 300
)

// ErrInvalid is the error that package trimtab exports under the same name.
var ErrInvalid = errors.New("invalid")

// Errorf returns an error that reads "format: invalid" and is [ErrInvalid].
func Errorf(format string, args ...any) error {
	return fmt.Errorf("%w: %w", fmt.Errorf(format, args...), ErrInvalid)
}

// Named refuses an empty name and one of more than MaxName bytes.
func Named(what, s string) error {
	if s == "" || len(s) > MaxName {
		return Errorf("%s %.40q: want 1 to %d bytes", what, s, MaxName)
	}
	return nil
}

// Short refuses words of more than MaxName bytes; they may be empty.
func Short(what string, words ...string) error {
	for _, w := range words {
		if len(w) > MaxName {
			return Errorf("%s: %.40q: want at most %d bytes", what, w, MaxName)
		}
	}
	return nil
}

// Component refuses a component of a workload, on a host, without a name or with names of more
// than MaxName bytes. The host may be empty.
func Component(workload, component, host string) error {
	if component == "" || len(component) > MaxName || len(host) > MaxName {
		return Errorf("component %.40q of %s on host %.40q: want 1 to %d bytes, of a host at most %d", component, workload, host, MaxName, MaxName)
	}
	return nil
}

// Texts refuses texts that are longer than MaxText together.
func Texts(what string, texts ...string) error {
	n := 0
	for _, t := range texts {
		n += len(t)
	}
	if n > MaxText {
		return Errorf("%.300s: %d bytes of text, limit %d", what, n, MaxText)
	}
	return nil
}

// Brief returns the beginning of a text for people, at most maxBrief bytes of valid UTF-8.
func Brief(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxBrief)], "") }

// NonNegative refuses NaN, Inf and values below zero.
func NonNegative(name string, v float64) error {
	if IsNonNegative(v) {
		return nil
	}
	return notNonNegative(name, v)
}

// notNonNegative is separate so that NonNegative is inlined: an estimate has 300 numbers.
func notNonNegative(name string, v float64) error {
	return Errorf("%s %v: want a finite number >= 0", name, v)
}

// NoneNegative refuses NaN, Inf and values below zero in a list.
func NoneNegative(what string, all ...float64) error {
	for _, v := range all {
		if !IsNonNegative(v) {
			return notNonNegative(what+":", v)
		}
	}
	return nil
}

// IsNonNegative reports whether v is a finite number >= 0.
func IsNonNegative(v float64) bool { return v >= 0 && !math.IsInf(v, 0) }

// IsFinite reports whether v is neither NaN nor infinite.
func IsFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Finite refuses NaN and Inf.
func Finite(name string, v float64) error {
	if !IsFinite(v) {
		return Errorf("%s %v: want a finite number", name, v)
	}
	return nil
}

// Fraction refuses values outside [0, 1].
func Fraction(name string, v float64) error {
	if !(v >= 0 && v <= 1) {
		return Errorf("%s %v: want a number in [0, 1]", name, v)
	}
	return nil
}

// Amounts refuses more than most amounts of resources, and amounts that are no finite numbers
// >= 0.
func Amounts(what string, of map[string]float64, most int) error {
	if len(of) > most {
		return Errorf("%s: amounts of %d resources, limit %d", what, len(of), most)
	}
	for resource, v := range of {
		if err := Named(what+": amount of", resource); err != nil {
			return err
		}
		if !IsNonNegative(v) {
			return notNonNegative(what+": "+resource, v)
		}
	}
	return nil
}
