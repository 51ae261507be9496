// Package jsonvalue reads JSON in place: a [Value] is a piece of a checked
// document, and its members and elements are again pieces. Nothing is built,
// so that a document of any shape costs no more memory than its bytes.
//
// It does not decode numbers and texts before they are asked for, keeps
// duplicate keys (a reader that overwrites takes the last one), and skips each
// value once per level that is walked: cost is bytes × levels walked.
//
//	v, err := jsonvalue.Parse(body)
//	for key, member := range v.Members() { … }
package jsonvalue

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"math"
	"strconv"
	"strings"

	"github.com/trimtab/trimtab"
)

// Value is one JSON value without space around it. The zero value is an
// absent one: it has no members, no elements, no text and no number.
type Value []byte

// Parse checks the syntax of the whole document and returns it; b must not
// change while the value or its parts are used.
func Parse(b []byte) (Value, error) {
	if !json.Valid(b) {
		return nil, trimtab.Invalidf("read JSON: syntax error in %d bytes", len(b))
	}
	return Value(bytes.Trim(b, " \t\r\n")), nil
}

// IsObject reports whether v is an object.
func (v Value) IsObject() bool { return len(v) > 0 && v[0] == '{' }

// IsArray reports whether v is an array.
func (v Value) IsArray() bool { return len(v) > 0 && v[0] == '[' }

// Absent reports whether v is absent or null.
func (v Value) Absent() bool { return len(v) == 0 || v[0] == 'n' }

// Members iterates over an object; anything else has none.
func (v Value) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		for key, m := range v.Fields() {
			if !yield(string(key), m) {
				return
			}
		}
	}
}

// Fields is Members with keys that are parts of v, if they have no escapes, so that comparing
// them allocates nothing.
func (v Value) Fields() iter.Seq2[[]byte, Value] {
	return func(yield func([]byte, Value) bool) {
		if !v.IsObject() {
			return
		}
		for at := space(v, 1); v[at] != '}'; {
			end := skip(v, at)
			key := v[at:end].Raw()
			at = space(v, space(v, end)+1) // behind the colon
			end = skip(v, at)
			if !yield(key, v[at:end]) {
				return
			}
			if at = space(v, end); v[at] == ',' {
				at = space(v, at+1)
			}
		}
	}
}

// Elements iterates over an array; anything else has none.
func (v Value) Elements() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if !v.IsArray() {
			return
		}
		for at := space(v, 1); v[at] != ']'; {
			end := skip(v, at)
			if !yield(v[at:end]) {
				return
			}
			if at = space(v, end); v[at] == ',' {
				at = space(v, at+1)
			}
		}
	}
}

// First returns the first element of an array; of anything else, or an empty one, it is
// absent.
func (v Value) First() Value {
	if !v.IsArray() {
		return nil
	}
	at := space(v, 1)
	if v[at] == ']' {
		return nil
	}
	return v[at:skip(v, at)]
}

// Member returns the last member of that name, or an absent value.
func (v Value) Member(name string) (found Value) {
	for key, m := range v.Fields() {
		if string(key) == name {
			found = m
		}
	}
	return found
}

// Text returns a string's content; ok is false when v is no string.
func (v Value) Text() (text string, ok bool) {
	if len(v) < 2 || v[0] != '"' {
		return "", false
	}
	inner := v[1 : len(v)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), true
	}
	return v.unescape()
}

// Raw returns a string's content as Text does, as a part of v if it has no escapes; nil if v is
// no string.
func (v Value) Raw() []byte {
	if len(v) < 2 || v[0] != '"' {
		return nil
	}
	if inner := v[1 : len(v)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	text, _ := v.unescape()
	return []byte(text)
}

// unescape is separate from Text, so that only its result escapes to the heap.
func (v Value) unescape() (text string, ok bool) {
	if json.Unmarshal(v, &text) != nil {
		return "", false
	}
	return text, true
}

// Bool returns true or false; ok is false when v is neither.
func (v Value) Bool() (value, ok bool) {
	return string(v) == "true", string(v) == "true" || string(v) == "false"
}

// Int returns an integer written as a number, as a string, as protobuf's JSON
// writes 64-bit integers, or as the two halves {"low", "high"} of 32 bits that
// JavaScript has for them; ok is false when v is none or out of range.
func (v Value) Int() (n int64, ok bool) {
	if v.IsObject() {
		return v.halves()
	}
	text := v.Number()
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, true
	}
	if u, err := strconv.ParseUint(text, 10, 64); err == nil {
		return int64(u), true // a fixed64 over 2^63 wraps, as in the binary form
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != math.Trunc(f) || !(math.Abs(f) < 1<<63) {
		return 0, false
	}
	return int64(f), true
}

// Number returns the text of a number, with or without quotes; for another value it returns a text
// that is not a number.
func (v Value) Number() string {
	if text, ok := v.Text(); ok {
		return text
	}
	return string(v)
}

// halves reads {"low": l, "high": h}, each signed or unsigned, as h·2³² + l.
func (v Value) halves() (n int64, ok bool) {
	var low, high int64
	found := 0
	for key, half := range v.Members() {
		if key != "low" && key != "high" {
			continue
		}
		if half.IsObject() {
			return 0, false
		}
		x, isInt := half.Int()
		if !isInt || x < math.MinInt32 || x > math.MaxUint32 {
			return 0, false
		}
		if found++; key == "low" {
			low = x
		} else {
			high = x
		}
	}
	return high<<32 | int64(uint32(low)), found == 2
}

// Thousandfold returns 1000·v, rounded to an integer: nanoseconds of a number of
// microseconds, which may have a fraction. What does not fit 64 bits is the
// nearest that does; ok is false when v is no number.
func (v Value) Thousandfold() (n int64, ok bool) {
	text := v.Number()
	whole, fraction, _ := strings.Cut(text, ".")
	if i, err := strconv.ParseInt(whole, 10, 64); err == nil && i > math.MinInt64/1000 && i < math.MaxInt64/1000 && strings.Trim(fraction, "0123456789") == "" {
		// Digit by digit: a float64 has no room for nanoseconds since 1970.
		part, _ := strconv.ParseFloat("0."+fraction+"0", 64)
		if part = math.Round(1000 * part); whole[0] == '-' {
			part = -part
		}
		return 1000*i + int64(part), true
	}
	f, err := strconv.ParseFloat(text, 64)
	if (err != nil && !errors.Is(err, strconv.ErrRange)) || math.IsNaN(f) || v.IsObject() {
		return 0, false
	}
	switch f = math.Round(1000 * f); {
	case f >= math.MaxInt64:
		return math.MaxInt64, true
	case f <= math.MinInt64:
		return math.MinInt64, true
	}
	return int64(f), true
}

// space returns the offset of the first byte at or after at that is not white space.
func space(v Value, at int) int {
	for v[at] <= ' ' {
		at++
	}
	return at
}

// skip returns the offset behind the value at v[at], which is valid JSON.
func skip(v Value, at int) int {
	switch v[at] {
	case '"':
		return skipText(v, at)
	case '{', '[':
	default:
		for at < len(v) && v[at] != ',' && v[at] != '}' && v[at] != ']' && v[at] > ' ' {
			at++
		}
		return at
	}
	for depth := 0; ; {
		switch v[at] {
		case '"':
			at = skipText(v, at)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return at + 1
			}
		}
		at++
	}
}

// skipText returns the offset behind the string at v[at].
func skipText(v Value, at int) int {
	for at = special(v, at+1); v[at] != '"'; at = special(v, at+2) { // a backslash
	}
	return at + 1
}
